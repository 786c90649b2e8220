// RUN: whale-opt %s -split-input-file -whale-bucket-reductions | FileCheck %s

#scalar_terms = #whale.placement<[] partial sum 2 on [0, 1]>
#scalar = #whale.placement<[] replicate 2 on [0, 1]>
#terms = #whale.placement<[2, 3] partial sum 2 on [0, 1]>
#sum = #whale.placement<[2, 3] replicate 2 on [0, 1]>
#large_terms = #whale.placement<[40] partial sum 2 on [0, 1]>
#large = #whale.placement<[40] replicate 2 on [0, 1]>

// Those of another type and the large one stay; in both classes alike.
module attributes {whale.config = {communication = {bucket_bytes = 64 : i64}}} {
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0] @rank_class_0(
      %s: tensor<f32>, %m: tensor<2x3xf32>,
      %h: tensor<2x3xbf16>, %l: tensor<40xf32>)
      -> (tensor<f32>, tensor<2x3xf32>, tensor<2x3xbf16>, tensor<40xf32>) {
    // The one of 24 bytes comes first: the other is then aligned as well.
    // CHECK: %[[ALL:.*]] = whale.pack %arg1, %arg0
    // CHECK-SAME: tensor<2x3xf32>, tensor<f32> to tensor<7xf32>
    // CHECK: %[[R:.*]] = whale.all_reduce %[[ALL]] channel 0
    // CHECK-SAME: tensor<7xf32>
    // CHECK: %[[PARTS:.*]]:2 = whale.unpack %[[R]]
    // CHECK-SAME: tensor<7xf32> to tensor<2x3xf32>, tensor<f32>
    // CHECK: %[[H:.*]] = whale.all_reduce %arg2 channel 2
    // CHECK: %[[L:.*]] = whale.all_reduce %arg3 channel 3
    // CHECK: whale.return %[[PARTS]]#1, %[[PARTS]]#0, %[[H]], %[[L]]
    %0 = whale.all_reduce %s channel 0 from #scalar_terms to #scalar
        : (tensor<f32>) -> tensor<f32>
    %1 = whale.all_reduce %m channel 1 from #terms to #sum
        : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = whale.all_reduce %h channel 2 from #terms to #sum
        : (tensor<2x3xbf16>) -> tensor<2x3xbf16>
    %3 = whale.all_reduce %l channel 3 from #large_terms to #large
        : (tensor<40xf32>) -> tensor<40xf32>
    whale.return %0, %1, %2, %3
        : tensor<f32>, tensor<2x3xf32>, tensor<2x3xbf16>, tensor<40xf32>
  }
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
  // CHECK: whale.all_reduce %{{.*}} channel 0
  // CHECK-SAME: tensor<7xf32>
  // CHECK-NOT: channel 1
  whale.schedule ranks [1] @rank_class_1(
      %s: tensor<f32>, %m: tensor<2x3xf32>,
      %h: tensor<2x3xbf16>, %l: tensor<40xf32>)
      -> (tensor<f32>, tensor<2x3xf32>, tensor<2x3xbf16>, tensor<40xf32>) {
    %0 = whale.all_reduce %s channel 0 from #scalar_terms to #scalar
        : (tensor<f32>) -> tensor<f32>
    %1 = whale.all_reduce %m channel 1 from #terms to #sum
        : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = whale.all_reduce %h channel 2 from #terms to #sum
        : (tensor<2x3xbf16>) -> tensor<2x3xbf16>
    %3 = whale.all_reduce %l channel 3 from #large_terms to #large
        : (tensor<40xf32>) -> tensor<40xf32>
    whale.return %0, %1, %2, %3
        : tensor<f32>, tensor<2x3xf32>, tensor<2x3xbf16>, tensor<40xf32>
  }
}

// -----

#terms = #whale.placement<[4] partial sum 2 on [0, 1]>
#sum = #whale.placement<[4] replicate 2 on [0, 1]>
#parts = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>

// Another exchange between two, and a use of a result before the next.
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-NOT: whale.pack
whale.schedule ranks [0, 1] @rank_class_0(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<8xf32>, tensor<4xf32>) {
  %0 = whale.all_reduce %x channel 0 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  %1 = whale.all_gather %x channel 1 from #parts to #whole
      : (tensor<4xf32>) -> tensor<8xf32>
  %2 = whale.all_reduce %y channel 2 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.negate %2 : tensor<4xf32>
  %4 = whale.all_reduce %3 channel 3 from #terms to #sum
      : (tensor<4xf32>) -> tensor<4xf32>
  whale.return %0, %2, %1, %4
      : tensor<4xf32>, tensor<4xf32>, tensor<8xf32>, tensor<4xf32>
}

// -----

#terms = #whale.placement<[16] partial sum 2 on [0, 1]>
#sum = #whale.placement<[16] replicate 2 on [0, 1]>

// The latest of the first class comes first, in both classes.
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[EARLY:.*]] = stablehlo.negate %arg0
// CHECK: %[[LATE:.*]] = stablehlo.negate %arg1
// CHECK: %[[ALL:.*]] = whale.pack %[[LATE]], %[[EARLY]]
// CHECK: %[[R:.*]] = whale.all_reduce %[[ALL]] channel 0
// CHECK: %[[PARTS:.*]]:2 = whale.unpack %[[R]]
// CHECK: whale.return %[[PARTS]]#1, %[[PARTS]]#0
whale.schedule ranks [0] @rank_class_0(%x: tensor<16xf32>, %y: tensor<16xf32>)
    -> (tensor<16xf32>, tensor<16xf32>) {
  %a = stablehlo.negate %x : tensor<16xf32>
  %b = stablehlo.negate %y : tensor<16xf32>
  %0 = whale.all_reduce %a channel 0 from #terms to #sum
      : (tensor<16xf32>) -> tensor<16xf32>
  %1 = whale.all_reduce %b channel 1 from #terms to #sum
      : (tensor<16xf32>) -> tensor<16xf32>
  whale.return %0, %1 : tensor<16xf32>, tensor<16xf32>
}
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK: %[[B:.*]] = stablehlo.negate %arg1
// CHECK: %[[A:.*]] = stablehlo.negate %arg0
// CHECK: whale.pack %[[B]], %[[A]]
whale.schedule ranks [1] @rank_class_1(%x: tensor<16xf32>, %y: tensor<16xf32>)
    -> (tensor<16xf32>, tensor<16xf32>) {
  %b = stablehlo.negate %y : tensor<16xf32>
  %a = stablehlo.negate %x : tensor<16xf32>
  %0 = whale.all_reduce %a channel 0 from #terms to #sum
      : (tensor<16xf32>) -> tensor<16xf32>
  %1 = whale.all_reduce %b channel 1 from #terms to #sum
      : (tensor<16xf32>) -> tensor<16xf32>
  whale.return %0, %1 : tensor<16xf32>, tensor<16xf32>
}

// -----

// What is computed of a result alone goes to its first use, and keeps none
// apart.

#terms = #whale.placement<[2, 3] partial sum 2 on [0, 1]>
#sum = #whale.placement<[2, 3] replicate 2 on [0, 1]>

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: whale.all_reduce %{{.*}} channel 0
// CHECK-SAME: tensor<12xf32>
// CHECK: %[[PARTS:.*]]:2 = whale.unpack
// CHECK: %[[HALF:.*]] = stablehlo.convert %[[PARTS]]#0
// CHECK: %[[NEGATIVE:.*]] = stablehlo.negate %[[HALF]]
// CHECK: stablehlo.add %[[NEGATIVE]], %arg2
module {
  whale.schedule ranks [0, 1] @rank_class_0(
      %a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %p: tensor<2x3xbf16>)
      -> (tensor<2x3xbf16>, tensor<2x3xf32>) {
    %0 = whale.all_reduce %a channel 0 from #terms to #sum
        : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.convert %0 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    %2 = stablehlo.negate %1 : tensor<2x3xbf16>
    %3 = whale.all_reduce %b channel 1 from #terms to #sum
        : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %4 = stablehlo.add %2, %p : tensor<2x3xbf16>
    whale.return %4, %3 : tensor<2x3xbf16>, tensor<2x3xf32>
  }
}
