// RUN: whale-opt %s -whale-plan-buffers -split-input-file -verify-diagnostics

func.func @rank_class_0(%arg0: tensor<4xf32>) -> tensor<4xf32>
    attributes {whale.ranks = array<i64: 0>} {
  // expected-error @+1 {{cannot stand in a program: it was not lowered}}
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{a value of type 'tensor<?xf32>' has no buffer}}
func.func @rank_class_0(%arg0: tensor<?xf32>) -> tensor<?xf32>
    attributes {whale.ranks = array<i64: 0>} {
  return %arg0 : tensor<?xf32>
}
