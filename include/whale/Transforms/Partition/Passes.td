//===- Passes.td - Whale partitioning passes ---------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of level 'partitioned', from task graphs with placements and
// reshards to one `whale.schedule` for each class of ranks with equal shard
// shapes. Their order is in lib/Program/Pipelines.cpp. Before whale-partition
// tensors have global shapes, after it those of a rank; whale-verify-partition
// checks what no class can see alone.
//
// Each description has an example that a test runs. How a pass works is told in
// the file of its name in lib/Transforms/Partition.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PARTITION_PASSES_TD
#define WHALE_TRANSFORMS_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ScheduleMicroBatches
    : Pass<"whale-schedule-micro-batches", "::mlir::ModuleOp"> {
  let summary = "choose the order of a pipeline's work";
  let description = [{
    TaskGraphs whose virtual devices overlap are one stage (in the first
    replica: those of a smaller last one may share devices). Where the
    micro-batches of a `whale.micro_batches` go through several stages and back,
    writes down in which order each stage computes them: by the schedule that
    `pipeline.strategy` in `whale.config` names (`docs/schedules.md`), or else
    by the one that the cost model finds the fastest within the memory of the
    devices. A remark says why. The zero-bubble schedule splits backward task
    graphs in two: what other stages wait for, and the gradients of weights.

    A scope that the samples come back to after another stage is an error that
    names the operations on the cycle. What follows the default strategy then
    joins the chain of stages again, with a remark. `whale.chunk` distinguishes
    the task graphs of a device: `forward 0 chunk 1` is micro-batch 0 in the
    second.

    Example: two stages, two micro-batches.
    ```mlir
    module attributes {whale.config = {pipeline = {strategy = "1f1b"}}} {
      whale.cluster @cluster {
        nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}
      whale.virtual_device @vd0 [[0]]
      whale.virtual_device @vd1 [[1]]
      func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
        %0 = whale.micro_batches [0, 0](%a, %b) reduce [#whale.reduction<sum>]
            : (tensor<f32>, tensor<f32>) -> tensor<f32> {
        ^bb0(%x: tensor<f32>):
          %1 = whale.task_graph "one" forward on @vd0 -> tensor<f32> {
            whale.yield %x : tensor<f32>
          }
          %2 = whale.task_graph "two" forward on @vd1 -> tensor<f32> {
            whale.yield %1 : tensor<f32>
          }
          %3 = whale.task_graph "two" backward on @vd1 -> tensor<f32> {
            whale.yield %2 : tensor<f32>
          }
          %4 = whale.task_graph "one" backward on @vd0 -> tensor<f32> {
            whale.yield %3 : tensor<f32>
          }
          whale.yield %4 : tensor<f32>
        }
        return %0 : tensor<f32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {whale.config = {pipeline = {strategy = "1f1b"}}} {
      whale.cluster @cluster
          {nodes = [{devices = [{count = 2 : i64, kind = "cpu"} ]} ]}
      whale.virtual_device @vd0 [[0]]
      whale.virtual_device @vd1 [[1]]
      func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
        %0 = whale.micro_batches [0, 0](%arg0, %arg1)
            reduce [#whale.reduction<sum>] order [
                #whale.order<[0]: forward 0, forward 1, backward 0, backward 1>,
                #whale.order<[1]: forward 0, backward 0, forward 1, backward 1>]
            : (tensor<f32>, tensor<f32>) -> tensor<f32> {
        ^bb0(%arg2: tensor<f32>):
          %1 = whale.task_graph "one" forward on @vd0 -> tensor<f32> {
            whale.yield %arg2 : tensor<f32>
          }
          %2 = whale.task_graph "two" forward on @vd1 -> tensor<f32> {
            whale.yield %1 : tensor<f32>
          }
          %3 = whale.task_graph "two" backward on @vd1 -> tensor<f32> {
            whale.yield %2 : tensor<f32>
          }
          %4 = whale.task_graph "one" backward on @vd0 -> tensor<f32> {
            whale.yield %3 : tensor<f32>
          }
          whale.yield %4 : tensor<f32>
        }
        return %0 : tensor<f32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def RecomputeCheapValues
    : Pass<"whale-recompute-cheap-values", "::mlir::ModuleOp"> {
  let summary = "Compute cheap values again instead of keeping them";
  let description = [{
    A task graph in micro-batches that uses a value of another one, cheap to
    compute (little arithmetic, broadcasts) and for loops alone, gets the
    operations that make it. What these start from leaves the other task graph.
    Task graphs of one loop without stages are computed one behind the other
    and stay as they are.

    Example: the row is kept, not the matrix.
    ```mlir
    #row = #whale.placement<[4] on [0]>
    #whole = #whale.placement<[64, 4] on [0]>
    whale.virtual_device @vd0 [[0]]
    func.func @main(%a: tensor<4xf32> {whale.placement = #row},
                    %b: tensor<4xf32> {whale.placement = #row},
                    %x: tensor<64x4xf32> {whale.placement = #whole})
        -> tensor<64x4xf32> {
      %m = whale.task_graph "before" forward on @vd0 -> tensor<64x4xf32> {
        %t = stablehlo.reverse %a, dims = [0] {whale.placements = [#row]}
            : tensor<4xf32>
        %0 = stablehlo.broadcast_in_dim %t, dims = [1]
            {whale.placements = [#whole]} : (tensor<4xf32>) -> tensor<64x4xf32>
        whale.yield %0 : tensor<64x4xf32>
      }
      %y = whale.micro_batches [0, 0] (%a, %b)
          reduce [#whale.reduction<sum>]
          : (tensor<4xf32>, tensor<4xf32>) -> tensor<64x4xf32> {
      ^bb0(%s: tensor<4xf32>):
        %0 = whale.task_graph "in" forward on @vd0 -> tensor<64x4xf32> {
          %1 = stablehlo.add %m, %x {whale.placements = [#whole]}
              : tensor<64x4xf32>
          whale.yield %1 : tensor<64x4xf32>
        }
        whale.yield %0 : tensor<64x4xf32>
      }
      return %y : tensor<64x4xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[4] on [0]>
    #placement1 = #whale.placement<[64, 4] on [0]>
    module {
      whale.virtual_device @vd0 [[0]]
      func.func @main(%arg0: tensor<4xf32> {whale.placement = #placement},
          %arg1: tensor<4xf32> {whale.placement = #placement},
          %arg2: tensor<64x4xf32> {whale.placement = #placement1})
          -> tensor<64x4xf32> {
        %0:2 = whale.task_graph "before" forward on @vd0
            -> tensor<64x4xf32>, tensor<4xf32> {
          %2 = stablehlo.reverse %arg0, dims = [0]
              {whale.placements = [#placement]} : tensor<4xf32>
          %3 = stablehlo.broadcast_in_dim %2, dims = [1]
              {whale.placements = [#placement1]}
              : (tensor<4xf32>) -> tensor<64x4xf32>
          whale.yield %3, %2 : tensor<64x4xf32>, tensor<4xf32>
        }
        %1 = whale.micro_batches [0, 0](%arg0, %arg1)
            reduce [#whale.reduction<sum>]
            : (tensor<4xf32>, tensor<4xf32>) -> tensor<64x4xf32> {
        ^bb0(%arg3: tensor<4xf32>):
          %2 = whale.task_graph "in" forward on @vd0 -> tensor<64x4xf32> {
            %3 = stablehlo.broadcast_in_dim %0#1, dims = [1]
                {whale.placements = [#placement1]}
                : (tensor<4xf32>) -> tensor<64x4xf32>
            %4 = stablehlo.add %3, %arg2 {whale.placements = [#placement1]}
                : tensor<64x4xf32>
            whale.yield %4 : tensor<64x4xf32>
          }
          whale.yield %2 : tensor<64x4xf32>
        }
        return %1 : tensor<64x4xf32>
      }
    }
    ```
  }];
}

def RecomputeForward : Pass<"whale-recompute-forward", "::mlir::ModuleOp"> {
  let summary = "Compute values of a forward again in its backward";
  let description = [{
    What a forward makes for its backward is kept between them, and so is most
    of what a step holds at its peak. With `gradient_checkpoint.type` a backward
    computes a part of it again from what is kept:

    - `"auto"`: where devices lack memory (`lack`), so much that what is kept
      shrinks by that, in the least time. The forwards of some devices are a
      chain of pieces, between which the forward holds little. Of a piece, what
      is element-wise can be computed again, then also single products, then all
      of it, or all of several pieces at once; dynamic programming over the
      pieces chooses. Where even that saves too little, what saves most is
      taken.
    - `"collection"`: all but what the step names, with
      `jax.ad_checkpoint.checkpoint_name` (`whale.checkpoint_name`).

    Copies stand before the first operation of the backward that uses them, and
    read what is kept through a `whale.after` behind a gradient that has come by
    then. What a collective or a loop has made is kept, and what the user's
    `jax.checkpoint` computes again starts from what it would start from
    without this.

    Example: the sine is computed again from the value that is named.
    ```mlir
    #x = #whale.placement<[8] on [0]>
    module attributes {
        whale.config = {gradient_checkpoint = {type = "collection"}}} {
      whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"} ]} ]}
      whale.virtual_device @vd0 [[0]]
      func.func @main(%x: tensor<8xf32> {whale.placement = #x})
          -> tensor<8xf32> {
        %f:2 = whale.task_graph "all" forward on @vd0
            -> tensor<8xf32>, tensor<8xf32> {
          %0 = stablehlo.tanh %x {whale.placements = [#x]} : tensor<8xf32>
          %1 = stablehlo.optimization_barrier
              {whale.checkpoint_name = "kept", whale.placements = [#x]} %0
              : tensor<8xf32>
          %2 = stablehlo.sine %1 {whale.placements = [#x]} : tensor<8xf32>
          %3 = stablehlo.exponential %2 {whale.placements = [#x]}
              : tensor<8xf32>
          whale.yield %2, %3 : tensor<8xf32>, tensor<8xf32>
        }
        %b = whale.task_graph "all" backward on @vd0 -> tensor<8xf32> {
          %4 = stablehlo.negate %f#1 {whale.placements = [#x]} : tensor<8xf32>
          %5 = stablehlo.multiply %4, %f#0 {whale.placements = [#x]}
              : tensor<8xf32>
          whale.yield %5 : tensor<8xf32>
        }
        return %b : tensor<8xf32>
      }
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[8] on [0]>
    module attributes {
        whale.config = {gradient_checkpoint = {type = "collection"}}} {
      whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"} ]} ]}
      whale.virtual_device @vd0 [[0]]
      func.func @main(%arg0: tensor<8xf32> {whale.placement = #placement})
          -> tensor<8xf32> {
        %0:3 = whale.task_graph "all" forward on @vd0
            -> tensor<8xf32>, tensor<8xf32>, tensor<8xf32> {
          %2 = stablehlo.tanh %arg0 {whale.placements = [#placement]}
              : tensor<8xf32>
          %3 = stablehlo.sine %2 {whale.placements = [#placement]}
              : tensor<8xf32>
          %4 = stablehlo.exponential %3 {whale.placements = [#placement]}
              : tensor<8xf32>
          whale.yield %3, %4, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
        }
        %1 = whale.task_graph "all" backward on @vd0 -> tensor<8xf32> {
          %2 = stablehlo.negate %0#1 {whale.placements = [#placement]}
              : tensor<8xf32>
          %3 = whale.after %0#2 behind %2 {whale.placements = [#placement]}
              : tensor<8xf32>, tensor<8xf32>
          %4 = stablehlo.sine %3 {whale.placements = [#placement]}
              : tensor<8xf32>
          %5 = stablehlo.multiply %2, %4 {whale.placements = [#placement]}
              : tensor<8xf32>
          whale.yield %5 : tensor<8xf32>
        }
        return %1 : tensor<8xf32>
      }
    }
    ```
  }];
  let options = [ListOption<
      "lack", "lack", "int64_t",
      "of each device, in their order, the bytes that are to be saved">];
  let dependentDialects = ["::whale::WhaleDialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def Partition : Pass<"whale-partition", "::mlir::ModuleOp"> {
  let summary = "One schedule for each rank class";
  let description = [{
    Ranks whose shards have the same shapes form a class. Each class gets a
    `whale.schedule`, `@rank_class_N`, with the step on local shapes: operations
    rebuilt with local sizes, task graphs flattened, every reshard resolved into
    collectives. A collective has the same `channel` in all classes that take
    part. What a micro-batch computes between two collectives is a function that
    the schedule calls; `whale.moment` is the number of the call's micro-batch.

    Example: the data-parallel sum of a gradient.
    ```mlir
    #partial = #whale.placement<[8] partial sum 2 on [0, 1]>
    #whole = #whale.placement<[8] replicate 2 on [0, 1]>
    whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}
    func.func @main(%g: tensor<8xf32> {whale.placement = #partial})
        -> tensor<8xf32> {
      %0 = whale.reshard %g from #partial to #whole : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[8] replicate 2 on [0, 1]>
    #placement1 = #whale.placement<[8] partial sum 2 on [0, 1]>
    module {
      whale.cluster @cluster
          {nodes = [{devices = [{count = 2 : i64, kind = "cpu"} ]} ]}
      whale.schedule ranks [0, 1] @rank_class_0(
          %arg0: tensor<8xf32>
          {whale.global_type = tensor<8xf32>, whale.placement = #placement1})
          -> (tensor<8xf32>
          {whale.global_type = tensor<8xf32>, whale.placement = #placement}) {
        %0 = whale.all_reduce %arg0 channel 0 from #placement1 to #placement
            : (tensor<8xf32>) -> tensor<8xf32>
        whale.return %0 : tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def JoinStacks : Pass<"whale-join-stacks", "::mlir::ModuleOp"> {
  let summary = "make stacks of the pieces that stages have";
  let description = [{
    Gives the schedules of all rank classes the arguments and results of the
    user's program: the pieces that whale-divide-stacks has made of a stack
    become one again, whose placement is theirs behind each other.

    Example: each of two devices has two rows.
    ```mlir
    #w0 = #whale.placement<[2] on [0]>
    #w1 = #whale.placement<[2] on [1]>
    whale.schedule ranks [0] @rank_class_0(
        %w0: tensor<2xf32> {whale.global_type = tensor<2xf32>,
            whale.placement = #w0,
            whale.stack_piece =
                {begin = 0 : i64, stack = 0 : i64, whole = tensor<4xf32>}},
        %w1: tensor<0xf32> {whale.global_type = tensor<2xf32>,
            whale.placement = #w1,
            whale.stack_piece =
                {begin = 2 : i64, stack = 0 : i64, whole = tensor<4xf32>}}) {
      whale.return
    }
    ```
    becomes
    ```mlir
    whale.schedule ranks [0] @rank_class_0(
        %arg0: tensor<2xf32>
        {whale.global_type = tensor<4xf32>,
        whale.placement = #whale.placement<[4] split 0 (2, 2) on [0, 1]>}) {
      whale.return
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def BucketReductions : Pass<"whale-bucket-reductions", "::mlir::ModuleOp"> {
  let summary = "Join small all-reduces that are side by side";
  let description = [{
    In each `whale.schedule`, all-reduces in the same groups of
    ranks, of one element type, become one of their operands side by
    side (`whale.pack`, `whale.unpack`), up to `communication.bucket_bytes` of
    `whale.config`. Those of more than half of it stay by themselves: it is
    latency that is saved, and what is joined starts when the last is there. No
    other exchange is between what is joined, and no use of a result.

    Example:
    ```mlir
    #terms = #whale.placement<[2] partial sum 2 on [0, 1]>
    #sum = #whale.placement<[2] replicate 2 on [0, 1]>
    whale.schedule ranks [0, 1] @rank_class_0(
        %x: tensor<2xf32>, %y: tensor<2xf32>)
        -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = whale.all_reduce %x channel 0 from #terms to #sum
          : (tensor<2xf32>) -> tensor<2xf32>
      %1 = whale.all_reduce %y channel 1 from #terms to #sum
          : (tensor<2xf32>) -> tensor<2xf32>
      whale.return %0, %1 : tensor<2xf32>, tensor<2xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[4] partial sum 2 on [0, 1]>
    #placement1 = #whale.placement<[4] replicate 2 on [0, 1]>
    module {
      whale.schedule ranks [0, 1] @rank_class_0(
          %arg0: tensor<2xf32>, %arg1: tensor<2xf32>)
          -> (tensor<2xf32>, tensor<2xf32>) {
        %0 = whale.pack %arg0, %arg1
            : tensor<2xf32>, tensor<2xf32> to tensor<4xf32>
        %1 = whale.all_reduce %0 channel 0 from #placement to #placement1
            : (tensor<4xf32>) -> tensor<4xf32>
        %2:2 = whale.unpack %1
            : tensor<4xf32> to tensor<2xf32>, tensor<2xf32>
        whale.return %2#0, %2#1 : tensor<2xf32>, tensor<2xf32>
      }
    }
    ```
  }];
}

def JoinCollectives : Pass<"whale-join-collectives", "::mlir::ModuleOp"> {
  let summary = "Join small collectives that don't depend on one another";
  let description = [{
    In each `whale.schedule`, all-reduces, all-gathers and reduce-scatters in
    the same groups of ranks, of one kind and element type, become one in the
    place of the first, up to `communication.bucket_bytes` of `whale.config`.
    What the others need moves in front of it, unless that is an exchange
    itself, has side effects, or is much; also of what this keeps for others
    there is at most as much. Parts of what is gathered or scattered must be
    equal. Those of more than half of a bucket stay by themselves.

    Example: two all-gathers, the second of columns.
    ```mlir
    #parts = #whale.placement<[4] split 0 (2, 2) on [0, 1]>
    #whole = #whale.placement<[4] replicate 2 on [0, 1]>
    #part_columns = #whale.placement<[2, 2] split 1 (1, 1) on [0, 1]>
    #columns = #whale.placement<[2, 2] replicate 2 on [0, 1]>
    whale.schedule ranks [0, 1] @rank_class_0(
        %x: tensor<2xf32>, %y: tensor<2x1xf32>)
        -> (tensor<4xf32>, tensor<2x2xf32>) {
      %0 = whale.all_gather %x channel 0 from #parts to #whole
          : (tensor<2xf32>) -> tensor<4xf32>
      %1 = stablehlo.tanh %0 : tensor<4xf32>
      %2 = stablehlo.negate %y : tensor<2x1xf32>
      %3 = whale.all_gather %2 channel 1 from #part_columns to #columns
          : (tensor<2x1xf32>) -> tensor<2x2xf32>
      whale.return %1, %3 : tensor<4xf32>, tensor<2x2xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
    #placement1 = #whale.placement<[8] replicate 2 on [0, 1]>
    module {
      whale.schedule ranks [0, 1]
          @rank_class_0(%arg0: tensor<2xf32>, %arg1: tensor<2x1xf32>)
          -> (tensor<4xf32>, tensor<2x2xf32>) {
        %0 = stablehlo.negate %arg1 : tensor<2x1xf32>
        %1 = whale.pack %arg0, %0 : tensor<2xf32>, tensor<2x1xf32> to
            tensor<4xf32>
        %2 = whale.all_gather %1 channel 0 from #placement to #placement1
            : (tensor<4xf32>) -> tensor<8xf32>
        %3:4 = whale.unpack %2 : tensor<8xf32> to tensor<2xf32>, tensor<2xf32>,
            tensor<2xf32>, tensor<2xf32>
        %4 = stablehlo.reshape %3#0 : (tensor<2xf32>) -> tensor<1x2xf32>
        %5 = stablehlo.reshape %3#2 : (tensor<2xf32>) -> tensor<1x2xf32>
        %6 = stablehlo.concatenate %4, %5, dim = 1
            : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x4xf32>
        %7 = stablehlo.reshape %6 : (tensor<1x4xf32>) -> tensor<4xf32>
        %8 = stablehlo.reshape %3#1 : (tensor<2xf32>) -> tensor<2x1xf32>
        %9 = stablehlo.reshape %3#3 : (tensor<2xf32>) -> tensor<2x1xf32>
        %10 = stablehlo.concatenate %8, %9, dim = 1
            : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
        %11 = stablehlo.tanh %7 : tensor<4xf32>
        whale.return %11, %10 : tensor<4xf32>, tensor<2x2xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def DivideReductions : Pass<"whale-divide-reductions", "::mlir::ModuleOp"> {
  let summary = "Divide reductions over several nodes";
  let description = [{
    An all-reduce over several nodes, with equally many members in each, becomes
    a reduce-scatter in each node, an all-reduce of the parts across nodes, and
    an all-gather in each node, where the links of `whale.cluster` make that
    faster: each byte then crosses the network once for a node, not once for
    each of its devices. A few bytes stay one all-reduce, as three collectives
    have three latencies. What doesn't divide evenly is filled up with zeros.

    Example: two nodes of two ranks.
    ```mlir
    #terms = #whale.placement<[400] partial sum 4 on [0 to 3]>
    #sum = #whale.placement<[400] replicate 4 on [0 to 3]>
    whale.cluster @cluster {nodes = [{count = 2 : i64,
        devices = [{count = 2 : i64, kind = "cpu"} ],
        link = {bandwidth = 1.0e10, latency = 1.0e-6}} ],
        network = {bandwidth = 1.0e7, latency = 1.0e-5}}
    whale.schedule ranks [0, 1, 2, 3] @rank_class_0(%x: tensor<400xf32>)
        -> tensor<400xf32> {
      %0 = whale.all_reduce %x channel 0 from #terms to #sum
          : (tensor<400xf32>) -> tensor<400xf32>
      whale.return %0 : tensor<400xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[400] partial sum 4 on [0, 1, 2, 3]>
    #placement1 = #whale.placement<[400] partial sum 2 split 0 (200, 200) on
        [0, 1, 2, 3]>
    #placement2 = #whale.placement<[400] split 0 (200, 200) replicate 2 on
        [0, 2, 1, 3]>
    #placement3 = #whale.placement<[400] replicate 4 on [0, 1, 2, 3]>
    module {
      whale.cluster @cluster
          {network = {bandwidth = 1.000000e+07 : f64, latency = 1.000000e-05
          : f64}, nodes = [{count = 2 : i64,
          devices = [{count = 2 : i64, kind = "cpu"} ],
          link = {bandwidth = 1.000000e+10 : f64,
          latency = 9.9999999999999995E-7 : f64}} ]}
      whale.schedule ranks [0, 1, 2, 3] @rank_class_0(%arg0: tensor<400xf32>)
          -> tensor<400xf32> {
        %0 = whale.reduce_scatter %arg0 channel 0 from #placement to #placement1
            : (tensor<400xf32>) -> tensor<200xf32>
        %1 = whale.all_reduce %0 channel 1 from #placement1 to #placement2
            : (tensor<200xf32>) -> tensor<200xf32>
        %2 = whale.all_gather %1 channel 2 from #placement2 to #placement3
            : (tensor<200xf32>) -> tensor<400xf32>
        whale.return %2 : tensor<400xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def DivideGathers : Pass<"whale-divide-gathers", "::mlir::ModuleOp"> {
  let summary = "Divide gathering and scattering over several nodes";
  let description = [{
    An all-gather over several nodes, with equally many members in each whose
    equal parts follow one another node by node, becomes an all-gather between
    the devices of the same place in their nodes, and one in each node, where
    the links of `whale.cluster` make that faster: each byte then crosses the
    network once for a node, not once for each of its devices. A reduce-scatter
    becomes one in each node, and one across. Where parts are not equal, as
    those of unlike devices, each device of a node takes an equal share of the
    whole from wherever it is, which its node then gathers; sums are scattered in
    equal shares in each node, and all take what they want of those. So does an
    all-to-all become two: as many
    bytes cross the network, but between devices of the same place, in as many
    fewer messages as a node has devices, each of which takes a part of the
    network's latency.

    Example: two nodes of two ranks.
    ```mlir
    #parts = #whale.placement<[400] split 0 (100, 100, 100, 100) on [0 to 3]>
    #whole = #whale.placement<[400] replicate 4 on [0 to 3]>
    whale.cluster @cluster {nodes = [{count = 2 : i64,
        devices = [{count = 2 : i64, kind = "cpu"} ],
        link = {bandwidth = 1.0e10, latency = 1.0e-6}} ],
        network = {bandwidth = 1.0e7, latency = 1.0e-5}}
    whale.schedule ranks [0, 1, 2, 3] @rank_class_0(%x: tensor<100xf32>)
        -> tensor<400xf32> {
      %0 = whale.all_gather %x channel 0 from #parts to #whole
          : (tensor<100xf32>) -> tensor<400xf32>
      whale.return %0 : tensor<400xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[1, 2, 2, 100] split 1 (1, 1) split 2 (1,
        1) on [0, 1, 2, 3]>
    #placement1 = #whale.placement<[1, 2, 2, 100] split 2 (1, 1) replicate 2
        on [0, 2, 1, 3]>
    #placement2 = #whale.placement<[1, 2, 2, 100] replicate 4 on [0, 1, 2,
        3]>
    module {
      whale.cluster @cluster {network = {bandwidth = 1.000000e+07 : f64,
          latency = 1.000000e-05 : f64}, nodes = [{count = 2 : i64, devices
          = [{count = 2 : i64, kind = "cpu"} ], link = {bandwidth =
          1.000000e+10 : f64, latency = 9.9999999999999995E-7 : f64}} ]}
      whale.schedule ranks [0, 1, 2, 3] @rank_class_0(%arg0:
          tensor<100xf32>) -> tensor<400xf32> {
        %0 = whale.all_gather %arg0 channel 0 from #placement to #placement1
            : (tensor<100xf32>) -> tensor<1x2x1x100xf32>
        %1 = whale.all_gather %0 channel 1 from #placement1 to #placement2 :
            (tensor<1x2x1x100xf32>) -> tensor<400xf32>
        whale.return %1 : tensor<400xf32>
      }
    }
    ```
  }];
}

def FoldEmptyShares : Pass<"whale-fold-empty-shares", "::mlir::ModuleOp"> {
  let summary = "Compute nothing of what a rank has no samples of";
  let description = [{
    In each `whale.schedule`, a product, sum or scatter over no elements is the
    constant zero, and so is what moves, scales or adds up such zeros. Where one
    is added to something else, that stays. So a rank without samples of a
    micro-batch has no code for it but what it communicates. Operations without
    a use disappear.

    Example: nothing is added to the gradient.
    ```mlir
    whale.schedule ranks [0] @rank_class_0(
        %a: tensor<0x4xf32>, %b: tensor<0x8xf32>,
        %before: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
          : (tensor<0x4xf32>, tensor<0x8xf32>) -> tensor<4x8xf32>
      %1 = stablehlo.add %before, %0 : tensor<4x8xf32>
      whale.return %1 : tensor<4x8xf32>
    }
    ```
    becomes
    ```mlir
    whale.schedule ranks [0] @rank_class_0(
        %arg0: tensor<0x4xf32>, %arg1: tensor<0x8xf32>,
        %arg2: tensor<4x8xf32>) -> tensor<4x8xf32> {
      whale.return %arg2 : tensor<4x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def VerifyPartition : Pass<"whale-verify-partition", "::mlir::ModuleOp"> {
  let summary = "Check that the rank classes are one program";
  let description = [{
    Changes nothing. An error where
    - a rank has no schedule, or two;
    - a channel is of another kind, placement or element type in another class,
      used more often there or in other loops or branches, or misses in the
      class of a rank that takes part;
    - classes would wait for one another in a circle, where all but those that
      only send wait for everybody who takes part;
    - an argument or result is not the shard that its placement says, on any
      rank of the class; the shards of a placement cover a tensor exactly.

    Example: rank 0 waits for channel 0 first, rank 1 for channel 1.
    ```mlir
    #rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
    #whole = #whale.placement<[8] replicate 2 on [0, 1]>
    whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}
    whale.schedule ranks [0] @rank_class_0(
        %x: tensor<3xf32> {whale.placement = #rows,
        whale.global_type = tensor<8xf32>}) {
      %0 = whale.all_gather %x channel 0 from #rows to #whole
          : (tensor<3xf32>) -> tensor<8xf32>
      %1 = whale.all_gather %x channel 1 from #rows to #whole
          : (tensor<3xf32>) -> tensor<8xf32>
      whale.return
    }
    whale.schedule ranks [1] @rank_class_1(
        %x: tensor<5xf32> {whale.placement = #rows,
        whale.global_type = tensor<8xf32>}) {
      %0 = whale.all_gather %x channel 1 from #rows to #whole
          : (tensor<5xf32>) -> tensor<8xf32>
      %1 = whale.all_gather %x channel 0 from #rows to #whole
          : (tensor<5xf32>) -> tensor<8xf32>
      whale.return
    }
    ```
    is refused:
    ```text
    error: 'whale.all_gather' op channel 0 is reached in another order in
        @rank_class_1
    ```
  }];
}

#endif // WHALE_TRANSFORMS_PARTITION_PASSES_TD
