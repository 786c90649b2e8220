//===- WhaleOffloadOps.td - State in hosts' memory ---------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Level 6: copies between the memory of a rank's device and that of its node's
// host, in which arguments and results with `whale.in_host` are. They start and
// are waited for as collectives are, in a queue of their own.
//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEOFFLOADOPS_TD
#define WHALE_DIALECT_WHALE_IR_WHALEOFFLOADOPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "whale/Dialect/Whale/IR/WhaleAttrs.td"
include "whale/Dialect/Whale/IR/WhaleInterfaces.td"

def Whale_HostCopies : Resource<"::whale::HostCopyResource">;

class Whale_HostCopy<string mnemonic> : Whale_Op<mnemonic, [
      MemoryEffects<[MemWrite<Whale_HostCopies>]>, Whale_CollectiveOp
    ]> {
  let arguments = (ins AnyStaticShapeTensor:$operand, I64Attr:$channel,
      Whale_PlacementAttr:$placement);
  let results = (outs
      Variadic<AnyTypeOf<[AnyStaticShapeTensor, Whale_Token]>>:$outputs);
  let assemblyFormat = [{
    $operand `channel` $channel `at` $placement attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::whale::PlacementAttr getFrom() { return getPlacement(); }
    ::whale::PlacementAttr getTo() { return getPlacement(); }
    std::optional<uint64_t> getWith() { return std::nullopt; }
  }];

  string sharedConstraints = [{
    - The result has the type of the operand.
    - A token, if there is one, is the last result. One `whale.wait` in the same
      block uses it and the result before it; nothing else uses either.
  }];
}

def Whale_HostToDeviceOp : Whale_HostCopy<"host_to_device"> {
  let summary = "copies a shard from the host's memory to the device's";
  let description = [{
    The operand is in the memory of the host, the result in that of the device.
    `at` is the placement of both.

    Example:
    ```mlir
    #p = #whale.placement<[8] replicate 2 on [0, 1]>
    %0, %token = whale.host_to_device %m channel 4 at #p
        : (tensor<8xf32>) -> (tensor<8xf32>, !whale.token)
    %1 = whale.wait %token for %0 keeps %m
        : (!whale.token, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ```

    **Constraints:**
  }] # sharedConstraints;
}

def Whale_DeviceToHostOp : Whale_HostCopy<"device_to_host"> {
  let summary = "copies a shard from the device's memory to the host's";
  let description = [{
    The opposite of `whale.host_to_device`: the result is what a schedule
    returns in the memory of the host.

    Example:
    ```mlir
    #p = #whale.placement<[8] replicate 2 on [0, 1]>
    %1 = whale.device_to_host %0 channel 5 at #p
        : (tensor<8xf32>) -> tensor<8xf32>
    ```

    **Constraints:**
  }] # sharedConstraints;
}

#endif // WHALE_DIALECT_WHALE_IR_WHALEOFFLOADOPS_TD
