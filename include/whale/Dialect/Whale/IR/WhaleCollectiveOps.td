//===- WhaleCollectiveOps.td - Collectives -----------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Level 4: what the ranks of a program exchange. Operands and results are this
// rank's shards; `from` and `to` are the placements of the global value. One
// with a token among its results has only started with the operation; it is
// over with the `whale.wait` for the token (level 5).
//

#ifndef WHALE_DIALECT_WHALE_IR_WHALECOLLECTIVEOPS_TD
#define WHALE_DIALECT_WHALE_IR_WHALECOLLECTIVEOPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "whale/Dialect/Whale/IR/WhaleAttrs.td"
include "whale/Dialect/Whale/IR/WhaleInterfaces.td"

def Whale_Communication : Resource<"::whale::CommunicationResource">;

// The ranks of a channel must all reach it in the same order, so an exchange
// is an effect: it stays where it is, even if its result is unused.
class Whale_Collective<string mnemonic, list<Trait> traits = [
      MemoryEffects<[MemWrite<Whale_Communication>]>
    ]> : Whale_Op<mnemonic, traits # [Whale_CollectiveOp]> {
  let arguments = (ins Optional<AnyStaticShapeTensor>:$operand,
      I64Attr:$channel, Whale_PlacementAttr:$from, Whale_PlacementAttr:$to);
  let results = (outs
      Variadic<AnyTypeOf<[AnyStaticShapeTensor, Whale_Token]>>:$outputs);
  let assemblyFormat = [{
    ($operand^)? `channel` custom<Int>($channel)
    `from` custom<Placement>($from) `to` custom<Placement>($to) attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;

  string sharedConstraints = [{
    - `channel` is not negative.
    - Operand and result have the same element type.
    - `from` and `to` have the same number of elements; where both are partial,
      they have the same reduction.
    - In a function of a rank class (`whale.ranks`), the operand's shape is that
      of each rank's box in `from`, up to merging or splitting adjacent
      dimensions, and the result's that in `to`. A rank that holds no element
      has no operand (or result), or one without elements.

    - A token, if there is one, is the last result; one `whale.wait` in the same
      block uses it and the result before it, which nothing else uses.

    Of a value without elements, only these are required.
  }];
}

def Whale_AllReduceOp : Whale_Collective<"all_reduce", [
      MemoryEffects<[MemWrite<Whale_Communication>]>,
      DeclareOpInterfaceMethods<Whale_InPlaceOp>
    ]> {
  let summary = "every holder of a term gets the whole value";
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
    - No device has more terms pending in `to` than in `from`, and one has
      fewer.
  }] # sharedConstraints;
}

def Whale_ReduceScatterOp : Whale_Collective<"reduce_scatter"> {
  let summary = "every holder of a term gets a part of the whole value";
  let description = [{
    An all-reduce of which each device keeps a part; the parts may have
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
    - The box of each device that holds elements in `to` is in its box in
      `from`.
    - No device has more terms pending in `to` than in `from`, and one has
      fewer.
  }] # sharedConstraints;
}

def Whale_AllGatherOp : Whale_Collective<"all_gather"> {
  let summary = "every holder of a part gets a larger part or all";
  let description = [{
    `to` is `from` with split nodes replaced by replicate. The parts may have
    different sizes, or none.

    Example:
    ```mlir
    #from = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
    #to = #whale.placement<[8] replicate 2 on [0, 1]>
    %1 = whale.all_gather %0 channel 9 from #from to #to
        : (tensor<3xf32>) -> tensor<8xf32>
    ```

    **Constraints:**
    - Unless `to` is partial, in which case terms may be sliced or filled with
      the reduction's identity besides:
      - All parts are boxes in a view common to `from` and `to`.
      - Each device that holds elements in `to` is in `from`.
      - The box of each device that holds elements in `from` is in its box
        in `to`.
      - Each device that holds elements in `to` has as many terms pending in
        both.
  }] # sharedConstraints;
}

def Whale_AllToAllOp : Whale_Collective<"all_to_all"> {
  let summary = "every holder of a part gets another part";
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
    - Unless `to` is partial, in which case terms may be sliced or filled with
      the reduction's identity besides:
      - All parts are boxes in a view common to `from` and `to`.
      - Each device that holds elements in `to` is in `from`.
      - Each device that holds elements in `to` has as many terms pending in
        both.
  }] # sharedConstraints;
}

def Whale_BroadcastOp : Whale_Collective<"broadcast"> {
  let summary = "whoever holds a part gives it to several";
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
    - Nothing is partial.
    - Each box in `to` is in the box of one device in `from`.
  }] # sharedConstraints;
}

def Whale_SendRecvOp : Whale_Collective<"send_recv"> {
  let summary = "any change of placement, piece by piece";
  let description = [{
    Every receiver's box is cut along all boundaries of `from`; each cell
    comes from one device that holds it, or is the reduction of the terms of
    several. A rank that only sends has no result, one that only receives no
    operand.

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
  let summary = "a part of what the rank holds already";
  let description = [{
    Communicates nothing. Where the part starts differs by rank, which is why
    this is not a slice with constant offsets. A value that becomes partial
    stays with one device of each part; the others' new terms are filled with
    the reduction's identity and need no operand.

    Example:
    ```mlir
    #from = #whale.placement<[8] replicate 2 on [0, 1]>
    #to = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
    %1 = whale.local_slice %0 channel 13 from #from to #to
        : (tensor<8xf32>) -> tensor<3xf32>
    ```

    **Constraints:**
    - `from` is partial only if `to` is.
    - Where `to` isn't partial, and all parts are boxes in a common view, the
      box of each device that holds elements in `to` is in its box in `from`.
  }] # sharedConstraints;
}

def Whale_WaitOp : Whale_Op<"wait", [
      AttrSizedOperandSegments, MemoryEffects<[MemWrite<Whale_Communication>]>
    ]> {
  let summary = "goes on when a transfer is over";
  let description = [{
    Waits for the collective that the token is of. `for` names what it has
    received into, which is complete behind this operation, as its result;
    `keeps` what it sends from, which lives until here.

    Example: a reduction goes on beside another operation.
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
    - `for` names the collective's shard where it has one; the result has its
      type.
    - `keeps` names the collective's operand where it has one, unless it is an
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
    /// What is waited for.
    ::whale::CollectiveOp getCollective();
  }];
}

#endif // WHALE_DIALECT_WHALE_IR_WHALECOLLECTIVEOPS_TD
