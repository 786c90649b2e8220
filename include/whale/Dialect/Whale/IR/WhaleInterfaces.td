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
      A number that distinguishes one entry of a scope from another; none for
      the default strategy.
    }], "::std::optional<int64_t>", "getScope">,
  ];
}

def Whale_CollectiveOp : OpInterface<"CollectiveOp"> {
  let cppNamespace = "::whale";
  let description = [{
    An operation that takes the shards of one global value from the placement
    `from` to the placement `to`. Its operand and result are this rank's
    shards; a null value stands for a rank that holds nothing on that side.
  }];
  let methods = [
    InterfaceMethod<"The number that names the exchange in the whole program.",
                    "uint64_t", "getChannel">,
    InterfaceMethod<"The placement that the operand's global value has.",
                    "::whale::PlacementAttr", "getFrom">,
    InterfaceMethod<"The placement that the result's global value has.",
                    "::whale::PlacementAttr", "getTo">,
    InterfaceMethod<"This rank's shard before the exchange, or null.",
                    "::mlir::Value", "getInput", (ins), "", [{
      return $_op->getNumOperands() ? $_op->getOperand(0) : ::mlir::Value();
    }]>,
    InterfaceMethod<"This rank's shard after the exchange, or null.",
                    "::mlir::Value", "getOutput", (ins), "", [{
      for (::mlir::Value result : $_op->getResults())
        if (!::llvm::isa<::whale::TokenType>(result.getType()))
          return result;
      return ::mlir::Value();
    }]>,
    InterfaceMethod<[{
      The token of an exchange that goes on behind the operation, or null where
      it is over with it.
    }], "::mlir::Value", "getToken", (ins), "", [{
      for (::mlir::Value result : $_op->getResults())
        if (::llvm::isa<::whale::TokenType>(result.getType()))
          return result;
      return ::mlir::Value();
    }]>,
  ];
}

def Whale_InPlaceOp : OpInterface<"InPlaceOp"> {
  let cppNamespace = "::whale";
  let description = [{
    An operation that can write a result into the buffer of an operand.
  }];
  let methods = [
    InterfaceMethod<[{
      The results with the operands whose buffers they can reuse, first
      those that they must have.
    }], "::llvm::SmallVector<::whale::InPlacePair>", "getInPlacePairs">,
  ];
}

#endif // WHALE_DIALECT_WHALE_IR_WHALEINTERFACES_TD
