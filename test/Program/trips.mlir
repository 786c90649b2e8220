// RUN: rm -rf %t.whale && whale-compile %s --cluster=1 --target=none -o %t.whale
// RUN: FileCheck %s < %t.whale/manifest.json
// RUN: whale-program-test %t.whale

// A program says how often the loops run that count to a constant; short ones
// are no loops there.

// CHECK-COUNT-1: "trips": 40
// CHECK-NOT: "trips"
module @step {
  func.func @main(%x: tensor<8xf32>, %n: tensor<i32>)
      -> (tensor<8xf32>, tensor<8xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %limit = stablehlo.constant dense<118> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %limit
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %j = stablehlo.add %i, %three : tensor<i32>
      %z = stablehlo.tanh %y : tensor<8xf32>
      stablehlo.return %j, %z : tensor<i32>, tensor<8xf32>
    }
    %1:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %n
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %j = stablehlo.add %i, %three : tensor<i32>
      %z = stablehlo.sine %y : tensor<8xf32>
      stablehlo.return %j, %z : tensor<i32>, tensor<8xf32>
    }
    return %0#1, %1#1 : tensor<8xf32>, tensor<8xf32>
  }
}
