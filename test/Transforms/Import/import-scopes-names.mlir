// Strategies by names in name paths: which operations a pattern of
// whale.scopes matches, and which of several patterns and scopes counts. Judged
// by the attributes of each operation.

// RUN: whale-opt %s -split-input-file -whale-inline-calls -whale-import-scopes | FileCheck %s

// Transformations, loops and rematerialization are no names. A strategy without
// a name makes each module a TaskGraph, its backward operations included.

// CHECK-NOT:     whale.scopes
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} #whale.phase<forward>, whale.strategy = #whale.replicate<devices = 1, name = "Model/layer_0", scope = 0>
// CHECK:         stablehlo.sine {{.*}} #whale.replicate<devices = 1, name = "Model/layer_1", scope = 1>
// CHECK:         stablehlo.cosine {{.*}} #whale.phase<backward>, whale.strategy = #whale.replicate<devices = 1, name = "Model/layer_1", scope = 1>
// CHECK:         stablehlo.negate {{.*}} #whale.phase<backward>, whale.strategy = #whale.replicate<devices = 1, name = "Model/layer_0", scope = 0>
module attributes {whale.scopes = {"Model/layer_{0,1}" = #whale.replicate<devices = 1>}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(s)/jvp(Model)/layer_0/tanh")
    %1 = stablehlo.sine %0 : tensor<8xf32> loc("jit(s)/jvp(vmap(Model))/while/body/closed_call/layer_1/Dense_0/sin")
    %2 = stablehlo.cosine %1 : tensor<8xf32> loc("jit(s)/transpose(jvp(Model))/jvp(Model)/checkpoint/rematted_computation/layer_1/cos")
    %3 = stablehlo.negate %2 : tensor<8xf32> loc("jit(s)/transpose(jvp(Model))/layer_0/neg")
    return %3 : tensor<8xf32>
  }
}

// -----

// The path goes through calls. Of two patterns the inner one counts, and a scope
// counts where it is inside; a run of names may begin anywhere.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} #whale.split<devices = 2, name = "ffn", scope = 0>
// CHECK:         stablehlo.sine {{.*}} #whale.replicate<name = "rest", scope = 1>
// CHECK:         stablehlo.cosine {{.*}} #whale.replicate<devices = 3, name = "own", scope = 2>
// CHECK:         stablehlo.negate {{.*}} #whale.replicate<name = "rest", scope = 1>
module attributes {whale.scopes = {"enc" = #whale.replicate<name = "rest">,
                                   "enc/**/ffn" = #whale.split<devices = 2, name = "ffn">}} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(s)/enc/a/jit(f)")
    %1 = stablehlo.cosine %0 : tensor<8xf32> loc("jit(s)/enc/whale:replicate:3:0:own/cos")
    %2 = stablehlo.negate %1 : tensor<8xf32> loc("jit(s)/whale:replicate:3:0:own/enc/neg")
    return %2 : tensor<8xf32>
  }
  func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32> loc("b/ffn/tanh")
    %1 = stablehlo.sine %0 : tensor<8xf32> loc("b/sin")
    return %1 : tensor<8xf32>
  }
}
