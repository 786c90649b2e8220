// RUN: rm -rf %t.whale && whale-compile %s --cluster=1 -o %t.whale
// RUN: FileCheck %s < %t.whale/manifest.json
// RUN: whale-program-test %t.whale
// RUN: %python %S/Inputs/segments.py write %t.in.safetensors
// RUN: whale-run %t.whale --inputs=%t.in.safetensors \
// RUN:   --outputs=%t.out.safetensors
// RUN: %python %S/Inputs/segments.py check %t.in.safetensors \
// RUN:   %t.out.safetensors

// A segment is in the program once, as a function that is run for each part of
// the batch. It adds to its first operand in place: each run gets the sum as
// operand 0 and as result.

// CHECK: "version": 11
// CHECK: "functions": [
// CHECK: "operands": 3,
// CHECK: "results": 2,
// CHECK-DAG: {"operand":0}
// CHECK-DAG: {"local":0,
// CHECK-NOT: "run":
// CHECK: "classes": [
// CHECK: "locals": {"0":[{{\[}}{{[0-9]+}}
// CHECK-DAG: {"argument":1,"offset":0,"type":"f32[2,4]"
// CHECK-DAG: {"argument":1,"offset":32
// CHECK-DAG: {"argument":1,"offset":64
// CHECK: {"function":0,"operands":{{\[+}}[[SUM:[0-9]+]],{{[0-9,]+\]+}},"results":{{\[}}[[SUM]],
// CHECK: {"function":0,"operands":{{\[}}[[SUM]],{{[0-9,]+}}],"results":{{\[}}[[SUM]],
// CHECK: {"function":0,"operands":{{\[}}[[SUM]],{{[0-9,]+}}],"results":{{\[}}[[SUM]],
// CHECK-NOT: "function":
// CHECK: "moments": {{\[}}[2,0],[1,1]],
// CHECK: {"run":0}
// CHECK: {"run":1}
// CHECK: {"run":2}
// CHECK-NOT: "run":

module @step {
  func.func private @segment_0(%sum: tensor<4x4xf32> {whale.last_use},
                               %x: tensor<2x4xf32>, %w: tensor<4x4xf32>)
      -> (tensor<4x4xf32>, tensor<2x4xf32>) attributes {whale.segment} {
    %half = stablehlo.constant dense<0.5> : tensor<2x4xf32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
       : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = stablehlo.tanh %0 : tensor<2x4xf32>
    %2 = stablehlo.multiply %1, %half : tensor<2x4xf32>
    %3 = stablehlo.dot_general %x, %2, contracting_dims = [0] x [0]
       : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %4 = stablehlo.add %sum, %3 : tensor<4x4xf32>
    return %4, %2 : tensor<4x4xf32>, tensor<2x4xf32>
  }
  whale.schedule ranks [0] @rank_class_0(
      %w: tensor<4x4xf32>, %x: tensor<6x4xf32>)
      -> (tensor<4x4xf32>, tensor<2x4xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<4x4xf32>
    %x0 = whale.view %x offset 0 : tensor<6x4xf32> -> tensor<2x4xf32>
    %0:2 = func.call @segment_0(%zero, %x0, %w) {whale.moment = 0}
         : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>)
        -> (tensor<4x4xf32>, tensor<2x4xf32>)
    %x1 = whale.view %x offset 8 : tensor<6x4xf32> -> tensor<2x4xf32>
    %1:2 = func.call @segment_0(%0#0, %x1, %w) {whale.moment = 0}
         : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>)
        -> (tensor<4x4xf32>, tensor<2x4xf32>)
    %x2 = whale.view %x offset 16 : tensor<6x4xf32> -> tensor<2x4xf32>
    %2:2 = func.call @segment_0(%1#0, %x2, %w) {whale.moment = 1}
         : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>)
        -> (tensor<4x4xf32>, tensor<2x4xf32>)
    %sum = stablehlo.add %0#1, %2#1 : tensor<2x4xf32>
    whale.return %2#0, %sum : tensor<4x4xf32>, tensor<2x4xf32>
  }
}
