//===- Passes.td - Whale TaskGraph passes ------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_TASKGRAPHS_PASSES_TD
#define WHALE_TRANSFORMS_TASKGRAPHS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormTaskGraphs : Pass<"whale-form-task-graphs", "::mlir::ModuleOp"> {
  let summary = "make @main a sequence of task graphs";
  let description = [{
    Orders the operations of `@main` so that those of one strategy and phase
    are in few runs, and puts each run into a `whale.task_graph` with its
    FLOPs and bytes. Every operation then is in exactly one. The current
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
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = whale.task_graph "head" forward
          strategy #whale.split<devices = 4, name = "head", scope = 0> flops 8
          bytes 64 -> tensor<8xf32> {
        %1 = stablehlo.tanh %arg0 : tensor<8xf32>
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
    - an operation of `@main` is in no `whale.task_graph`;
    - task graphs of one name have different strategies or virtual devices.

    Example: the addition has no task graph.
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.add %x, %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
    is refused:
    ```text
    error: 'stablehlo.add' op is in no task graph
    ```
  }];
}

#endif // WHALE_TRANSFORMS_TASKGRAPHS_PASSES_TD
