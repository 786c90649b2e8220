// RUN: whale-opt %s -split-input-file -verify-diagnostics

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) {
  // expected-error @+1 {{has 3 letters for the 2 dimensions of its query}}
  %0 = whale.attention query "hqd" %q key "kd" %k value "ke" %v to "qe" scale 1.0 : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) {
  // expected-error @+1 {{cannot have the letter '1' for a dimension of 6 of its key}}
  %0 = whale.attention query "qd" %q key "1d" %k value "ke" %v to "qe" scale 1.0 : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<8x8xf32>, %v: tensor<6x5xf32>) {
  // expected-error @+1 {{has the letter 'd' twice in "dd"}}
  %0 = whale.attention query "qd" %q key "dd" %k value "ke" %v to "qe" scale 1.0 : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<7x5xf32>) {
  // expected-error @+1 {{has extents 6 and 7 for the letter 'k'}}
  %0 = whale.attention query "qd" %q key "kd" %k value "ke" %v to "qe" scale 1.0 : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<7x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<8xf32>, %v: tensor<6x5xf32>) {
  // expected-error @+1 {{needs the letter 'k' in its key}}
  %0 = whale.attention query "qd" %q key "d" %k value "ke" %v to "qe" scale 1.0 : (tensor<4x8xf32>, tensor<8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<6x5xf32>) {
  // expected-error @+1 {{cannot have the letter 'h' in its key}}
  %0 = whale.attention query "qd" %q key "hkd" %k value "ke" %v to "qe" scale 1.0 : (tensor<4x8xf32>, tensor<2x6x8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<2x4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) {
  // expected-error @+1 {{needs all heads in its result}}
  %0 = whale.attention query "hqd" %q key "kd" %k value "ke" %v to "qe" scale 1.0 : (tensor<2x4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) {
  // expected-error @+1 {{has 'fill' and nothing that is masked}}
  %0 = whale.attention query "qd" %q key "kd" %k value "ke" %v to "qe" scale 1.0 {fill = 1.0 : f64} : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %m: tensor<6xf32>) {
  // expected-error @+1 {{cannot have a mask of 'f32'}}
  %0 = whale.attention query "qd" %q key "kd" %k value "ke" %v mask "k" %m to "qe" scale 1.0 : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>, tensor<6xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf64>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>) {
  // expected-error @+1 {{cannot have a tensor of 'f64'}}
  %0 = whale.attention query "qd" %q key "kd" %k value "ke" %v to "qe" scale 1.0 : (tensor<4x8xf64>, tensor<6x8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %d: tensor<4x5xf32>) {
  // expected-error @+1 {{needs the letter 'e' in its value's result}}
  %0:3 = whale.attention_gradient query "qd" %q key "kd" %k value "ke" %v cotangent "qe" %d to "qd", "kd", "k" scale 1.0 : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>, tensor<4x5xf32>) -> (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6xf32>)
  return
}
