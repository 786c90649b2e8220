// Softmaxes that are no attention, or whose scores or probabilities something
// else needs. None may become a whale.attention, and a remark has to say why.
// Only those that do not look like attention have none: @no_product and
// @classifier. As one operation most would give other results, or lack a value
// that is used elsewhere.

// RUN: whale-opt %s --whale-form-attention=least-keys=1 -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-NOT: whale.attention

// A softmax whose probabilities go into no product is no attention.
func.func @no_product(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<4x6xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  return %p : tensor<4x6xf32>
}

// -----

func.func @capped(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %s = stablehlo.tanh %s0 : tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: its scores are the result of a 'tanh'}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @two_masks(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %b: tensor<4x6xi1>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %fill = stablehlo.constant dense<-3.0> : tensor<4x6xf32>
  %s1 = stablehlo.select %b, %s0, %fill : tensor<4x6xi1>, tensor<4x6xf32>
  %s = stablehlo.select %b, %s1, %fill : tensor<4x6xi1>, tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: it has two masks}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @masked_by_a_value(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %b: tensor<4x6xi1>, %fill: tensor<4x6xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %s = stablehlo.select %b, %s0, %fill : tensor<4x6xi1>, tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: masked scores are not a constant}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @scaled_bias(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %b: tensor<4x6xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %two = stablehlo.constant dense<2.0> : tensor<4x6xf32>
  %s1 = stablehlo.add %s0, %b : tensor<4x6xf32>
  %s = stablehlo.multiply %s1, %two : tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: its scores are scaled after the bias}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @used_probabilities(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: its probabilities are used by a 'tanh' that is no part of attention}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %again = stablehlo.tanh %p : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @used_scores(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: its scores are used by a 'tanh' that is no part of attention}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %again = stablehlo.tanh %s : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @two_task_graphs(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: it belongs to several TaskGraphs}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] {whale.strategy = #whale.split<devices = 2, name = "b">} : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @in_a_branch(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %i: tensor<i32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: its probabilities are used by a 'case' that is no part of attention}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %other = "stablehlo.case"(%i) ({
    %t = stablehlo.tanh %p : tensor<4x6xf32>
    stablehlo.return %t : tensor<4x6xf32>
  }, {
    stablehlo.return %s : tensor<4x6xf32>
  }) : (tensor<i32>) -> tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

// Twice the gradient of a softmax is none.
func.func @wrong_gradient(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %d: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: its probabilities are used by a 'dot_general' that is no part of attention}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  %dp = stablehlo.dot_general %d, %v, contracting_dims = [1] x [1] : (tensor<4x5xf32>, tensor<6x5xf32>) -> tensor<4x6xf32>
  %ds = stablehlo.multiply %p, %dp : tensor<4x6xf32>
  %dq = stablehlo.dot_general %ds, %k, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %o : tensor<4x5xf32>
}

// -----

// A classifier and its gradient are no attention: both products of the
// probabilities have an operand of the first one.
func.func @classifier(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<4x6xf32>) -> (tensor<4x8xf32>, tensor<6x8xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %d = stablehlo.subtract %p, %v : tensor<4x6xf32>
  %dq = stablehlo.dot_general %d, %k, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %dk = stablehlo.dot_general %d, %q, contracting_dims = [0] x [0] : (tensor<4x6xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  return %dq, %dk : tensor<4x8xf32>, tensor<6x8xf32>
}

// -----

// As dropout does.
func.func @scaled_probabilities(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %b: tensor<4x6xf32>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: its probabilities are used by a 'multiply' that is no part of attention}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %dropped = stablehlo.multiply %p, %b : tensor<4x6xf32>
  %o = stablehlo.dot_general %dropped, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @infinite_fill(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %b: tensor<4x6xi1>) -> tensor<4x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %fill = stablehlo.constant dense<0x7F800000> : tensor<4x6xf32>
  %s = stablehlo.select %b, %s0, %fill : tensor<4x6xi1>, tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: masked scores are infinite or no number}}
  %e = stablehlo.exponential %x : tensor<4x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %o : tensor<4x5xf32>
}

// -----

func.func @one_row(%q: tensor<1x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) -> tensor<1x5xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<1x8xf32>, tensor<6x8xf32>) -> tensor<1x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<1x6xf32>, tensor<f32>) -> tensor<1xf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<1xf32>) -> tensor<1x6xf32>
  %x = stablehlo.subtract %s, %ms : tensor<1x6xf32>
  // expected-remark @+1 {{attention stays as separate operations: keys or values have all dimensions of its queries: heads have one row}}
  %e = stablehlo.exponential %x : tensor<1x6xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1x6xf32>, tensor<f32>) -> tensor<1xf32>
  %ls = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<1xf32>) -> tensor<1x6xf32>
  %p = stablehlo.divide %e, %ls : tensor<1x6xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<1x6xf32>, tensor<6x5xf32>) -> tensor<1x5xf32>
  return %o : tensor<1x5xf32>
}
