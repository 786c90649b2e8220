// RUN: rm -rf %t.whale && whale-compile %s --cluster=1 --target=none -o %t.whale
// RUN: FileCheck %s < %t.whale/manifest.json

// Instructions say of their work what is not meant without that: the class of a
// reduction, which is no kernel like others, and that a comparison is one of
// f64. A product with operands of f32 says nothing. Each names its TaskGraph.

// CHECK: "task_graphs": [
// CHECK: {"name":"encoder"}
// CHECK: {"name":"head"}
// CHECK: "kernel":"k{{[0-9]+}}"{{.*}}"class":"reduction","task_graph":0
// CHECK: "kernel":"k{{[0-9]+}}"{{.*}}"computes_in":"f64","task_graph":1
// CHECK: "matmul":
// CHECK-NOT: "class"
// CHECK-SAME: "task_graph":1

module @step {
  func.func @main(%x: tensor<64x128xf32>, %y: tensor<64xf64>,
                  %w: tensor<128x128xf32>)
      -> (tensor<64xf32>, tensor<64xi1>, tensor<64x128xf32>) {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add
        across dimensions = [1]
        : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
        loc("jit(s)/whale:replicate:1:0:encoder/sum")
    %1 = stablehlo.compare LT, %y, %y
        : (tensor<64xf64>, tensor<64xf64>) -> tensor<64xi1>
        loc("jit(s)/whale:replicate:1:1:head/lt")
    %2 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
        loc("jit(s)/whale:replicate:1:1:head/dot")
    return %0, %1, %2 : tensor<64xf32>, tensor<64xi1>, tensor<64x128xf32>
  }
}
