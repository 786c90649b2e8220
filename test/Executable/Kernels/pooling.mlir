// RUN: %python %S/../compare_kernels.py whale-kernels-test %s

// Gradients of poolings whose windows are apart: side by side, with gaps
// between and behind them, and of whole numbers; and of windows that overlap,
// without padding and with it.

module @pooling {
  func.func public @main(%x: tensor<4x6x8x5xf32>, %dx: tensor<4x3x4x5xf32>,
                         %y: tensor<3x8x9xf32>, %dy: tensor<1x3x2xf32>,
                         %z: tensor<6x7xi32>, %dz: tensor<2x7xi32>,
                         %w: tensor<2x7x9x5xi32>, %dw: tensor<2x3x4x5xf32>)
      -> (tensor<4x6x8x5xf32>, tensor<3x8x9xf32>, tensor<6x7xi32>,
          tensor<2x7x9x5xf32>, tensor<2x7x9x5xf32>) {
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %half = stablehlo.constant dense<0.500000e+00> : tensor<f32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0 = "stablehlo.select_and_scatter"(%x, %dx, %zero) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<4x6x8x5xf32>, tensor<4x3x4x5xf32>, tensor<f32>) -> tensor<4x6x8x5xf32>
    %1 = "stablehlo.select_and_scatter"(%y, %dy, %half) <{window_dimensions = array<i64: 3, 2, 3>, window_strides = array<i64: 3, 3, 4>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<3x8x9xf32>, tensor<1x3x2xf32>, tensor<f32>) -> tensor<3x8x9xf32>
    %2 = "stablehlo.select_and_scatter"(%z, %dz, %one) <{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 3, 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.multiply %a, %b : tensor<i32>
      stablehlo.return %c : tensor<i32>
    }) : (tensor<6x7xi32>, tensor<2x7xi32>, tensor<i32>) -> tensor<6x7xi32>
    // Whole numbers, so that several elements of a window are the largest.
    %whole = stablehlo.convert %w : (tensor<2x7x9x5xi32>) -> tensor<2x7x9x5xf32>
    %3 = "stablehlo.select_and_scatter"(%whole, %dw, %half) <{window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<2x7x9x5xf32>, tensor<2x3x4x5xf32>, tensor<f32>) -> tensor<2x7x9x5xf32>
    %4 = "stablehlo.select_and_scatter"(%whole, %dw, %zero) <{window_dimensions = array<i64: 1, 4, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [1, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<2x7x9x5xf32>, tensor<2x3x4x5xf32>, tensor<f32>) -> tensor<2x7x9x5xf32>
    return %0, %1, %2, %3, %4 : tensor<4x6x8x5xf32>, tensor<3x8x9xf32>, tensor<6x7xi32>, tensor<2x7x9x5xf32>, tensor<2x7x9x5xf32>
  }
}
