// RUN: sed s/ROWS/4096/g %s > %t.large.mlir
// RUN: whale-opt %t.large.mlir --whale-load-cluster=ranks=2 \
// RUN:   --whale-assign-devices --whale-propagate --whale-insert-reshards \
// RUN:   --whale-partition 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: sed s/ROWS/16/g %s > %t.small.mlir
// RUN: whale-opt %t.small.mlir --whale-load-cluster=ranks=2 \
// RUN:   --whale-assign-devices --whale-propagate --whale-insert-reshards \
// RUN:   --whale-partition 2>&1 | FileCheck %s --check-prefix=SMALL

// What comes between two pairs of split products is computed in parts: as many
// bytes are sent as for the sum, and each device has half of the rest to do.

// LARGE: remark: sums of split products are scattered
// LARGE-LABEL: whale.schedule {{.*}}@rank_class_0
// LARGE: %[[PART:.*]] = whale.reduce_scatter
// LARGE: %[[SUM:.*]] = stablehlo.add %{{.*}}, %[[PART]] : tensor<2048x256xf32>
// LARGE: stablehlo.multiply %[[SUM]], %[[SUM]] : tensor<2048x256xf32>
// LARGE: %[[NORMED:.*]] = stablehlo.multiply {{.*}} : tensor<2048x256xf32>
// LARGE: %[[WHOLE:.*]] = whale.all_gather %[[NORMED]]
// LARGE: stablehlo.dot_general %[[WHOLE]]
// LARGE-NOT: whale.all_reduce
// LARGE: return

// Devices meet once for a small sum, not twice.

// SMALL-NOT: scattered
// SMALL-LABEL: whale.schedule {{.*}}@rank_class_0
// SMALL: stablehlo.dot_general
// SMALL: stablehlo.dot_general
// SMALL-NEXT: whale.all_reduce
// SMALL-NOT: whale.reduce_scatter
// SMALL: return
func.func @main(%a: tensor<256x512xf32>, %b: tensor<512x256xf32>,
                %c: tensor<256x512xf32>, %d: tensor<512x256xf32>,
                %x: tensor<ROWSx256xf32> {whale.batch_dim = 0 : i64})
    -> tensor<ROWSx256xf32> {
  %f = whale.task_graph "default" forward strategy #whale.split
      -> tensor<ROWSx256xf32> {
    %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0]
        : (tensor<ROWSx256xf32>, tensor<256x512xf32>) -> tensor<ROWSx512xf32>
    %1 = stablehlo.tanh %0 : tensor<ROWSx512xf32>
    %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0]
        : (tensor<ROWSx512xf32>, tensor<512x256xf32>) -> tensor<ROWSx256xf32>
    %3 = stablehlo.add %x, %2 : tensor<ROWSx256xf32>
    %4 = stablehlo.multiply %3, %3 : tensor<ROWSx256xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add
        across dimensions = [1]
        : (tensor<ROWSx256xf32>, tensor<f32>) -> tensor<ROWSxf32>
    %6 = stablehlo.rsqrt %5 : tensor<ROWSxf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0]
        : (tensor<ROWSxf32>) -> tensor<ROWSx256xf32>
    %8 = stablehlo.multiply %3, %7 : tensor<ROWSx256xf32>
    %9 = stablehlo.dot_general %8, %c, contracting_dims = [1] x [0]
        : (tensor<ROWSx256xf32>, tensor<256x512xf32>) -> tensor<ROWSx512xf32>
    %10 = stablehlo.tanh %9 : tensor<ROWSx512xf32>
    %11 = stablehlo.dot_general %10, %d, contracting_dims = [1] x [0]
        : (tensor<ROWSx512xf32>, tensor<512x256xf32>) -> tensor<ROWSx256xf32>
    %12 = stablehlo.add %3, %11 : tensor<ROWSx256xf32>
    whale.yield %12 : tensor<ROWSx256xf32>
  }
  return %f : tensor<ROWSx256xf32>
}
