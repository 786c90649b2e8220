// RUN: whale-opt %s -whale-normalize -split-input-file -verify-diagnostics \
// RUN:   | FileCheck %s

// CHECK-NOT:   sdy.mesh
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8xf32>
// CHECK-NEXT:    return %[[X]]
// expected-remark@+1 {{dropped 1 sdy.mesh: the strategies decide where values live}}
sdy.mesh @mesh = <["data"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>, tf.aliasing_output = 0 : i32}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) {
  // expected-remark@+1 {{dropped 2 sdy.sharding_constraint: the strategies decide where values live}}
  %0 = sdy.sharding_constraint %x <@mesh, [{"data"}]> : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// A typed PRNG key brings a mesh that says nothing.

// CHECK-NOT:   sdy.mesh
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    return
sdy.mesh @empty_mesh = <[]>
func.func @main(%x: tensor<2xui32>) -> tensor<2xui32> {
  %0 = sdy.sharding_constraint %x <@empty_mesh, [{}]> : tensor<2xui32>
  return %0 : tensor<2xui32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark@+1 {{dropped 1 custom_call @Sharding: the strategies decide where values live}}
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
