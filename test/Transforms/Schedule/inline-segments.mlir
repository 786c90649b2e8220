// RUN: whale-opt %s -whale-inline-segments -split-input-file -verify-diagnostics | FileCheck %s

// Every call becomes what it calls, and no function is left but those of ranks.
// CHECK-LABEL: @rank_class_0
// CHECK: %[[A:.*]] = whale.launch @k0(%arg0)
// CHECK: %[[B:.*]] = whale.launch @k0(%[[A]])
// CHECK: return %[[A]], %[[B]]
// CHECK-NOT: @segment_0
module {
  module @kernels {
    func.func @k0(%0: memref<4xf32>, %1: memref<4xf32>, %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
  }
  func.func @rank_class_0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      attributes {whale.ranks = array<i64: 0>} {
    %0 = call @segment_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @segment_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @segment_0(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// Another caller keeps its function.
// CHECK: func.func private @segment_0
// CHECK: func.func @other
// CHECK-NEXT: call @segment_0
module {
  func.func @rank_class_0(%x: tensor<4xf32>) -> tensor<4xf32>
      attributes {whale.ranks = array<i64: 0>} {
    %0 = call @segment_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @segment_0(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @segment_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

func.func @rank_class_0(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {whale.ranks = array<i64: 0>} {
  // expected-error@+1 {{calls @elsewhere, which has no body}}
  %0 = call @elsewhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
