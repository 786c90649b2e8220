//===- Passes.td - Whale Transforms passes -----------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PASSES_TD
#define WHALE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def InlineCalls : Pass<"whale-inline-calls", "::mlir::ModuleOp"> {
  let summary = "inline every function into @main";
  let description = [{
    JAX outlines functions (`jit`, `closed_call`, the bodies of scans) whose
    operations hold names relative to their call. Every `func.call` and
    `stablehlo.composite`, inside regions too, is replaced by the body of what
    it calls, and the name paths of the call and of each operation are composed
    into one. A function that is called from several places is inlined into
    each; the ids of its scopes then get the number of the call as a suffix, so
    that each call's scope is its own. Functions that nothing refers to any
    more are removed. Recursion is an error, and so are functions that become
    more than 262144 operations, and 32 times what is written, and loops and
    branches that are nested more than 128 deep.

    Example:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(s)/jit(f)")
      return %0 : tensor<8xf32>
    }
    func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32> loc("whale:split:2:0:/neg")
      return %0 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32>
          loc("jit(s)/jit(f)/whale:split:2:0:/neg")
      return %0 : tensor<8xf32>
    }
    ```
  }];
}

def ImportScopes : Pass<"whale-import-scopes", "::mlir::ModuleOp"> {
  let summary = "read strategies and phases from name paths";
  let description = [{
    Sets `whale.strategy` and `whale.phase` on every operation of `@main`, also
    inside while loops and branches. What is written by hand on an operation
    wins. Else the innermost scope `whale:KIND:COUNT:ID:NAME` of its name path
    is its strategy, and it is backward if `transpose(` stands in the path and
    no `jvp(` before it.
    Scopes of one name are one TaskGraph, and so are the forward and backward
    operations of one scope without a name; the attribute's `scope` numbers the
    TaskGraphs in order of first use.

    Where nothing is backward, everything is forward. Else operations that are
    neither forward nor backward by their path (no `jvp(`) are `apply` if they
    use gradients, or if they only serve the update of an argument whose next
    value is a result (`whale.fed_by`, or the first order-preserving match).

    Operations outside of every scope take the module's
    `whale.default_strategy`; without one they join the TaskGraph of their
    latest producer. Operations of the apply phase follow the parameter that
    they update, constants their users. A loop outside of scopes has the one
    that most of its operations have; what a scan stores in stacks belongs to
    the scope that reads it.

    Example:
    ```mlir
    %0 = stablehlo.tanh %x : tensor<8xf32>
        loc("jit(s)/jvp(whale:split:4:7:head)/tanh")
    %1 = stablehlo.negate %0 : tensor<8xf32>
        loc("jit(s)/transpose(jvp(whale:split:4:7:head))/neg")
    ```
    becomes
    ```mlir
    %0 = stablehlo.tanh %x {whale.phase = #whale.phase<forward>,
        whale.strategy = #whale.split<devices = 4, name = "head", scope = 0>}
        : tensor<8xf32>
    %1 = stablehlo.negate %0 {whale.phase = #whale.phase<backward>,
        whale.strategy = #whale.split<devices = 4, name = "head", scope = 0>}
        : tensor<8xf32>
    ```
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", /*default=*/"\"none\"",
           "default strategy of text without one: replicate, split or none">
  ];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def ExpandChlo : Pass<"whale-expand-chlo", "::mlir::ModuleOp"> {
  let summary = "replace the operations of chlo by StableHLO";
  let description = [{
    JAX leaves some functions to the compiler as operations of the `chlo`
    dialect. They become formulas with the accuracy of XLA's own: `f64` is
    computed in `f64`, every other float type in `f32`. `chlo.top_k` becomes a
    stable sort and a slice, `chlo.ragged_dot` a masked `dot_general`. Complex
    numbers are computed in f64. So are custom calls that stand for operations:
    `@ApproxTopK`, and those of exported texts (`@mhlo.erf`).
    An operation without an expansion is an error.

    Example:
    ```mlir
    %0 = chlo.square %x : tensor<8xf32> -> tensor<8xf32>
    %1 = chlo.is_inf %0 : tensor<8xf32> -> tensor<8xi1>
    ```
    becomes
    ```mlir
    %0 = stablehlo.multiply %x, %x : tensor<8xf32>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<8xf32>
    %1 = stablehlo.abs %0 : tensor<8xf32>
    %2 = stablehlo.compare EQ, %1, %cst, FLOAT
        : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    ```
  }];
  let dependentDialects = ["::mlir::chlo::ChloDialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def Normalize : Pass<"whale-normalize", "::mlir::ModuleOp"> {
  let summary = "rewrite programs into what partitioning expects";
  let description = [{
    - Operands of a reduction whose region works in a wider type are converted
      to it first.
    - Reductions start from the identity of their operation, so that a partial
      result holds an initial value never instead of once a device; outside of
      loops, adding scatters start from zeros, for the same reason.
    - Constants that the region of a reduction or a sort uses from outside come
      inside; any other value from outside is an error.
    - Carried values that a while loop returns as they came (the constants of
      `lax.scan`) become values from outside.
    - Branches with a constant index are inlined, optimization barriers, no-op
      converts, reshapes, transposes and broadcasts removed, chains of them
      merged, constants re-shaped; dead code is removed.
    - What JAX's own sharding prints stays as a hint for whale-propagate if the
      program has no strategies and a mesh has as many devices as the cluster:
      the `sdy.mesh`, the `sdy.sharding` of arguments and each
      `sdy.sharding_constraint`, which shardings of results become too.
      Otherwise it is dropped, with a remark for each kind that says why.
    - `sdy.manual_computation` (`shard_map`, `pmap`) is written out for all
      devices of its mesh, with its collectives; Whale then places the parts.
    - Operations of dynamic shape become static ones where types and constants
      say the sizes; tuples are taken apart.
    - Gathers and scatters one index of which counts along, as in
      `x[jnp.arange(n), i]`, are batched in that dimension.
    - Collectives of a program for one process give what they were given;
      `batch_norm_*` and `dot` are written out.
    - What a partitioned step can't do (callbacks, other custom calls, infeed,
      collectives elsewhere, dynamic shapes) is an error that names it.

    Example:
    ```mlir
    %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add
        across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    ```
    becomes
    ```mlir
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %cst) applies stablehlo.add
        across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.add %init, %0 : tensor<f32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def CutTaskGraphs : Pass<"whale-cut-task-graphs", "::mlir::ModuleOp"> {
  let summary = "cut a step into the stages that num_task_graph asks for";
  let description = [{
    Where `whale.config` has `num_task_graph = N`, cuts the forward operations
    of `@main` in topological order into N TaskGraphs `stage0`, `stage1`, ...
    Each takes a copy of the default strategy; where that names no number of
    devices, or there is none, the devices of the cluster are divided evenly,
    and each stage is a `replicate`. The cut is the one whose slowest stage
    takes the least time, computation in proportion to the speed of the stage's
    devices and the values that cross into and out of it included, within the
    memory of the devices. A remark for each stage says what it holds.

    Operations of the backward stand with the earliest of the gradients and
    forward values that they use, those of the optimizer with the parameter
    that they update; what depends on no argument is copied into each stage
    that uses it. A counted loop is cut between two iterations, and the loop of
    its backward between the same: each becomes several loops.

    A text with scopes is left alone if these make N TaskGraphs, and is an
    error else.

    Example, for two devices:
    ```mlir
    module attributes {whale.config = {num_task_graph = 2 : i64}} {
      func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
        %0 = stablehlo.tanh %x : tensor<8xf32>
        %1 = stablehlo.sine %0 : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
    ```
    becomes
    ```mlir
        %0 = stablehlo.tanh %x {whale.phase = #whale.phase<forward>,
            whale.strategy = #whale.replicate<devices = 1, name = "stage0">}
            : tensor<8xf32>
        %1 = stablehlo.sine %0 {whale.phase = #whale.phase<forward>,
            whale.strategy = #whale.replicate<devices = 1, name = "stage1">}
            : tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def DivideStacks : Pass<"whale-divide-stacks", "::mlir::ModuleOp"> {
  let summary = "store stacked layers in the stages that use them";
  let description = [{
    Where stages with devices of their own use different rows of an argument, as
    the parameters of layers under `lax.scan` once the loop is cut, each gets an
    argument of its rows (`whale.stack_piece`), and so do the results that are
    the argument's next value. whale-join-stacks makes one of them again, so
    that a stage stores its rows and nothing else.

    The operations on the way are divided at the same rows: casts before the
    layers, and the optimizer with its state. A reduction over the rows, as in
    the norm of all gradients, becomes one of each stage's rows and of their
    terms. An argument whose next value can't be computed row by row stays
    whole. A remark for each argument says who has which rows.

    Example, of rows that "stage0" and "stage1" use:
    ```mlir
    func.func @main(%ws: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = stablehlo.slice %ws [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
      %1 = stablehlo.slice %ws [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
      ...
      %g = stablehlo.concatenate %g0, %g1, dim = 0
          : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
      %next = stablehlo.subtract %ws, %g : tensor<4x8xf32>
      return %next : tensor<4x8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(
        %w0: tensor<2x8xf32> {whale.fed_by = 0, whale.stack_piece =
            {begin = 0 : i64, whole = tensor<4x8xf32>}},
        %w1: tensor<2x8xf32> {whale.fed_by = 1, whale.stack_piece =
            {begin = 2 : i64, whole = tensor<4x8xf32>}})
        -> (tensor<2x8xf32>, tensor<2x8xf32>) {
      ...
      %next0 = stablehlo.subtract %w0, %g0 : tensor<2x8xf32>
      %next1 = stablehlo.subtract %w1, %g1 : tensor<2x8xf32>
      return %next0, %next1 : tensor<2x8xf32>, tensor<2x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def MicroBatch : Pass<"whale-micro-batch", "::mlir::ModuleOp"> {
  let summary = "compute the step one micro-batch at a time";
  let description = [{
    With `num_micro_batch = M` in `whale.config`, the mini-batch (the arguments
    with `whale.batch_dim`) is split along an axis of M moments, and what
    follows it goes into a `whale.micro_batches`: batch arguments are cut before
    it, sums over the samples accumulated, values of each sample joined behind
    it. Moments differ in size by one sample at most.

    - What depends on batch arguments alone and is needed whole (the count of a
      masked mean) is computed once, before the loop.
    - Where the backward pass needs a sum over the forward pass of all samples
      (a balance loss), all forwards come before all backwards: two loops.
    - Where the forward pass needs one (batch statistics, logits of all samples
      with all), micro-batches would compute something else: an error.

    Example, with M = 2:
    ```mlir
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
        across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    ```
    becomes
    ```mlir
    %x0 = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>
    %x1 = stablehlo.slice %x [4:8] : (tensor<8xf32>) -> tensor<4xf32>
    %0 = whale.micro_batches [0, 0] (%x0, %x1)
        reduce [#whale.reduction<sum>] batch_dims [0]
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32> {
    ^bb0(%m: tensor<4xf32>):
      %1 = stablehlo.reduce(%m init: %zero) applies stablehlo.add
          across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      whale.yield %1 : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def FormTaskGraphs : Pass<"whale-form-task-graphs", "::mlir::ModuleOp"> {
  let summary = "make @main a sequence of task graphs";
  let description = [{
    Orders the operations of `@main` so that those of one strategy and phase
    stand in few runs, and puts each run into a `whale.task_graph` with its
    FLOPs and bytes. Every operation then stands in exactly one. The current
    task graph goes on as long as an operation of it is ready; forward goes
    before backward, backward before apply. Constants and iotas are copied into
    each task graph that uses them. Operations without `whale.strategy` have the
    module's `whale.default_strategy`; without that, the task graph has none:
    every device computes it.

    Example:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.tanh %x {whale.phase = #whale.phase<forward>,
          whale.strategy = #whale.split<devices = 4, name = "head", scope = 0>}
          : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = whale.task_graph "head" forward
          strategy #whale.split<devices = 4, name = "head", scope = 0>
          flops 8 bytes 64 -> tensor<8xf32> {
        %1 = stablehlo.tanh %x : tensor<8xf32>
        whale.yield %1 : tensor<8xf32>
      }
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def VerifyTaskGraphs : Pass<"whale-verify-task-graphs", "::mlir::ModuleOp"> {
  let summary = "Check that the step consists of task graphs";
  let description = [{
    Changes nothing. An error where
    - an operation of `@main` stands in no `whale.task_graph`;
    - task graphs of one name have different strategies or virtual devices.

    Example: this step is refused, as the addition has no task graph.
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.add %x, %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

def AssignDevices : Pass<"whale-assign-devices", "::mlir::ModuleOp"> {
  let summary = "Give each TaskGraph its virtual device";
  let description = [{
    Groups the devices of the cluster sequentially, in the order in which
    TaskGraphs are first used: one group has the devices that all TaskGraphs ask
    for together (or, where the cluster has fewer, the most that one asks for,
    shared by all), and is repeated as often as it fits (nested data
    parallelism). Inside a group, a TaskGraph with devices of its own gets such
    of one node if it can, and in a pipeline (`num_micro_batch` above 1, or
    `num_task_graph`) the earlier TaskGraphs those with more memory, as they
    keep more micro-batches in flight. With `whale.stage_bytes` on the module,
    what a device of each stage needs, the one that needs most gets them.
    `whale.virtual_devices` on the module takes the place of all this. A task
    graph without a strategy gets none: every device computes it. Every other
    task graph of the same name gets the same `whale.virtual_device`. A scope
    inside of a loop or branch has to be on the devices of the task graph around
    it.

    Example: two TaskGraphs that ask for two devices each, on eight devices.
    ```mlir
    whale.virtual_device @vd0 [[0, 1], [4, 5]]
    whale.virtual_device @vd1 [[2, 3], [6, 7]]
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def Propagate : Pass<"whale-propagate", "::mlir::ModuleOp"> {
  let summary = "Decide where every value is placed";
  let description = [{
    Reads the rule of each operation (how its dimensions correspond and which
    are reduced) and carries layouts from the arguments through the program:
    the mini-batch through replicate TaskGraphs, the parameters' splits through
    split ones. Which dimension of each parameter is split is chosen so that
    communication and computation of the whole program cost least; a remark
    tells it. Sizes are in proportion to the speed of the devices.

    A program that has an `sdy.mesh` (see whale-normalize) is propagated along
    each axis of the mesh, from the shardings of its arguments and its sharding
    constraints; all devices get equal shares.

    Writes `whale.placement` on arguments, `whale.placements` and
    `whale.operand_placements` on operations; whale-insert-reshards makes the
    differences explicit.

    Example: a matrix product whose left operand carries the mini-batch, on two
    devices of speed 1 and 3.
    ```mlir
    #placement = #whale.placement<[8, 4] split 0 (2, 6) on [0, 1]>
    #placement1 = #whale.placement<[4, 16] replicate 2 on [0, 1]>
    #placement2 = #whale.placement<[8, 16] split 0 (2, 6) on [0, 1]>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      {whale.operand_placements = [#placement, #placement1],
       whale.placements = [#placement2]}
      : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def PrintRules : Pass<"whale-print-rules"> {
  let summary = "Show the sharding rule of every operation";
  let description = [{
    Emits a remark for each operation that can be sharded: the factors of every
    dimension of its operands and results, their extents, and what splitting
    one means where it isn't plain: `sum` (results are partial), `lookup` and
    `update` (gather and scatter along a split dimension), `whole` (it can't
    be split).

    Example:
    ```
    remark: [a, b], [b, c] -> [a, c] where a=8, b=4 sum, c=16
    ```
  }];
}

def InsertReshards : Pass<"whale-insert-reshards", "::mlir::ModuleOp"> {
  let summary = "Make changes of placement explicit";
  let description = [{
    Puts a `whale.reshard` after each value that some operation wants in another
    placement than it is produced in, one for each such placement; users share
    it, and loops do not repeat it. Sharding constraints have been honoured then
    and go. Afterwards `whale.reshard` is the only operation that changes a
    placement.

    Example: a gradient that every device has a part of is made whole for the
    optimizer.
    ```mlir
    %1 = whale.reshard %0 from #placement to #placement1 : tensor<4x16xf32>
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def VerifyPlacements : Pass<"whale-verify-placements", "::mlir::ModuleOp"> {
  let summary = "Check that operands and results of each operation agree";
  let description = [{
    Changes nothing. An error where, after whale-insert-reshards,
    - a value has no placement, one of another shape, or one on a device that
      the cluster doesn't have;
    - a `whale.reshard` is not from where its operand is;
    - the operands and results of an operation disagree, on any device, about
      the part of a dimension that its rule says they share, or cut one that it
      needs whole;
    - a partial operand enters an operation that is not linear in it, or a
      dimension is reduced in parts and the result is not partial;
    - a loop or branch carries a value from one placement to another.

    Example: this sum is refused, as its operands are cut differently.
    ```mlir
    #even = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
    #uneven = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
    func.func @main(%a: tensor<8xf32> {whale.placement = #even},
                    %b: tensor<8xf32> {whale.placement = #uneven})
        -> tensor<8xf32> {
      %0 = stablehlo.add %a, %b {whale.placements = [#even]} : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
}

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

def FoldEmptyShares : Pass<"whale-fold-empty-shares", "::mlir::ModuleOp"> {
  let summary = "Compute nothing of what a rank has no samples of";
  let description = [{
    In the functions with `whale.ranks`, a product, sum or scatter over no
    elements is the constant zero, and so is what moves, scales or adds up such
    zeros. Where one is added to something else, that stays. So a rank without
    samples of a micro-batch has no code for it but what it communicates.
    Operations without a use disappear.

    Example: nothing is added to the gradient.
    ```mlir
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
        : (tensor<0x4xf32>, tensor<0x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.add %before, %0 : tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
    ```
    becomes
    ```mlir
    return %before : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
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

def LoadCluster : Pass<"whale-load-cluster", "::mlir::ModuleOp"> {
  let summary = "read the cluster file into a whale.cluster";
  let description = [{
    Puts a `whale.cluster @cluster` at the start of the module that says what
    the cluster file says, with the built-in kinds that it uses written out.
    Instead of a file, `ranks` stands for that many CPU ranks of one machine.
    A mistake in the file is an error at its line that names the field.

    Example: `whale-load-cluster{ranks=2}` on an empty module gives
    ```mlir
    whale.cluster @cluster {
      kinds = {cpu = {flops = {f32 = 1.0e12, f64 = 5.0e11},
                      memory_bytes = 274877906944, memory_bandwidth = 1.0e11}},
      nodes = [{name = "local", devices = [{kind = "cpu", count = 2} ]} ]}
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", "", "The cluster file to read">,
    Option<"ranks", "ranks", "int64_t", "0", "A number of CPU ranks">,
  ];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def OutlineMicroBatches
    : Pass<"whale-outline-micro-batches", "::mlir::ModuleOp"> {
  let summary = "Make functions of what a rank class repeats";
  let description = [{
    What a function with `whale.ranks` computes of one micro-batch at a time
    (operations of one `whale.moment` that stand together) becomes a call of a
    function `@micro_batch_N`. What is the same operation by operation,
    location by location, is one function, so that it is lowered once,
    for all micro-batches and for all rank classes. Cheap values from before
    (little arithmetic, broadcasts) are computed again in it, as
    whale-fuse-kernels would do. A sum
    that is added to, and that nothing else uses, has `whale.last_use`.

    Example:
    ```mlir
    %0 = stablehlo.tanh %x0 {whale.moment = 0 : i64} : tensor<8xf32>
    %1 = stablehlo.tanh %x1 {whale.moment = 1 : i64} : tensor<8xf32>
    ```
    becomes
    ```mlir
    %0 = call @micro_batch_0(%x0) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = call @micro_batch_0(%x1) : (tensor<8xf32>) -> tensor<8xf32>
    ```
    with
    ```mlir
    func.func private @micro_batch_0(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.tanh %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def InlineMicroBatches
    : Pass<"whale-inline-micro-batches", "::mlir::ModuleOp"> {
  let summary = "Put what was lowered once in the place of each call";
  let description = [{
    Undoes whale-outline-micro-batches: every call in a function with
    `whale.ranks` is replaced by the body of what it calls, and these functions
    disappear.

    Example:
    ```mlir
    %0 = call @micro_batch_0(%x0) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = call @micro_batch_0(%x1) : (tensor<8xf32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %0 = whale.launch @k0(%x0) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = whale.launch @k0(%x1) : (tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
}

def OrderInstructions : Pass<"whale-order-instructions", "::mlir::ModuleOp"> {
  let summary = "Order instructions so that less is alive at once";
  let description = [{
    Moves the instructions of the functions with `whale.ranks` between the
    collectives that they stand between. Collectives stay where they are, and an
    instruction that writes in place stays behind those that read its operand.
    The order is the best of three: the given one, one that always takes next
    what adds the least memory, and one that does so from the end. The given one
    stays where the others are no better.

    Example: what is large is used up before the next large value is made.
    ```mlir
    %a = whale.launch @spread(%x) : (tensor<4xf32>) -> tensor<4096xf32>
    %b = whale.launch @spread(%y) : (tensor<4xf32>) -> tensor<4096xf32>
    %c = whale.launch @sum(%a) : (tensor<4096xf32>) -> tensor<4xf32>
    %d = whale.launch @sum(%b) : (tensor<4096xf32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    %a = whale.launch @spread(%x) : (tensor<4xf32>) -> tensor<4096xf32>
    %c = whale.launch @sum(%a) : (tensor<4096xf32>) -> tensor<4xf32>
    %b = whale.launch @spread(%y) : (tensor<4xf32>) -> tensor<4096xf32>
    %d = whale.launch @sum(%b) : (tensor<4096xf32>) -> tensor<4xf32>
    ```
  }];
}

def PlanBuffers : Pass<"whale-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "Give every value of a rank class a place in memory";
  let description = [{
    Assigns a buffer to each value of the functions with `whale.ranks`, and
    writes the plan as attributes:
    - on the function `whale.buffers`, the list of buffers (in the arena at an
      offset, an argument's or result's own, a constant), `whale.arena_bytes`,
      and `whale.result_buffers`, the buffer of each result;
    - on a result `whale.alias`, the donated argument whose buffer it takes;
    - on an operation `whale.out`, the buffers of its results. Argument i of the
      function has buffer i, arguments of a loop's regions have those of the
      loop's results;
    - on an operation `whale.copies`, pairs of buffers (from, to) to copy
      before it; on a terminator, at its place.

    Values share buffers where one ends as the other begins: in place where a
    kernel allows it, loop-carried values from one iteration to the next,
    results in the buffers of donated arguments after their last read. The
    plan is checked by running it on symbols.

    Example: two kernels, the second in place.
    ```mlir
    func.func @rank_class_0(%arg0: tensor<4xf32>) -> tensor<f32>
        attributes {whale.arena_bytes = 64 : i64, whale.buffers = [
          {argument = 0 : i64, bytes = 16 : i64},
          {arena = 0 : i64, bytes = 16 : i64},
          {bytes = 4 : i64, result = 0 : i64} ],
        whale.ranks = array<i64: 0>, whale.result_buffers = array<i64: 2>} {
      %0 = whale.launch @k0(%arg0) {whale.out = array<i64: 1>}
        : (tensor<4xf32>) -> tensor<4xf32>
      %1 = whale.launch @k1(%0) {inplace = array<i64: 0>,
        whale.out = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
      ...
    ```
  }];
}

#endif // WHALE_TRANSFORMS_PASSES_TD
