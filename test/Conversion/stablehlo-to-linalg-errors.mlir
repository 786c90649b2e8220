// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg))' -split-input-file -verify-diagnostics
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg{target=sm_80}))' -split-input-file -verify-diagnostics

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

// -----

// Kernels have no form for the type.
func.func @scatter(%x: tensor<50xf8E8M0FNU>, %i: tensor<300x1xi32>,
                   %u: tensor<300xf8E8M0FNU>) -> tensor<50xf8E8M0FNU> {
  // expected-error@+1 {{'stablehlo.scatter' op from}}
  %0 = "stablehlo.scatter"(%x, %i, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<f8E8M0FNU>, %b: tensor<f8E8M0FNU>):
    stablehlo.return %b : tensor<f8E8M0FNU>
  }) : (tensor<50xf8E8M0FNU>, tensor<300x1xi32>, tensor<300xf8E8M0FNU>)
      -> tensor<50xf8E8M0FNU>
  return %0 : tensor<50xf8E8M0FNU>
}
