// RUN: whale-opt %s -split-input-file -whale-divide-reductions | FileCheck %s

#terms = #whale.placement<[400] partial sum 4 on [0 to 3]>
#sum = #whale.placement<[400] replicate 4 on [0 to 3]>
#matrix_terms = #whale.placement<[20, 30] partial sum 4 on [0 to 3]>
#matrix = #whale.placement<[20, 30] replicate 4 on [0 to 3]>
#odd_terms = #whale.placement<[401] partial sum 4 on [0 to 3]>
#odd = #whale.placement<[401] replicate 4 on [0 to 3]>
#scalar_terms = #whale.placement<[] partial sum 4 on [0 to 3]>
#scalar = #whale.placement<[] replicate 4 on [0 to 3]>
#rows = #whale.placement<[32] split 0 (4 x 8) on [0 to 3]>
#all = #whale.placement<[32] replicate 4 on [0 to 3]>
#node_terms = #whale.placement<[400] replicate 2 partial sum 2 on [0 to 3]>

whale.cluster @cluster {
  nodes = [{count = 2 : i64, devices = [{count = 2 : i64, kind = "cpu"}],
            link = {bandwidth = 1.0e10, latency = 1.0e-6}}],
  network = {bandwidth = 1.0e7, latency = 1.0e-5}}

// New channels follow the last one.
// CHECK-DAG: #[[TERMS:.*]] = #whale.placement<[400] partial sum 4 on [0, 1, 2, 3]>
// CHECK-DAG: #[[PARTS:.*]] = #whale.placement<[400] partial sum 2 split 0 (200, 200) on [0, 1, 2, 3]>
// CHECK-DAG: #[[REDUCED:.*]] = #whale.placement<[400] split 0 (200, 200) replicate 2 on [0, 2, 1, 3]>
// CHECK-DAG: #[[SUM:.*]] = #whale.placement<[400] replicate 4 on [0, 1, 2, 3]>
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
whale.schedule ranks [0, 1] @rank_class_0(
    %x: tensor<400xf32>, %m: tensor<20x30xf32>, %o: tensor<401xf32>,
    %s: tensor<f32>, %n: tensor<400xf32>, %h: tensor<8xf32>)
    -> (tensor<400xf32>, tensor<20x30xf32>, tensor<401xf32>, tensor<f32>,
        tensor<400xf32>, tensor<401xf32>, tensor<8xf32>) {
  // CHECK: %[[A:.*]] = whale.reduce_scatter %arg0 channel 0
  // CHECK-SAME: from #[[TERMS]] to #[[PARTS]]
  // CHECK-SAME: (tensor<400xf32>) -> tensor<200xf32>
  // CHECK: %[[B:.*]] = whale.all_reduce %[[A]] channel 7
  // CHECK-SAME: from #[[PARTS]] to #[[REDUCED]]
  // CHECK: %[[X:.*]] = whale.all_gather %[[B]] channel 8
  // CHECK-SAME: from #[[REDUCED]] to #[[SUM]]
  // CHECK-SAME: (tensor<200xf32>) -> tensor<400xf32>
  %0 = whale.all_reduce %x channel 0 from #terms to #sum
      : (tensor<400xf32>) -> tensor<400xf32>
  // The rows of a matrix are one behind the other.
  // CHECK: whale.reduce_scatter %arg1 channel 1
  // CHECK-SAME: (tensor<20x30xf32>) -> tensor<300xf32>
  // CHECK: %[[M:.*]] = whale.all_gather {{.*}} -> tensor<20x30xf32>
  %1 = whale.all_reduce %m channel 1 from #matrix_terms to #matrix
      : (tensor<20x30xf32>) -> tensor<20x30xf32>
  // Filled up with one zero.
  // CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.0{{.*}}> : tensor<1xf32>
  // CHECK: %[[FULL:.*]] = whale.pack %arg2, %[[ZERO]]
  // CHECK: whale.reduce_scatter %[[FULL]] channel 2
  // CHECK-SAME: (tensor<402xf32>) -> tensor<201xf32>
  // CHECK: %[[G:.*]] = whale.all_gather
  // CHECK: %[[O:.*]]:2 = whale.unpack %[[G]]
  // CHECK-SAME: to tensor<401xf32>, tensor<1xf32>
  %2 = whale.all_reduce %o channel 2 from #odd_terms to #odd
      : (tensor<401xf32>) -> tensor<401xf32>
  // A few bytes are not worth three latencies.
  // CHECK: %[[S:.*]] = whale.all_reduce %arg3 channel 3
  %3 = whale.all_reduce %s channel 3 from #scalar_terms to #scalar
      : (tensor<f32>) -> tensor<f32>
  // Inside nodes alone.
  // CHECK: %[[N:.*]] = whale.all_reduce %arg4 channel 4
  %4 = whale.all_reduce %n channel 4 from #node_terms to #sum
      : (tensor<400xf32>) -> tensor<400xf32>
  // A bucket is filled up as a whole.
  // CHECK: %[[Z:.*]] = stablehlo.constant
  // CHECK: whale.pack %arg4, %arg3, %[[Z]]
  // CHECK-SAME: to tensor<402xf32>
  // CHECK: %[[P:.*]]:3 = whale.unpack
  %5 = whale.pack %n, %s : tensor<400xf32>, tensor<f32> to tensor<401xf32>
  %6 = whale.all_reduce %5 channel 5 from #odd_terms to #odd
      : (tensor<401xf32>) -> tensor<401xf32>
  %7:2 = whale.unpack %6
      : tensor<401xf32> to tensor<400xf32>, tensor<f32>
  %8 = whale.all_gather %h channel 6 from #rows to #all
      : (tensor<8xf32>) -> tensor<32xf32>
  // CHECK: whale.return %[[X]], %[[M]], %[[O]]#0, %[[P]]#1, %[[P]]#0, %[[O]]#0
  whale.return %0, %1, %2, %7#1, %7#0, %2, %h
      : tensor<400xf32>, tensor<20x30xf32>, tensor<401xf32>, tensor<f32>,
        tensor<400xf32>, tensor<401xf32>, tensor<8xf32>
}
// The same channels in the other class.
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK: whale.reduce_scatter %arg0 channel 0
// CHECK: whale.all_reduce {{.*}} channel 7
// CHECK: whale.all_gather {{.*}} channel 8
whale.schedule ranks [2, 3] @rank_class_1(%x: tensor<400xf32>)
    -> tensor<400xf32> {
  %0 = whale.all_reduce %x channel 0 from #terms to #sum
      : (tensor<400xf32>) -> tensor<400xf32>
  whale.return %0 : tensor<400xf32>
}

// -----

#terms = #whale.placement<[400] partial sum 4 on [0 to 3]>
#sum = #whale.placement<[400] replicate 4 on [0 to 3]>

// Links that cost nothing.
whale.cluster @cluster {
  nodes = [{count = 2 : i64, devices = [{count = 2 : i64, kind = "cpu"}]}]}
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-NOT: whale.reduce_scatter
whale.schedule ranks [0, 1, 2, 3] @rank_class_0(%x: tensor<400xf32>)
    -> tensor<400xf32> {
  %0 = whale.all_reduce %x channel 0 from #terms to #sum
      : (tensor<400xf32>) -> tensor<400xf32>
  whale.return %0 : tensor<400xf32>
}

// -----

#terms = #whale.placement<[8, 50] split 0 (2 x 4) partial sum 4 on [0, 1, 4, 5, 2, 3, 6, 7]>
#sum = #whale.placement<[8, 50] split 0 (2 x 4) replicate 4 on [0, 1, 4, 5, 2, 3, 6, 7]>

// Two groups side by side, each of a half of the rows.
// CHECK-DAG: #whale.placement<[400] split 0 (200, 200) partial sum 2 split 0 (100, 100) on [0, 1, 4, 5, 2, 3, 6, 7]>
whale.cluster @cluster {
  nodes = [{count = 2 : i64, devices = [{count = 4 : i64, kind = "cpu"}],
            link = {bandwidth = 1.0e10, latency = 1.0e-6}}],
  network = {bandwidth = 1.0e7, latency = 1.0e-5}}
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: whale.reduce_scatter {{.*}} (tensor<4x50xf32>) -> tensor<100xf32>
whale.schedule ranks [0, 1, 2, 3, 4, 5, 6, 7] @rank_class_0(
    %x: tensor<4x50xf32>) -> tensor<4x50xf32> {
  %0 = whale.all_reduce %x channel 0 from #terms to #sum
      : (tensor<4x50xf32>) -> tensor<4x50xf32>
  whale.return %0 : tensor<4x50xf32>
}
