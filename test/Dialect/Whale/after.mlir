// RUN: whale-opt %s --split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @anywhere
// CHECK: whale.after %arg0 behind %arg1 : tensor<4xf32>, tensor<i32>
func.func @anywhere(%x: tensor<4xf32>, %g: tensor<i32>) -> tensor<4xf32> {
  %0 = whale.after %x behind %g : tensor<4xf32>, tensor<i32>
  return %0 : tensor<4xf32>
}

// -----

func.func @forward(%x: tensor<4xf32>) {
  whale.task_graph "a" forward {
    // expected-error@+1 {{is in a forward task graph, and only a backward one computes values again}}
    %0 = whale.after %x behind %x : tensor<4xf32>, tensor<4xf32>
    whale.yield
  }
  return
}

// -----

func.func @no_gradient(%x: tensor<4xf32>) {
  %f = whale.task_graph "a" forward -> tensor<4xf32> {
    %0 = stablehlo.negate %x : tensor<4xf32>
    whale.yield %0 : tensor<4xf32>
  }
  whale.task_graph "a" backward {
    // expected-error@+1 {{is behind a value that no backward task graph computes, so that it could come at any time}}
    %0 = whale.after %x behind %f : tensor<4xf32>, tensor<4xf32>
    whale.yield
  }
  return
}

// -----

func.func @constant(%x: tensor<4xf32>) {
  whale.task_graph "a" backward {
    %0 = stablehlo.constant dense<1.0> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = []
        : (tensor<f32>) -> tensor<4xf32>
    // expected-error@+1 {{is behind a value that no backward task graph computes}}
    %2 = whale.after %x behind %1 : tensor<4xf32>, tensor<4xf32>
    whale.yield
  }
  return
}

// -----

func.func @own(%x: tensor<4xf32>) {
  whale.task_graph "a" backward {
    %0 = stablehlo.negate %x : tensor<4xf32>
    // expected-error@+1 {{is of a value that its own task graph computes, and not of one that is kept for it}}
    %1 = whale.after %0 behind %0 : tensor<4xf32>, tensor<4xf32>
    whale.yield
  }
  return
}
