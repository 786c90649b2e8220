// RUN: whale-opt %s --whale-load-cluster=ranks=3 --whale-assign-devices \
// RUN:   --whale-propagate --whale-insert-reshards --whale-partition \
// RUN:   | FileCheck %s

// The padding of an empty operand is whole, and cut by who uses it.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: stablehlo.pad {{.*}} -> tensor<6x2xf32>
// CHECK: stablehlo.add {{.*}} : tensor<2x2xf32>
func.func @main(%a: tensor<0x2xf32>,
                %b: tensor<6x2xf32> {whale.batch_dim = 0 : i64})
    -> tensor<6x2xf32> {
  %0 = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<6x2xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.pad %a, %z, low = [0, 0], high = [6, 0], interior = [0, 0]
        : (tensor<0x2xf32>, tensor<f32>) -> tensor<6x2xf32>
    %2 = stablehlo.add %1, %b : tensor<6x2xf32>
    whale.yield %2 : tensor<6x2xf32>
  }
  return %0 : tensor<6x2xf32>
}
