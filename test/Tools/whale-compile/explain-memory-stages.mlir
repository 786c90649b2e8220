// A row says which TaskGraph made what it holds, and its line; of operations
// without a line, what they are.
//
// RUN: rm -rf %t && mkdir %t
// RUN: whale-compile %s --cluster=2 --target=none -o %t/o.whale --explain=memory | FileCheck %s

// CHECK-DAG: stage0 explain-memory-stages.mlir:[[# @LINE + 30]]
// CHECK-DAG: stage1 explain-memory-stages.mlir:[[# @LINE + 23]]
// CHECK-DAG: stage1 tensor<4x64xf32> of a {{launch|matmul}}

module attributes {
  whale.default_strategy = #whale.replicate<>,
  whale.config = {num_task_graph = 2 : i64, num_micro_batch = 2 : i64}
} {
  func.func @main(%w: tensor<64x64xf32> {whale.fed_by = 0 : i64, whale.donated,
                                         whale.label = "params['w']"},
                  %v: tensor<64x64xf32> {whale.fed_by = 1 : i64, whale.donated,
                                         whale.label = "params['v']"},
                  %x: tensor<8x64xf32> {whale.batch_dim = 0 : i64,
                                        whale.label = "batch"})
      -> (tensor<64x64xf32>, tensor<64x64xf32>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        {whale.phase = #whale.phase<forward>}
        : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %1 = stablehlo.tanh %0 {whale.phase = #whale.phase<forward>}
        : tensor<8x64xf32>
    %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
        {whale.phase = #whale.phase<forward>}
        : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
        loc(unknown)
    %gv = stablehlo.dot_general %1, %2, contracting_dims = [0] x [0]
        {whale.phase = #whale.phase<backward>}
        : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
    %g1 = stablehlo.dot_general %2, %v, contracting_dims = [1] x [1]
        {whale.phase = #whale.phase<backward>}
        : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %gw = stablehlo.dot_general %x, %g1, contracting_dims = [0] x [0]
        {whale.phase = #whale.phase<backward>}
        : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
    %uw = stablehlo.subtract %w, %gw {whale.phase = #whale.phase<apply>}
        : tensor<64x64xf32>
    %uv = stablehlo.subtract %v, %gv {whale.phase = #whale.phase<apply>}
        : tensor<64x64xf32>
    return %uw, %uv : tensor<64x64xf32>, tensor<64x64xf32>
  }
}
