// RUN: whale-opt %s -whale-normalize -split-input-file -verify-diagnostics \
// RUN:   | FileCheck %s

// On as many devices as the mesh has, shardings stay for whale-propagate; that
// of a result becomes a constraint.

// CHECK:       sdy.mesh @mesh
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[X:.*]]: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>, tf.aliasing_output = 0 : i32}
// CHECK-SAME:    -> (tensor<8xf32> {jax.result_info = "result"})
// CHECK-NEXT:    %[[Y:.*]] = stablehlo.negate %[[X]]
// CHECK-NEXT:    %[[Z:.*]] = sdy.sharding_constraint %[[Y]] <@mesh, [{}]>
// CHECK-NEXT:    %[[W:.*]] = sdy.sharding_constraint %[[Z]] <@mesh, [{"data"}]>
// CHECK-NEXT:    return %[[W]]
whale.cluster @cluster {nodes = [{devices = [{count = 4 : i64, kind = "cpu"}], name = "local"}]}
sdy.mesh @mesh = <["data"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>, tf.aliasing_output = 0 : i32}) -> (tensor<8xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) {
  %0 = stablehlo.negate %x : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// The first mesh that fits is followed; a reshard is a constraint.

// CHECK-NOT:   @other
// CHECK:       sdy.mesh @mesh
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    sdy.sharding_constraint %{{.*}} <@mesh, [{"b"}]>
// CHECK-NEXT:    return
whale.cluster @cluster {nodes = [{devices = [{count = 2 : i64, kind = "cpu"}], name = "local"}]}
// expected-remark@+1 {{dropped 1 sdy.mesh: they are on another mesh than those that are followed}}
sdy.mesh @other = <["a"=4]>
sdy.mesh @mesh = <["b"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark@+1 {{dropped 1 sdy.sharding_constraint: they are on another mesh}}
  %0 = sdy.sharding_constraint %x <@other, [{"a"}]> : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"b"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// CHECK-NOT:   sdy
whale.cluster @cluster {nodes = [{devices = [{count = 3 : i64, kind = "cpu"}], name = "local"}]}
// expected-remark@+1 {{dropped 1 sdy.mesh: the mesh has 4 devices and the cluster 3}}
sdy.mesh @mesh = <["data"=4]>
// expected-remark@+2 {{dropped 1 sdy.sharding of arguments: the mesh has 4}}
// expected-remark@+1 {{dropped 1 sdy.sharding of results: the mesh has 4}}
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) {
  // expected-remark@+1 {{dropped 2 sdy.sharding_constraint: the mesh has 4}}
  %0 = sdy.sharding_constraint %x <@mesh, [{"data"}]> : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// CHECK-NOT:   sdy
module attributes {whale.default_strategy = #whale.replicate} {
  whale.cluster @cluster {nodes = [{devices = [{count = 4 : i64, kind = "cpu"}], name = "local"}]}
  // expected-remark@+1 {{dropped 1 sdy.mesh: the strategies decide where values live}}
  sdy.mesh @mesh = <["data"=4]>
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// CHECK-NOT:   sdy
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
  whale.cluster @cluster {nodes = [{devices = [{count = 4 : i64, kind = "cpu"}], name = "local"}]}
  // expected-remark@+1 {{dropped 1 sdy.mesh: num_micro_batch cuts the step in another way}}
  sdy.mesh @mesh = <["data"=4]>
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// CHECK-NOT:   sdy
whale.cluster @cluster {nodes = [{devices = [{count = 2 : i64, kind = "cpu"}], name = "local"}]}
// expected-remark@+1 {{dropped 1 sdy.mesh: the mesh names other devices than the cluster has}}
sdy.mesh @mesh = <["data"=2], device_ids=[0, 2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// CHECK-NOT:   sdy
// expected-remark@+1 {{dropped 1 sdy.mesh: there is no cluster yet}}
sdy.mesh @mesh = <["data"=4]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// A typed PRNG key brings a mesh that says nothing; so does one device.

// CHECK-NOT:   sdy.mesh
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    return
sdy.mesh @empty_mesh = <[]>
sdy.mesh @single = <["data"=1]>
func.func @main(%x: tensor<2xui32> {sdy.sharding = #sdy.sharding<@single, [{"data"}]>}) -> tensor<2xui32> {
  %0 = sdy.sharding_constraint %x <@empty_mesh, [{}]> : tensor<2xui32>
  return %0 : tensor<2xui32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark@+1 {{dropped 1 custom_call @Sharding: only shardings of sdy are read}}
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
