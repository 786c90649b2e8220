// RUN: whale-opt %s -split-input-file -whale-divide-gathers | FileCheck %s

// Four nodes of eight ranks: first each node brings together what it has for
// the devices of a place, then these exchange it, in 3 messages for 24.
// CHECK-DAG: #[[ROWS:.*]] = #whale.placement<[1, 4, 8, 2, 4, 8, 1] split 1 (1, 1, 1, 1) split 2 (8 x 1) on [0 to 31]>
// CHECK-DAG: #[[BETWEEN:.*]] = #whale.placement<[1, 4, 8, 2, 4, 8, 1] split 1 (1, 1, 1, 1) split 5 (8 x 1) on [0 to 31]>
// CHECK-DAG: #[[COLUMNS:.*]] = #whale.placement<[1, 4, 8, 2, 4, 8, 1] split 4 (1, 1, 1, 1) split 5 (8 x 1) on [0 to 31]>
// CHECK: %[[A:.*]] = whale.all_to_all %{{.*}} channel 3 from #[[ROWS]] to #[[BETWEEN]] : (tensor<2x32xf32>) -> tensor<1x1x8x2x4x1x1xf32>
// CHECK: %[[B:.*]] = whale.all_to_all %[[A]] channel 4 from #[[BETWEEN]] to #[[COLUMNS]] : (tensor<1x1x8x2x4x1x1xf32>) -> tensor<64x1xf32>
// CHECK: whale.return %[[B]]
#rows = #whale.placement<[64, 32] split 0 (32 x 2) on [0 to 31]>
#columns = #whale.placement<[64, 32] split 1 (32 x 1) on [0 to 31]>
module {
  whale.cluster @cluster {nodes = [{count = 4 : i64, devices = [{count = 8 : i64, kind = "cpu"}], link = {bandwidth = 1.0e11, latency = 1.0e-9}}], network = {bandwidth = 1.0e10, latency = 1.0e-4}}
  whale.schedule ranks [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] @tokens(%x: tensor<2x32xf32>) -> tensor<64x1xf32> {
    %0 = whale.all_to_all %x channel 3 from #rows to #columns : (tensor<2x32xf32>) -> tensor<64x1xf32>
    whale.return %0 : tensor<64x1xf32>
  }
}

// -----

// Where links in a node are slow, messages are not worth what goes over them
// once more; four ranks send few.
// CHECK-LABEL: @slow
// CHECK: whale.all_to_all
// CHECK-NOT: whale.all_to_all
#rows = #whale.placement<[64, 32] split 0 (32 x 2) on [0 to 31]>
#columns = #whale.placement<[64, 32] split 1 (32 x 1) on [0 to 31]>
module {
  whale.cluster @cluster {nodes = [{count = 4 : i64, devices = [{count = 8 : i64, kind = "cpu"}], link = {bandwidth = 1.0e5, latency = 1.0e-9}}], network = {bandwidth = 1.0e10, latency = 1.0e-4}}
  whale.schedule ranks [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] @slow(%x: tensor<2x32xf32>) -> tensor<64x1xf32> {
    %0 = whale.all_to_all %x channel 3 from #rows to #columns : (tensor<2x32xf32>) -> tensor<64x1xf32>
    whale.return %0 : tensor<64x1xf32>
  }
}

// -----

// CHECK-LABEL: @few
// CHECK: whale.all_to_all
// CHECK-NOT: whale.all_to_all
#rows = #whale.placement<[4, 8] split 0 (1, 1, 1, 1) on [0 to 3]>
#columns = #whale.placement<[4, 8] split 1 (2, 2, 2, 2) on [0 to 3]>
module {
  whale.cluster @cluster {nodes = [{count = 2 : i64, devices = [{count = 2 : i64, kind = "cpu"}], link = {bandwidth = 1.0e11, latency = 1.0e-9}}], network = {bandwidth = 1.0e10, latency = 1.0e-4}}
  whale.schedule ranks [0, 1, 2, 3] @few(%x: tensor<1x8xf32>) -> tensor<4x2xf32> {
    %0 = whale.all_to_all %x channel 3 from #rows to #columns : (tensor<1x8xf32>) -> tensor<4x2xf32>
    whale.return %0 : tensor<4x2xf32>
  }
}
