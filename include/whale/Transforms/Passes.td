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
    parallelism). Every task graph of the same name gets the same
    `whale.virtual_device`.

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
    it, and loops do not repeat it. Afterwards `whale.reshard` is the only
    operation that changes a placement.

    Example: a gradient that every device has a part of is made whole for the
    optimizer.
    ```mlir
    %1 = whale.reshard %0 from #placement to #placement1 : tensor<4x16xf32>
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
