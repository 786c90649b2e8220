// RUN: whale-opt %s -split-input-file -verify-diagnostics -whale-import-scopes

// expected-error@+1 {{wh.scopes: no name in the step matches 'layer_[2-9]'; the names are Model, Model/layer_0, Model/layer_1}}
module attributes {whale.scopes = {"layer_[2-9]" = #whale.replicate}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(s)/Model/layer_0/tanh")
    %1 = stablehlo.tanh %0 : tensor<8xf32> loc("jit(s)/jvp(Model)/layer_1/tanh")
    return %1 : tensor<8xf32>
  }
}

// -----

// expected-error@+1 {{wh.scopes: no name in the step matches 'tanh'; its operations have no names}}
module attributes {whale.scopes = {tanh = #whale.replicate}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(s)/jvp()/tanh")
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {whale.scopes = {"Model/*" = #whale.replicate<devices = 1>, "layer_0" = #whale.replicate<devices = 2>}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error@unknown {{wh.scopes: 'Model/layer_0' has two strategies, wh.replicate(1) of 'Model/*' and wh.replicate(2) of 'layer_0'; leave one out}}
    %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(s)/Model/layer_0/tanh")
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {whale.scopes = {"Model" = #whale.split<name = "all">, "layer_0" = #whale.replicate<name = "part">}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error@unknown {{wh.scopes: 'part' is in the split 'all', which shards all that it holds; give both one name and strategy, or leave one out}}
    %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(s)/Model/layer_0/tanh")
    return %0 : tensor<8xf32>
  }
}

// -----

// expected-error@+1 {{wh.scopes: 'layer_[' is no pattern: invalid glob pattern}}
module attributes {whale.scopes = {"layer_[" = #whale.replicate}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}
