// Which strategy and phase each operation gets from its name path: in nested
// and repeated scopes, written by hand, in loops, and outside of all scopes.
// There it must go to a TaskGraph such that samples do not come back to one
// that they have left. Judged by the attributes of each operation.

// RUN: whale-opt %s -split-input-file -whale-import-scopes | FileCheck %s

// Forward and backward of one scope; wrappers don't hide it.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<devices = 4, name = "head", scope = 0>}
// CHECK:         stablehlo.negate {{.*}} {whale.phase = #whale.phase<backward>, whale.strategy = #whale.split<devices = 4, name = "head", scope = 0>}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(s)/jvp(whale:split:4:7:head)/tanh")
  %1 = stablehlo.negate %0 : tensor<8xf32> loc("jit(s)/transpose(jvp(whale:split:4:7:head))/neg")
  return %1 : tensor<8xf32>
}

// -----

// One name is one TaskGraph, and takes the count where it is given; without a
// name every scope is its own. The innermost scope wins.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} #whale.replicate<devices = 2, name = "enc", scope = 0>
// CHECK:         stablehlo.sine {{.*}} #whale.replicate<scope = 1>
// CHECK:         stablehlo.cosine {{.*}} #whale.replicate<scope = 2>
// CHECK:         stablehlo.negate {{.*}} #whale.replicate<devices = 2, name = "enc", scope = 0>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("whale:replicate:*:0:enc/tanh")
  %1 = stablehlo.sine %0 : tensor<8xf32> loc("whale:replicate:*:1:/sin")
  %2 = stablehlo.cosine %1 : tensor<8xf32> loc("whale:replicate:*:2:/cos")
  %3 = stablehlo.negate %2 : tensor<8xf32> loc("whale:split:8:3:outer/whale:replicate:2:4:enc/neg")
  return %3 : tensor<8xf32>
}

// -----

// What is written by hand wins, and joins the scopes of its name.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<devices = 4, name = "a", scope = 0>}
// CHECK:         stablehlo.sine {{.*}} {whale.phase = #whale.phase<backward>, whale.strategy = #whale.split<devices = 4, name = "a", scope = 0>}
// CHECK:         stablehlo.negate {{.*}} #whale.replicate<devices = 3>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {whale.strategy = #whale.split<devices = 4, name = "a">} : tensor<8xf32> loc("whale:replicate:2:0:b/tanh")
  %1 = stablehlo.sine %0 {whale.phase = #whale.phase<backward>} : tensor<8xf32> loc("whale:split:*:1:a/sin")
  %2 = stablehlo.negate %1 {whale.strategy = #whale.replicate<devices = 3>} : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A function with a scope inside, called twice: the backward calls come in
// reverse order.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} scope = 0>
// CHECK:         stablehlo.tanh {{.*}} scope = 1>
// CHECK:         stablehlo.negate {{.*}} scope = 1>
// CHECK:         stablehlo.negate {{.*}} scope = 0>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jvp(jit(f))/whale:split:4:7.0:/tanh")
  %1 = stablehlo.tanh %0 : tensor<8xf32> loc("jvp(jit(f))/whale:split:4:7.1:/tanh")
  %2 = stablehlo.negate %1 : tensor<8xf32> loc("transpose(jvp(jit(f)))/whale:split:4:7.0:/neg")
  %3 = stablehlo.negate %2 : tensor<8xf32> loc("transpose(jvp(jit(f)))/whale:split:4:7.1:/neg")
  return %3 : tensor<8xf32>
}

// -----

// Outside of scopes: the latest producer's TaskGraph, else that of a user;
// constants follow their users.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.constant {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<devices = 2, name = "b", scope = 1>}
// CHECK:         stablehlo.abs {{.*}} name = "a"
// CHECK:         stablehlo.tanh {{.*}} name = "a"
// CHECK:         stablehlo.sine {{.*}} name = "a"
// CHECK:         stablehlo.cosine {{.*}} name = "b"
// CHECK:         stablehlo.add {{.*}} name = "b"
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  %0 = stablehlo.abs %x : tensor<8xf32>
  %1 = stablehlo.tanh %0 : tensor<8xf32> loc("whale:replicate:2:0:a/tanh")
  %2 = stablehlo.sine %1 : tensor<8xf32>
  %3 = stablehlo.cosine %c : tensor<8xf32> loc("whale:split:2:1:b/cos")
  %4 = stablehlo.add %2, %3 : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// The default strategy is that of everything outside of scopes.

// CHECK:       module attributes {whale.default_strategy = #whale.replicate<devices = 8>}
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} name = "a"
// CHECK:         stablehlo.sine {{.*}} whale.strategy = #whale.replicate<devices = 8>}
module attributes {whale.default_strategy = #whale.replicate<devices = 8>} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32> loc("whale:split:2:0:a/tanh")
    %1 = stablehlo.sine %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// A loop outside of scopes has the scope of what is inside, and so have the
// operations around it.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while{{.*}} attributes {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split<devices = 4, name = "blk", scope = 0>}
// CHECK:           stablehlo.tanh {{.*}} name = "blk"
// CHECK:           stablehlo.add {{.*}} name = "blk"
func.func @main(%x: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %0:2 = stablehlo.while(%a = %x, %i = %n) : tensor<8xf32>, tensor<i32>
  cond {
    %c = stablehlo.constant dense<9> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.tanh %a : tensor<8xf32> loc("while/body/whale:split:4:0:blk/tanh")
    %c = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.add %i, %c : tensor<i32>
    stablehlo.return %1, %2 : tensor<8xf32>, tensor<i32>
  }
  return %0#0 : tensor<8xf32>
}

// -----

// What is between scopes is where samples are when all that it reads is there:
// behind "b", though what comes last in the text is of "a".

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} name = "a"
// CHECK:         stablehlo.sine {{.*}} name = "b"
// CHECK:         stablehlo.negate {{.*}} name = "a"
// CHECK:         stablehlo.add {{.*}} name = "b"
// CHECK:         stablehlo.cosine {{.*}} name = "c"
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("whale:replicate:1:0:a/tanh")
  %1 = stablehlo.sine %0 : tensor<8xf32> loc("whale:replicate:1:1:b/sin")
  %2 = stablehlo.negate %0 : tensor<8xf32> loc("neg")
  %3 = stablehlo.add %1, %2 : tensor<8xf32> loc("add")
  %4 = stablehlo.cosine %3 : tensor<8xf32> loc("whale:replicate:1:2:c/cos")
  return %4 : tensor<8xf32>
}

// -----

// What goes before scopes is where it is needed first, whatever comes first in
// the text: "b" is, and feeds "c", but "a" feeds both.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.abs {{.*}} name = "a"
// CHECK:         stablehlo.sine {{.*}} name = "b"
// CHECK:         stablehlo.tanh {{.*}} name = "a"
// CHECK:         stablehlo.add {{.*}} name = "b"
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.abs %x : tensor<8xf32> loc("abs")
  %1 = stablehlo.sine %0 : tensor<8xf32> loc("whale:replicate:1:1:b/sin")
  %2 = stablehlo.tanh %0 : tensor<8xf32> loc("whale:replicate:1:0:a/tanh")
  %3 = stablehlo.add %1, %2 : tensor<8xf32> loc("whale:replicate:1:1:b/add")
  return %3 : tensor<8xf32>
}

// -----

// Backward, the cotangent of "b" is made of the forward value of "a", but
// belongs to "b", to which it goes, as does what waits for "b" before it goes
// on to "a".

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.multiply {{.*}} #whale.phase<backward>{{.*}} name = "b"
// CHECK:         stablehlo.sine {{.*}} #whale.phase<backward>{{.*}} name = "b"
// CHECK:         stablehlo.multiply {{.*}} #whale.phase<backward>{{.*}} name = "b"
// CHECK:         stablehlo.add {{.*}} #whale.phase<backward>{{.*}} name = "b"
// CHECK:         stablehlo.abs {{.*}} #whale.phase<backward>{{.*}} name = "a"
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jvp(whale:replicate:1:0:a)/tanh")
  %1 = stablehlo.sine %0 : tensor<8xf32> loc("jvp(whale:replicate:1:1:b)/sin")
  %2 = stablehlo.multiply %0, %1 : tensor<8xf32> loc("jvp()/mul")
  %3 = stablehlo.cosine %2 : tensor<8xf32> loc("jvp(whale:replicate:1:2:c)/cos")
  %4 = stablehlo.cosine %3 : tensor<8xf32> loc("transpose(jvp(whale:replicate:1:2:c))/cos")
  %5 = stablehlo.multiply %4, %0 : tensor<8xf32> loc("transpose(jvp())/mul")
  %6 = stablehlo.sine %5 : tensor<8xf32> loc("transpose(jvp(whale:replicate:1:1:b))/sin")
  %7 = stablehlo.multiply %4, %1 : tensor<8xf32> loc("transpose(jvp())/mul")
  %8 = stablehlo.add %6, %7 : tensor<8xf32> loc("transpose(jvp())/add")
  %9 = stablehlo.abs %8 : tensor<8xf32> loc("transpose(jvp(whale:replicate:1:0:a))/abs")
  return %9 : tensor<8xf32>
}

// -----

// Of two towers, neither of which feeds the other, it is the latest producer
// that counts, also where more goes before the other one. What is of the second
// by that comes behind the first from then on.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.tanh {{.*}} name = "a0"
// CHECK:         stablehlo.sine {{.*}} name = "a1"
// CHECK:         stablehlo.cosine {{.*}} name = "b"
// CHECK:         stablehlo.multiply {{.*}} name = "b"
// CHECK:         stablehlo.negate {{.*}} name = "a1"
// CHECK:         stablehlo.add {{.*}} name = "b"
// CHECK:         stablehlo.abs {{.*}} name = "c"
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("whale:replicate:1:0:a0/tanh")
  %1 = stablehlo.sine %0 : tensor<8xf32> loc("whale:replicate:1:1:a1/sin")
  %2 = stablehlo.cosine %x : tensor<8xf32> loc("whale:replicate:1:2:b/cos")
  %3 = stablehlo.multiply %1, %2 : tensor<8xf32> loc("mul")
  %4 = stablehlo.negate %1 : tensor<8xf32> loc("neg")
  %5 = stablehlo.add %3, %4 : tensor<8xf32> loc("add")
  %6 = stablehlo.abs %5 : tensor<8xf32> loc("whale:replicate:1:3:c/abs")
  return %6 : tensor<8xf32>
}

// -----

// What is made for a scope, outside of all, may have other users: they join it,
// and so does what they read.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.negate {{.*}} name = "a"
// CHECK:         stablehlo.tanh {{.*}} name = "a"
// CHECK:         stablehlo.sine {{.*}} name = "a"
// CHECK:         stablehlo.multiply {{.*}} name = "a"
// CHECK:         stablehlo.abs {{.*}} name = "a"
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %x : tensor<8xf32> loc("neg")
  %1 = stablehlo.tanh %0 : tensor<8xf32> loc("whale:replicate:1:0:a/tanh")
  %2 = stablehlo.sine %y : tensor<8xf32> loc("sin")
  %3 = stablehlo.multiply %0, %2 : tensor<8xf32> loc("mul")
  %4 = stablehlo.abs %3 : tensor<8xf32> loc("abs")
  return %1, %4 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A call into Python is on a device of its own, and what follows isn't.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @xla_ffi_python_cpu_callback
// CHECK-SAME: whale.strategy = #whale.replicate<devices = 1, name = "python callbacks">
// CHECK: stablehlo.tanh
// CHECK-NOT: python
// CHECK: return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
      {mhlo.backend_config = {index = 0 : ui64}}
      : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.tanh %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
