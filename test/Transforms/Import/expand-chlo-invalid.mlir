// RUN: whale-opt %s -split-input-file -verify-diagnostics -whale-expand-chlo

func.func @complex(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-error@+1 {{'chlo.erf' op has no expansion for 'tensor<4xcomplex<f32>>'}}
  %0 = chlo.erf %x : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

func.func @mulhi(%x: tensor<4xi64>, %y: tensor<4xi64>) -> tensor<4xi64> {
  // expected-error@+1 {{'chlo.mulhi' op has no expansion for}}
  %0 = chlo.mulhi %x, %y : tensor<4xi64>, tensor<4xi64> -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
