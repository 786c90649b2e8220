// RUN: whale-opt %s -whale-verify-task-graphs -split-input-file -verify-diagnostics

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = whale.task_graph "a" forward strategy #whale.replicate
      -> tensor<8xf32> {
    %1 = stablehlo.tanh %x : tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  %2 = whale.task_graph "a" backward strategy #whale.replicate
      -> tensor<8xf32> {
    %1 = stablehlo.negate %0 : tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  return %2 : tensor<8xf32>
}

// -----

// expected-error@+1 {{expects a function @main with a body}}
module {}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = whale.task_graph "a" forward -> tensor<8xf32> {
    %1 = stablehlo.tanh %x : tensor<8xf32>
    whale.yield %1 : tensor<8xf32>
  }
  // expected-error@+1 {{'stablehlo.negate' op is in no task graph}}
  %2 = stablehlo.negate %0 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note@+1 {{the earlier one}}
  %0 = whale.task_graph "a" forward strategy #whale.replicate
      -> tensor<8xf32> {
    whale.yield %x : tensor<8xf32>
  }
  // expected-error@+1 {{has another strategy than an earlier one named "a"}}
  %2 = whale.task_graph "a" backward strategy #whale.split -> tensor<8xf32> {
    whale.yield %0 : tensor<8xf32>
  }
  return %2 : tensor<8xf32>
}

// -----

whale.virtual_device @vd0 [[0, 1]]
whale.virtual_device @vd1 [[2, 3]]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note@+1 {{the earlier one}}
  %0 = whale.task_graph "a" forward on @vd0 -> tensor<8xf32> {
    whale.yield %x : tensor<8xf32>
  }
  // expected-error@+1 {{has another virtual device than an earlier one named "a"}}
  %2 = whale.task_graph "a" backward on @vd1 -> tensor<8xf32> {
    whale.yield %0 : tensor<8xf32>
  }
  return %2 : tensor<8xf32>
}
