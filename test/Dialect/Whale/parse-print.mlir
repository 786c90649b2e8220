// RUN: whale-opt %s | FileCheck %s
// RUN: whale-opt %s | whale-opt | FileCheck %s
// RUN: whale-opt --mlir-print-op-generic %s | whale-opt | FileCheck %s

#whole = #whale.placement<[8, 16] replicate 2 on [0, 1]>
#rows = #whale.placement<[8, 16] split 0 (3, 5) on [0, 1]>

// CHECK-DAG: [[WHOLE:#placement[0-9]*]] = #whale.placement<[8, 16] replicate 2 on [0, 1]>
// CHECK-DAG: [[ROWS:#placement[0-9]*]] = #whale.placement<[8, 16] split 0 (3, 5) on [0, 1]>

// CHECK: module attributes
// CHECK-SAME: test.a = #whale.replicate
// CHECK-SAME: test.b = #whale.replicate<devices = 4>
// CHECK-SAME: test.c = #whale.replicate<devices = 4, name = "en\22c", scope = 0>
// CHECK-SAME: test.d = #whale.split
// CHECK-SAME: test.e = #whale.split<name = "head", scope = 7>
// CHECK-SAME: test.f = [#whale.phase<forward>, #whale.phase<backward>, #whale.phase<apply>]
// CHECK-SAME: test.g = [#whale.reduction<sum>, #whale.reduction<product>
module attributes {
  test.a = #whale.replicate,
  test.b = #whale.replicate<devices = 4>,
  test.c = #whale.replicate<scope = 0, name = "en\"c", devices = 4>,
  test.d = #whale.split,
  test.e = #whale.split<name = "head", scope = 7>,
  test.f = [#whale.phase<forward>, #whale.phase<backward>,
             #whale.phase<apply>],
  test.g = [#whale.reduction<sum>, #whale.reduction<product>,
             #whale.reduction<min>, #whale.reduction<max>,
             #whale.reduction<and>, #whale.reduction<or>]
} {
  // CHECK: whale.cluster @cluster {
  // CHECK-SAME: kinds = {P100 = {flops = {f32 = 9.300000e+12 : f64}
  // CHECK-SAME: network = {bandwidth = 6.250000e+09 : f64}
  // CHECK-SAME: nodes = [{
  whale.cluster @cluster {
    kinds = {P100 = {flops = {f32 = 9.3e12}, memory_bytes = 17179869184,
                     memory_bandwidth = 7.32e11}},
    nodes = [{name = "a", devices = [{kind = "P100", count = 8}]}],
    network = {bandwidth = 6.25e9}}
  // CHECK: whale.virtual_device @vd0 {{\[\[}}0, 1], [4, 5]]
  whale.virtual_device @vd0 [[0, 1], [4, 5]]
  // CHECK: whale.virtual_device @vd1 {{\[\[}}2]]
  whale.virtual_device @vd1 [[2]]

  // CHECK-LABEL: func @task_graphs
  func.func @task_graphs(%x: tensor<8x16xf32>)
      -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    // CHECK: whale.task_graph "encoder" forward strategy
    // CHECK-SAME: <devices = 2> on @vd0 flops 1024 bytes 4096
    // CHECK-SAME: attributes {test.note = 1 : i64}
    // CHECK-SAME: -> tensor<8x16xf32>, tensor<8x16xf32> {
    %0:2 = whale.task_graph "encoder" forward
        strategy #whale.replicate<devices = 2> on @vd0 flops 1024 bytes 4096
        attributes {test.note = 1 : i64}
        -> tensor<8x16xf32>, tensor<8x16xf32> {
      %y = arith.addf %x, %x : tensor<8x16xf32>
      // CHECK: whale.yield %{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<8x16xf32>
      whale.yield %y, %x : tensor<8x16xf32>, tensor<8x16xf32>
    }
    // CHECK: whale.task_graph "tail" apply {
    // CHECK-NEXT: whale.yield{{$}}
    whale.task_graph "tail" apply {
      whale.yield
    }
    return %0#0, %0#1 : tensor<8x16xf32>, tensor<8x16xf32>
  }

  // CHECK-LABEL: func @reshard
  func.func @reshard(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
    // CHECK: whale.reshard %{{.*}} from [[WHOLE]] to [[ROWS]] : tensor<8x16xf32>
    %0 = whale.reshard %x from #whole to #rows : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
  // CHECK-LABEL: func @side_by_side
  func.func @side_by_side(%x: tensor<2x4xf32>, %y: tensor<f32>)
      -> (tensor<2x4xf32>, tensor<f32>) {
    // CHECK: %[[P:.*]] = whale.pack %{{.*}}, %{{.*}} : tensor<2x4xf32>, tensor<f32> to tensor<9xf32>
    // CHECK: whale.unpack %[[P]] : tensor<9xf32> to tensor<2x4xf32>, tensor<f32>
    %0 = whale.pack %x, %y : tensor<2x4xf32>, tensor<f32> to tensor<9xf32>
    %1:2 = whale.unpack %0 : tensor<9xf32> to tensor<2x4xf32>, tensor<f32>
    return %1#0, %1#1 : tensor<2x4xf32>, tensor<f32>
  }
  // CHECK-LABEL: whale.schedule ranks [0, 2] @schedule
  // CHECK-SAME: (%arg0: tensor<4xf32> {whale.donated}, %arg1: tensor<f32>)
  // CHECK-SAME: -> (tensor<4xf32> {whale.alias = 0 : i64}, tensor<f32>)
  // CHECK-SAME: attributes {whale.arena_bytes = 64 : i64} {
  whale.schedule ranks [0, 2] @schedule(
      %x: tensor<4xf32> {whale.donated}, %y: tensor<f32>)
      -> (tensor<4xf32> {whale.alias = 0 : i64}, tensor<f32>)
      attributes {whale.arena_bytes = 64 : i64} {
    // CHECK-NEXT: whale.return %arg0, %arg1 : tensor<4xf32>, tensor<f32>
    whale.return %x, %y : tensor<4xf32>, tensor<f32>
  }
  // CHECK-LABEL: whale.schedule ranks [1] @nothing() {
  whale.schedule ranks [1] @nothing() {
    // CHECK-NEXT: whale.return{{$}}
    whale.return
  }
}
