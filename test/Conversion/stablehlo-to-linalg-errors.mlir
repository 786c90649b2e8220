// RUN: whale-opt %s -whale-stablehlo-to-linalg -split-input-file -verify-diagnostics

func.func @fft(%x: tensor<8xf32>) -> tensor<5xcomplex<f32>> {
  // expected-error@+1 {{'stablehlo.fft' op from ('tensor<8xf32>') to ('tensor<5xcomplex<f32>>') is not supported by the kernel lowering}}
  %0 = stablehlo.fft %x, type = RFFT, length = [8]
      : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
  return %0 : tensor<5xcomplex<f32>>
}

// -----

func.func @captured(%x: tensor<8xf32>, %y: tensor<f32>) -> tensor<f32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{'stablehlo.reduce' op from ('tensor<8xf32>', 'tensor<f32>') to ('tensor<f32>') is not supported by the kernel lowering}}
  %0 = stablehlo.reduce(%x init: %c) across dimensions = [0]
      : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
   reducer(%a: tensor<f32>, %b: tensor<f32>)  {
    // expected-error@+1 {{uses a value from outside of its reduction}}
    %1 = stablehlo.multiply %b, %y : tensor<f32>
    %2 = stablehlo.add %a, %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}
