// RUN: not whale-opt %s -whale-import-scopes 2>&1 | FileCheck %s

// The error is at the line of the model.
// CHECK: model.py:3:5: error: malformed scope 'whale:shard:4:0:': the kind 'shard' is neither 'replicate' nor 'split'
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(f)/jvp(whale:shard:4:0:)/tanh"("model.py":3:5))
  return %0 : tensor<8xf32>
}
