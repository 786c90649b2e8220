// RUN: whale-opt %s -whale-propagate -whale-insert-reshards \
// RUN:   -whale-verify-placements -split-input-file -verify-diagnostics \
// RUN:   | FileCheck %s

// Data and model parallel as JAX says it: the product is split along both
// axes, its sum over rows partial along one.

// CHECK-NOT:   sdy
// CHECK:       #[[PRODUCT:.*]] = #whale.placement<[8, 4] split 0 (4, 4) split 1 (2, 2) on [0, 1, 2, 3]>
// CHECK:       #[[SUM:.*]] = #whale.placement<[4] partial sum 2 split 0 (2, 2) on [0, 1, 2, 3]>
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg0: tensor<8x16xf32> {whale.placement = #whale.placement<[8, 16] split 0 (4, 4) replicate 2 on [0, 1, 2, 3]>}
// CHECK-SAME:    %arg1: tensor<16x4xf32> {whale.placement = #whale.placement<[16, 4] replicate 2 split 1 (2, 2) on [0, 1, 2, 3]>}
// CHECK:         stablehlo.dot_general
// CHECK-SAME:      whale.placements = [#[[PRODUCT]]]
// CHECK:         stablehlo.reduce
// CHECK-SAME:      whale.placements = [#[[SUM]]]
whale.cluster @cluster {nodes = [{devices = [{count = 4 : i64, kind = "cpu"}], name = "local"}]}
sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Devices and shares are those of the mesh, whatever the devices' speeds. An
// axis of one device says nothing; one that a dimension puts first is the outer
// one, also where the mesh has it last.

// CHECK:       #[[B:.*]] = #whale.placement<[8] split 0 (4, 4) replicate 2 on [3, 1, 2, 0]>
// CHECK:       #[[BA:.*]] = #whale.placement<[8] split 0 (4, 4) split 0 (2, 2) on [3, 1, 2, 0]>
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg0: tensor<8xf32> {whale.placement = #[[BA]]}, %arg1: tensor<8xf32> {whale.placement = #[[B]]}
whale.cluster @cluster {nodes = [{devices = [{count = 3 : i64, kind = "cpu"}, {kind = "cpu", slowdown = 4.0 : f64}], name = "local"}]}
sdy.mesh @mesh = <["a"=2, "one"=1, "b"=2], device_ids=[3, 2, 1, 0]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "one", "a"}]>}, %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}], replicated={"a"}>}) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %y : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A constraint is a reshard where its operand is elsewhere. An open dimension,
// an argument without a sharding and an unreduced axis leave the choice.

// CHECK:       #[[ROWS:.*]] = #whale.placement<[8, 8] split 0 (4, 4) on [0, 1]>
// CHECK:       #[[COLUMNS:.*]] = #whale.placement<[8, 8] split 1 (4, 4) on [0, 1]>
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg1: tensor<8x8xf32> {whale.placement = #[[ROWS]]}
// CHECK-SAME:    %arg2: tensor<8x8xf32> {whale.placement = #[[ROWS]]}
// CHECK-SAME:    %arg3: tensor<8x8xf32> {whale.placement = #[[ROWS]]}
// CHECK:         %[[MOVED:.*]] = whale.reshard %{{.*}} from #[[ROWS]] to #[[COLUMNS]]
// CHECK-NEXT:    stablehlo.abs %[[MOVED]] {whale.placements = [#[[COLUMNS]]]}
whale.cluster @cluster {nodes = [{devices = [{count = 2 : i64, kind = "cpu"}], name = "local"}]}
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}, %z: tensor<8x8xf32>, %u: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"a"}>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>
  %1 = stablehlo.add %0, %z : tensor<8x8xf32>
  %2 = stablehlo.add %1, %u : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
  %5 = stablehlo.abs %4 : tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}

// -----

// Three heads on four devices: jax would cut through them.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    whale.placement = #whale.placement<[12] replicate 4 on [0, 1, 2, 3]>
whale.cluster @cluster {nodes = [{devices = [{count = 4 : i64, kind = "cpu"}], name = "local"}]}
sdy.mesh @mesh = <["a"=4]>
// expected-remark@+1 {{argument 0 is not sharded along "a": the pieces that its dimension is used in are too few}}
func.func @main(%x: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<3x4xf32> {
  %0 = stablehlo.reshape %x : (tensor<12xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

whale.cluster @cluster {nodes = [{devices = [{count = 2 : i64, kind = "cpu"}], name = "local"}]}
// expected-error@+1 {{'sdy.mesh' op has 4 devices and the cluster 2; whale-normalize drops what cannot be followed}}
sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<12xf32>) -> tensor<12xf32> {
  return %x : tensor<12xf32>
}
