// Stage 2 of ZeRO: each micro-batch scatters the term of a gradient's sum where
// it is computed, and adds its part.

// RUN: rm -rf %t && whale-compile %s --cluster=2 --micro-batches=2 --target=none --explain --dump-phases-to=%t | FileCheck %s --check-prefix=WHY
// RUN: FileCheck %s < %t/03-placed.mlir
// RUN: FileCheck %s --check-prefix=PARTS < %t/04-partitioned.mlir

// WHY: remark: zero: gradients are scattered in each of 2 micro-batches: replicas hold 128 of 256 bytes of their sums, and exchange for {{.*}} s more

// CHECK-DAG: #[[ROWS:.*]] = #whale.placement<[8, 8] split 0 (4, 4) on [0, 1]>
// CHECK-DAG: #[[SUM:.*]] = #whale.placement<[8, 8] partial sum 2 on [0, 1]>
// CHECK: whale.micro_batches
// CHECK: whale.task_graph "default" backward
// CHECK: stablehlo.dot_general
// CHECK: %[[PART:.*]] = whale.reshard {{.*}} from #[[SUM]] to #[[ROWS]]
// CHECK-NEXT: whale.yield %[[PART]]
// CHECK: whale.task_graph "default" apply

// PARTS-NOT: whale.all_reduce
// PARTS-COUNT-2: whale.reduce_scatter {{.*}} -> tensor<4x8xf32>
// PARTS-NOT: whale.reduce_scatter
module attributes {whale.config = {zero = {level = "v1"}}, whale.default_strategy = #whale.replicate<>} {
  func.func @main(
      %w: tensor<8x8xf32> {whale.donated, whale.fed_by = 0 : i64},
      %m: tensor<8x8xf32> {whale.donated, whale.fed_by = 1 : i64},
      %x: tensor<8x8xf32> {whale.batch_dim = 0 : i64}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %dy = stablehlo.multiply %y, %y {whale.phase = #whale.phase<backward>} : tensor<8x8xf32>
    %g = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = stablehlo.constant dense<0.5> : tensor<8x8xf32>
    %old = stablehlo.multiply %m, %c {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    %new = stablehlo.add %old, %g {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    %next = stablehlo.subtract %w, %new {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %next, %new : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
