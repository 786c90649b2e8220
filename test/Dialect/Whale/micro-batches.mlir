// The operation whale.micro_batches. Two valid modules are printed, parsed and
// printed again, and have to keep their regions and their order of steps. Then
// each part has one mistake in its order, moments, regions, operands or
// results, and has to be refused by the error noted above it.

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

// CHECK-LABEL: module @order
module @order {
  whale.virtual_device @vd0 [[0, 2]]
  whale.virtual_device @vd1 [[1]]
  func.func @main() {
    // CHECK: whale.micro_batches [0, 0]() order [#whale.order<[0, 2]: forward 0, forward 1, backward 0, backward 1>, #whale.order<[1]: forward 0, forward 0 chunk 1, backward 0, weight_gradient 0, forward 1, forward 1 chunk 1, backward 1, weight_gradient 1>] : () -> () {
    whale.micro_batches [0, 0]() order [
        #whale.order<[0, 2]: forward 0, forward 1, backward 0, backward 1>,
        #whale.order<[1]:
            forward 0 chunk 0, forward 0 chunk 1, backward 0, weight_gradient 0,
            forward 1, forward 1 chunk 1, backward 1, weight_gradient 1>]
        : () -> () {
      whale.task_graph "one" forward on @vd0 {
        whale.yield
      }
      whale.task_graph "two" forward on @vd1 {
        whale.yield
      }
      whale.task_graph "three" forward on @vd1
          attributes {whale.chunk = 1 : i64} {
        whale.yield
      }
      whale.task_graph "two" backward on @vd1 {
        whale.yield
      }
      whale.task_graph "two" backward on @vd1
          attributes {whale.weight_gradient} {
        whale.yield
      }
      whale.task_graph "one" backward on @vd0 {
        whale.yield
      }
      // Without devices it is nobody's.
      whale.task_graph "anywhere" forward {
        whale.yield
      }
      whale.yield
    }
    return
  }
}

// -----

func.func @order_of_no_device() {
  // expected-error@+1 {{order has no devices}}
  whale.micro_batches [0]() order [#whale.order<[]: forward 0>] : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @order_of_negative_device() {
  // expected-error@+1 {{device -1 is negative}}
  whale.micro_batches [0]() order [#whale.order<[-1]: forward 0>] : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @order_of_device_twice() {
  // expected-error@+1 {{device 1 appears twice}}
  whale.micro_batches [0]() order [#whale.order<[1, 1]: forward 0>]
      : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @order_of_unknown_step() {
  // expected-error@+1 {{unknown step 'F0', expected forward, backward or weight_gradient}}
  whale.micro_batches [0]() order [#whale.order<[0]: F0 B0>] : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @order_with_negative_number() {
  // expected-error@+1 {{step 'forward 0 chunk -1' has a negative number}}
  whale.micro_batches [0]() order [#whale.order<[0]: forward 0 chunk -1>]
      : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @order_with_step_twice() {
  // expected-error@+1 {{step 'backward 0' comes after 'backward 0'; micro-batches pass in ascending order}}
  whale.micro_batches [0]() order [#whale.order<[0]: backward 0, backward 0>]
      : () -> () {
    whale.yield
  }
  return
}

// -----

// Another stage would take what it receives for that of the other micro-batch.
func.func @order_that_descends() {
  // expected-error@+2 {{step 'forward 0 chunk 1' comes after 'forward 1 chunk 1'; micro-batches pass in ascending order}}
  whale.micro_batches [0, 0]() order [
      #whale.order<[0]: forward 1 chunk 1, forward 0 chunk 1>] : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @order_with_two_lists() {
  // expected-error@+1 {{order has two lists for device 0}}
  whale.micro_batches [0]() order [
      #whale.order<[0]: forward 0>, #whale.order<[0]: backward 0>]
      : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @order_without_moment() {
  // expected-error@+1 {{order has a step of micro-batch 1, and there are 1}}
  whale.micro_batches [0]() order [#whale.order<[0]: forward 1>] : () -> () {
    whale.yield
  }
  return
}

// -----

module {
  whale.virtual_device @vd0 [[0]]
  func.func @order_that_forgets() {
    // expected-error@+1 {{order: device 0 never computes TaskGraph 'one' for micro-batch 1}}
    whale.micro_batches [0, 0]() order [#whale.order<[0]: forward 0>]
        : () -> () {
      whale.task_graph "one" forward on @vd0 {
        whale.yield
      }
      whale.yield
    }
    return
  }
}

// -----

module {
  whale.virtual_device @vd0 [[0, 1]]
  func.func @order_without_list() {
    // expected-error@+1 {{order: device 1 never computes TaskGraph 'one' for micro-batch 0}}
    whale.micro_batches [0]() order [#whale.order<[0]: forward 0>]
        : () -> () {
      whale.task_graph "one" forward on @vd0 {
        whale.yield
      }
      whale.yield
    }
    return
  }
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
  // expected-error@+1 {{batch dimension 1 is not a dimension of argument 0, 'tensor<4xf32>'}}
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
    // expected-error@+1 {{is inside another part of the step}}
    whale.micro_batches [0]() : () -> () {
      whale.yield
    }
    whale.yield
  }
  return
}
