//===- Passes.td - Whale placement passes ------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of level 'placed': which devices a task graph has, and which part
// of each value each of them holds. In come task graphs and a `whale.cluster`;
// out come values with a placement and a `whale.reshard` wherever two
// placements meet. Their order is in lib/Program/Pipelines.cpp;
// whale-print-rules is for whoever wants to know why something is not split.
//
// Placements are attributes; operations keep their global shapes. Each
// description has an example that a test runs. How a pass works is told in the
// file of its name in lib/Transforms/Placed.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PLACED_PASSES_TD
#define WHALE_TRANSFORMS_PLACED_PASSES_TD

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
    parallelism). Inside a group, a TaskGraph with devices of its own gets such
    of one node if it can, and in a pipeline (`num_micro_batch` above 1, or
    `num_task_graph`) the earlier TaskGraphs those with more memory, as they
    keep more micro-batches in flight. Where these turn out not to fit and
    another stage needs more, the compiler lets it have them.
    `whale.virtual_devices` on the module takes the place of all this. A task
    graph without a strategy gets none: every device computes it. Every other
    task graph of the same name gets the same `whale.virtual_device`. A scope
    inside of a loop or branch has to be on the devices of the task graph around
    it.

    Example: two TaskGraphs that ask for two devices each, on eight devices.
    ```mlir
    whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 8} ]} ]}
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = whale.task_graph "body" forward
          strategy #whale.replicate<devices = 2> -> tensor<8xf32> {
        %2 = stablehlo.tanh %x : tensor<8xf32>
        whale.yield %2 : tensor<8xf32>
      }
      %1 = whale.task_graph "head" forward
          strategy #whale.split<devices = 2> -> tensor<8xf32> {
        %2 = stablehlo.sine %0 : tensor<8xf32>
        whale.yield %2 : tensor<8xf32>
      }
      return %1 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    whale.cluster @cluster
        {nodes = [{devices = [{count = 8 : i64, kind = "cpu"} ]} ]}
    whale.virtual_device @vd0 [[0, 1], [4, 5]]
    whale.virtual_device @vd1 [[2, 3], [6, 7]]
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = whale.task_graph "body" forward
          strategy #whale.replicate<devices = 2> on @vd0 -> tensor<8xf32> {
        %2 = stablehlo.tanh %arg0 : tensor<8xf32>
        whale.yield %2 : tensor<8xf32>
      }
      %1 = whale.task_graph "head" forward strategy #whale.split<devices = 2> on
          @vd1 -> tensor<8xf32> {
        %2 = stablehlo.sine %0 : tensor<8xf32>
        whale.yield %2 : tensor<8xf32>
      }
      return %1 : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def PlaceResults : Pass<"whale-place-results", "::mlir::ModuleOp"> {
  let summary = "Make results where they are wanted";
  let description = [{
    Where results of `@main` have a `whale.given_placement`, as those of an
    initialization that another program takes, it decides where everything is:
    each device computes what the parts that it is to hold are made of. An
    operation is there once for each placement that its results are wanted in,
    so that devices exchange nothing. What cannot be computed in parts is
    computed whole, by each device, and dropped behind that but for its part; a
    remark says how much that is. Results without the attribute are whole on all
    devices. An argument that has it lies there; another one where it is wanted.

    Example: two devices make four numbers each, all from the same seed.
    ```mlir
    #rows = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
    module {
      whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}
      func.func @main(%seed: tensor<i32>)
          -> (tensor<8xi32> {whale.given_placement = #rows}) {
        %0 = stablehlo.iota dim = 0 : tensor<8xi32>
        %1 = stablehlo.broadcast_in_dim %seed, dims = []
            : (tensor<i32>) -> tensor<8xi32>
        %2 = stablehlo.xor %0, %1 : tensor<8xi32>
        return %2 : tensor<8xi32>
      }
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
    module {
      whale.cluster @cluster
          {nodes = [{devices = [{count = 2 : i64, kind = "cpu"} ]} ]}
      whale.virtual_device @vd0 [[0, 1]]
      func.func @main(%arg0: tensor<i32>
          {whale.placement = #whale.placement<[] replicate 2 on [0, 1]>})
          -> (tensor<8xi32> {whale.given_placement = #placement}) {
        %0 = whale.task_graph "default" forward on @vd0 flops 8 bytes 164
            -> tensor<8xi32> {
          %1 = stablehlo.iota dim = 0 {whale.placements = [#placement]}
              : tensor<8xi32>
          %2 = stablehlo.broadcast_in_dim %arg0, dims = []
              {whale.placements = [#placement]}
              : (tensor<i32>) -> tensor<8xi32>
          %3 = stablehlo.xor %1, %2 {whale.placements = [#placement]}
              : tensor<8xi32>
          whale.yield %3 : tensor<8xi32>
        }
        return %0 : tensor<8xi32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def OffloadState : Pass<"whale-offload-state", "::mlir::ModuleOp"> {
  let summary = "Choose which state is in the memory of hosts";
  let description = [{
    With `offload.level` of `whale.config`, arguments that a result feeds and
    only updates read, and these results, get `whale.in_host`: they are in the
    memory of their node's host. At the level `weights`, or `v0`, so do those
    that others read, but not in micro-batches. What has less than 1024 bytes
    stays on the devices. It is an error if there is nothing, or if a node of
    the cluster has no `host`.

    Example: momentum.
    ```mlir
    module attributes {whale.config = {offload = {level = "state"}}} {
      whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"} ],
          host = {memory_bytes = 1.0e9 : f64, bandwidth = 1.0e9 : f64}} ]}
      func.func @main(
          %m: tensor<512xf32> {whale.donated, whale.fed_by = 0 : i64},
          %g: tensor<512xf32>) -> tensor<512xf32> {
        %0 = whale.task_graph "default" apply -> tensor<512xf32> {
          %1 = stablehlo.add %m, %g : tensor<512xf32>
          whale.yield %1 : tensor<512xf32>
        }
        return %0 : tensor<512xf32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {whale.config = {offload = {level = "state"}}} {
      whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"} ],
          host = {bandwidth = 1.000000e+09 : f64,
          memory_bytes = 1.000000e+09 : f64}} ]}
      func.func @main(%arg0: tensor<512xf32>
          {whale.donated, whale.fed_by = 0 : i64, whale.in_host},
          %arg1: tensor<512xf32>) -> (tensor<512xf32> {whale.in_host}) {
        %0 = whale.task_graph "default" apply -> tensor<512xf32> {
          %1 = stablehlo.add %arg0, %arg1 : tensor<512xf32>
          whale.yield %1 : tensor<512xf32>
        }
        return %0 : tensor<512xf32>
      }
    }
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
    tells it. The sums of split products are scattered where they are large and
    the step is shorter with that (sequence parallelism). Sizes are in proportion to the speed of the devices.

    A program that has an `sdy.mesh` (see whale-normalize) is propagated along
    each axis of the mesh, from the shardings of its arguments and its sharding
    constraints; all devices get equal shares.

    An argument with `whale.given_placement` lies there, and what uses it
    follows: replicas gather it where they use it, as their own parameters under
    `zero.level`.

    Writes `whale.placement` on arguments, `whale.placements` and
    `whale.operand_placements` on operations; whale-insert-reshards makes the
    differences explicit. Where whale-place-results has placed everything, it
    changes nothing.

    Example: a matrix product whose left operand carries the mini-batch, on two
    devices of speed 1 and 3.
    ```mlir
    whale.cluster @cluster {nodes = [
      {devices = [{kind = "cpu", slowdown = 3}, {kind = "cpu"} ]} ]}
    whale.virtual_device @vd0 [[0, 1]]
    func.func @main(%x: tensor<8x4xf32> {whale.batch_dim = 0 : i64},
                    %w: tensor<4x16xf32>) -> tensor<8x16xf32> {
      %0 = whale.task_graph "body" forward strategy #whale.replicate
          on @vd0 -> tensor<8x16xf32> {
        %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
        whale.yield %1 : tensor<8x16xf32>
      }
      return %0 : tensor<8x16xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[8, 4] split 0 (2, 6) on [0, 1]>
    #placement1 = #whale.placement<[4, 16] replicate 2 on [0, 1]>
    #placement2 = #whale.placement<[8, 16] split 0 (2, 6) on [0, 1]>
    module {
      whale.cluster @cluster
          {nodes = [{devices = [{kind = "cpu", slowdown = 3 : i64},
          {kind = "cpu"} ]} ]}
      whale.virtual_device @vd0 [[0, 1]]
      func.func @main(%arg0: tensor<8x4xf32>
          {whale.batch_dim = 0 : i64, whale.placement = #placement},
          %arg1: tensor<4x16xf32> {whale.placement = #placement1})
          -> tensor<8x16xf32> {
        %0 = whale.task_graph "body" forward strategy #whale.replicate on @vd0
            -> tensor<8x16xf32> {
          %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
              {whale.operand_placements = [#placement, #placement1],
              whale.placements = [#placement2]}
              : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
          whale.yield %1 : tensor<8x16xf32>
        }
        return {whale.operand_placements = [#placement2]} %0 : tensor<8x16xf32>
      }
    }
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
    be split). `linear in` names operands that may be partial sums: if these
    are, and no others, so are the results.

    Example:
    ```mlir
    func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>)
        -> tensor<8x16xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }
    ```
    is remarked:
    ```text
    remark: [b, a], [a, c] -> [b, c] where a=4 sum, b=8, c=16; linear in 0;
        linear in 1
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
    #partial = #whale.placement<[8] partial sum 2 on [0, 1]>
    #whole = #whale.placement<[8] replicate 2 on [0, 1]>
    func.func @main(%g: tensor<8xf32> {whale.placement = #partial})
        -> tensor<8xf32> {
      %0 = stablehlo.tanh %g {whale.operand_placements = [#whole],
          whale.placements = [#whole]} : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[8] partial sum 2 on [0, 1]>
    #placement1 = #whale.placement<[8] replicate 2 on [0, 1]>
    module {
      func.func @main(%arg0: tensor<8xf32> {whale.placement = #placement})
          -> tensor<8xf32> {
        %0 = whale.reshard %arg0 from #placement to #placement1 : tensor<8xf32>
        %1 = stablehlo.tanh %0 {whale.placements = [#placement1]}
            : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def NarrowReductions : Pass<"whale-narrow-reductions", "::mlir::ModuleOp"> {
  let summary = "Send sums of gradients in halves";
  let description = [{
    With `communication.bf16` or `communication.fp16` in `whale.config`, each
    `whale.reshard` that sums what a backward has made, for updates or for
    results of the step alone, gets `wire`, and for f16 `scale`. What else is
    summed, as losses, statistics and activations, is sent as it is, and so are
    elements of f64. A remark says how many bytes of gradients are sent.

    Example:
    ```mlir
    #partial = #whale.placement<[8] partial sum 2 on [0, 1]>
    #whole = #whale.placement<[8] replicate 2 on [0, 1]>
    module attributes {whale.config = {communication = {bf16 = true}}} {
      whale.virtual_device @vd0 [[0, 1]]
      func.func @main(%x: tensor<8xf32> {whale.placement = #partial})
          -> tensor<8xf32> {
        %0 = whale.task_graph "a" backward on @vd0 flops 0 bytes 0
            -> tensor<8xf32> {
          whale.yield %x : tensor<8xf32>
        }
        %1 = whale.reshard %0 from #partial to #whole : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[8] partial sum 2 on [0, 1]>
    #placement1 = #whale.placement<[8] replicate 2 on [0, 1]>
    module attributes {whale.config = {communication = {bf16 = true}}} {
      whale.virtual_device @vd0 [[0, 1]]
      func.func @main(%arg0: tensor<8xf32> {whale.placement = #placement})
          -> tensor<8xf32> {
        %0 = whale.task_graph "a" backward on @vd0 flops 0 bytes 0
            -> tensor<8xf32> {
          whale.yield %arg0 : tensor<8xf32>
        }
        %1 = whale.reshard %0 from #placement to #placement1 {wire = bf16}
            : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
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
    - a partial operand enters an operation that is not linear in it, and does
      not combine terms as it is reduced (`and`, `or`, `minimum`, `maximum`), or a
      dimension is reduced in parts and the result is not partial;
    - a loop or branch carries a value from one placement to another;
    - a device computes, moves or holds something in a loop or branch, and has
      not the whole of the predicate or index.

    Example: the operands of this sum are cut differently.
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
    is refused:
    ```text
    error: 'stablehlo.add' op operand #1 is placed [8] split 0 (3, 5) on [0, 1]
        and operand #0 [8] split 0 (4, 4) on [0, 1]: they disagree about a
        dimension that they share on device 0
    ```
  }];
}

#endif // WHALE_TRANSFORMS_PLACED_PASSES_TD
