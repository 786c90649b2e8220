// Meshes, shardings, manual computations and sharding rules of Shardy, each
// with one mistake. The parser or a verifier has to refuse it by the error
// noted above it. A failure means that a mistake passes, or that its message
// has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expects a positive size of axis 'a' (got 0)}}
sdy.mesh @mesh = <["a"=0]>

// -----

// expected-error @+1 {{duplicate axis 'a'}}
sdy.mesh @mesh = <["a"=2, "a"=2]>

// -----

// expected-error @+1 {{has more devices than 64 bits can count}}
sdy.mesh @mesh = <["a"=4294967296, "b"=4294967296]>

// -----

// expected-error @+1 {{expects one device in a mesh without axes (got 2)}}
sdy.mesh @mesh = <[], device_ids=[0, 1]>

// -----

// expected-error @+1 {{expects as many device ids as devices (got 1 and 2)}}
sdy.mesh @mesh = <["a"=2], device_ids=[0]>

// -----

// expected-error @+1 {{expects each device id once and none negative (got 0)}}
sdy.mesh @mesh = <["a"=2], device_ids=[0, 0]>

// -----

func.func @unknown_mesh(%x: tensor<4xf32>) {
  // expected-error @+1 {{uses an unknown mesh @mesh}}
  %0 = sdy.sharding_constraint %x <@mesh, [{}]> : tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["a"=2]>
func.func @rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a sharding of each of 1 dimensions (got 2)}}
  %0 = sdy.sharding_constraint %x <@mesh, [{}, {}]> : tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["a"=2]>
func.func @axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{uses axis 'b', which its mesh lacks}}
  %0 = sdy.reshard %x <@mesh, [{"b"}]> : tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["a"=2]>
func.func @replicated_axis(%x: tensor<4xf32>) {
  // expected-error @+1 {{uses axis 'b', which its mesh lacks}}
  %0 = sdy.reshard %x <@mesh, [{}], replicated={"b"}> : tensor<4xf32>
  return
}

// -----

func.func @mesh_kind(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected valid '@'-identifier for symbol name}}
  %0 = sdy.reshard %x <1, [{}]> : tensor<4xf32>
  return
}

// -----

func.func @sharding_field(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'replicated' or 'unreduced' once, got 'foo'}}
  %0 = sdy.reshard %x <@mesh, [{}], foo={"b"}> : tensor<4xf32>
  return
}

// -----

func.func @priority(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a priority such as p1}}
  %0 = sdy.reshard %x <@mesh, [{}q1]> : tensor<4xf32>
  return
}

// -----

func.func @sub_axis_pre_size(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a positive pre-size of a sub-axis (got 0)}}
  %0 = sdy.reshard %x <@mesh, [{"a":(0)2}]> : tensor<4xf32>
  return
}

// -----

func.func @sub_axis_size(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a size of a sub-axis greater than 1 (got 1)}}
  %0 = sdy.reshard %x <@mesh, [{"a":(1)1}]> : tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["a"=2]>
func.func @shardings_count(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects in_shardings of each of 1 values (got 0)}}
  %0 = sdy.manual_computation(%x) in_shardings=[] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%a: tensor<2xf32>) {
    sdy.return %a : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

sdy.mesh @mesh = <["a"=2]>
func.func @argument_count(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects an argument for each of 1 operands (got 0)}}
  sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[] manual_axes={"a"} () {
    sdy.return
  } : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @terminator() {
  // expected-error @+1 {{expects a body that ends with sdy.return}}
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    llvm.unreachable
  } : () -> ()
  return
}

// -----

sdy.mesh @mesh = <["a"=2]>
func.func @return_count() {
  // expected-error @+1 {{expects its body to return 1 values (got 0)}}
  %0 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} () {
    sdy.return
  } : () -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{names a factor that has no size}}
module attributes {a.b = #sdy.op_sharding_rule<([i, j])->([i]) {i=4}>} {}

// -----

// expected-error @+1 {{expected the size of factor 'j'}}
module attributes {a.b = #sdy.op_sharding_rule<([i, j])->([i]) {i=4, k=4}>} {}

// -----

// expected-error @+1 {{expected factors i to z or z_1, z_2, ..., got 'a'}}
module attributes {a.b = #sdy.op_sharding_rule<([a])->([i]) {i=4}>} {}
