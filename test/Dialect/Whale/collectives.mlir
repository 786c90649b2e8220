// RUN: whale-opt %s | FileCheck %s
// RUN: whale-opt %s | whale-opt | FileCheck %s
// RUN: whale-opt --mlir-print-op-generic %s | whale-opt | FileCheck %s
// RUN: whale-opt --mlir-print-local-scope %s | whale-opt | FileCheck %s

#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#parts = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#owner = #whale.placement<[8] on [0]>
#others = #whale.placement<[8] split 0 (3, 5) on [1, 2]>
#rows = #whale.placement<[8, 4] split 0 (3, 5) on [0, 1]>
#columns = #whale.placement<[8, 4] split 1 (2, 2) on [0, 1]>
#none = #whale.placement<[8] split 0 (8, 0) on [0, 1]>
#tree = #whale.placement<[8] split 0 (3, 5) {on [0], replicate 2 on [1, 2]}>
#flat = #whale.placement<[4, 8] split 0 (1, 3) on [0, 1]>
#flat_whole = #whale.placement<[32] replicate 2 on [0, 1]>
#inner = #whale.placement<[8] partial sum 2 partial sum 2 on [0, 1, 2, 3]>
#outer = #whale.placement<[8] partial sum 2 split 0 (4, 4) on [0, 1, 2, 3]>

// CHECK-DAG: [[WHOLE:#[a-z0-9]+]] = #whale.placement<[8] replicate 2 on [0, 1]>
// CHECK-DAG: [[TERMS:#[a-z0-9]+]] = #whale.placement<[8] partial sum 2 on [0, 1]>
// CHECK-DAG: [[PARTS:#[a-z0-9]+]] = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
// CHECK-DAG: [[OWNER:#[a-z0-9]+]] = #whale.placement<[8] on [0]>
// CHECK-DAG: [[OTHERS:#[a-z0-9]+]] = #whale.placement<[8] split 0 (3, 5) on [1, 2]>
// CHECK-DAG: [[TREE:#[a-z0-9]+]] = #whale.placement<[8] split 0 (3, 5) {on [0], replicate 2 on [1, 2]}>

// CHECK-LABEL: @rank_class_0
whale.schedule ranks [0] @rank_class_0(
    %x: tensor<8xf32>, %p: tensor<3xf32>,
    %r: tensor<3x4xf32>) {
  // CHECK: whale.all_reduce %{{.*}} channel 0 from [[TERMS]] to [[WHOLE]] : (tensor<8xf32>) -> tensor<8xf32>
  %0 = whale.all_reduce %x channel 0 from #terms to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: whale.reduce_scatter %{{.*}} channel 1 from [[TERMS]] to [[PARTS]]
  %1 = whale.reduce_scatter %x channel 1 from #terms to #parts
      : (tensor<8xf32>) -> tensor<3xf32>
  // CHECK: whale.all_gather %{{.*}} channel 2 from [[PARTS]] to [[WHOLE]]
  %2 = whale.all_gather %p channel 2 from #parts to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  // CHECK: whale.all_to_all
  %3 = whale.all_to_all %r channel 3 from #rows to #columns
      : (tensor<3x4xf32>) -> tensor<8x2xf32>
  // CHECK: whale.broadcast %{{.*}} channel 4 from [[OWNER]] to [[WHOLE]] : (tensor<8xf32>) -> tensor<8xf32>
  %4 = whale.broadcast %x channel 4 from #owner to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: whale.send_recv %{{.*}} channel 5 from [[OWNER]] to [[OTHERS]] : (tensor<8xf32>) -> ()
  whale.send_recv %x channel 5 from #owner to #others : (tensor<8xf32>) -> ()
  // CHECK: whale.local_slice %{{.*}} channel 6 from [[WHOLE]] to [[PARTS]]
  %5 = whale.local_slice %x channel 6 from #whole to #parts
      : (tensor<8xf32>) -> tensor<3xf32>
  // CHECK: whale.shard_offset 0 of [[PARTS]] : tensor<i32>
  %6 = whale.shard_offset 0 of #parts : tensor<i32>
  // CHECK: whale.send_recv %{{.*}} from [[TREE]] to [[OTHERS]]
  %7 = whale.send_recv %p channel 7 from #tree to #others
      : (tensor<3xf32>) -> tensor<0xf32>
  whale.return
}

// CHECK-LABEL: @rank_class_1
whale.schedule ranks [1] @rank_class_1(
    %e: tensor<0xf32>, %m: tensor<3x8xf32>,
    %flat: tensor<24xf32>) {
  // CHECK: whale.broadcast channel 4 from [[OWNER]] to [[WHOLE]] : () -> tensor<8xf32>
  %0 = whale.broadcast channel 4 from #owner to #whole : () -> tensor<8xf32>
  // CHECK: whale.send_recv channel 5 from [[OWNER]] to [[OTHERS]] : () -> tensor<3xf32>
  %1 = whale.send_recv channel 5 from #owner to #others : () -> tensor<3xf32>
  // A share may be empty.
  // CHECK: whale.all_gather %{{.*}} : (tensor<0xf32>) -> tensor<8xf32>
  %2 = whale.all_gather %e channel 8 from #none to #whole
      : (tensor<0xf32>) -> tensor<8xf32>
  // Views may differ, and shapes from their boxes by regrouping.
  // CHECK: whale.all_gather %{{.*}} : (tensor<3x8xf32>) -> tensor<32xf32>
  %3 = whale.all_gather %m channel 9 from #flat to #flat_whole
      : (tensor<3x8xf32>) -> tensor<32xf32>
  // CHECK: whale.all_gather %{{.*}} : (tensor<24xf32>) -> tensor<4x8xf32>
  %4 = whale.all_gather %flat channel 10 from #flat to #flat_whole
      : (tensor<24xf32>) -> tensor<4x8xf32>
  whale.return
}

// Ranks of one class; a hierarchical reduction.
// CHECK-LABEL: @rank_class_2
whale.schedule ranks [0, 1, 2, 3] @rank_class_2(%x: tensor<8xf32>) {
  // CHECK: whale.reduce_scatter
  %0 = whale.reduce_scatter %x channel 11 from #inner to #outer
      : (tensor<8xf32>) -> tensor<4xf32>
  whale.return
}

// A value becomes a term; the other terms are the identity.
// CHECK-LABEL: @rank_class_3
whale.schedule ranks [1] @rank_class_3(%x: tensor<8xf32>) {
  // CHECK: whale.local_slice channel 12 from [[OWNER]] to [[TERMS]] : () -> tensor<8xf32>
  %0 = whale.local_slice channel 12 from #owner to #terms
      : () -> tensor<8xf32>
  whale.return
}
