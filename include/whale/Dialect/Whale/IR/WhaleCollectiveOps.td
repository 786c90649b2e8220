//===- WhaleCollectiveOps.td - Collectives -----------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Level 4: the exchanges between the ranks of a program. Operands and results
// are this rank's shards; `from` and `to` are the placements of the global
// value. A collective with a token among its results is only started by the
// operation; the `whale.wait` for the token completes it (level 6).
//

#ifndef WHALE_DIALECT_WHALE_IR_WHALECOLLECTIVEOPS_TD
#define WHALE_DIALECT_WHALE_IR_WHALECOLLECTIVEOPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "whale/Dialect/Whale/IR/WhaleAttrs.td"
include "whale/Dialect/Whale/IR/WhaleInterfaces.td"

def Whale_Communication : Resource<"::whale::CommunicationResource">;

// All ranks of a channel must reach its exchanges in the same order. Therefore
// an exchange has a side effect: it isn't moved, and not removed if its result
// is unused.
class Whale_Collective<string mnemonic, list<Trait> traits = [
      MemoryEffects<[MemWrite<Whale_Communication>]>
    ]> : Whale_Op<mnemonic, traits # [Whale_CollectiveOp]> {
  let arguments = (ins Optional<AnyStaticShapeTensor>:$operand,
      I64Attr:$channel, Whale_PlacementAttr:$from, Whale_PlacementAttr:$to,
      OptionalAttr<I64Attr>:$with);
  let results = (outs
      Variadic<AnyTypeOf<[AnyStaticShapeTensor, Whale_Token]>>:$outputs);
  let assemblyFormat = [{
    ($operand^)? `channel` custom<Int>($channel)
    (`with` custom<Int>($with)^)?
    `from` custom<Placement>($from) `to` custom<Placement>($to) attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;

  string sharedConstraints = [{
    - `channel` is not negative.
    - Operand and result have the same element type.
    - `from` and `to` have the same number of elements; if both are partial,
      they have the same reduction.
    - In a `whale.schedule`, the operand's shape is that of each rank's box in
      `from`, up to merging or splitting adjacent dimensions, and the result's
      shape is that in `to`. A rank without elements has no operand (or result),
      or an empty one.

    - A token, if there is one, is the last result. One `whale.wait` in the same
      block uses it and the result before it; nothing else uses either.
    - `with`, if there is one, is another channel: this is a part of the
      transfer that is started there, right before, or before other parts of it
      (`whale-join-channels`). There is a token then.

    Values without elements have only these constraints.
  }];
}

def Whale_AllReduceOp : Whale_Collective<"all_reduce", [
      MemoryEffects<[MemWrite<Whale_Communication>]>,
      DeclareOpInterfaceMethods<Whale_InPlaceOp>
    ]> {
  let summary = "each rank passes a term and receives the whole value";
  let description = [{
    Terms are combined in the order of the leaves of `from`. Groups of devices
    that hold different boxes reduce side by side.

    Example:
    ```mlir
    #from = #whale.placement<[8] partial sum 2 on [0, 1]>
    #to = #whale.placement<[8] replicate 2 on [0, 1]>
    %1 = whale.all_reduce %0 channel 7 from #from to #to
        : (tensor<8xf32>) -> tensor<8xf32>
    ```

    **Constraints:**
    - All parts are boxes in a view common to `from` and `to`.
    - Each device that holds elements in `to` has the same box in `from`.
    - No device has more pending terms in `to` than in `from`, and some device
      has fewer.
  }] # sharedConstraints;
}

def Whale_ReduceScatterOp : Whale_Collective<"reduce_scatter"> {
  let summary = "each rank passes a term and receives a part of the value";
  let description = [{
    An all-reduce after which each device keeps a part; the parts may have
    different sizes.

    Example:
    ```mlir
    #from = #whale.placement<[8] partial sum 2 on [0, 1]>
    #to = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
    %1 = whale.reduce_scatter %0 channel 8 from #from to #to
        : (tensor<8xf32>) -> tensor<3xf32>
    ```

    **Constraints:**
    - All parts are boxes in a view common to `from` and `to`.
    - The box in `to` of each device that holds elements there is inside its box
      in `from`.
    - No device has more pending terms in `to` than in `from`, and some device
      has fewer.
  }] # sharedConstraints;
}

def Whale_AllGatherOp : Whale_Collective<"all_gather"> {
  let summary = "each rank passes a part and receives a larger part or all";
  let description = [{
    `to` is `from` with split nodes replaced by replicate. The parts may have
    different sizes, or be empty.

    Example:
    ```mlir
    #from = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
    #to = #whale.placement<[8] replicate 2 on [0, 1]>
    %1 = whale.all_gather %0 channel 9 from #from to #to
        : (tensor<3xf32>) -> tensor<8xf32>
    ```

    **Constraints:**
    - If `to` is partial, terms may also be sliced or filled with the
      reduction's identity, and only the constraints below that concern all
      collectives hold. Otherwise:
      - All parts are boxes in a view common to `from` and `to`.
      - Each device that holds elements in `to` is in `from`.
      - The box in `from` of each device that holds elements there is inside its
        box in `to`.
      - Each device that holds elements in `to` has as many pending terms in
        both.
  }] # sharedConstraints;
}

def Whale_AllToAllOp : Whale_Collective<"all_to_all"> {
  let summary = "each rank passes a part and receives another part";
  let description = [{
    A split of one dimension becomes a split of another, or sizes change.

    Example:
    ```mlir
    #from = #whale.placement<[8, 4] split 0 (3, 5) on [0, 1]>
    #to = #whale.placement<[8, 4] split 1 (2, 2) on [0, 1]>
    %1 = whale.all_to_all %0 channel 10 from #from to #to
        : (tensor<3x4xf32>) -> tensor<8x2xf32>
    ```

    **Constraints:**
    - If `to` is partial, terms may also be sliced or filled with the
      reduction's identity, and only the constraints below that concern all
      collectives hold. Otherwise:
      - All parts are boxes in a view common to `from` and `to`.
      - Each device that holds elements in `to` is in `from`.
      - Each device that holds elements in `to` has as many pending terms in
        both.
  }] # sharedConstraints;
}

def Whale_BroadcastOp : Whale_Collective<"broadcast"> {
  let summary = "the holder of a part sends it to several ranks";
  let description = [{
    A rank that only sends has no result, one that only receives no operand.

    Example:
    ```mlir
    #from = #whale.placement<[8] on [0]>
    #to = #whale.placement<[8] replicate 2 on [0, 1]>
    // This is rank 1.
    %1 = whale.broadcast channel 11 from #from to #to
        : () -> tensor<8xf32>
    ```

    **Constraints:**
    - All parts are boxes in a view common to `from` and `to`.
    - Neither placement is partial.
    - Each box in `to` is inside the box of one device in `from`.
  }] # sharedConstraints;
}

def Whale_SendRecvOp : Whale_Collective<"send_recv"> {
  let summary = "any change of placement, piece by piece";
  let description = [{
    Every receiver's box is cut along all boundaries of `from`. Each of the
    resulting cells is received from one device that holds it, or is the
    reduction of terms of several devices. A rank that only sends has no result,
    one that only receives has no operand.

    Example:
    ```mlir
    #from = #whale.placement<[8] on [0]>
    #to = #whale.placement<[8] split 0 (3, 5) on [1, 2]>
    // This is rank 0.
    whale.send_recv %0 channel 12 from #from to #to
        : (tensor<8xf32>) -> ()
    ```

    **Constraints:**
  }] # sharedConstraints;
}

def Whale_LocalSliceOp : Whale_Collective<"local_slice", [Pure]> {
  let summary = "a part of the rank's shard, without communication";
  let description = [{
    Communicates nothing. The start of the part differs by rank, so this is not
    a slice with constant offsets. If a value becomes partial, one device of
    each part keeps its value; the other devices' terms are filled with the
    reduction's identity and need no operand.

    Example:
    ```mlir
    #from = #whale.placement<[8] replicate 2 on [0, 1]>
    #to = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
    %1 = whale.local_slice %0 channel 13 from #from to #to
        : (tensor<8xf32>) -> tensor<3xf32>
    ```

    **Constraints:**
    - `from` is partial only if `to` is.
    - If `to` isn't partial, and all parts are boxes in a common view, the box
      in `to` of each device that holds elements there is inside its box in
      `from`.
  }] # sharedConstraints;
}

def Whale_WaitOp : Whale_Op<"wait", [
      AttrSizedOperandSegments, MemoryEffects<[MemWrite<Whale_Communication>]>
    ]> {
  let summary = "blocks until a transfer is complete";
  let description = [{
    Waits for the collective that defined the token. `for` is the collective's
    shard; the result of the wait is the same shard, complete. `keeps` is the
    collective's operand, whose buffer must stay intact until here.

    Example: a reduction runs concurrently with another operation.
    ```mlir
    #from = #whale.placement<[8] partial sum 2 on [0, 1]>
    #to = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
    %1, %token = whale.reduce_scatter %0 channel 7 from #from to #to
        : (tensor<8xf32>) -> (tensor<4xf32>, !whale.token)
    %2 = stablehlo.negate %x : tensor<4xf32>
    %3 = whale.wait %token for %1 keeps %0
        : (!whale.token, tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32>
    ```

    **Constraints:**
    - The token is that of a collective in the same block.
    - `for` is the collective's shard if it has one; the result has its type.
    - `keeps` is the collective's operand if it has one, except for an
      all-reduce, which receives into its operand's buffer.
  }];
  let arguments = (ins Whale_Token:$token,
      Optional<AnyStaticShapeTensor>:$received,
      Optional<AnyStaticShapeTensor>:$sent);
  let results = (outs Optional<AnyStaticShapeTensor>:$result);
  let assemblyFormat = [{
    $token (`for` $received^)? (`keeps` $sent^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the collective that is waited for.
    ::whale::CollectiveOp getCollective();
  }];
}

#endif // WHALE_DIALECT_WHALE_IR_WHALECOLLECTIVEOPS_TD
