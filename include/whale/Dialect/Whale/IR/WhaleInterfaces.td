//===- WhaleInterfaces.td - Interfaces ---------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEINTERFACES_TD
#define WHALE_DIALECT_WHALE_IR_WHALEINTERFACES_TD

include "mlir/IR/Interfaces.td"

def Whale_StrategyAttr : AttrInterface<"StrategyAttr"> {
  let cppNamespace = "::whale";
  let description = [{
    What `wh.replicate` and `wh.split` have in common: the parameters of the
    scope, each of which may be left out.
  }];
  let methods = [
    InterfaceMethod<[{
      The number of devices that one copy of the TaskGraph asks for; none means
      all of them.
    }], "::std::optional<int64_t>", "getDevices">,
    InterfaceMethod<"The scope's name, empty when it has none.",
                    "::llvm::StringRef", "getName">,
    InterfaceMethod<[{
      A number that tells one entry of a scope from another; none for the
      default strategy.
    }], "::std::optional<int64_t>", "getScope">,
  ];
}

#endif // WHALE_DIALECT_WHALE_IR_WHALEINTERFACES_TD
