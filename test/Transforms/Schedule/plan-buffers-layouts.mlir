// RUN: whale-opt %s -whale-plan-buffers | FileCheck %s

// What a backward call reads is in one of two buffers by turns. Its local is in
// the same bytes each time, so a layout of the locals is needed for each.

module @kernels {
  func.func private @widen(memref<4xf32>, memref<1024xf32>, index, index)
  func.func private @narrow(memref<1024xf32>, memref<4xf32>, index, index)
}

func.func private @forward(%x: tensor<4xf32>) -> tensor<1024xf32>
    attributes {whale.segment} {
  %0 = whale.launch @widen(%x) : (tensor<4xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

func.func private @backward(%kept: tensor<1024xf32>) -> tensor<4xf32>
    attributes {whale.segment} {
  %0 = whale.launch @narrow(%kept) : (tensor<1024xf32>) -> tensor<4xf32>
  %1 = whale.launch @widen(%0) : (tensor<4xf32>) -> tensor<1024xf32>
  %2 = whale.launch @narrow(%1) : (tensor<1024xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: whale.schedule ranks [0] @rank_class_0
// CHECK-SAME: whale.arena_bytes = 8256
// CHECK-SAME: backward = [array<i64: 8192, 0>, array<i64: 8192, 4096>]
// CHECK: %[[X0:.*]] = func.call @forward(
// CHECK: %[[X1:.*]] = func.call @forward(
// CHECK: func.call @backward(%[[X0]]) {whale.out
// CHECK: %[[X2:.*]] = func.call @forward(
// CHECK: func.call @backward(%[[X1]]) {whale.layout = 1 : i64
// CHECK: func.call @backward(%[[X2]]) {whale.out
whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %x0 = func.call @forward(%x) : (tensor<4xf32>) -> tensor<1024xf32>
  %x1 = func.call @forward(%x) : (tensor<4xf32>) -> tensor<1024xf32>
  %y0 = func.call @backward(%x0) : (tensor<1024xf32>) -> tensor<4xf32>
  %x2 = func.call @forward(%y0) : (tensor<4xf32>) -> tensor<1024xf32>
  %y1 = func.call @backward(%x1) : (tensor<1024xf32>) -> tensor<4xf32>
  %y2 = func.call @backward(%x2) : (tensor<1024xf32>) -> tensor<4xf32>
  whale.return %y2 : tensor<4xf32>
}
