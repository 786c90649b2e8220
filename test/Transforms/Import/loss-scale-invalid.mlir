// RUN: whale-opt %s -whale-mixed-precision -split-input-file -verify-diagnostics

// What hides that a gradient is infinite.

module attributes {whale.config = {amp = {level = "f16"}}} {
  func.func @main(%w: tensor<8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<8xf32>
    %d = stablehlo.multiply %seed, %x {whale.phase = #whale.phase<backward>} : tensor<8xf32>
    // expected-error @+1 {{amp.level: f16 needs gradients that are proportional to the loss, and this computes of one what is not; take "bf16", which needs no loss scale}}
    %t = stablehlo.tanh %d {whale.phase = #whale.phase<backward>} : tensor<8xf32>
    %g = stablehlo.multiply %d, %x {whale.phase = #whale.phase<backward>} : tensor<8xf32>
    %sum = stablehlo.add %g, %t {whale.phase = #whale.phase<backward>} : tensor<8xf32>
    %next = stablehlo.subtract %w, %sum {whale.phase = #whale.phase<apply>} : tensor<8xf32>
    return %next : tensor<8xf32>
  }
}

// -----

module attributes {whale.config = {amp = {level = "f16"}}} {
  func.func @main(%w: tensor<8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<8xf32>
    %d = stablehlo.multiply %seed, %x {whale.phase = #whale.phase<backward>} : tensor<8xf32>
    // expected-error @+1 {{this multiplies two}}
    %g = stablehlo.multiply %d, %d {whale.phase = #whale.phase<backward>} : tensor<8xf32>
    %next = stablehlo.subtract %w, %g {whale.phase = #whale.phase<apply>} : tensor<8xf32>
    return %next : tensor<8xf32>
  }
}

// -----

// A loop that goes on as long as gradients are large.

module attributes {whale.config = {amp = {level = "f16"}}} {
  func.func @main(%w: tensor<f32>, %x: tensor<f32>) -> tensor<f32> {
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %d = stablehlo.multiply %seed, %x {whale.phase = #whale.phase<backward>} : tensor<f32>
    %g = stablehlo.while(%i = %d) : tensor<f32> attributes {whale.phase = #whale.phase<backward>}
    cond {
      // expected-error @+1 {{this computes of one what is not}}
      %more = stablehlo.compare LT, %i, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %2 = stablehlo.negate %i : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
    %next = stablehlo.subtract %w, %g {whale.phase = #whale.phase<apply>} : tensor<f32>
    return %next : tensor<f32>
  }
}

// -----

// An optimizer in a loop.

module attributes {whale.config = {amp = {level = "f16"}}} {
  func.func @main(%w: tensor<f32>, %x: tensor<f32>) -> tensor<f32> {
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %d = stablehlo.multiply %seed, %x {whale.phase = #whale.phase<backward>} : tensor<f32>
    %next = stablehlo.while(%i = %w) : tensor<f32> attributes {whale.phase = #whale.phase<apply>}
    cond {
      %more = stablehlo.compare LT, %i, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      // expected-error @+1 {{this reads one in a loop or branch}}
      %2 = stablehlo.subtract %i, %d : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
    %last = stablehlo.subtract %next, %d {whale.phase = #whale.phase<apply>} : tensor<f32>
    return %last : tensor<f32>
  }
}

// -----

// A gradient that is clipped behind a product, which may have made it infinite.

module attributes {whale.config = {amp = {level = "f16"}}} {
  func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<8x8xf32>
    %one = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<1.0> : tensor<8x8xf32>
    %d = stablehlo.dot_general %seed, %w, contracting_dims = [1] x [1] {whale.phase = #whale.phase<backward>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-error @+1 {{this computes of one what is not}}
    %c = stablehlo.minimum %d, %one {whale.phase = #whale.phase<backward>} : tensor<8x8xf32>
    %g = stablehlo.dot_general %x, %c, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %next = stablehlo.subtract %w, %g {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %next : tensor<8x8xf32>
  }
}

// -----

// What the optimizer reads is the last operation of the backward.

module attributes {whale.config = {amp = {level = "f16"}}} {
  func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %seed = stablehlo.constant {whale.phase = #whale.phase<backward>} dense<0.25> : tensor<8x8xf32>
    %one = stablehlo.constant dense<1.0> : tensor<8x8xf32>
    %d = stablehlo.dot_general %x, %seed, contracting_dims = [0] x [0] {whale.phase = #whale.phase<backward>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // expected-error @+1 {{this computes of one what is not}}
    %c = stablehlo.minimum %d, %one {whale.phase = #whale.phase<backward>} : tensor<8x8xf32>
    %next = stablehlo.subtract %w, %c {whale.phase = #whale.phase<apply>} : tensor<8x8xf32>
    return %next : tensor<8x8xf32>
  }
}
