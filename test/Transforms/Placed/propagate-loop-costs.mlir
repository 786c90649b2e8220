// RUN: sed s/TRIPS/1/ %s > %t.once.mlir
// RUN: sed s/TRIPS/100000/ %s > %t.often.mlir
// RUN: whale-opt %t.once.mlir --whale-load-cluster=ranks=2 \
// RUN:   --whale-assign-devices --whale-propagate -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ONCE
// RUN: whale-opt %t.often.mlir --whale-load-cluster=ranks=2 \
// RUN:   --whale-assign-devices --whale-propagate -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFTEN

// What is computed and sent in a loop counts as often as the loop runs.

// ONCE: argument 0 is split along dimension 0 in 8 grains
// ONCE-SAME: , 2.{{[0-9]+}}e-05 s;
// OFTEN: argument 0 is split along dimension 1 in 8 grains
// OFTEN-SAME: , 0.00{{[0-9]+}} s;
func.func @main(%w: tensor<8x8xf32>,
                %x: tensor<6x8xf32> {whale.batch_dim = 0 : i64})
    -> tensor<6x8xf32> {
  %f = whale.task_graph "default" forward strategy #whale.split
      -> tensor<6x8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %trips = stablehlo.constant dense<TRIPS> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last:2 = stablehlo.while(%i = %zero, %h = %x)
        : tensor<i32>, tensor<6x8xf32>
    cond {
      %go = stablehlo.compare LT, %i, %trips
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      %p = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
          : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
      %t = stablehlo.tanh %p : tensor<6x8xf32>
      stablehlo.return %next, %t : tensor<i32>, tensor<6x8xf32>
    }
    whale.yield %last#1 : tensor<6x8xf32>
  }
  return %f : tensor<6x8xf32>
}
