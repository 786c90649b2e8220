// RUN: whale-opt %s -whale-lower-library-ops | FileCheck %s

// CHECK-LABEL: @calls
// CHECK: whale.library_call "fft"(%arg0) {length = array<i64: 4>, type = "RFFT"}
// CHECK: whale.library_call "cholesky"(%arg1) {lower = true}
// CHECK: whale.library_call "lapack.potrf"(%arg1) {uplo = 76 : ui8}
func.func @calls(%x: tensor<4xf32>, %a: tensor<4x4xf32>) -> (tensor<3xcomplex<f32>>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>) {
  %0 = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  %1 = stablehlo.cholesky %a, lower = true : tensor<4x4xf32>
  %2:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
  return %0, %1, %2#0, %2#1 : tensor<3xcomplex<f32>>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>
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
