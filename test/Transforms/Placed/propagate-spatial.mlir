// RUN: whale-opt %s --whale-propagate 2>&1 >/dev/null \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: whale-opt %s --whale-propagate --whale-insert-reshards \
// RUN:   --whale-verify-placements 2>/dev/null | FileCheck %s
// RUN: whale-opt %s --whale-propagate --whale-insert-reshards \
// RUN:   --whale-partition 2>/dev/null | FileCheck %s --check-prefix=LOCAL

// Over a slow network it is cheaper to exchange two rows of an image than to
// reduce one. The second of the three devices is twice as fast.

// REMARK: argument 0 is split along dimension 3 in 4 grains (spatial: it is gathered, and parts of images exchange their edges), [[S:[0-9.e-]+]] s;
// REMARK-SAME: not along dimension 3 in 4 grains (output channels: its results are split, too)
// REMARK: argument 1 is split along dimension 3 in 4 grains (spatial: it is gathered, and parts of images exchange their edges), [[S]] s;

module {
  whale.cluster @cluster {kinds = {cpu = {flops = {f32 = 1.0e12 : f64}, memory_bandwidth = 1.0e11 : f64, memory_bytes = 274877906944 : i64}}, network = {bandwidth = 5.0e8 : f64, latency = 1.0e-6 : f64}, nodes = [{devices = [{count = 1 : i64, kind = "cpu", slowdown = 2.0 : f64}], name = "a"}, {devices = [{count = 1 : i64, kind = "cpu"}], name = "b"}, {devices = [{count = 1 : i64, kind = "cpu", slowdown = 2.0 : f64}], name = "c"}]}
  whale.virtual_device @vd0 [[0, 1, 2]]

  // Of the image each device takes what it reads; of what the first
  // convolution makes it has a part, and gets a row of its neighbour.
  // CHECK-DAG: #[[KERNEL:.*]] = #whale.placement<[3, 3, 4, 4] split 3 (1, 2, 1) on [0, 1, 2]>
  // CHECK-DAG: #[[WHOLE:.*]] = #whale.placement<[3, 3, 4, 4] replicate 3 on [0, 1, 2]>
  // CHECK-DAG: #[[READ:.*]] = #whale.placement<[1, 128, 128, 4] split 1 (0:33, 31:97, 95:128) on [0, 1, 2]>
  // CHECK-DAG: #[[PART:.*]] = #whale.placement<[1, 64, 2, 128, 4] split 1 (16, 32, 16) on [0, 1, 2]>
  // CHECK-DAG: #[[WIDER:.*]] = #whale.placement<[1, 128, 128, 4] split 1 (0:33, 32:97, 96:128) on [0, 1, 2]>
  // CHECK-DAG: #[[HALF:.*]] = #whale.placement<[1, 64, 64, 4] split 1 (16, 32, 16) on [0, 1, 2]>
  // CHECK: whale.reshard %arg1 from #[[KERNEL]] to #[[WHOLE]]
  // CHECK: %[[IMAGE:.*]] = whale.reshard %arg2 from #{{.*}} to #[[READ]]
  // CHECK: stablehlo.convolution(%[[IMAGE]]
  // CHECK-SAME: whale.placements = [#[[PART]]]
  // CHECK: %[[MAPS:.*]] = stablehlo.tanh
  // CHECK: %[[HALO:.*]] = whale.reshard %[[MAPS]] from #[[PART]] to #[[WIDER]]
  // CHECK: stablehlo.convolution(%[[HALO]]
  // CHECK-SAME: whale.placements = [#[[HALF]]]

  // Ranks with as many rows and another padding are another class.
  // LOCAL-LABEL: whale.schedule ranks [0] @rank_class_0
  // LOCAL: whale.local_slice {{.*}} -> tensor<1x33x128x4xf32>
  // LOCAL: pad = {{\[\[}}1, 0], [1, 1]]
  // LOCAL: whale.send_recv {{.*}} : (tensor<1x32x128x4xf32>) -> tensor<1x33x128x4xf32>
  // LOCAL: pad = {{\[\[}}0, 0], [0, 1]]
  // LOCAL-LABEL: whale.schedule ranks [1] @rank_class_1
  // LOCAL: whale.local_slice {{.*}} -> tensor<1x66x128x4xf32>
  // LOCAL: pad = {{\[\[}}0, 0], [1, 1]]
  // LOCAL: whale.send_recv {{.*}} : (tensor<1x64x128x4xf32>) -> tensor<1x65x128x4xf32>
  // LOCAL: pad = {{\[\[}}0, 0], [0, 1]]
  // LOCAL-LABEL: whale.schedule ranks [2] @rank_class_2
  // LOCAL: whale.local_slice {{.*}} -> tensor<1x33x128x4xf32>
  // LOCAL: pad = {{\[\[}}0, 1], [1, 1]]
  // LOCAL: whale.send_recv {{.*}} : (tensor<1x32x128x4xf32>) -> tensor<1x32x128x4xf32>
  // LOCAL: pad = {{\[\[}}0, 1], [0, 1]]
  func.func public @main(
      %first: tensor<3x3x4x4xf32>, %second: tensor<3x3x4x4xf32>,
      %image: tensor<1x128x128x4xf32> {whale.batch_dim = 0 : i64})
      -> tensor<f32> {
    %f = whale.task_graph "scope" forward strategy #whale.split on @vd0
        flops 0 bytes 0 -> tensor<f32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.convolution(%image, %first)
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
          window = {pad = [[1, 1], [1, 1]]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<1x128x128x4xf32>, tensor<3x3x4x4xf32>)
          -> tensor<1x128x128x4xf32>
      %2 = stablehlo.tanh %1 : tensor<1x128x128x4xf32>
      %3 = stablehlo.convolution(%2, %second)
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
          window = {stride = [2, 2], pad = [[0, 1], [0, 1]]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<1x128x128x4xf32>, tensor<3x3x4x4xf32>)
          -> tensor<1x64x64x4xf32>
      %4 = stablehlo.tanh %3 : tensor<1x64x64x4xf32>
      %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add
          across dimensions = [0, 1, 2, 3]
          : (tensor<1x64x64x4xf32>, tensor<f32>) -> tensor<f32>
      whale.yield %5 : tensor<f32>
    }
    return %f : tensor<f32>
  }
}
