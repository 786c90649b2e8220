//===- StableHLOCollectiveOps.td - Communication -----------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Communication as a JAX program writes it: between replicas or partitions, by
// groups of their numbers. It is input only. whale-normalize removes
// collectives of a single process, writes out those of a
// `sdy.manual_computation`, and refuses all others. What Whale's own programs
// communicate is in WhaleCollectiveOps.td.
//
// Groups are the rows of `replica_groups`, filled up with -1; verifiers check
// that no id occurs twice and that the types of operands and results belong
// together. They are in lib/Dialect/StableHLO/IR/StableHLOCollectiveOps.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOCOLLECTIVEOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOCOLLECTIVEOPS_TD

include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

// Collectives deliberately declare no memory effects, which means unknown ones:
// none may be removed, merged or reordered, because other processes would not
// do the same.

def StableHLO_AllGatherOp : StableHLO_Op<"all_gather"> {
  let summary = "Gather from a group";
  let description = [{
    Concatenates the operands of the processes of each group along
    `all_gather_dim`.

    ```mlir
    %r = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<2xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$operands, I64Attr:$all_gather_dim,
    I64ElementsAttr:$replica_groups,
    OptionalAttr<StableHLO_ChannelHandleAttr>:$channel_handle,
    UnitAttr:$use_global_device_ids);
  let results = (outs Variadic<HLO_Tensor>);
  let hasVerifier = 1;
}

def StableHLO_AllReduceOp : StableHLO_Op<"all_reduce", [SingleBlock]> {
  let summary = "Reduction over a group";
  let description = [{
    Reduces the operands of the processes of each group by the region.

    ```mlir
    %r = "stablehlo.all_reduce"(%x) <{
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$operands,
    I64ElementsAttr:$replica_groups,
    OptionalAttr<StableHLO_ChannelHandleAttr>:$channel_handle,
    UnitAttr:$use_global_device_ids);
  let regions = (region SizedRegion<1>:$computation);
  let results = (outs Variadic<HLO_Tensor>);
  let hasVerifier = 1;
}

def StableHLO_ReduceScatterOp
    : StableHLO_Op<"reduce_scatter", [SingleBlock]> {
  let summary = "Reduction over a group; each process keeps a part";
  let description = [{
    Reduces the operands of the processes of each group by the region and splits
    the result along `scatter_dimension` among them.

    ```mlir
    %r = "stablehlo.reduce_scatter"(%x) <{
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      scatter_dimension = 0 : i64}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, I64Attr:$scatter_dimension,
    I64ElementsAttr:$replica_groups,
    OptionalAttr<StableHLO_ChannelHandleAttr>:$channel_handle,
    UnitAttr:$use_global_device_ids);
  let regions = (region SizedRegion<1>:$computation);
  let results = (outs HLO_Tensor);
  let hasVerifier = 1;
}

def StableHLO_AllToAllOp : StableHLO_InferredOp<"all_to_all"> {
  let summary = "Exchange of parts in a group";
  let description = [{
    Splits the operand along `split_dimension`, sends each part to a process of
    the group and concatenates the received parts along `concat_dimension`.

    ```mlir
    %r = "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      split_count = 2 : i64, split_dimension = 1 : i64}>
      : (tensor<2x4xf32>) -> tensor<4x2xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$operands,
    I64Attr:$split_dimension, I64Attr:$concat_dimension, I64Attr:$split_count,
    I64ElementsAttr:$replica_groups,
    OptionalAttr<StableHLO_ChannelHandleAttr>:$channel_handle);
  let results = (outs Variadic<HLO_Tensor>);
  let hasVerifier = 1;
}

def StableHLO_CollectiveBroadcastOp
    : StableHLO_SameTypeOp<"collective_broadcast"> {
  let summary = "Copy from the first process of a group";
  let description = [{
    Returns the operand of the first process of each group on all its processes.

    ```mlir
    %r = "stablehlo.collective_broadcast"(%x) <{
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
      : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand, I64ElementsAttr:$replica_groups,
    OptionalAttr<StableHLO_ChannelHandleAttr>:$channel_handle);
  let results = (outs HLO_Tensor);
  let hasVerifier = 1;
}

def StableHLO_CollectivePermuteOp
    : StableHLO_SameTypeOp<"collective_permute"> {
  let summary = "Sends between pairs of processes";
  let description = [{
    Sends the operand from the first to the second of each pair; a process that
    receives nothing gets zeros.

    ```mlir
    %r = "stablehlo.collective_permute"(%x) <{
      source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}>
      : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins HLO_Tensor:$operand,
    I64ElementsAttr:$source_target_pairs,
    OptionalAttr<StableHLO_ChannelHandleAttr>:$channel_handle);
  let results = (outs HLO_Tensor);
  let hasVerifier = 1;
}

def StableHLO_PartitionIdOp
    : StableHLO_InferredOp<"partition_id", [Pure]> {
  let summary = "Partition of this process";
  let description = [{
    The number of this process's partition.

    ```mlir
    %r = stablehlo.partition_id : tensor<ui32>
    ```
  }];
  let results = (outs HLO_Tensor);
  let assemblyFormat = "attr-dict `:` type(results)";
}

def StableHLO_ReplicaIdOp : StableHLO_InferredOp<"replica_id", [Pure]> {
  let summary = "Replica of this process";
  let description = [{
    The number of this process's replica.

    ```mlir
    %r = stablehlo.replica_id : tensor<ui32>
    ```
  }];
  let results = (outs HLO_Tensor);
  let assemblyFormat = "attr-dict `:` type(results)";
}

def StableHLO_SendOp : StableHLO_Op<"send"> {
  let summary = "Send over a channel";
  let description = [{
    Sends the inputs over a channel; the token orders later operations.

    ```mlir
    %t = "stablehlo.send"(%x, %token) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
      is_host_transfer = true}>
      : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, StableHLO_Token:$token,
    StableHLO_ChannelHandleAttr:$channel_handle,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$is_host_transfer,
    OptionalAttr<I64ElementsAttr>:$source_target_pairs);
  let results = (outs StableHLO_Token);
  let hasVerifier = 1;
}

def StableHLO_RecvOp : StableHLO_Op<"recv"> {
  let summary = "Receive over a channel";
  let description = [{
    Receives values over a channel; the last result is a token.

    ```mlir
    %r:2 = "stablehlo.recv"(%token) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>,
      is_host_transfer = true}>
      : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
    ```
  }];
  let arguments = (ins StableHLO_Token:$token,
    StableHLO_ChannelHandleAttr:$channel_handle,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$is_host_transfer,
    OptionalAttr<I64ElementsAttr>:$source_target_pairs);
  let results = (outs Variadic<HLO_TensorOrToken>);
  let hasVerifier = 1;
}

def StableHLO_AsyncStartOp : StableHLO_Op<"async_start", [SingleBlock]> {
  let summary = "Start of an asynchronous operation";
  let description = [{
    Starts the collective in the region; the future provides its results.

    ```mlir
    %f = "stablehlo.async_start"(%x) ({
      ^bb0(%a: tensor<2xf32>):
        %g = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64,
          replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
          : (tensor<2xf32>) -> tensor<4xf32>
        stablehlo.return %g : tensor<4xf32>
    }) : (tensor<2xf32>) -> !stablehlo.future<tensor<4xf32>>
    ```
  }];
  let arguments = (ins Variadic<HLO_Tensor>:$operands);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs StableHLO_Future);
  let hasVerifier = 1;
}

def StableHLO_AsyncDoneOp : StableHLO_InferredOp<"async_done"> {
  let summary = "End of an asynchronous operation";
  let description = [{
    Waits for a future and returns its results.

    ```mlir
    %r = "stablehlo.async_done"(%f)
         : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins StableHLO_Future:$operand);
  let results = (outs Variadic<HLO_Value>);
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOCOLLECTIVEOPS_TD
