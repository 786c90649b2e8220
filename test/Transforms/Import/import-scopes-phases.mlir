// RUN: whale-opt %s -split-input-file -whale-import-scopes \
// RUN:   -mlir-print-op-generic | FileCheck %s

// Gradients of the weight update it; what only serves the update is apply, the
// loss and what is computed from it are forward.

// CHECK-LABEL: sym_name = "main"
// CHECK:         "stablehlo.dot_general"{{.*}} {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<devices = 2, name = "a", scope = 0>}
// CHECK:         "stablehlo.dot_general"{{.*}} {whale.phase = #whale.phase<backward>, whale.strategy = #whale.split<devices = 2, name = "a", scope = 0>}
// The scaled step: apply, of the parameter's TaskGraph.
// CHECK:         "stablehlo.multiply"{{.*}} {whale.phase = #whale.phase<apply>, whale.strategy = #whale.split<devices = 2, name = "a", scope = 0>}
// CHECK:         "stablehlo.subtract"{{.*}} {whale.phase = #whale.phase<apply>, whale.strategy = #whale.split<devices = 2, name = "a", scope = 0>}
// The next value of the counter.
// CHECK:         "stablehlo.add"{{.*}} {whale.phase = #whale.phase<apply>}
// A metric of the output.
// CHECK:         "stablehlo.abs"{{.*}} {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<devices = 2, name = "a", scope = 0>}
func.func @main(%w: tensor<4x4xf32> {whale.fed_by = 0 : i64}, %n: tensor<i32> {whale.fed_by = 1 : i64}, %x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>, tensor<4x4xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("jit(s)/jvp(whale:split:2:0:a)/dot_general")
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("jit(s)/transpose(jvp(whale:split:2:0:a))/dot_general")
  %rate = stablehlo.constant dense<0.1> : tensor<4x4xf32>
  %2 = stablehlo.multiply %rate, %1 : tensor<4x4xf32> loc("jit(s)/mul")
  %3 = stablehlo.subtract %w, %2 : tensor<4x4xf32> loc("jit(s)/sub")
  %one = stablehlo.constant dense<1> : tensor<i32>
  %4 = stablehlo.add %n, %one : tensor<i32> loc("jit(s)/add")
  %5 = stablehlo.abs %0 : tensor<4x4xf32> loc("jit(s)/abs")
  return %3, %4, %5 : tensor<4x4xf32>, tensor<i32>, tensor<4x4xf32>
}

// -----

// Without gradients nothing is an update, and all is forward.

// CHECK-LABEL: sym_name = "main"
// CHECK:         "stablehlo.subtract"{{.*}} {whale.phase = #whale.phase<forward>}
func.func @main(%w: tensor<4xf32> {whale.fed_by = 0 : i64}, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %w, %x : tensor<4xf32> loc("jit(s)/sub")
  return %0 : tensor<4xf32>
}

// -----

// What prepares the forward pass is forward, also where it is state; what
// changes a cotangent between two parts of the gradient is backward.

// CHECK-LABEL: sym_name = "main"
// CHECK:         "stablehlo.negate"{{.*}} #whale.phase<forward>
// CHECK:         "stablehlo.tanh"{{.*}} #whale.phase<forward>
// CHECK:         "stablehlo.cosine"{{.*}} #whale.phase<backward>
// CHECK:         "stablehlo.abs"{{.*}} #whale.phase<backward>
// CHECK:         "stablehlo.sine"{{.*}} #whale.phase<backward>
// CHECK:         "stablehlo.floor"{{.*}} #whale.phase<apply>
func.func @main(%k: tensor<4xf32> {whale.fed_by = 0 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.negate %k : tensor<4xf32> loc("jit(s)/neg")
  %1 = stablehlo.tanh %0 : tensor<4xf32> loc("jit(s)/jvp()/tanh")
  %2 = stablehlo.cosine %1 : tensor<4xf32> loc("jit(s)/transpose(jvp())/cos")
  %3 = stablehlo.abs %2 : tensor<4xf32> loc("jit(s)/abs")
  %4 = stablehlo.sine %3 : tensor<4xf32> loc("jit(s)/transpose(jvp())/sin")
  // A metric of the gradient.
  %5 = stablehlo.floor %4 : tensor<4xf32> loc("jit(s)/floor")
  return %0, %5 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Without whale.fed_by, JAX's names show which result is whose next value.

// CHECK-LABEL: sym_name = "main"
// CHECK:         "stablehlo.cosine"{{.*}} #whale.phase<backward>
// CHECK:         "stablehlo.negate"{{.*}} #whale.phase<apply>
// CHECK:         "stablehlo.abs"{{.*}} #whale.phase<forward>
func.func @main(%a: tensor<4xf32> loc("p['a']"), %b: tensor<4xf32> loc("p['b']"), %x: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<4xf32> {jax.result_info = "result[1]['a']"}, tensor<4xf32> {jax.result_info = "result[1]['b']"}) {
  %0 = stablehlo.cosine %a : tensor<4xf32> loc("jit(s)/transpose(jvp())/cos")
  %1 = stablehlo.negate %b : tensor<4xf32> loc("jit(s)/neg")
  %2 = stablehlo.abs %x : tensor<4xf32> loc("jit(s)/abs")
  return %2, %0, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The parameters of a scan belong to the scopes inside that use them, and so do
// their updates.

// CHECK-LABEL: sym_name = "main"
// CHECK:         "stablehlo.while"{{.*}}
// CHECK:         "stablehlo.multiply"{{.*}} {whale.phase = #whale.phase<apply>, whale.strategy = #whale.split<name = "b", scope = 1>} : (tensor<3x4x4xf32>
// CHECK:         "stablehlo.subtract"{{.*}} {whale.phase = #whale.phase<apply>, whale.strategy = #whale.replicate<name = "a", scope = 0>} : (tensor<3x4x4xf32>
// CHECK:         "stablehlo.subtract"{{.*}} {whale.phase = #whale.phase<apply>, whale.strategy = #whale.split<name = "b", scope = 1>} : (tensor<3x4x4xf32>
func.func @main(%a: tensor<3x4x4xf32> {whale.fed_by = 0 : i64}, %b: tensor<3x4x4xf32> {whale.fed_by = 1 : i64}, %x: tensor<4x4xf32>) -> (tensor<3x4x4xf32>, tensor<3x4x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%h = %x, %i = %zero, %as = %a) : tensor<4x4xf32>, tensor<i32>, tensor<3x4x4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_slice %as, %i, %o, %o, sizes = [1, 4, 4] : (tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x4xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
    %3 = stablehlo.dot_general %h, %2, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("jvp()/while/body/whale:replicate:*:0:a/dot_general")
    %4 = stablehlo.dynamic_slice %b, %i, %o, %o, sizes = [1, 4, 4] : (tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x4xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
    %6 = stablehlo.dot_general %3, %5, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("jvp()/while/body/whale:split:*:1:b/dot_general")
    %one = stablehlo.constant dense<1> : tensor<i32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %7, %as : tensor<4x4xf32>, tensor<i32>, tensor<3x4x4xf32>
  } loc("jvp()/while")
  %1 = stablehlo.broadcast_in_dim %0#0, dims = [1, 2] : (tensor<4x4xf32>) -> tensor<3x4x4xf32> loc("transpose(jvp())/broadcast")
  %2 = stablehlo.multiply %1, %1 : tensor<3x4x4xf32> loc("mul")
  %3 = stablehlo.subtract %a, %1 : tensor<3x4x4xf32> loc("sub")
  %4 = stablehlo.subtract %b, %2 : tensor<3x4x4xf32> loc("sub")
  return %3, %4 : tensor<3x4x4xf32>, tensor<3x4x4xf32>
}

// -----

// What a callback gets does not decide where it is computed: a check of what
// serves the update is apply, too, and one of the output is forward.

// CHECK-LABEL: sym_name = "main"
// CHECK:         "stablehlo.tanh"{{.*}} #whale.phase<forward>
// CHECK:         "stablehlo.cosine"{{.*}} #whale.phase<backward>
// CHECK:         "stablehlo.negate"{{.*}} #whale.phase<apply>
// CHECK:         "stablehlo.floor"{{.*}} #whale.phase<apply>
// CHECK:         "stablehlo.ceil"{{.*}} #whale.phase<apply>
// CHECK:         "stablehlo.abs"{{.*}} #whale.phase<forward>
// CHECK:         "stablehlo.add"{{.*}} #whale.phase<apply>
func.func @main(%m: tensor<4xf32> {whale.fed_by = 0 : i64}, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32> {whale.callback = {index = -1 : i64, loops = array<i64>, operand = 0 : i64, order = 0 : i64}}, tensor<4xf32> {whale.callback = {index = -1 : i64, loops = array<i64>, operand = 0 : i64, order = 1 : i64}}) {
  %0 = stablehlo.tanh %x : tensor<4xf32> loc("jit(s)/jvp()/tanh")
  %1 = stablehlo.cosine %0 : tensor<4xf32> loc("jit(s)/transpose(jvp())/cos")
  %2 = stablehlo.negate %m : tensor<4xf32> loc("jit(s)/neg")
  %3 = stablehlo.floor %2 : tensor<4xf32> loc("jit(s)/floor")
  %4 = stablehlo.ceil %3 : tensor<4xf32> loc("jit(s)/ceil")
  %5 = stablehlo.abs %0 : tensor<4xf32> loc("jit(s)/abs")
  %6 = stablehlo.add %2, %1 : tensor<4xf32> loc("jit(s)/add")
  return %6, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
