// Loops, branches, custom calls, composites and tuples, each with one mistake
// in its types, regions, layouts, aliases or indices. It has to give exactly
// the errors noted above it. A failure means that a mistake passes, or that its
// message has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// One function for each error of a verifier, named by the constraint of the
// StableHLO specification if it has one.

func.func @while_c1_arguments(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects arguments of cond that have the types of the operands}}
  "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return
}

// -----

func.func @while_c1(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects cond to return (tensor<i1>) (got (tensor<f32>))}}
  "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<i32>):
    stablehlo.return %f : tensor<f32>
  }, {
  ^bb0(%b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return
}

// -----

func.func @while_c2_arguments(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects arguments of body that have the types of the operands}}
  "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<i32>):
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%b: tensor<f32>):
    stablehlo.return %x : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return
}

// -----

func.func @while_c2(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects body to return (tensor<i32>) (got ())}}
  "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<i32>):
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%b: tensor<i32>):
    stablehlo.return 
  }) : (tensor<i32>) -> tensor<i32>
  return
}

// -----

func.func @while_c3(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<i32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<i32>):
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<i32>) -> tensor<f32>
  return
}

// -----

func.func @while_terminator(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects body to end with stablehlo.return}}
  "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<i32>):
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%b: tensor<i32>):
    llvm.unreachable
  }) : (tensor<i32>) -> tensor<i32>
  return
}

// -----

func.func @case_c1(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects at least one branch}}
  "stablehlo.case"(%x) : (tensor<i32>) -> tensor<f32>
  return
}

// -----

func.func @case_c2(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects branch 0 to have no arguments}}
  "stablehlo.case"(%x) ({
  ^bb0(%a: tensor<i32>):
    stablehlo.return %f : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return
}

// -----

func.func @case_c3(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects branch 1 to return (tensor<f32>) (got (tensor<i32>))}}
  "stablehlo.case"(%x) ({
    stablehlo.return %f : tensor<f32>
  }, {
    stablehlo.return %x : tensor<i32>
  }) : (tensor<i32>) -> tensor<f32>
  return
}

// -----

func.func @case_index(%i: tensor<ui8>) {
  // expected-error @+1 {{operand #0 must be 0-dimensional tensor of i32}}
  "stablehlo.case"(%i) ({
    stablehlo.return
  }) : (tensor<ui8>) -> ()
  return
}

// -----

func.func @if_c1(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects true_branch to have no arguments}}
  "stablehlo.if"(%p) ({
  ^bb0(%a: tensor<i32>):
    stablehlo.return
  }, {
    stablehlo.return
  }) : (tensor<i1>) -> ()
  return
}

// -----

func.func @if_c2(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+1 {{expects false_branch to return () (got (tensor<i32>))}}
  "stablehlo.if"(%p) ({
    stablehlo.return
  }, {
    stablehlo.return %x : tensor<i32>
  }) : (tensor<i1>) -> ()
  return
}

// -----

func.func @optimization_barrier_c1(%x: tensor<i32>, %p: tensor<i1>, %f: tensor<f32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<i32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  "stablehlo.optimization_barrier"(%x) : (tensor<i32>) -> tensor<f32>
  return
}

// -----

func.func @custom_call_layouts(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects operand_layouts and result_layouts both or neither}}
  stablehlo.custom_call @f(%x) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @custom_call_layout_count(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects 1 operand_layouts (got 0)}}
  stablehlo.custom_call @f(%x) {operand_layouts = [], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @custom_call_permutation(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects each of result_layouts to be a permutation of the dimensions of its value}}
  stablehlo.custom_call @f(%x) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[0, 0]> : tensor<2xindex>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @custom_call_alias_operand(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects operand_index of an alias in range [0, 1) (got 1)}}
  stablehlo.custom_call @f(%x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @custom_call_alias_result(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects output_tuple_indices of an alias in range [0, 1) (got 2)}}
  stablehlo.custom_call @f(%x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [2], operand_index = 0, operand_tuple_indices = []>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @custom_call_attr(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{attribute 'api_version' failed to satisfy constraint}}
  stablehlo.custom_call @f(%x) {api_version = 7 : i32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func private @nothing()

func.func @composite_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a name with a namespace, such as my.op (got 'op')}}
  stablehlo.composite "op" %x {decomposition = @nothing} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func private @nothing()

func.func @composite_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a version that is not negative}}
  stablehlo.composite "my.op" %x {decomposition = @nothing, version = -1 : i32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @composite_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'nope' does not name a function}}
  stablehlo.composite "my.op" %x {decomposition = @nope} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func private @nothing()

func.func @composite_c4(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{has types other than those of its decomposition 'nothing'}}
  stablehlo.composite "my.op" %x {decomposition = @nothing} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @tuple_c1(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tuple<tensor<4x8xf32>>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.tuple %x : (tensor<4x8xf32>) -> tuple<tensor<4xf32>>
  return
}

// -----

func.func @tuple_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected a tuple type}}
  stablehlo.tuple %x : tensor<4x8xf32>
  return
}

// -----

func.func @get_tuple_element_c1(%t: tuple<tensor<f32>>) {
  // expected-error @+2 {{expects index in range [0, 1) (got 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.get_tuple_element %t[1] : (tuple<tensor<f32>>) -> tensor<f32>
  return
}

// -----

func.func @get_tuple_element_c2(%t: tuple<tensor<f32>>) {
  // expected-error @+2 {{inferred type(s) 'tensor<f32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  stablehlo.get_tuple_element %t[0] : (tuple<tensor<f32>>) -> tensor<i32>
  return
}
