// Stage 3 of ZeRO: parameters are split, too, and each TaskGraph that uses one
// gathers it: the forward, and the backward anew.

// RUN: rm -rf %t && whale-compile %s --cluster=2 --target=none --explain --dump-phases-to=%t | FileCheck %s --check-prefix=WHY
// RUN: FileCheck %s < %t/03-placed.mlir
// RUN: FileCheck %s --check-prefix=PARTS < %t/04-partitioned.mlir

// WHY: remark: zero: 0 bytes of optimizer state and 512 bytes of parameters are shared out among replicas, which scatter gradients and gather parameters where they use them

// CHECK-DAG: #[[WHOLE:.*]] = #whale.placement<[8, 8] replicate 2 on [0, 1]>
// CHECK-DAG: #[[ROWS:.*]] = #whale.placement<[8, 8] split 0 (4, 4) on [0, 1]>
// CHECK: @main(%arg0: {{.*}} whale.placement = #[[ROWS]]}, %arg1: {{.*}} whale.placement = #[[ROWS]]}, %arg2
// CHECK: whale.task_graph "default" forward
// CHECK: whale.reshard %arg0 from #[[ROWS]] to #[[WHOLE]]
// CHECK: whale.reshard %arg1 from #[[ROWS]] to #[[WHOLE]]
// CHECK: whale.task_graph "default" backward
// CHECK-NOT: whale.reshard %arg0
// CHECK: whale.reshard %arg1 from #[[ROWS]] to #[[WHOLE]]
// CHECK-NOT: whale.reshard %arg
// CHECK: return

// PARTS-COUNT-3: whale.all_gather
// PARTS-NOT: whale.all_gather
// PARTS-NOT: whale.all_reduce
module attributes {whale.config = {zero = {level = "v2"}, communication = {bucket_bytes = 0 : i64}}, whale.default_strategy = #whale.replicate<>} {
  func.func @main(
      %w: tensor<8x8xf32> {whale.donated, whale.fed_by = 0 : i64},
      %v: tensor<8x8xf32> {whale.donated, whale.fed_by = 1 : i64},
      %x: tensor<4x8xf32> {whale.batch_dim = 0 : i64}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %y = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %dy = stablehlo.multiply %y, %y {whale.phase = #whale.phase<backward>} : tensor<4x8xf32>
    %dv = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %dh = stablehlo.dot_general %dy, %v, contracting_dims = [1] x [1] {whale.phase = #whale.phase<backward>} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %dw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %nw = stablehlo.subtract %w, %dw {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    %nv = stablehlo.subtract %v, %dv {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %nw, %nv : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
