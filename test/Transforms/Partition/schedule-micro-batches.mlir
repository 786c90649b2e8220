// The order of forwards and backwards on each stage of a pipeline: by a
// schedule that is asked for, or by the one that the cost model finds the
// fastest of those that fit into memory. Also stages that samples come back to,
// stages that share a device, and steps without a backward. Judged by the
// orders, and by the remarks and errors that explain them.

// RUN: whale-opt %s --split-input-file --whale-schedule-micro-batches --verify-diagnostics | FileCheck %s

// Two stages there and back, in the order of the schedule that is asked for.
// CHECK-LABEL: module attributes {whale.config = {pipeline = {strategy = "1f1b"}}}
// CHECK: whale.micro_batches [0, 0, 0]
// CHECK-SAME: order [#whale.order<[0]: forward 0, forward 1, backward 0, forward 2, backward 1, backward 2>, #whale.order<[1]: forward 0, backward 0, forward 1, backward 1, forward 2, backward 2>]
module attributes {whale.config = {pipeline = {strategy = "1f1b"}}} {
  whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>)
      -> tensor<4xf32> {
    // expected-remark@+1 {{pipeline: 1f1b takes}}
    %0 = whale.micro_batches [0, 0, 0](%a, %b, %c)
        reduce [#whale.reduction<sum>]
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 flops 12 -> tensor<4xf32> {
        %5 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 flops 12 -> tensor<4xf32> {
        %5 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %3 = whale.task_graph "two" backward on @vd1 flops 24 -> tensor<4xf32> {
        %5 = stablehlo.multiply %2, %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %4 = whale.task_graph "one" backward on @vd0 flops 24 -> tensor<4xf32> {
        %5 = stablehlo.multiply %3, %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      whale.yield %4 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// Zero bubble: what no other stage waits for is a task graph of its own.
// CHECK-LABEL: strategy = "zero-bubble"
// CHECK: #whale.order<[{{[^>]*}} weight_gradient 0
// CHECK: whale.task_graph "two" backward {{.*}} -> tensor<4xf32>
// CHECK-NEXT: stablehlo.multiply
// CHECK-NEXT: whale.yield
// CHECK: whale.task_graph "two" backward {{.*}}whale.weight_gradient
// CHECK-NEXT: stablehlo.sine
// CHECK-NEXT: whale.yield
module attributes {whale.config = {pipeline = {strategy = "zero-bubble"}}} {
  whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>) {
    // expected-remark@+1 {{pipeline: zero-bubble takes}}
    %0:2 = whale.micro_batches [0, 0](%a, %b)
        reduce [#whale.reduction<sum>, #whale.reduction<sum>]
        : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 flops 12 -> tensor<4xf32> {
        %5 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 flops 12 -> tensor<4xf32> {
        %5 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %3:2 = whale.task_graph "two" backward on @vd1 flops 24
          -> tensor<4xf32>, tensor<4xf32> {
        %5 = stablehlo.multiply %2, %1 : tensor<4xf32>
        %6 = stablehlo.sine %5 : tensor<4xf32>
        whale.yield %5, %6 : tensor<4xf32>, tensor<4xf32>
      }
      %4 = whale.task_graph "one" backward on @vd0 flops 24 -> tensor<4xf32> {
        %5 = stablehlo.multiply %3#0, %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      whale.yield %4, %3#1 : tensor<4xf32>, tensor<4xf32>
    }
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// What has no scope and is come back to joins the chain of stages again.
// CHECK-LABEL: module @again
// CHECK: order [#whale.order<[0]: forward 0, forward 1, forward 0 chunk 1, forward 1 chunk 1, backward 0 chunk 1, backward 1 chunk 1, backward 0, backward 1>, #whale.order<[1]: forward 0, forward 1, backward 0, backward 1>]
// CHECK: "one" forward {{.*}}whale.chunk = 0
// CHECK: "two" forward {{.*}}whale.chunk = 0
// CHECK: "one" forward {{.*}}whale.chunk = 1
// CHECK: "one" backward {{.*}}whale.chunk = 1
// CHECK: "two" backward {{.*}}whale.chunk = 0
// CHECK: "one" backward {{.*}}whale.chunk = 0
module @again attributes {whale.config = {pipeline = {strategy = "gpipe"}}} {
  whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    // expected-remark@+1 {{pipeline: gpipe takes}}
    %0 = whale.micro_batches [0, 0](%a, %b)
        reduce [#whale.reduction<sum>]
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %7 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 -> tensor<4xf32> {
        // expected-note@+1 {{'stablehlo.tanh' in TaskGraph 'two' uses what 'one' makes}}
        %7 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      // expected-remark@+1 {{pipeline: the samples come back to TaskGraph 'one' after another stage}}
      %3 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        // expected-note@+1 {{'stablehlo.add' in TaskGraph 'one' uses what 'two' makes}}
        %7 = stablehlo.add %1, %2 : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %4 = whale.task_graph "one" backward on @vd0 -> tensor<4xf32> {
        %7 = stablehlo.sine %3 : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %5 = whale.task_graph "two" backward on @vd1 -> tensor<4xf32> {
        %7 = stablehlo.multiply %2, %4 : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %6 = whale.task_graph "one" backward on @vd0 -> tensor<4xf32> {
        %7 = stablehlo.multiply %1, %5 : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      whale.yield %6 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// Interleaving is for stages that have equally many task graphs.
module attributes {whale.config = {pipeline = {strategy = "interleaved"}}} {
  whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{pipeline: schedule 'interleaved' needs the same number of task graphs on each stage, in the same order; take another schedule}}
    %0 = whale.micro_batches [0, 0](%a, %b)
        reduce [#whale.reduction<sum>]
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %7 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 -> tensor<4xf32> {
        %7 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %3 = whale.task_graph "three" forward on @vd0 -> tensor<4xf32> {
        %7 = stablehlo.add %1, %2 : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      %4 = whale.task_graph "three" backward on @vd0 -> tensor<4xf32> {
        %7 = stablehlo.sine %3 : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      whale.yield %4 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// Backwards whose forwards are in a loop before them come in the order in which
// they use each other, on two stages that take turns.
// CHECK-LABEL: module @backward_only
// CHECK: "four" backward {{.*}}whale.chunk = 1
// CHECK: "three" backward {{.*}}whale.chunk = 1
// CHECK: "two" backward {{.*}}whale.chunk = 0
// CHECK: "one" backward {{.*}}whale.chunk = 0
module @backward_only attributes {whale.config = {pipeline = {strategy = "interleaved"}}} {
  whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    // expected-remark@+1 {{pipeline: interleaved}}
    %0 = whale.micro_batches [0, 0](%a, %b)
        reduce [#whale.reduction<sum>]
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "four" backward on @vd1 -> tensor<4xf32> {
        %5 = stablehlo.sine %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %2 = whale.task_graph "three" backward on @vd0 -> tensor<4xf32> {
        %5 = stablehlo.sine %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %3 = whale.task_graph "two" backward on @vd1 -> tensor<4xf32> {
        %5 = stablehlo.sine %2 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %4 = whale.task_graph "one" backward on @vd0 -> tensor<4xf32> {
        %5 = stablehlo.sine %3 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      whale.yield %4 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// A smaller last replica: on its device two stages take turns, as the stages of
// the others do.
// CHECK-LABEL: module @uneven
// CHECK: order [#whale.order<[0]: forward 0, forward 1, backward 0, backward 1>, #whale.order<[2]: forward 0, forward 1, forward 0 chunk 1, backward 0 chunk 1, backward 0, forward 1 chunk 1, backward 1 chunk 1, backward 1>, #whale.order<[1]: forward 0 chunk 1, backward 0 chunk 1, forward 1 chunk 1, backward 1 chunk 1>]
module @uneven attributes {whale.config = {pipeline = {strategy = "1f1b"}}} {
  whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu", count = 3}]}]}
  whale.virtual_device @vd0 [[0], [2]]
  whale.virtual_device @vd1 [[1], [2]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    // expected-remark@+1 {{pipeline: 1f1b takes}}
    %0 = whale.micro_batches [0, 0](%a, %b)
        reduce [#whale.reduction<sum>]
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %5 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 -> tensor<4xf32> {
        %5 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %3 = whale.task_graph "two" backward on @vd1 -> tensor<4xf32> {
        %5 = stablehlo.multiply %2, %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %4 = whale.task_graph "one" backward on @vd0 -> tensor<4xf32> {
        %5 = stablehlo.multiply %3, %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      whale.yield %4 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// There is nothing to order on shared devices.
module attributes {whale.config = {pipeline = {strategy = "1f1b"}}} {
  whale.cluster @cluster {nodes = [{name = "a", devices = [{kind = "cpu"}]}]}
  whale.virtual_device @vd0 [[0]]
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{pipeline.strategy: '1f1b' orders the stages of a pipeline, but all that is computed with micro-batches is on the same devices; give task graphs devices of their own}}
    %0 = whale.micro_batches [0](%a) reduce [#whale.reduction<sum>]
        : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %2 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %2 : tensor<4xf32>
      }
      whale.yield %1 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// The bytes that whale-propagate expects rule out all but one kind.
// CHECK-LABEL: module @full
// CHECK: ]: forward 0, forward 1, backward 0, forward 2, backward 1, backward 2>
// CHECK-NOT: whale.loop_bytes
module @full {
  whale.cluster @cluster {
    kinds = {small = {flops = {f32 = 1.0e12}, memory_bytes = 89,
                      memory_bandwidth = 1.0e11}},
    nodes = [{name = "a", devices = [{kind = "small", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>)
      -> tensor<4xf32> {
    // expected-remark@+1 {{(doesn't fit), 1f1b }}
    %0 = whale.micro_batches [0, 0, 0](%a, %b, %c)
        reduce [#whale.reduction<sum>]
        attributes {whale.loop_bytes = [
          {devices = array<i64: 0>, fixed = 20 : i64, kept = {one = 30 : i64},
           outside = 10 : i64, sums = {}},
          {devices = array<i64: 1>, fixed = 10 : i64, kept = {two = 20 : i64},
           outside = 65 : i64, sums = {}}]}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 flops 12 -> tensor<4xf32> {
        %5 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 flops 12 -> tensor<4xf32> {
        %5 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %3 = whale.task_graph "two" backward on @vd1 flops 24 -> tensor<4xf32> {
        %5 = stablehlo.multiply %2, %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %4 = whale.task_graph "one" backward on @vd0 flops 24 -> tensor<4xf32> {
        %5 = stablehlo.multiply %3, %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      whale.yield %4 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// Three micro-batches fit, but not with their sums.
// CHECK-LABEL: module @sums
// CHECK: ]: forward 0, forward 1, backward 0, forward 2, backward 1, backward 2>
// CHECK-NOT: whale.loop_bytes
module @sums {
  whale.cluster @cluster {
    kinds = {small = {flops = {f32 = 1.0e12}, memory_bytes = 110,
                      memory_bandwidth = 1.0e11}},
    nodes = [{name = "a", devices = [{kind = "small", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>)
      -> tensor<4xf32> {
    // expected-remark@+1 {{gpipe 1.28e-09 s (doesn't fit), 1f1b }}
    %0 = whale.micro_batches [0, 0, 0](%a, %b, %c)
        reduce [#whale.reduction<sum>]
        attributes {whale.loop_bytes = [
          {devices = array<i64: 0>, fixed = 20 : i64, kept = {one = 30 : i64},
           outside = 10 : i64, sums = {one = 9 : i64}},
          {devices = array<i64: 1>, fixed = 10 : i64, kept = {two = 20 : i64},
           outside = 65 : i64, sums = {}}]}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 flops 12 -> tensor<4xf32> {
        %5 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 flops 12 -> tensor<4xf32> {
        %5 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %3 = whale.task_graph "two" backward on @vd1 flops 24 -> tensor<4xf32> {
        %5 = stablehlo.multiply %2, %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %4 = whale.task_graph "one" backward on @vd0 flops 24 -> tensor<4xf32> {
        %5 = stablehlo.multiply %3, %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      whale.yield %4 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// A branch takes as long as its longest alternative, here 8 s and not 12;
// everything else takes 4 s.
module attributes {whale.config = {pipeline = {strategy = "gpipe"}}} {
  whale.cluster @cluster {kinds = {k = {flops = {f32 = 1.0}, memory_bytes = 1000 : i64, memory_bandwidth = 1.0e9}}, nodes = [{name = "a", devices = [{kind = "k", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %n: tensor<i32>)
      -> tensor<4xf32> {
    // expected-remark@+1 {{pipeline: gpipe takes 32 s}}
    %0 = whale.micro_batches [0, 0](%a, %b)
        reduce [#whale.reduction<sum>]
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %5 = "stablehlo.case"(%n) ({
          %6 = stablehlo.tanh %x : tensor<4xf32>
          stablehlo.return %6 : tensor<4xf32>
        }, {
          %6 = stablehlo.tanh %x : tensor<4xf32>
          %7 = stablehlo.tanh %6 : tensor<4xf32>
          stablehlo.return %7 : tensor<4xf32>
        }) : (tensor<i32>) -> tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 -> tensor<4xf32> {
        %5 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %3 = whale.task_graph "two" backward on @vd1 -> tensor<4xf32> {
        %5 = stablehlo.multiply %2, %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %4 = whale.task_graph "one" backward on @vd0 -> tensor<4xf32> {
        %5 = stablehlo.multiply %3, %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      whale.yield %4 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// A step that only goes forward has nothing that a schedule could order.
// CHECK-LABEL: module @forward_only
// CHECK-NOT: order [
module @forward_only attributes {whale.config = {pipeline = {strategy = "interleaved"}}} {
  whale.cluster @cluster {kinds = {k = {flops = {f32 = 1.0}, memory_bytes = 1000 : i64, memory_bandwidth = 1.0e9}}, nodes = [{name = "a", devices = [{kind = "k", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    // expected-remark@+1 {{pipeline: schedule 'interleaved' says when backwards come, and there are none: each stage takes the micro-batches in their order}}
    %0 = whale.micro_batches [0, 0](%a, %b)
        reduce [#whale.reduction<sum>]
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %5 = stablehlo.tanh %x : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      %2 = whale.task_graph "two" forward on @vd1 -> tensor<4xf32> {
        %5 = stablehlo.tanh %1 : tensor<4xf32>
        whale.yield %5 : tensor<4xf32>
      }
      whale.yield %2 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}
