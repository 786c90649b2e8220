//===- Passes.td - Whale partitioning passes ---------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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
    stands in line again, with a remark. The task graphs of a device are told
    apart by `whale.chunk`, as in `F1.0`: micro-batch 0 in the second one.

    Example: two stages, two micro-batches.
    ```mlir
    whale.micro_batches [0, 0] (...) attributes {whale.schedule = [
        {devices = array<i64: 0>, steps = "F0 F1 B0 B1"},
        {devices = array<i64: 1>, steps = "F0 B0 F1 B1"} ]}
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def Partition : Pass<"whale-partition", "::mlir::ModuleOp"> {
  let summary = "One program for each rank class";
  let description = [{
    Ranks whose shards have the same shapes form a class. Each class gets a
    function `@rank_class_N` (attribute `whale.ranks`) with the step on local
    shapes: operations rebuilt with local sizes, task graphs flattened, every
    reshard resolved into collectives. A collective has the same `channel` in
    all classes that take part.

    Example: the data-parallel sum of a gradient.
    ```mlir
    %1 = whale.all_reduce %0 channel 0
      from <[4, 16] partial sum 2 on [0, 1]> to <[4, 16] replicate 2 on [0, 1]>
      : (tensor<4x16xf32>) -> tensor<4x16xf32>
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def JoinStacks : Pass<"whale-join-stacks", "::mlir::ModuleOp"> {
  let summary = "make stacks of the pieces that stages have";
  let description = [{
    Gives the functions of all rank classes the arguments and results of the
    user's program: the pieces that whale-divide-stacks has made of a stack
    become one again, whose placement is theirs behind each other.

    Example: each of two devices has two rows.
    ```mlir
    func.func @rank_class_0(
        %w0: tensor<2x8xf32> {whale.placement = <[2, 8] on [0]>,
            whale.stack_piece = {begin = 0 : i64, whole = tensor<4x8xf32>}},
        %w1: tensor<0x0xf32> {whale.placement = <[2, 8] on [1]>,
            whale.stack_piece = {begin = 2 : i64, whole = tensor<4x8xf32>}})
    ```
    becomes
    ```mlir
    func.func @rank_class_0(%w: tensor<2x8xf32>
        {whale.placement = <[4, 8] split 0 (2, 2) on [0, 1]>})
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def VerifyPartition : Pass<"whale-verify-partition", "::mlir::ModuleOp"> {
  let summary = "Check that the rank classes are one program";
  let description = [{
    Changes nothing. An error where
    - a rank has no function, or two;
    - a channel is of another kind, placement or element type in another class,
      used more often there or in other loops or branches, or misses in the
      class of a rank that takes part;
    - classes would wait for one another in a circle, where all but those that
      only send wait for everybody who takes part;
    - an argument or result is not the shard that its placement says, on any
      rank of the class; the shards of a placement cover a tensor exactly.

    Example: this program is refused, as rank 1 waits for channel 1 first.
    ```mlir
    func.func @rank_class_0(...) attributes {whale.ranks = array<i64: 0>} {
      %0 = whale.all_gather %a channel 0 from #rows to #whole
          : (tensor<3xf32>) -> tensor<8xf32>
      %1 = whale.all_gather %b channel 1 from #rows to #whole
          : (tensor<3xf32>) -> tensor<8xf32>
      ...
    func.func @rank_class_1(...) attributes {whale.ranks = array<i64: 1>} {
      %1 = whale.all_gather %b channel 1 from #rows to #whole
          : (tensor<5xf32>) -> tensor<8xf32>
      %0 = whale.all_gather %a channel 0 from #rows to #whole
          : (tensor<5xf32>) -> tensor<8xf32>
      ...
    ```
  }];
}

#endif // WHALE_TRANSFORMS_PARTITION_PASSES_TD
