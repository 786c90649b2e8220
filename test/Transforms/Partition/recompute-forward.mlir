// RUN: whale-opt %s --split-input-file -whale-recompute-forward=lack=2000 -verify-diagnostics | FileCheck %s

// Two layers: the first product and its cosine are computed again, behind the
// gradient that comes from the second. What the second layer reads is kept, and
// the last values have no gradient before them.

#x = #whale.placement<[8, 64] on [0]>
#w = #whale.placement<[64, 64] on [0]>

// CHECK-LABEL: func.func @main
// CHECK: %[[F:.*]]:4 = whale.task_graph "all" forward
// CHECK-COUNT-2: stablehlo.dot_general
// CHECK: whale.task_graph "all" backward {{.*}} flops 66148
// CHECK: stablehlo.multiply %[[F]]#2, %[[F]]#3
// CHECK: %[[GRAD:.*]] = stablehlo.dot_general
// CHECK: %[[X:.*]] = whale.after %arg0 behind %[[GRAD]]
// CHECK: %[[V:.*]] = whale.after %arg1 behind %[[GRAD]]
// CHECK: %[[AGAIN:.*]] = stablehlo.dot_general %[[X]], %[[V]]
// CHECK: %[[COSINE:.*]] = stablehlo.cosine %[[AGAIN]]
// CHECK: stablehlo.multiply %[[GRAD]], %[[COSINE]]
// CHECK: stablehlo.dot_general %[[F]]#0
module attributes {whale.config = {gradient_checkpoint = {type = "AUTO"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}]}]}
  whale.virtual_device @vd0 [[0]]
  func.func @main(%x: tensor<8x64xf32> {whale.placement = #x},
                  %v: tensor<64x64xf32> {whale.placement = #w},
                  %w: tensor<64x64xf32> {whale.placement = #w})
      -> (tensor<8x64xf32>, tensor<64x64xf32>) {
    %f:4 = whale.task_graph "all" forward on @vd0
        -> tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>,
           tensor<8x64xf32> {
      // expected-remark@+1 {{recompute: the backward of task graph 'all' computes 2 operations again, 1 of them products or the like; device 0 holds 6144 of 8192 bytes for it}}
      %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
          {whale.placements = [#x]}
          : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %1 = stablehlo.sine %0 {whale.placements = [#x]} : tensor<8x64xf32>
      %2 = stablehlo.cosine %0 {whale.placements = [#x]} : tensor<8x64xf32>
      %3 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
          {whale.placements = [#x]}
          : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %4 = stablehlo.sine %3 {whale.placements = [#x]} : tensor<8x64xf32>
      %5 = stablehlo.cosine %3 {whale.placements = [#x]} : tensor<8x64xf32>
      whale.yield %1, %2, %4, %5
          : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>,
            tensor<8x64xf32>
    }
    %b:2 = whale.task_graph "all" backward on @vd0 flops 100
        -> tensor<8x64xf32>, tensor<64x64xf32> {
      %6 = stablehlo.multiply %f#2, %f#3 {whale.placements = [#x]}
          : tensor<8x64xf32>
      %7 = stablehlo.dot_general %6, %w, contracting_dims = [1] x [1]
          {whale.placements = [#x]}
          : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %8 = stablehlo.multiply %7, %f#1 {whale.placements = [#x]}
          : tensor<8x64xf32>
      %9 = stablehlo.dot_general %f#0, %8, contracting_dims = [0] x [0]
          {whale.placements = [#w]}
          : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
      whale.yield %8, %9 : tensor<8x64xf32>, tensor<64x64xf32>
    }
    return %b#0, %b#1 : tensor<8x64xf32>, tensor<64x64xf32>
  }
}

// -----

// All that is element-wise is computed again from an argument. The second use
// of a value is of the same copy, and the last value of the forward has no
// gradient before it.

#x = #whale.placement<[256] on [0]>

// CHECK-LABEL: func.func @main
// CHECK: %[[F:.*]]:4 = whale.task_graph "all" forward
// CHECK: whale.task_graph "all" backward
// CHECK: %[[GRAD:.*]] = stablehlo.multiply %[[F]]#2, %arg1
// CHECK: %[[X:.*]] = whale.after %arg0 behind %[[GRAD]]
// CHECK: %[[SINE:.*]] = stablehlo.sine %[[X]]
// CHECK: %[[FIRST:.*]] = stablehlo.multiply %[[GRAD]], %[[SINE]]
// CHECK: %[[EXP:.*]] = stablehlo.exponential %[[SINE]]
// CHECK: %[[SECOND:.*]] = stablehlo.multiply %[[FIRST]], %[[EXP]]
// CHECK: stablehlo.multiply %[[SECOND]], %[[SINE]]
module attributes {whale.config = {gradient_checkpoint = {type = "auto"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}]}]}
  whale.virtual_device @vd0 [[0]]
  func.func @main(%x: tensor<256xf32> {whale.placement = #x},
                  %c: tensor<256xf32> {whale.placement = #x})
      -> tensor<256xf32> {
    %f:4 = whale.task_graph "all" forward on @vd0
        -> tensor<256xf32>, tensor<256xf32>, tensor<256xf32>,
           tensor<256xf32> {
      // expected-remark@+1 {{computes 3 operations again, element by element; device 0 holds 3072 of 4096 bytes for it, for}}
      %0 = stablehlo.sine %x {whale.placements = [#x]} : tensor<256xf32>
      %1 = stablehlo.exponential %0 {whale.placements = [#x]} : tensor<256xf32>
      %2 = stablehlo.tanh %1 {whale.placements = [#x]} : tensor<256xf32>
      %a = stablehlo.cosine %1 {whale.placements = [#x]} : tensor<256xf32>
      whale.yield %0, %1, %2, %a
          : tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>
    }
    %b = whale.task_graph "all" backward on @vd0 -> tensor<256xf32> {
      %3 = stablehlo.multiply %f#2, %c {whale.placements = [#x]}
          : tensor<256xf32>
      %4 = stablehlo.multiply %3, %f#0 {whale.placements = [#x]}
          : tensor<256xf32>
      %5 = stablehlo.multiply %4, %f#1 {whale.placements = [#x]}
          : tensor<256xf32>
      %6 = stablehlo.multiply %5, %f#0 {whale.placements = [#x]}
          : tensor<256xf32>
      %7 = stablehlo.multiply %6, %f#3 {whale.placements = [#x]}
          : tensor<256xf32>
      whale.yield %7 : tensor<256xf32>
    }
    return %b : tensor<256xf32>
  }
}

// -----

// What a loop has made is kept, and what comes of it can be computed again.

#x = #whale.placement<[256] on [0]>
#n = #whale.placement<[] on [0]>

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: whale.task_graph "all" backward
// CHECK-NOT: stablehlo.while
module attributes {whale.config = {gradient_checkpoint = {type = "auto"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}]}]}
  whale.virtual_device @vd0 [[0]]
  func.func @main(%x: tensor<256xf32> {whale.placement = #x},
                  %more: tensor<i1> {whale.placement = #n})
      -> tensor<256xf32> {
    %f:2 = whale.task_graph "all" forward on @vd0
        -> tensor<256xf32>, tensor<256xf32> {
      // expected-remark@+2 {{recompute: 1024 bytes that a loop has made for its backward are kept: loops are not run again; jax.checkpoint of the loop's body keeps less}}
      // expected-remark@+1 {{recompute: nothing of task graph 'all' can be computed again for fewer bytes}}
      %0 = stablehlo.while(%a = %x) : tensor<256xf32>
          attributes {whale.placements = [#x]} cond {
        stablehlo.return %more : tensor<i1>
      } do {
        %1 = stablehlo.sine %a {whale.placements = [#x]} : tensor<256xf32>
        stablehlo.return %1 : tensor<256xf32>
      }
      %2 = stablehlo.tanh %0 {whale.placements = [#x]} : tensor<256xf32>
      whale.yield %0, %2 : tensor<256xf32>, tensor<256xf32>
    }
    %b = whale.task_graph "all" backward on @vd0 -> tensor<256xf32> {
      %3 = stablehlo.negate %f#1 {whale.placements = [#x]} : tensor<256xf32>
      %4 = stablehlo.multiply %3, %f#0 {whale.placements = [#x]}
          : tensor<256xf32>
      whale.yield %4 : tensor<256xf32>
    }
    return %b : tensor<256xf32>
  }
}

// -----

// A device that lacks nothing keeps all.

#x = #whale.placement<[256] on [1]>

// CHECK-LABEL: func.func @main
// CHECK-NOT: whale.after
module attributes {whale.config = {gradient_checkpoint = {type = "auto"}}} {
  whale.cluster @cluster {nodes = [{devices = [{count = 2, kind = "cpu"}]}]}
  whale.virtual_device @vd0 [[1]]
  func.func @main(%x: tensor<256xf32> {whale.placement = #x})
      -> tensor<256xf32> {
    %f:4 = whale.task_graph "all" forward on @vd0
        -> tensor<256xf32>, tensor<256xf32>, tensor<256xf32>,
           tensor<256xf32> {
      %0 = stablehlo.sine %x {whale.placements = [#x]} : tensor<256xf32>
      %1 = stablehlo.exponential %0 {whale.placements = [#x]} : tensor<256xf32>
      %2 = stablehlo.tanh %1 {whale.placements = [#x]} : tensor<256xf32>
      %3 = stablehlo.cosine %1 {whale.placements = [#x]} : tensor<256xf32>
      whale.yield %0, %1, %2, %3
          : tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>
    }
    %b = whale.task_graph "all" backward on @vd0 -> tensor<256xf32> {
      %3 = stablehlo.multiply %f#2, %f#3 {whale.placements = [#x]}
          : tensor<256xf32>
      %4 = stablehlo.multiply %3, %f#0 {whale.placements = [#x]}
          : tensor<256xf32>
      %5 = stablehlo.multiply %4, %f#1 {whale.placements = [#x]}
          : tensor<256xf32>
      whale.yield %5 : tensor<256xf32>
    }
    return %b : tensor<256xf32>
  }
}

// -----

// What is element-wise between two products is one kernel: copies for all of it
// come behind the gradient that it starts from.

#x = #whale.placement<[8, 64] on [0]>
#w = #whale.placement<[64, 64] on [0]>

// CHECK-LABEL: func.func @main
// CHECK: whale.task_graph "all" backward
// CHECK: %[[GRAD:.*]] = stablehlo.dot_general
// CHECK: %[[PRODUCT:.*]] = stablehlo.multiply %[[GRAD]], %
// CHECK: whale.after %arg0 behind %[[GRAD]]
// CHECK: whale.after %arg1 behind %[[GRAD]]
// CHECK: %[[COSINE:.*]] = stablehlo.cosine
// CHECK: stablehlo.multiply %[[PRODUCT]], %[[COSINE]]
module attributes {whale.config = {gradient_checkpoint = {type = "auto"}}} {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu"}]}]}
  whale.virtual_device @vd0 [[0]]
  func.func @main(%x: tensor<8x64xf32> {whale.placement = #x},
                  %v: tensor<64x64xf32> {whale.placement = #w},
                  %w: tensor<64x64xf32> {whale.placement = #w})
      -> tensor<64x64xf32> {
    %f:3 = whale.task_graph "all" forward on @vd0
        -> tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32> {
      // expected-remark@+1 {{computes 2 operations again}}
      %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
          {whale.placements = [#x]}
          : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %1 = stablehlo.sine %0 {whale.placements = [#x]} : tensor<8x64xf32>
      %2 = stablehlo.cosine %0 {whale.placements = [#x]} : tensor<8x64xf32>
      %3 = stablehlo.exponential %1 {whale.placements = [#x]} : tensor<8x64xf32>
      %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0]
          {whale.placements = [#x]}
          : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      whale.yield %2, %3, %4
          : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>
    }
    %b = whale.task_graph "all" backward on @vd0 -> tensor<64x64xf32> {
      %5 = stablehlo.multiply %f#2, %x {whale.placements = [#x]}
          : tensor<8x64xf32>
      %6 = stablehlo.dot_general %5, %w, contracting_dims = [1] x [1]
          {whale.placements = [#x]}
          : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
      %7 = stablehlo.multiply %6, %f#1 {whale.placements = [#x]}
          : tensor<8x64xf32>
      %8 = stablehlo.multiply %7, %f#0 {whale.placements = [#x]}
          : tensor<8x64xf32>
      %9 = stablehlo.dot_general %x, %8, contracting_dims = [0] x [0]
          {whale.placements = [#w]}
          : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
      whale.yield %9 : tensor<64x64xf32>
    }
    return %b : tensor<64x64xf32>
  }
}
