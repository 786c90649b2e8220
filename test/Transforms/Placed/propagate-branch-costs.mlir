// RUN: echo '{"kinds": {"k": {"flops": {"f32": 1.0}, "memory_bytes": 1e6, "memory_bandwidth": 1e9}}, "nodes": [{"devices": [{"kind": "k"}]}]}' > %t.json
// RUN: whale-opt %s --whale-load-cluster=file=%t.json \
// RUN:   --whale-assign-devices --whale-propagate -o /dev/null 2>&1 \
// RUN:   | FileCheck %s

// A branch asks for as much as its longest alternative: 2 * 4 operations, not
// 3 * 4, and 2 of the counter, in each of 5 rounds.

// CHECK: load balance of 'default': device 0: 50.0 s,
func.func @main(%x: tensor<4xf32> {whale.batch_dim = 0 : i64}, %n: tensor<i32>)
    -> tensor<4xf32> {
  %f = whale.task_graph "default" forward strategy #whale.replicate
      -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %five = stablehlo.constant dense<5> : tensor<i64>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %last:2 = stablehlo.while(%i = %zero, %h = %x)
        : tensor<i64>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %five
          : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i64>
      %0 = "stablehlo.case"(%n) ({
        %1 = stablehlo.tanh %h : tensor<4xf32>
        stablehlo.return %1 : tensor<4xf32>
      }, {
        %1 = stablehlo.tanh %h : tensor<4xf32>
        %2 = stablehlo.tanh %1 : tensor<4xf32>
        stablehlo.return %2 : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      stablehlo.return %next, %0 : tensor<i64>, tensor<4xf32>
    }
    whale.yield %last#1 : tensor<4xf32>
  }
  return %f : tensor<4xf32>
}
