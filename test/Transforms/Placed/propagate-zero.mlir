// Replicas share out what only the optimizer reads: its state is split, the
// gradient scattered, and the parameter gathered that it has changed.

// RUN: rm -rf %t && whale-compile %s --cluster=2 --target=none --explain --dump-phases-to=%t | FileCheck %s --check-prefix=WHY
// RUN: FileCheck %s < %t/03-placed.mlir
// RUN: FileCheck %s --check-prefix=PARTS < %t/04-partitioned.mlir

// WHY: remark: zero: 256 bytes of optimizer state are shared out among replicas, which scatter gradients and gather changed parameters

// CHECK-DAG: #[[WHOLE:.*]] = #whale.placement<[8, 8] replicate 2 on [0, 1]>
// CHECK-DAG: #[[ROWS:.*]] = #whale.placement<[8, 8] split 0 (4, 4) on [0, 1]>
// CHECK-DAG: #[[SUM:.*]] = #whale.placement<[8, 8] partial sum 2 on [0, 1]>
// CHECK: @main(%arg0: tensor<8x8xf32> {{{.*}}whale.placement = #[[WHOLE]]}
// CHECK-SAME: %arg1: tensor<8x8xf32> {{{.*}}whale.placement = #[[ROWS]]}
// CHECK: whale.reshard {{.*}} from #[[SUM]] to #[[ROWS]]
// CHECK: whale.reshard {{.*}} from #[[ROWS]] to #[[WHOLE]]

// PARTS-NOT: whale.all_reduce
// PARTS: whale.reduce_scatter
// PARTS: whale.all_gather
// PARTS-NOT: whale.all_reduce
module attributes {whale.config = {zero = {level = "v0"}}, whale.default_strategy = #whale.replicate<>} {
  func.func @main(
      %w: tensor<8x8xf32> {whale.donated, whale.fed_by = 0 : i64},
      %m: tensor<8x8xf32> {whale.donated, whale.fed_by = 1 : i64},
      %x: tensor<4x8xf32> {whale.batch_dim = 0 : i64}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %dy = stablehlo.multiply %y, %y {whale.phase = #whale.phase<backward>} : tensor<4x8xf32>
    %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %c = stablehlo.constant dense<0.5> : tensor<8x8xf32>
    %old = stablehlo.multiply %m, %c {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    %new = stablehlo.add %old, %g {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    %next = stablehlo.subtract %w, %new {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %next, %new : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
