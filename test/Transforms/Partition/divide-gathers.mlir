// RUN: whale-opt %s -split-input-file -whale-divide-gathers | FileCheck %s

// Three nodes of two ranks: columns are gathered between ranks of the same
// place, then in nodes; both ranks of a class take the same channels.
// CHECK-DAG: #[[PARTS:.*]] = #whale.placement<[1, 3, 3, 2, 2] split 2 (1, 1, 1) split 3 (1, 1) on [0 to 5]>
// CHECK-DAG: #[[BETWEEN:.*]] = #whale.placement<[1, 3, 3, 2, 2] split 3 (1, 1) replicate 3 on [0, 2, 4, 1, 3, 5]>
// CHECK-DAG: #[[WHOLE:.*]] = #whale.placement<[1, 3, 3, 2, 2] replicate 6 on [0 to 5]>
// CHECK-LABEL: whale.schedule ranks [0, 1, 2, 3, 4, 5] @columns
// CHECK: %[[A:.*]] = whale.all_gather %{{.*}} channel 7 from #[[PARTS]] to #[[BETWEEN]] : (tensor<3x2xf32>) -> tensor<1x3x3x1x2xf32>
// CHECK: %[[B:.*]] = whale.all_gather %[[A]] channel 8 from #[[BETWEEN]] to #[[WHOLE]] : (tensor<1x3x3x1x2xf32>) -> tensor<3x12xf32>
// CHECK: whale.return %[[B]]
#parts = #whale.placement<[3, 12] split 1 (2, 2, 2, 2, 2, 2) on [0 to 5]>
#whole = #whale.placement<[3, 12] replicate 6 on [0 to 5]>
module {
  whale.cluster @cluster {nodes = [{count = 3 : i64, devices = [{count = 2 : i64, kind = "cpu"}], link = {bandwidth = 1.0e10, latency = 1.0e-9}}], network = {bandwidth = 1.0e3, latency = 1.0e-9}}
  whale.schedule ranks [0, 1, 2, 3, 4, 5] @columns(%x: tensor<3x2xf32>) -> tensor<3x12xf32> {
    %0 = whale.all_gather %x channel 7 from #parts to #whole : (tensor<3x2xf32>) -> tensor<3x12xf32>
    whale.return %0 : tensor<3x12xf32>
  }
}

// -----

// Sums are scattered in nodes, then across; two groups side by side.
// CHECK-DAG: #[[SUMS:.*]] = #whale.placement<[2, 1, 2, 2, 5] split 0 (1, 1) partial sum 4 on [0, 1, 4, 5, 2, 3, 6, 7]>
// CHECK-DAG: #[[BETWEEN:.*]] = #whale.placement<[2, 1, 2, 2, 5] split 0 (1, 1) partial sum 2 split 3 (1, 1) on [0, 1, 4, 5, 2, 3, 6, 7]>
// CHECK-DAG: #[[PARTS:.*]] = #whale.placement<[2, 1, 2, 2, 5] split 0 (1, 1) split 2 (1, 1) split 3 (1, 1) on [0, 1, 4, 5, 2, 3, 6, 7]>
// CHECK-LABEL: whale.schedule ranks [0, 1, 2, 3, 4, 5, 6, 7] @sums
// CHECK: %[[A:.*]] = whale.reduce_scatter %{{.*}} channel 0 from #[[SUMS]] to #[[BETWEEN]] : (tensor<20xf32>) -> tensor<1x1x2x1x5xf32>
// CHECK: whale.reduce_scatter %[[A]] channel 1 from #[[BETWEEN]] to #[[PARTS]] : (tensor<1x1x2x1x5xf32>) -> tensor<5xf32>
#sums = #whale.placement<[2, 20] split 0 (1, 1) partial sum 4 on [0, 1, 4, 5, 2, 3, 6, 7]>
#split = #whale.placement<[2, 20] split 0 (1, 1) split 1 (5, 5, 5, 5) on [0, 1, 4, 5, 2, 3, 6, 7]>
module {
  whale.cluster @cluster {nodes = [{count = 2 : i64, devices = [{count = 4 : i64, kind = "cpu"}], link = {bandwidth = 1.0e10, latency = 1.0e-9}}], network = {bandwidth = 1.0e3, latency = 1.0e-9}}
  whale.schedule ranks [0, 1, 2, 3, 4, 5, 6, 7] @sums(%x: tensor<20xf32>) -> tensor<5xf32> {
    %0 = whale.reduce_scatter %x channel 0 from #sums to #split : (tensor<20xf32>) -> tensor<5xf32>
    whale.return %0 : tensor<5xf32>
  }
}

// -----

// Of unequal parts each device of a node takes half of the whole first.
// CHECK-DAG: #[[PARTS:.*]] = #whale.placement<[1000] split 0 (100, 300, 300, 300) on [0, 1, 2, 3]>
// CHECK-DAG: #[[HALVES:.*]] = #whale.placement<[1000] replicate 2 split 0 (500, 500) on [0, 1, 2, 3]>
// CHECK-DAG: #[[WHOLE:.*]] = #whale.placement<[1000] replicate 4 on [0, 1, 2, 3]>
// CHECK-LABEL: whale.schedule ranks [0] @first
// CHECK: %[[A:.*]] = whale.send_recv %{{.*}} channel 0 from #[[PARTS]] to #[[HALVES]] : (tensor<100xf32>) -> tensor<500xf32>
// CHECK: whale.all_gather %[[A]] channel 1 from #[[HALVES]] to #[[WHOLE]] : (tensor<500xf32>) -> tensor<1000xf32>
// CHECK-LABEL: whale.schedule ranks [1, 2, 3] @rest
// CHECK: whale.send_recv %{{.*}} : (tensor<300xf32>) -> tensor<500xf32>
#uneven = #whale.placement<[1000] split 0 (100, 300, 300, 300) on [0 to 3]>
#all = #whale.placement<[1000] replicate 4 on [0 to 3]>
module {
  whale.cluster @cluster {nodes = [{count = 2 : i64, devices = [{count = 2 : i64, kind = "cpu"}], link = {bandwidth = 1.0e10, latency = 1.0e-6}}], network = {bandwidth = 1.0e7, latency = 1.0e-5}}
  whale.schedule ranks [0] @first(%x: tensor<100xf32>) -> tensor<1000xf32> {
    %0 = whale.all_gather %x channel 0 from #uneven to #all : (tensor<100xf32>) -> tensor<1000xf32>
    whale.return %0 : tensor<1000xf32>
  }
  whale.schedule ranks [1, 2, 3] @rest(%x: tensor<300xf32>) -> tensor<1000xf32> {
    %0 = whale.all_gather %x channel 0 from #uneven to #all : (tensor<300xf32>) -> tensor<1000xf32>
    whale.return %0 : tensor<1000xf32>
  }
}

// -----

// Unequal sums are scattered in halves in each node, then as they are wanted.
// CHECK-DAG: #[[HALVES:.*]] = #whale.placement<[1000] partial sum 2 split 0 (500, 500) on [0, 1, 2, 3]>
// CHECK-LABEL: whale.schedule ranks [0] @first
// CHECK: %[[A:.*]] = whale.reduce_scatter %{{.*}} channel 0 from #{{.*}} to #[[HALVES]] : (tensor<1000xf32>) -> tensor<500xf32>
// CHECK: whale.send_recv %[[A]] channel 1 from #[[HALVES]] to #{{.*}} : (tensor<500xf32>) -> tensor<100xf32>
#uneven = #whale.placement<[1000] split 0 (100, 300, 300, 300) on [0 to 3]>
#terms = #whale.placement<[1000] partial sum 4 on [0 to 3]>
module {
  whale.cluster @cluster {nodes = [{count = 2 : i64, devices = [{count = 2 : i64, kind = "cpu"}], link = {bandwidth = 1.0e10, latency = 1.0e-6}}], network = {bandwidth = 1.0e7, latency = 1.0e-5}}
  whale.schedule ranks [0] @first(%x: tensor<1000xf32>) -> tensor<100xf32> {
    %0 = whale.reduce_scatter %x channel 0 from #terms to #uneven : (tensor<1000xf32>) -> tensor<100xf32>
    whale.return %0 : tensor<100xf32>
  }
  whale.schedule ranks [1, 2, 3] @rest(%x: tensor<1000xf32>) -> tensor<300xf32> {
    %0 = whale.reduce_scatter %x channel 0 from #terms to #uneven : (tensor<1000xf32>) -> tensor<300xf32>
    whale.return %0 : tensor<300xf32>
  }
}

// -----

// Parts that go round the nodes, and few bytes stay one.
// CHECK-LABEL: whale.schedule ranks [0, 1, 2, 3] @whole
// CHECK-COUNT-2: whale.all_gather
// CHECK-NOT: whale.all_gather
#round = #whale.placement<[1000] split 0 (250, 250, 250, 250) on [0, 2, 1, 3]>
#even = #whale.placement<[4] split 0 (1, 1, 1, 1) on [0 to 3]>
#other = #whale.placement<[1000] replicate 4 on [0, 2, 1, 3]>
#few = #whale.placement<[4] replicate 4 on [0 to 3]>
module {
  whale.cluster @cluster {nodes = [{count = 2 : i64, devices = [{count = 2 : i64, kind = "cpu"}], link = {bandwidth = 1.0e10, latency = 1.0e-6}}], network = {bandwidth = 1.0e7, latency = 1.0e-5}}
  whale.schedule ranks [0, 1, 2, 3] @whole(%y: tensor<250xf32>, %z: tensor<1xf32>) -> (tensor<1000xf32>, tensor<4xf32>) {
    %0 = whale.all_gather %y channel 1 from #round to #other : (tensor<250xf32>) -> tensor<1000xf32>
    %1 = whale.all_gather %z channel 2 from #even to #few : (tensor<1xf32>) -> tensor<4xf32>
    whale.return %0, %1 : tensor<1000xf32>, tensor<4xf32>
  }
}
