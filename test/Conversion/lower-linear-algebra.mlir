// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops))' | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops,cse))' | FileCheck %s --check-prefix=MERGED

// CHECK-LABEL: @calls
// CHECK: whale.library_call "fft"(%arg0) {length = array<i64: 4>, type = "RFFT", whale.bytes = 40 : i64, whale.class = "other", whale.flops = 30 : i64}
// Inverse transforms are scaled by kernels.
// CHECK: %[[WAVE:.*]] = whale.library_call "fft"(%{{.*}}) {length = array<i64: 4>, type = "IRFFT"
// CHECK: %[[COUNT:.*]] = stablehlo.constant dense<4.000000e+00>
// CHECK: stablehlo.divide %[[WAVE]], %[[COUNT]]
// The lower triangle of a matrix is the upper one in column-major order.
// CHECK: %[[FACTOR:.*]]:2 = whale.library_call "lapack.potrf"(%arg1) {uplo = 85 : ui8
// CHECK: %[[NAN:.*]] = stablehlo.constant dense<0x7FC00000>
// CHECK: %[[RIGHT:.*]] = stablehlo.select %{{.*}}, %[[FACTOR]]#0, %[[NAN]]
// CHECK: stablehlo.select %{{.*}}, %[[RIGHT]], %{{.*}}
// CHECK: whale.library_call "lapack.potrf"(%arg1) {uplo = 85 : ui8
func.func @calls(%x: tensor<4xf32>, %a: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>) {
  %0 = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  %1 = stablehlo.fft %0, type = IRFFT, length = [4] : (tensor<3xcomplex<f32>>) -> tensor<4xf32>
  %2 = stablehlo.cholesky %a, lower = true : tensor<4x4xf32>
  %3:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
  return %1, %2, %3#0, %3#1 : tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>
}

// Matrices are passed in column-major order; a wide one, whose transpose is
// decomposed, lies so already.
// CHECK-LABEL: @orders
// CHECK: %[[A:.*]] = stablehlo.transpose %arg0, dims = [1, 0]
// CHECK: %[[LU:.*]]:3 = whale.library_call "lapack.getrf"(%[[A]]) {{.*}} : (tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3xi32>, tensor<i32>)
// CHECK: stablehlo.transpose %[[LU]]#0, dims = [1, 0]
// CHECK: %[[SVD:.*]]:5 = whale.library_call "lapack.gesdd"(%arg1) {{.*}} -> (tensor<3x5xf32>, tensor<3xf32>, tensor<3x5xf32>, tensor<3x3xf32>, tensor<i32>)
// CHECK: return %{{.*}}, %[[SVD]]#3, %[[SVD]]#2
func.func @orders(%tall: tensor<5x3xf32>, %wide: tensor<3x5xf32>) -> (tensor<5x3xf32>, tensor<3x3xf32>, tensor<3x5xf32>) {
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%tall) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]} : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xi32>, tensor<i32>)
  %1:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%wide) {mhlo.backend_config = {mode = 83 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]} : (tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3xf32>, tensor<3x3xf32>, tensor<3x5xf32>, tensor<i32>)
  return %0#0, %1#2, %1#3 : tensor<5x3xf32>, tensor<3x3xf32>, tensor<3x5xf32>
}

// Half precision is solved in f32.
// CHECK-LABEL: @half
// CHECK: %[[A:.*]] = stablehlo.convert %arg0 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
// CHECK: %[[X:.*]] = whale.library_call "triangular_solve"(%[[A]], %{{.*}})
// CHECK: stablehlo.convert %[[X]] : (tensor<4x2xf32>) -> tensor<4x2xbf16>
func.func @half(%a: tensor<4x4xbf16>, %b: tensor<4x2xbf16>) -> tensor<4x2xbf16> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xbf16>, tensor<4x2xbf16>) -> tensor<4x2xbf16>
  return %0 : tensor<4x2xbf16>
}

// Attention has scratch memory for each of its tasks, at most 16: a block of
// rows of a head, or a head.
// Parts of one tensor are read where they are if features are neighbours there,
// and the result is written in the order in which it is needed.
// CHECK-LABEL: @parts
// CHECK-NEXT: %[[R:.*]]:2 = whale.library_call "attention"(%arg0, %arg0, %arg1)
// CHECK-SAME: key_view = {offset = 3 : i64, shape = array<i64: 2, 4, 3>, strides = array<i64: 3, 12, 1>}
// CHECK-SAME: query_view = {offset = 0 : i64
// CHECK-SAME: result = "qhe"
// CHECK-NEXT: %[[K:.*]] = stablehlo.transpose
// CHECK-NEXT: %[[S:.*]]:2 = whale.library_call "attention"(%arg1, %[[K]], %arg1)
// CHECK-NOT: view
// CHECK: return %[[R]]#0, %[[S]]#0
func.func @parts(%qk: tensor<4x4x3xf32>, %v: tensor<2x4x3xf32>, %t: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>, tensor<2x4x3xf32>) {
  %0 = stablehlo.slice %qk [0:4, 0:2, 0:3] : (tensor<4x4x3xf32>) -> tensor<4x2x3xf32>
  %q = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  %1 = stablehlo.slice %qk [0:4, 1:3, 0:3] : (tensor<4x4x3xf32>) -> tensor<4x2x3xf32>
  %k = stablehlo.transpose %1, dims = [1, 0, 2] : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  %2 = whale.attention query "hqd" %q key "hkd" %k value "hke" %v to "hqe" scale 1.0 : (tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0, 2] : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  %4 = stablehlo.transpose %t, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %5 = whale.attention query "hqd" %v key "hkd" %4 value "hke" %v to "hqe" scale 1.0 : (tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  return %3, %5 : tensor<4x2x3xf32>, tensor<2x4x3xf32>
}

// CHECK-LABEL: @attention
// CHECK: whale.library_call "attention"(%arg0, %arg1, %arg2) {causal = 0 : i64, fill = -1.000000e+09 : f64, key = "kd", query = "hqd", result = "hqe", scale = 5.000000e-01 : f64, value = "ke", whale.bytes = {{[0-9]+}} : i64, whale.class = "attention", whale.flops = 200 : i64} : (tensor<2x4x3xf32>, tensor<6x3xf32>, tensor<6x2xf32>) -> (tensor<2x4x2xf32>, tensor<148xf32>)
// CHECK: whale.library_call "attention_gradient"(%arg0, %arg1, %arg2, %arg3) {cotangent = "hqe", key = "kd", key_result = "hkd", query = "hqd", query_result = "hqd", scale = 1.000000e+00 : f64, value = "ke", value_result = "hke", whale.bytes = {{[0-9]+}} : i64, whale.class = "attention", whale.flops = 1248 : i64} : {{.*}} -> (tensor<2x4x3xf32>, tensor<2x6x3xf32>, tensor<2x6x2xf32>, tensor<296xf32>)
func.func @attention(%q: tensor<2x4x3xf32>, %k: tensor<6x3xf32>, %v: tensor<6x2xf32>, %d: tensor<2x4x2xf32>) -> (tensor<2x4x2xf32>, tensor<2x4x3xf32>) {
  %0 = whale.attention query "hqd" %q key "kd" %k value "ke" %v to "hqe" scale 0.5 {causal = 0 : i64, fill = -1.0e9 : f64, whale.phase = #whale.phase<forward>} : (tensor<2x4x3xf32>, tensor<6x3xf32>, tensor<6x2xf32>) -> tensor<2x4x2xf32>
  %1:3 = whale.attention_gradient query "hqd" %q key "kd" %k value "ke" %v cotangent "hqe" %d to "hqd", "hkd", "hke" scale 1.0 : (tensor<2x4x3xf32>, tensor<6x3xf32>, tensor<6x2xf32>, tensor<2x4x2xf32>) -> (tensor<2x4x3xf32>, tensor<2x6x3xf32>, tensor<2x6x2xf32>)
  return %0, %1#0 : tensor<2x4x2xf32>, tensor<2x4x3xf32>
}

// Calls of Python are made, each of them, whoever uses their results; what
// nobody needs of other routines goes.
// CHECK-LABEL: @python
// CHECK-NEXT: whale.library_call "python"(%arg0) {index = 3 : i64}
// CHECK-NEXT: whale.library_call "python"(%arg0) {index = 3 : i64}
// CHECK-NEXT: return %arg0
// MERGED-LABEL: @python
// MERGED-COUNT-2: whale.library_call "python"
// MERGED-NOT: whale.library_call
func.func @python(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true, mhlo.backend_config = {index = 3 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true, mhlo.backend_config = {index = 3 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  return %x : tensor<4xf32>
}
