// Which biases and GELUs, and which gradients of them, the product before them
// computes in its epilogue. From @bias_for_kernel on it may compute none, and
// where GELU stays apart a remark has to say why. For a GPU of compute
// capability 75, or with gpu.epilogues = false, all have to stay, without a
// remark.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_80},whale-form-epilogues{target=sm_80}))' \
// RUN:   2>/dev/null | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_80},whale-form-epilogues{target=sm_80}))' \
// RUN:   2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_80},whale-form-epilogues{target=sm_75}))' 2>&1 | \
// RUN:   FileCheck %s --check-prefix=OLD
// RUN: sed 's/^module {/module attributes {whale.config = {gpu = {epilogues = false}}} {/' \
// RUN:   %s | whale-opt -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_80},whale-form-epilogues{target=sm_80}))' 2>&1 | FileCheck %s --check-prefix=OLD

// OLD-NOT: epilogue =
// OLD-NOT: remark

#terms = #whale.placement<[32, 64] partial sum 2 on [0, 1]>
#whole = #whale.placement<[32, 64] replicate 2 on [0, 1]>
module {

// GELU of a product with a bias, the gradients of its operand and of the bias;
// the constants are what JAX makes of them in bf16.
// CHECK-LABEL: func.func @gradient
// CHECK-NEXT: %[[X:.*]]:2 = whale.matmul %arg0, %arg1 bias %arg2 : tensor<64xbf16> {{.*}}epilogue = "gelu_aux_bias"
// CHECK-NEXT: %[[D:.*]]:2 = whale.matmul %arg3, %arg4 aux %[[X]]#1 : tensor<32x64xbf16> {{.*}}epilogue = "dgelu_bgrad"
// CHECK-NEXT: return %[[X]]#0, %[[D]]#0, %[[D]]#1
// REMARK: :[[# @LINE + 8]]:8: remark: the library computes 'gelu_aux_bias' with this product
// REMARK: remark: the library computes 'dgelu_bgrad' with this product
func.func @gradient(%a: tensor<32x64xbf16>, %b: tensor<64x64xbf16>,
                    %bias: tensor<64xbf16>, %c: tensor<32x128xbf16>,
                    %e: tensor<64x128xbf16>)
    -> (tensor<32x64xbf16>, tensor<32x64xbf16>, tensor<64xbf16>) {
  %c3 = stablehlo.constant dense<3.0> : tensor<32x64xbf16>
  %c1 = stablehlo.constant dense<4.467770e-02> : tensor<32x64xbf16>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xbf16>, tensor<64x64xbf16>) -> tensor<32x64xbf16>
  %c2 = stablehlo.constant dense<7.968750e-01> : tensor<32x64xbf16>
  %one = stablehlo.constant dense<1.0> : tensor<32x64xbf16>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xbf16>
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<64xbf16>) -> tensor<32x64xbf16>
  %x = stablehlo.add %0, %1 : tensor<32x64xbf16>
  %2 = stablehlo.multiply %x, %x : tensor<32x64xbf16>
  %3 = stablehlo.multiply %2, %x : tensor<32x64xbf16>
  %4 = stablehlo.multiply %2, %c3 : tensor<32x64xbf16>
  %5 = stablehlo.multiply %3, %c1 : tensor<32x64xbf16>
  %6 = stablehlo.add %x, %5 : tensor<32x64xbf16>
  %7 = stablehlo.multiply %6, %c2 : tensor<32x64xbf16>
  %8 = stablehlo.tanh %7 : tensor<32x64xbf16>
  %9 = stablehlo.subtract %one, %8 : tensor<32x64xbf16>
  %10 = stablehlo.add %8, %one : tensor<32x64xbf16>
  %11 = stablehlo.multiply %10, %half : tensor<32x64xbf16>
  %12 = stablehlo.multiply %x, %11 : tensor<32x64xbf16>
  %13 = stablehlo.dot_general %c, %e, contracting_dims = [1] x [1] : (tensor<32x128xbf16>, tensor<64x128xbf16>) -> tensor<32x64xbf16>
  %14 = stablehlo.multiply %x, %13 : tensor<32x64xbf16>
  %15 = stablehlo.multiply %13, %11 : tensor<32x64xbf16>
  %16 = stablehlo.multiply %14, %half : tensor<32x64xbf16>
  %17 = stablehlo.multiply %16, %9 : tensor<32x64xbf16>
  %18 = stablehlo.multiply %17, %8 : tensor<32x64xbf16>
  %19 = stablehlo.add %17, %18 : tensor<32x64xbf16>
  %20 = stablehlo.multiply %19, %c2 : tensor<32x64xbf16>
  %21 = stablehlo.add %15, %20 : tensor<32x64xbf16>
  %22 = stablehlo.multiply %20, %c1 : tensor<32x64xbf16>
  %23 = stablehlo.multiply %22, %4 : tensor<32x64xbf16>
  %24 = stablehlo.add %21, %23 : tensor<32x64xbf16>
  %25 = stablehlo.reduce(%24 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<32x64xbf16>, tensor<bf16>) -> tensor<64xbf16>
  return %12, %24, %25 : tensor<32x64xbf16>, tensor<32x64xbf16>, tensor<64xbf16>
}

// Below, GELU is written in another way.

// The rows of a transposed result are the columns of the product.
// CHECK-LABEL: func.func @forward
// CHECK: whale.matmul %arg0, %arg1 bias %arg2 : tensor<64xf32> {{.*}}epilogue = "gelu_bias"{{.*}}m = array<i64: 64, 64, 1>
// CHECK-NEXT: return
// REMARK: remark: the library computes 'gelu_bias'
func.func @forward(%a: tensor<64x64xf32>, %b: tensor<64x32xf32>,
                   %bias: tensor<64xf32>) -> tensor<32x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %2 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<64xf32>) -> tensor<32x64xf32>
  %3 = stablehlo.add %2, %1 : tensor<32x64xf32>
  %scale = stablehlo.constant dense<0.035677408> : tensor<f32>
  %cubic = stablehlo.constant dense<0.797884583> : tensor<32x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xf32>
  %g0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
  %g1 = stablehlo.multiply %3, %3 : tensor<32x64xf32>
  %g2 = stablehlo.multiply %g1, %g0 : tensor<32x64xf32>
  %g3 = stablehlo.add %g2, %cubic : tensor<32x64xf32>
  %g4 = stablehlo.multiply %g3, %3 : tensor<32x64xf32>
  %tanh = stablehlo.tanh %g4 : tensor<32x64xf32>
  %g5 = stablehlo.multiply %3, %half : tensor<32x64xf32>
  %g6 = stablehlo.multiply %g5, %tanh : tensor<32x64xf32>
  %gelu = stablehlo.add %g5, %g6 : tensor<32x64xf32>
  return %gelu : tensor<32x64xf32>
}

// The product is needed itself, and is a second result.
// CHECK-LABEL: func.func @kept
// CHECK: %[[X:.*]]:2 = whale.matmul {{.*}}epilogue = "gelu_aux"
// CHECK-NEXT: return %[[X]]#0, %[[X]]#1
// REMARK: remark: the library computes 'gelu_aux'
func.func @kept(%a: tensor<32x64xf32>, %b: tensor<64x64xf32>)
    -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %scale = stablehlo.constant dense<0.035677408> : tensor<f32>
  %cubic = stablehlo.constant dense<0.797884583> : tensor<32x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xf32>
  %g0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
  %g1 = stablehlo.multiply %0, %0 : tensor<32x64xf32>
  %g2 = stablehlo.multiply %g1, %g0 : tensor<32x64xf32>
  %g3 = stablehlo.add %g2, %cubic : tensor<32x64xf32>
  %g4 = stablehlo.multiply %g3, %0 : tensor<32x64xf32>
  %tanh = stablehlo.tanh %g4 : tensor<32x64xf32>
  %g5 = stablehlo.multiply %0, %half : tensor<32x64xf32>
  %g6 = stablehlo.multiply %g5, %tanh : tensor<32x64xf32>
  %gelu = stablehlo.add %g5, %g6 : tensor<32x64xf32>
  return %gelu, %0 : tensor<32x64xf32>, tensor<32x64xf32>
}

// Without GELU: a bias that no kernel would add otherwise.
// CHECK-LABEL: func.func @bias
// CHECK-NEXT: whale.matmul {{.*}}epilogue = "bias"
// CHECK-NEXT: return
// REMARK: remark: the library computes 'bias'
func.func @bias(%a: tensor<32x64xf32>, %b: tensor<64x64xf32>,
                %bias: tensor<64xf32>) -> tensor<32x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<64xf32>) -> tensor<32x64xf32>
  %2 = stablehlo.add %0, %1 : tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}

// All that follows stays as it is.
// CHECK-NOT: epilogue =

// A kernel takes the exponential of the sum, and adds the bias, too.
// REMARK-NOT: remark
func.func @bias_for_kernel(%a: tensor<32x64xf32>, %b: tensor<64x64xf32>,
                           %bias: tensor<64xf32>) -> tensor<32x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<64xf32>) -> tensor<32x64xf32>
  %2 = stablehlo.add %0, %1 : tensor<32x64xf32>
  %3 = stablehlo.exponential %2 : tensor<32x64xf32>
  return %3 : tensor<32x64xf32>
}

// This is another function, if only by a constant.
func.func @other(%a: tensor<32x64xf32>, %b: tensor<64x64xf32>)
    -> tensor<32x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %c1 = stablehlo.constant dense<0.035677408> : tensor<32x64xf32>
  %c2 = stablehlo.constant dense<0.798> : tensor<32x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<32x64xf32>
  %2 = stablehlo.multiply %1, %c1 : tensor<32x64xf32>
  %3 = stablehlo.add %2, %c2 : tensor<32x64xf32>
  %4 = stablehlo.multiply %3, %0 : tensor<32x64xf32>
  %5 = stablehlo.tanh %4 : tensor<32x64xf32>
  %6 = stablehlo.multiply %0, %half : tensor<32x64xf32>
  %7 = stablehlo.multiply %6, %5 : tensor<32x64xf32>
  %8 = stablehlo.add %6, %7 : tensor<32x64xf32>
  return %8 : tensor<32x64xf32>
}

// What is in between is returned, as to the backward pass of another stage.
// REMARK: remark: GELU is not computed with its product: what is in between, or a gradient, is used elsewhere
func.func @inner(%a: tensor<32x64xf32>, %b: tensor<64x64xf32>)
    -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %scale = stablehlo.constant dense<0.035677408> : tensor<f32>
  %cubic = stablehlo.constant dense<0.797884583> : tensor<32x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xf32>
  %g0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
  %g1 = stablehlo.multiply %0, %0 : tensor<32x64xf32>
  %g2 = stablehlo.multiply %g1, %g0 : tensor<32x64xf32>
  %g3 = stablehlo.add %g2, %cubic : tensor<32x64xf32>
  %g4 = stablehlo.multiply %g3, %0 : tensor<32x64xf32>
  %tanh = stablehlo.tanh %g4 : tensor<32x64xf32>
  %g5 = stablehlo.multiply %0, %half : tensor<32x64xf32>
  %g6 = stablehlo.multiply %g5, %tanh : tensor<32x64xf32>
  %gelu = stablehlo.add %g5, %g6 : tensor<32x64xf32>
  return %gelu, %tanh : tensor<32x64xf32>, tensor<32x64xf32>
}

// A gate: the kernel of the multiplication reads the product as well.
// REMARK: remark: GELU is not computed with its product: a kernel reads it
func.func @gate(%a: tensor<32x64xf32>, %b: tensor<64x64xf32>,
                %c: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %scale = stablehlo.constant dense<0.035677408> : tensor<f32>
  %cubic = stablehlo.constant dense<0.797884583> : tensor<32x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xf32>
  %g0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
  %g1 = stablehlo.multiply %0, %0 : tensor<32x64xf32>
  %g2 = stablehlo.multiply %g1, %g0 : tensor<32x64xf32>
  %g3 = stablehlo.add %g2, %cubic : tensor<32x64xf32>
  %g4 = stablehlo.multiply %g3, %0 : tensor<32x64xf32>
  %tanh = stablehlo.tanh %g4 : tensor<32x64xf32>
  %g5 = stablehlo.multiply %0, %half : tensor<32x64xf32>
  %g6 = stablehlo.multiply %g5, %tanh : tensor<32x64xf32>
  %gelu = stablehlo.add %g5, %g6 : tensor<32x64xf32>
  %2 = stablehlo.multiply %gelu, %c : tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}

// A partial product, which is summed up over ranks first.
// REMARK: remark: GELU is not computed with its product: it is not taken of a product
func.func @sum_of_ranks(%a: tensor<32x64xf32>, %b: tensor<64x64xf32>,
                        %bias: tensor<64xf32>) -> tensor<32x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %1 = whale.all_reduce %0 channel 0 from #terms to #whole : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %2 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<64xf32>) -> tensor<32x64xf32>
  %3 = stablehlo.add %1, %2 : tensor<32x64xf32>
  %scale = stablehlo.constant dense<0.035677408> : tensor<f32>
  %cubic = stablehlo.constant dense<0.797884583> : tensor<32x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xf32>
  %g0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
  %g1 = stablehlo.multiply %3, %3 : tensor<32x64xf32>
  %g2 = stablehlo.multiply %g1, %g0 : tensor<32x64xf32>
  %g3 = stablehlo.add %g2, %cubic : tensor<32x64xf32>
  %g4 = stablehlo.multiply %g3, %3 : tensor<32x64xf32>
  %tanh = stablehlo.tanh %g4 : tensor<32x64xf32>
  %g5 = stablehlo.multiply %3, %half : tensor<32x64xf32>
  %g6 = stablehlo.multiply %g5, %tanh : tensor<32x64xf32>
  %gelu = stablehlo.add %g5, %g6 : tensor<32x64xf32>
  return %gelu : tensor<32x64xf32>
}

// The bias is one of samples, not of features.
// REMARK: remark: GELU is not computed with its product: its bias is not of the product's rows
func.func @rows(%a: tensor<32x64xf32>, %b: tensor<64x64xf32>,
                %bias: tensor<32xf32>) -> tensor<32x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
  %2 = stablehlo.add %0, %1 : tensor<32x64xf32>
  %scale = stablehlo.constant dense<0.035677408> : tensor<f32>
  %cubic = stablehlo.constant dense<0.797884583> : tensor<32x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xf32>
  %g0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
  %g1 = stablehlo.multiply %2, %2 : tensor<32x64xf32>
  %g2 = stablehlo.multiply %g1, %g0 : tensor<32x64xf32>
  %g3 = stablehlo.add %g2, %cubic : tensor<32x64xf32>
  %g4 = stablehlo.multiply %g3, %2 : tensor<32x64xf32>
  %tanh = stablehlo.tanh %g4 : tensor<32x64xf32>
  %g5 = stablehlo.multiply %2, %half : tensor<32x64xf32>
  %g6 = stablehlo.multiply %g5, %tanh : tensor<32x64xf32>
  %gelu = stablehlo.add %g5, %g6 : tensor<32x64xf32>
  return %gelu : tensor<32x64xf32>
}

// REMARK: remark: GELU is not computed with its product: an extent is no multiple of 8
func.func @odd(%a: tensor<32x60xf32>, %b: tensor<60x64xf32>)
    -> tensor<32x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x60xf32>, tensor<60x64xf32>) -> tensor<32x64xf32>
  %scale = stablehlo.constant dense<0.035677408> : tensor<f32>
  %cubic = stablehlo.constant dense<0.797884583> : tensor<32x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<32x64xf32>
  %g0 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
  %g1 = stablehlo.multiply %0, %0 : tensor<32x64xf32>
  %g2 = stablehlo.multiply %g1, %g0 : tensor<32x64xf32>
  %g3 = stablehlo.add %g2, %cubic : tensor<32x64xf32>
  %g4 = stablehlo.multiply %g3, %0 : tensor<32x64xf32>
  %tanh = stablehlo.tanh %g4 : tensor<32x64xf32>
  %g5 = stablehlo.multiply %0, %half : tensor<32x64xf32>
  %g6 = stablehlo.multiply %g5, %tanh : tensor<32x64xf32>
  %gelu = stablehlo.add %g5, %g6 : tensor<32x64xf32>
  return %gelu : tensor<32x64xf32>
}

}
