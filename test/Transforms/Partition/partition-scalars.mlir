// RUN: whale-opt %s --whale-partition | FileCheck %s

// A scalar has no dimension to give to one owner, so its terms are added up in
// its view [1], of which the other ranks hold nothing; then all others get it.

#terms = #whale.placement<[] partial sum 2 on [0, 1]>
#everywhere = #whale.placement<[] replicate 4 on [0 to 3]>

// CHECK: #[[ONE:.*]] = #whale.placement<[1] split 0 (1, 0, 0, 0) on [0, 1, 2, 3]>
module {
  whale.cluster @cluster {kinds = {cpu = {flops = {f32 = 1.0e12 : f64}, memory_bandwidth = 1.0e11 : f64, memory_bytes = 274877906944 : i64}}, nodes = [{devices = [{count = 4 : i64, kind = "cpu"}], name = "local"}]}
  whale.virtual_device @vd0 [[0, 1]]
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK: %[[SUM:.*]] = whale.reduce_scatter %{{.*}} to #[[ONE]] : (tensor<f32>) -> tensor<f32>
  // CHECK: whale.broadcast %[[SUM]] {{.*}} : (tensor<f32>) -> tensor<f32>
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
  // CHECK: whale.reduce_scatter %{{.*}} to #[[ONE]] : (tensor<f32>) -> ()
  // CHECK: whale.broadcast channel {{.*}} : () -> tensor<f32>
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_2
  // CHECK-NOT: whale.reduce_scatter
  // CHECK: whale.broadcast channel {{.*}} : () -> tensor<f32>
  func.func public @main() -> tensor<f32> {
    %0 = whale.task_graph "g" forward strategy #whale.split<devices = 2>
        on @vd0 flops 0 bytes 0 -> tensor<f32> {
      %c = stablehlo.constant {whale.placements = [#terms]} dense<1.0>
          : tensor<f32>
      whale.yield %c : tensor<f32>
    }
    %1 = whale.reshard %0 from #terms to #everywhere : tensor<f32>
    return %1 : tensor<f32>
  }
}
