// RUN: whale-opt %s -split-input-file -whale-join-collectives | FileCheck %s

#halves = #whale.placement<[4] split 0 (2, 2) on [0, 1]>
#whole = #whale.placement<[4] replicate 2 on [0, 1]>
#half_rows = #whale.placement<[2, 3] split 0 (1, 1) on [0, 1]>
#half_columns = #whale.placement<[3, 2] split 1 (1, 1) on [0, 1]>
#rows = #whale.placement<[2, 3] replicate 2 on [0, 1]>
#columns = #whale.placement<[3, 2] replicate 2 on [0, 1]>

// What the later ones need moves; that of another type, and one that depends on
// another, stay.
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[NEGATIVE:.*]] = stablehlo.negate %arg1
// CHECK: %[[ALL:.*]] = whale.pack %arg0, %[[NEGATIVE]], %arg2
// CHECK-SAME: to tensor<8xf32>
// CHECK: %[[R:.*]] = whale.all_gather %[[ALL]] channel 0
// CHECK-SAME: (tensor<8xf32>) -> tensor<16xf32>
// CHECK: %[[PARTS:.*]]:6 = whale.unpack %[[R]]
// CHECK-SAME: to tensor<2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<3xf32>
// CHECK: stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 1 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x4xf32>
// CHECK: %[[C:.*]] = stablehlo.reshape %[[PARTS]]#2 : (tensor<3xf32>) -> tensor<3x1xf32>
// CHECK: %[[D:.*]] = stablehlo.reshape %[[PARTS]]#5 : (tensor<3xf32>) -> tensor<3x1xf32>
// CHECK: stablehlo.concatenate %[[C]], %[[D]], dim = 1 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
// CHECK: stablehlo.tanh
// CHECK: whale.all_gather %arg3 channel 3
// CHECK-SAME: bf16
// CHECK: whale.all_gather %{{.*}} channel 4
// CHECK-NOT: whale.all_gather
whale.schedule ranks [0, 1] @rank_class_0(
    %x: tensor<2xf32>, %y: tensor<1x3xf32>, %z: tensor<3x1xf32>,
    %h: tensor<2xbf16>)
    -> (tensor<4xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<4xbf16>, tensor<4xf32>) {
  %0 = whale.all_gather %x channel 0 from #halves to #whole
      : (tensor<2xf32>) -> tensor<4xf32>
  %1 = stablehlo.tanh %0 : tensor<4xf32>
  %2 = stablehlo.negate %y : tensor<1x3xf32>
  %3 = whale.all_gather %2 channel 1 from #half_rows to #rows
      : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %4 = whale.all_gather %z channel 2 from #half_columns to #columns
      : (tensor<3x1xf32>) -> tensor<3x2xf32>
  %5 = whale.all_gather %h channel 3 from #halves to #whole
      : (tensor<2xbf16>) -> tensor<4xbf16>
  %6 = stablehlo.slice %1 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
  %7 = whale.all_gather %6 channel 4 from #halves to #whole
      : (tensor<2xf32>) -> tensor<4xf32>
  whale.return %1, %3, %4, %5, %7
      : tensor<4xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<4xbf16>, tensor<4xf32>
}

// -----

#half_rows = #whale.placement<[2, 3] split 0 (1, 1) on [0, 1]>
#half_columns = #whale.placement<[3, 2] split 1 (1, 1) on [0, 1]>
#row_terms = #whale.placement<[2, 3] partial sum 2 on [0, 1]>
#column_terms = #whale.placement<[3, 2] partial sum 2 on [0, 1]>

// Members' parts side by side, one member after the other.
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[A:.*]] = stablehlo.reshape %arg1 : (tensor<3x2xf32>) -> tensor<3x2x1xf32>
// CHECK: %[[B:.*]] = stablehlo.transpose %[[A]], dims = [1, 0, 2]
// CHECK: %[[C:.*]] = stablehlo.reshape %[[B]] : (tensor<2x3x1xf32>) -> tensor<2x3xf32>
// CHECK: %[[BOTH:.*]] = stablehlo.concatenate %arg0, %[[C]], dim = 1
// CHECK: %[[FLAT:.*]] = stablehlo.reshape %[[BOTH]] : (tensor<2x6xf32>) -> tensor<12xf32>
// CHECK: %[[R:.*]] = whale.reduce_scatter %[[FLAT]] channel 0
// CHECK-SAME: (tensor<12xf32>) -> tensor<6xf32>
// CHECK: %[[PARTS:.*]]:2 = whale.unpack %[[R]]
// CHECK-SAME: to tensor<1x3xf32>, tensor<3x1xf32>
// CHECK: whale.return %[[PARTS]]#0, %[[PARTS]]#1
whale.schedule ranks [0, 1] @rank_class_0(
    %x: tensor<2x3xf32>, %y: tensor<3x2xf32>)
    -> (tensor<1x3xf32>, tensor<3x1xf32>) {
  %0 = whale.reduce_scatter %x channel 0 from #row_terms to #half_rows
      : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %1 = whale.reduce_scatter %y channel 1 from #column_terms to #half_columns
      : (tensor<3x2xf32>) -> tensor<3x1xf32>
  whale.return %0, %1 : tensor<1x3xf32>, tensor<3x1xf32>
}

// -----

#terms = #whale.placement<[4] partial sum 2 on [0, 1]>
#sum = #whale.placement<[4] replicate 2 on [0, 1]>

// Two chains side by side: their first ones, and their second ones; in both
// classes, whatever their order.
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: whale.all_reduce %{{.*}} channel 0 {{.*}}tensor<8xf32>
// CHECK: whale.all_reduce %{{.*}} channel 1 {{.*}}tensor<8xf32>
// CHECK-NOT: whale.all_reduce
whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = whale.all_reduce %x channel 0 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  %2 = whale.all_reduce %1 channel 1 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  %3 = whale.all_reduce %y channel 2 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  %4 = stablehlo.negate %3 : tensor<4xf32>
  %5 = whale.all_reduce %4 channel 3 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  whale.return %2, %5 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK: whale.all_reduce %{{.*}} channel 0 {{.*}}tensor<8xf32>
// CHECK: whale.all_reduce %{{.*}} channel 1 {{.*}}tensor<8xf32>
// CHECK-NOT: whale.all_reduce
whale.schedule ranks [1] @rank_class_1(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = whale.all_reduce %x channel 0 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.abs %0 : tensor<4xf32>
  %2 = whale.all_reduce %1 channel 1 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  %3 = whale.all_reduce %y channel 2 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  %4 = stablehlo.negate %3 : tensor<4xf32>
  %5 = whale.all_reduce %4 channel 3 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  whale.return %2, %5 : tensor<4xf32>, tensor<4xf32>
}

// -----

#terms = #whale.placement<[4] partial sum 2 on [0, 1]>
#sum = #whale.placement<[4] replicate 2 on [0, 1]>

// What had to move would keep much for others: 4 KiB, of a bucket of 64 bytes.
module attributes {whale.config = {communication = {bucket_bytes = 64 : i64}}} {
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-COUNT-2: whale.all_reduce {{.*}}tensor<4xf32>
  whale.schedule ranks [0, 1] @rank_class_0(
      %x: tensor<4xf32>, %y: tensor<4x256xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4x256xf32>) {
    %0 = whale.all_reduce %x channel 0 from #terms to #sum
        : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.negate %0 : tensor<4xf32>
    %2 = stablehlo.tanh %y : tensor<4x256xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x256xf32>, tensor<f32>) -> tensor<4xf32>
    %4 = whale.all_reduce %3 channel 1 from #terms to #sum
        : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %1, %4, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4x256xf32>
  }
}

// -----

#parts = #whale.placement<[9] split 0 (1, 1, 1, 1, 1, 1, 1, 1, 1) on [0 to 8]>
#whole = #whale.placement<[9] replicate 9 on [0 to 8]>
#part_columns = #whale.placement<[2, 9] split 1 (1, 1, 1, 1, 1, 1, 1, 1, 1) on [0 to 8]>
#columns = #whale.placement<[2, 9] replicate 9 on [0 to 8]>

// Of many members, slices.
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[ALL:.*]] = stablehlo.reshape %{{.*}} : (tensor<27xf32>) -> tensor<9x3xf32>
// CHECK: %[[Y:.*]] = stablehlo.slice %[[ALL]] [0:9, 0:2]
// CHECK: %[[VIEW:.*]] = stablehlo.reshape %[[Y]] : (tensor<9x2xf32>) -> tensor<9x2x1xf32>
// CHECK: %[[SWAPPED:.*]] = stablehlo.transpose %[[VIEW]], dims = [1, 0, 2]
// CHECK: stablehlo.reshape %[[SWAPPED]] : (tensor<2x9x1xf32>) -> tensor<2x9xf32>
// CHECK: %[[X:.*]] = stablehlo.slice %[[ALL]] [0:9, 2:3]
// CHECK: stablehlo.reshape %[[X]] : (tensor<9x1xf32>) -> tensor<9xf32>
whale.schedule ranks [0, 1, 2, 3, 4, 5, 6, 7, 8] @rank_class_0(
    %x: tensor<1xf32>, %y: tensor<2x1xf32>)
    -> (tensor<9xf32>, tensor<2x9xf32>) {
  %0 = whale.all_gather %x channel 0 from #parts to #whole
      : (tensor<1xf32>) -> tensor<9xf32>
  %1 = whale.all_gather %y channel 1 from #part_columns to #columns
      : (tensor<2x1xf32>) -> tensor<2x9xf32>
  whale.return %0, %1 : tensor<9xf32>, tensor<2x9xf32>
}
