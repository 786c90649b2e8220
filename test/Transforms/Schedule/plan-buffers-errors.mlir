// RUN: whale-opt %s -whale-plan-buffers -split-input-file -verify-diagnostics

whale.schedule ranks [0] @rank_class_0(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{cannot be in a program: it was not lowered}}
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  whale.return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{a value of type 'tensor<?xf32>' has no buffer}}
whale.schedule ranks [0] @rank_class_0(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  whale.return %arg0 : tensor<?xf32>
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32>

whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls 'f', which is no function with 'whale.segment'}}
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  whale.return %0 : tensor<4xf32>
}

// -----

func.func private @segment_0(%x: tensor<4xf32>) -> tensor<2xf32>
    attributes {whale.segment} {
  // expected-error @+1 {{cannot be in a segment}}
  %0 = whale.view %x offset 0 : tensor<4xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

whale.schedule ranks [0] @rank_class_0() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
  // expected-error @+1 {{cannot view what is no argument of the function}}
  %1 = whale.view %0 offset 0 : tensor<4xf32> -> tensor<2xf32>
  whale.return %1 : tensor<2xf32>
}

// -----

func.func private @segment_0(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {whale.segment} {
  // expected-error @+1 {{cannot be in a segment}}
  %0 = whale.pack %x : tensor<4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
