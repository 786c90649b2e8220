// RUN: whale-opt %s --split-input-file --verify-diagnostics | whale-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @round_trip
func.func @round_trip(%x0: tensor<4xf32>, %x1: tensor<3xf32>)
    -> (tensor<f32>, tensor<4xf32>, tensor<3xf32>) {
  // CHECK: %{{.*}}:3 = whale.micro_batches [0, 1](%{{.*}}, %{{.*}}) reduce [#whale.reduction<sum>] batch_dims [0] : (tensor<4xf32>, tensor<3xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<3xf32>) {
  // CHECK: ^bb0(%{{.*}}: tensor<4xf32>):
  // CHECK: }, {
  // CHECK: ^bb0(%{{.*}}: tensor<3xf32>):
  %0:3 = whale.micro_batches [0, 1](%x0, %x1)
      reduce [#whale.reduction<sum>] batch_dims [0]
      : (tensor<4xf32>, tensor<3xf32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<3xf32>) {
  ^bb0(%x: tensor<4xf32>):
    %s = stablehlo.constant dense<1.0> : tensor<f32>
    whale.yield %s, %x : tensor<f32>, tensor<4xf32>
  }, {
  ^bb0(%x: tensor<3xf32>):
    %s = stablehlo.constant dense<1.0> : tensor<f32>
    whale.yield %s, %x : tensor<f32>, tensor<3xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<f32>, tensor<4xf32>, tensor<3xf32>
}

// -----

func.func @no_moments() {
  // expected-error@+1 {{has no moments}}
  whale.micro_batches []() : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @no_region() {
  // expected-error@+1 {{variant 1 has no region}}
  whale.micro_batches [0, 1]() : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @no_moment_of_region() {
  // expected-error@+1 {{region 1 has no moment}}
  whale.micro_batches [0, 0]() : () -> () {
    whale.yield
  }, {
    whale.yield
  }
  return
}

// -----

func.func @other_arguments(%x: tensor<4xf32>) {
  // expected-error@+1 {{region 1 has 0 arguments, the first has 1}}
  whale.micro_batches [0, 1](%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> () {
  ^bb0(%m: tensor<4xf32>):
    whale.yield
  }, {
    whale.yield
  }
  return
}

// -----

func.func @other_yields(%x: tensor<4xf32>) {
  // expected-error@+1 {{region 1 yields 1 values, the first 0}}
  whale.micro_batches [0, 1]() : () -> () {
    whale.yield
  }, {
    whale.yield %x : tensor<4xf32>
  }
  return
}

// -----

func.func @missing_piece(%x: tensor<4xf32>) {
  // expected-error@+1 {{has 1 operands for 1 arguments at 2 moments}}
  whale.micro_batches [0, 0](%x) : (tensor<4xf32>) -> () {
  ^bb0(%m: tensor<4xf32>):
    whale.yield
  }
  return
}

// -----

func.func @too_many_reductions() {
  // expected-error@+1 {{reduces 1 values but yields 0}}
  whale.micro_batches [0]() reduce [#whale.reduction<sum>] : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @missing_result(%x: tensor<4xf32>) {
  // expected-error@+1 {{has 1 results, expected 2}}
  %0 = whale.micro_batches [0, 0]() : () -> tensor<4xf32> {
    whale.yield %x : tensor<4xf32>
  }
  return
}

// -----

func.func @other_piece(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{argument 0 is 'tensor<4xf32>' but its piece at moment 1 is 'tensor<3xf32>'}}
  whale.micro_batches [0, 0](%x, %y) : (tensor<4xf32>, tensor<3xf32>) -> () {
  ^bb0(%m: tensor<4xf32>):
    whale.yield
  }
  return
}

// -----

func.func @other_result(%x: tensor<4xf32>) {
  // expected-error@+1 {{result 0 is 'tensor<3xf32>' but moment 0 yields 'tensor<4xf32>'}}
  %0 = whale.micro_batches [0]() : () -> tensor<3xf32> {
    whale.yield %x : tensor<4xf32>
  }
  return
}

// -----

func.func @batch_dim(%x: tensor<4xf32>) {
  // expected-error@+1 {{batch dimension 1 is none of argument 0, 'tensor<4xf32>'}}
  whale.micro_batches [0](%x) batch_dims [1] : (tensor<4xf32>) -> () {
  ^bb0(%m: tensor<4xf32>):
    whale.yield
  }
  return
}

// -----

func.func @batch_dims(%x: tensor<4xf32>) {
  // expected-error@+1 {{has batch dimensions for 2 of 1 arguments}}
  whale.micro_batches [0](%x) batch_dims [0, 0] : (tensor<4xf32>) -> () {
  ^bb0(%m: tensor<4xf32>):
    whale.yield
  }
  return
}

// -----

func.func @nested() {
  whale.micro_batches [0]() : () -> () {
    // expected-error@+1 {{stands inside another part of the step}}
    whale.micro_batches [0]() : () -> () {
      whale.yield
    }
    whale.yield
  }
  return
}
