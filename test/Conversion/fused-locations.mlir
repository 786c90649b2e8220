// A launch says where all that was fused into its kernel comes from, its result
// first.
//
// RUN: whale-opt %s -mlir-print-debuginfo -mlir-print-local-scope --pass-pipeline='builtin.module(func.func(whale-stablehlo-to-linalg,whale-fuse-kernels),whale-outline-kernels)' | FileCheck %s

// CHECK: whale.launch @k0(%arg0) {{.*}} loc(fused["add"("model.py":8:4), "tanh"("model.py":3:4), "sine"("model.py":7:4)])
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("tanh"("model.py":3:4))
  %1 = stablehlo.sine %0 : tensor<8xf32> loc("sine"("model.py":7:4))
  %2 = stablehlo.add %1, %0 : tensor<8xf32> loc("add"("model.py":8:4))
  return %2 : tensor<8xf32>
}
