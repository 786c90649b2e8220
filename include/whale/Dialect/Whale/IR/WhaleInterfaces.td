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
    The common parameters of `wh.replicate` and `wh.split`, each optional.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the number of devices that one copy of the TaskGraph requests;
      nullopt means all.
    }], "::std::optional<int64_t>", "getDevices">,
    InterfaceMethod<"Returns the scope's name, empty if it has none.",
                    "::llvm::StringRef", "getName">,
    InterfaceMethod<[{
      Returns a number that distinguishes the entries of a scope; nullopt for
      the default strategy.
    }], "::std::optional<int64_t>", "getScope">,
  ];
}

def Whale_CollectiveOp : OpInterface<"CollectiveOp"> {
  let cppNamespace = "::whale";
  let description = [{
    An operation that moves one global value from the placement `from` to the
    placement `to`. Its operand and result are this rank's shards; either is
    null if the rank holds nothing in that placement.
  }];
  let methods = [
    InterfaceMethod<"Returns the exchange's number, unique in the program.",
                    "uint64_t", "getChannel">,
    InterfaceMethod<"Returns the placement of the operand's global value.",
                    "::whale::PlacementAttr", "getFrom">,
    InterfaceMethod<"Returns the placement of the result's global value.",
                    "::whale::PlacementAttr", "getTo">,
    InterfaceMethod<"Returns this rank's shard before the exchange, or null.",
                    "::mlir::Value", "getInput", (ins), "", [{
      return $_op->getNumOperands() ? $_op->getOperand(0) : ::mlir::Value();
    }]>,
    InterfaceMethod<"Returns this rank's shard after the exchange, or null.",
                    "::mlir::Value", "getOutput", (ins), "", [{
      for (::mlir::Value result : $_op->getResults())
        if (!::llvm::isa<::whale::TokenType>(result.getType()))
          return result;
      return ::mlir::Value();
    }]>,
    InterfaceMethod<[{
      Returns the token of an exchange that continues after the operation, or
      null if the operation completes it.
    }], "::mlir::Value", "getToken", (ins), "", [{
      for (::mlir::Value result : $_op->getResults())
        if (::llvm::isa<::whale::TokenType>(result.getType()))
          return result;
      return ::mlir::Value();
    }]>,
    InterfaceMethod<[{
      Returns the number of the exchange that this is a part of, in one transfer
      with it; nullopt if it is one by itself.
    }], "::std::optional<uint64_t>", "getWith">,
  ];
}

def Whale_InPlaceOp : OpInterface<"InPlaceOp"> {
  let cppNamespace = "::whale";
  let description = [{
    An operation that can write a result into the buffer of an operand.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the results with the operands whose buffers they can use; required
      pairs first.
    }], "::llvm::SmallVector<::whale::InPlacePair>", "getInPlacePairs">,
  ];
}

#endif // WHALE_DIALECT_WHALE_IR_WHALEINTERFACES_TD
