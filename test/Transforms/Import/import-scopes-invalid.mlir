// RUN: whale-opt %s -split-input-file -verify-diagnostics -whale-import-scopes

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {whale.strategy = #whale.split<devices = 4, name = "a">} : tensor<8xf32>
  // expected-error@+1 {{TaskGraph 'a' asks for 2 devices here and for 4 before}}
  %1 = stablehlo.tanh %0 {whale.strategy = #whale.split<devices = 2, name = "a">} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {whale.strategy = #whale.split<name = "a">} : tensor<8xf32>
  // expected-error@+1 {{TaskGraph 'a' is both replicate and split}}
  %1 = stablehlo.tanh %0 {whale.strategy = #whale.replicate<name = "a">} : tensor<8xf32>
  return %1 : tensor<8xf32>
}
