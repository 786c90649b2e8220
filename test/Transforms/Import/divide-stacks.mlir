// An argument of which stages use different rows becomes one for each stage,
// and its casts, gradients and optimizer state are divided with it. It has to
// stay whole where its next value is not computed row by row, or where stages
// share devices. Judged by the types and attributes of arguments and results,
// and by the stage that computes each piece.

// RUN: whale-opt %s -split-input-file -whale-divide-stacks | FileCheck %s

// Two stages use two rows each of the weights, and a momentum goes with them.
// Each gets arguments of its rows, casts them, updates them and returns them;
// what is no stack stays as it is. The norm of all gradients is the sum of the
// stages' norms, computed where it was.

#s0 = #whale.replicate<devices = 1, name = "stage0">
#s1 = #whale.replicate<devices = 1, name = "stage1">
#forward = #whale.phase<forward>
#backward = #whale.phase<backward>
#apply = #whale.phase<apply>
module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[B:[^ ]*]]: tensor<4xf32> {whale.fed_by = 0 : i64}
  // CHECK-SAME: %[[W0:[^ ]*]]: tensor<2x4xf32> {whale.fed_by = 1 : i64, whale.stack_piece = {begin = 0 : i64, stack = 1 : i64, whole = tensor<4x4xf32>}}
  // CHECK-SAME: %[[W1:[^ ]*]]: tensor<2x4xf32> {whale.fed_by = 2 : i64, whale.stack_piece = {begin = 2 : i64, stack = 1 : i64, whole = tensor<4x4xf32>}}
  // CHECK-SAME: %[[M0:[^ ]*]]: tensor<2x4xf32> {whale.fed_by = 3 : i64, {{[^}]*}}}
  // CHECK-SAME: %[[M1:[^ ]*]]: tensor<2x4xf32> {whale.fed_by = 4 : i64, {{[^}]*}}}
  // CHECK-SAME: %[[X:[^ ]*]]: tensor<2x4xf32> {whale.batch_dim = 0 : i64}
  func.func @main(%b: tensor<4xf32> {whale.fed_by = 0 : i64},
                  %w: tensor<4x4xf32> {whale.fed_by = 1 : i64},
                  %m: tensor<4x4xf32> {whale.fed_by = 2 : i64},
                  %x: tensor<2x4xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) {
    // CHECK: %[[C0:.*]] = stablehlo.convert %[[W0]] {{.*}}"stage0"{{.*}} -> tensor<2x4xbf16>
    // CHECK: %[[C1:.*]] = stablehlo.convert %[[W1]] {{.*}}"stage1"{{.*}} -> tensor<2x4xbf16>
    %half = stablehlo.convert %w {whale.strategy = #s0, whale.phase = #forward} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %r0 = stablehlo.slice %half [0:2, 0:4] {whale.strategy = #s0, whale.phase = #forward} : (tensor<4x4xbf16>) -> tensor<2x4xbf16>
    %r1 = stablehlo.slice %half [2:4, 0:4] {whale.strategy = #s0, whale.phase = #forward} : (tensor<4x4xbf16>) -> tensor<2x4xbf16>
    %x0 = stablehlo.convert %x {whale.strategy = #s0, whale.phase = #forward} : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    // CHECK: %[[Y0:.*]] = stablehlo.multiply %{{.*}}, %[[C0]]
    // CHECK: %[[Y1:.*]] = stablehlo.multiply %[[Y0]], %[[C1]]
    %y0 = stablehlo.multiply %x0, %r0 {whale.strategy = #s0, whale.phase = #forward} : tensor<2x4xbf16>
    %y1 = stablehlo.multiply %y0, %r1 {whale.strategy = #s1, whale.phase = #forward} : tensor<2x4xbf16>
    // CHECK: %[[G1:.*]] = stablehlo.tanh
    // CHECK: %[[G0:.*]] = stablehlo.sine
    // CHECK-NOT: stablehlo.concatenate
    %g1 = stablehlo.tanh %y1 {whale.strategy = #s1, whale.phase = #backward} : tensor<2x4xbf16>
    %g0 = stablehlo.sine %g1 {whale.strategy = #s0, whale.phase = #backward} : tensor<2x4xbf16>
    %g = stablehlo.concatenate %g0, %g1, dim = 0 {whale.strategy = #s0, whale.phase = #backward} : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xbf16>
    // CHECK: %[[F0:.*]] = stablehlo.convert %[[G0]] {{.*}}backward{{.*}}"stage0"
    // CHECK: %[[F1:.*]] = stablehlo.convert %[[G1]] {{.*}}backward{{.*}}"stage1"
    %grad = stablehlo.convert %g {whale.strategy = #s0, whale.phase = #backward} : (tensor<4x4xbf16>) -> tensor<4x4xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    // CHECK: %[[N0:.*]] = stablehlo.reduce(%[[F0]] {{.*}}"stage0"
    // CHECK: %[[N1:.*]] = stablehlo.reduce(%[[F1]] {{.*}}"stage1"
    // CHECK: %[[N:.*]] = stablehlo.add %[[N0]], %[[N1]] {{.*}}"stage0"
    %norm = stablehlo.reduce(%grad init: %zero) applies stablehlo.add across dimensions = [0, 1] {whale.strategy = #s0, whale.phase = #apply} : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
    // CHECK: %[[S0:.*]] = stablehlo.broadcast_in_dim %[[N]], {{.*}}"stage0"{{.*}} -> tensor<2x4xf32>
    // CHECK: %[[S1:.*]] = stablehlo.broadcast_in_dim %[[N]], {{.*}}"stage1"{{.*}} -> tensor<2x4xf32>
    %scale = stablehlo.broadcast_in_dim %norm, dims = [] {whale.strategy = #s0, whale.phase = #apply} : (tensor<f32>) -> tensor<4x4xf32>
    %scaled = stablehlo.divide %grad, %scale {whale.strategy = #s0, whale.phase = #apply} : tensor<4x4xf32>
    %rate = stablehlo.constant dense<0.5> : tensor<4x4xf32>
    // CHECK-DAG: %[[R0:.*]] = stablehlo.constant {{.*}}dense<5.000000e-01> : tensor<2x4xf32>
    // CHECK-DAG: stablehlo.multiply %[[M0]], %[[R0]]
    %old = stablehlo.multiply %m, %rate {whale.strategy = #s0, whale.phase = #apply} : tensor<4x4xf32>
    // CHECK: %[[NM0:.*]] = stablehlo.add {{.*}}"stage0"
    // CHECK: %[[NM1:.*]] = stablehlo.add {{.*}}"stage1"
    %next_m = stablehlo.add %old, %scaled {whale.strategy = #s0, whale.phase = #apply} : tensor<4x4xf32>
    // CHECK: %[[NW0:.*]] = stablehlo.subtract %[[W0]], %[[NM0]] {{.*}}"stage0"
    // CHECK: %[[NW1:.*]] = stablehlo.subtract %[[W1]], %[[NM1]] {{.*}}"stage1"
    %next = stablehlo.subtract %w, %next_m {whale.strategy = #s0, whale.phase = #apply} : tensor<4x4xf32>
    // CHECK: return %[[B]], %[[NW0]], %[[NW1]], %[[NM0]], %[[NM1]], %[[N]]
    return %b, %next, %next_m, %norm : tensor<4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>
  }
}

// -----

// What reverses all rows can't be divided: the weights stay whole.

#s0 = #whale.replicate<devices = 1, name = "stage0">
#s1 = #whale.replicate<devices = 1, name = "stage1">
module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: tensor<4xf32> {whale.fed_by = 0 : i64}
  // CHECK-NOT: whale.stack_piece
  func.func @main(%w: tensor<4xf32> {whale.fed_by = 0 : i64},
                  %x: tensor<2xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<4xf32>, tensor<2xf32>) {
    %r0 = stablehlo.slice %w [0:2] {whale.strategy = #s0} : (tensor<4xf32>) -> tensor<2xf32>
    %r1 = stablehlo.slice %w [2:4] {whale.strategy = #s0} : (tensor<4xf32>) -> tensor<2xf32>
    %y0 = stablehlo.multiply %x, %r0 {whale.strategy = #s0} : tensor<2xf32>
    %y1 = stablehlo.multiply %y0, %r1 {whale.strategy = #s1} : tensor<2xf32>
    %next = stablehlo.reverse %w, dims = [0] {whale.strategy = #s0, whale.phase = #whale.phase<apply>} : tensor<4xf32>
    return %next, %y1 : tensor<4xf32>, tensor<2xf32>
  }
}

// -----

// Stages that share a device store no rows apart.

#s0 = #whale.replicate<devices = 2, name = "stage0">
#s1 = #whale.replicate<devices = 2, name = "stage1">
module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %{{[^ ]*}}: tensor<4xf32>,
  func.func @main(%w: tensor<4xf32>,
                  %x: tensor<2xf32> {whale.batch_dim = 0 : i64})
      -> tensor<2xf32> {
    %r0 = stablehlo.slice %w [0:2] {whale.strategy = #s0} : (tensor<4xf32>) -> tensor<2xf32>
    %r1 = stablehlo.slice %w [2:4] {whale.strategy = #s0} : (tensor<4xf32>) -> tensor<2xf32>
    %y0 = stablehlo.multiply %x, %r0 {whale.strategy = #s0} : tensor<2xf32>
    %y1 = stablehlo.multiply %y0, %r1 {whale.strategy = #s1} : tensor<2xf32>
    return %y1 : tensor<2xf32>
  }
}

// -----

// Which result feeds which argument is found by their types; what is taken of
// the parts of a stage's rows is taken of its piece, and who wants all rows
// gets them put together.

#s0 = #whale.replicate<devices = 1, name = "stage0">
#s1 = #whale.replicate<devices = 1, name = "stage1">
module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[W0:[^ ]*]]: tensor<1xf32> {whale.fed_by = 0 : i64,
  // CHECK-SAME: %[[W1:[^ ]*]]: tensor<2xf32> {whale.fed_by = 1 : i64,
  // CHECK-SAME: attributes {whale.feedback_found}
  func.func @main(%w: tensor<3xf32>,
                  %x: tensor<1xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<3xf32>, tensor<1xf32>, tensor<3xf32>) {
    %r0 = stablehlo.slice %w [0:1] {whale.strategy = #s0} : (tensor<3xf32>) -> tensor<1xf32>
    // CHECK-DAG: stablehlo.slice %[[W1]] [0:1]
    // CHECK-DAG: stablehlo.slice %[[W1]] [1:2]
    %r1 = stablehlo.slice %w [1:2] {whale.strategy = #s0} : (tensor<3xf32>) -> tensor<1xf32>
    %r2 = stablehlo.slice %w [2:3] {whale.strategy = #s0} : (tensor<3xf32>) -> tensor<1xf32>
    %y0 = stablehlo.multiply %x, %r0 {whale.strategy = #s0} : tensor<1xf32>
    %y1 = stablehlo.multiply %y0, %r1 {whale.strategy = #s1} : tensor<1xf32>
    %y2 = stablehlo.multiply %y1, %r2 {whale.strategy = #s1} : tensor<1xf32>
    %next = stablehlo.negate %w {whale.strategy = #s0, whale.phase = #whale.phase<apply>} : tensor<3xf32>
    // CHECK: %[[ALL:.*]] = stablehlo.concatenate %[[W0]], %[[W1]], dim = 0
    // CHECK: stablehlo.reverse %[[ALL]]
    %turned = stablehlo.reverse %w, dims = [0] {whale.strategy = #s1, whale.phase = #whale.phase<apply>} : tensor<3xf32>
    return %next, %y2, %turned : tensor<3xf32>, tensor<1xf32>, tensor<3xf32>
  }
}

// -----

// Scopes that take slices of a parameter: the gradient of each is padded with
// zeros, which the other stage doesn't add.

#s0 = #whale.replicate<devices = 1, name = "stage0">
#s1 = #whale.replicate<devices = 1, name = "stage1">
#backward = #whale.phase<backward>
module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[W0:[^ ]*]]: tensor<2xf32> {whale.fed_by = 0 : i64,
  // CHECK-SAME: %[[W1:[^ ]*]]: tensor<3xf32> {whale.fed_by = 1 : i64,
  func.func @main(%w: tensor<5xf32> {whale.fed_by = 0 : i64},
                  %x: tensor<2xf32> {whale.batch_dim = 0 : i64})
      -> tensor<5xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r0 = stablehlo.slice %w [0:2] {whale.strategy = #s0} : (tensor<5xf32>) -> tensor<2xf32>
    %r1 = stablehlo.slice %w [2:4] {whale.strategy = #s1} : (tensor<5xf32>) -> tensor<2xf32>
    %y0 = stablehlo.multiply %x, %r0 {whale.strategy = #s0} : tensor<2xf32>
    %y1 = stablehlo.multiply %y0, %r1 {whale.strategy = #s1} : tensor<2xf32>
    // CHECK: %[[G1:.*]] = stablehlo.tanh
    // CHECK: %[[G0:.*]] = stablehlo.sine
    %g1 = stablehlo.tanh %y1 {whale.strategy = #s1, whale.phase = #backward} : tensor<2xf32>
    %g0 = stablehlo.sine %g1 {whale.strategy = #s0, whale.phase = #backward} : tensor<2xf32>
    // CHECK-NOT: stablehlo.add
    // CHECK: %[[P1:.*]] = stablehlo.pad %[[G1]], %{{.*}}, low = [0], high = [1]
    // CHECK-NOT: stablehlo.add
    // CHECK-DAG: stablehlo.subtract %[[W0]], %[[G0]] {{.*}}"stage0"
    // CHECK-DAG: stablehlo.subtract %[[W1]], %[[P1]] {{.*}}"stage1"
    %p1 = stablehlo.pad %g1, %zero, low = [2], high = [1], interior = [0] {whale.strategy = #s1, whale.phase = #backward} : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>
    %p0 = stablehlo.pad %g0, %zero, low = [0], high = [3], interior = [0] {whale.strategy = #s0, whale.phase = #backward} : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>
    %g = stablehlo.add %p1, %p0 {whale.strategy = #s0, whale.phase = #backward} : tensor<5xf32>
    %next = stablehlo.subtract %w, %g {whale.strategy = #s0, whale.phase = #whale.phase<apply>} : tensor<5xf32>
    return %next : tensor<5xf32>
  }
}

// -----

// A branch slices its rows of a stack where it is: the slice stays inside.

#s0 = #whale.replicate<devices = 1, name = "stage0">
#s1 = #whale.replicate<devices = 1, name = "stage1">
#forward = #whale.phase<forward>
module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[W0:[^ ]*]]: tensor<2x4xf32> {whale.fed_by = 0 : i64,
  // CHECK: %[[H0:.*]] = stablehlo.convert %[[W0]]
  // CHECK: "stablehlo.case"
  // CHECK-NEXT: %[[R:.*]] = stablehlo.slice %[[H0]] [0:1, 0:4]
  // CHECK-NEXT: stablehlo.return %[[R]]
  func.func @main(%w: tensor<4x4xf32> {whale.fed_by = 0 : i64},
                  %x: tensor<2x4xf32> {whale.batch_dim = 0 : i64},
                  %i: tensor<i32>)
      -> (tensor<4x4xf32>, tensor<2x4xf32>, tensor<1x4xbf16>) {
    %a = stablehlo.tanh %x {whale.strategy = #s0, whale.phase = #forward} : tensor<2x4xf32>
    %half = stablehlo.convert %w {whale.strategy = #s0, whale.phase = #forward} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
    %r0 = stablehlo.slice %half [0:2, 0:4] {whale.strategy = #s0, whale.phase = #forward} : (tensor<4x4xbf16>) -> tensor<2x4xbf16>
    %r1 = stablehlo.slice %half [2:4, 0:4] {whale.strategy = #s0, whale.phase = #forward} : (tensor<4x4xbf16>) -> tensor<2x4xbf16>
    %f0 = stablehlo.convert %r0 {whale.strategy = #s0, whale.phase = #forward} : (tensor<2x4xbf16>) -> tensor<2x4xf32>
    %f1 = stablehlo.convert %r1 {whale.strategy = #s1, whale.phase = #forward} : (tensor<2x4xbf16>) -> tensor<2x4xf32>
    %y0 = stablehlo.multiply %a, %f0 {whale.strategy = #s0, whale.phase = #forward} : tensor<2x4xf32>
    %y1 = stablehlo.multiply %y0, %f1 {whale.strategy = #s1, whale.phase = #forward} : tensor<2x4xf32>
    %c = "stablehlo.case"(%i) ({
      %1 = stablehlo.slice %half [0:1, 0:4] {whale.strategy = #s0, whale.phase = #forward} : (tensor<4x4xbf16>) -> tensor<1x4xbf16>
      stablehlo.return %1 : tensor<1x4xbf16>
    }, {
      %1 = stablehlo.constant {whale.strategy = #s0, whale.phase = #forward} dense<1.0> : tensor<1x4xbf16>
      stablehlo.return %1 : tensor<1x4xbf16>
    }) {whale.strategy = #s0, whale.phase = #forward} : (tensor<i32>) -> tensor<1x4xbf16>
    return %w, %y1, %c : tensor<4x4xf32>, tensor<2x4xf32>, tensor<1x4xbf16>
  }
}

// -----

// A factorization of all layers, which might have effects, becomes one for each
// stage as all else, and nothing of the whole is left.

#s0 = #whale.replicate<devices = 1, name = "stage0">
#s1 = #whale.replicate<devices = 1, name = "stage1">
module {
  whale.cluster @cluster {
    kinds = {cpu = {flops = {f32 = 1.0e12}, memory_bytes = 1073741824,
                    memory_bandwidth = 1.0e15}},
    nodes = [{name = "local", devices = [{kind = "cpu", count = 2}]}]}

  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[W0:[^ ]*]]: tensor<1x4x4xf32> {whale.stack_piece =
  // CHECK-SAME: %[[W1:[^ ]*]]: tensor<1x4x4xf32> {whale.stack_piece =
  func.func @main(%w: tensor<2x4x4xf32>,
                  %x: tensor<4x4xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<4x4xf32>, tensor<2x4xf32>) {
    // CHECK: %[[Q0:.*]]:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%[[W0]]){{.*}}"stage0"
    // CHECK: %[[Q1:.*]]:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%[[W1]]){{.*}}"stage1"
    // CHECK-NOT: custom_call
    // CHECK: return %{{.*}}, %[[Q0]]#1, %[[Q1]]#1
    %q:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%w) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>], whale.strategy = #s0} : (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4xf32>)
    %r0 = stablehlo.slice %w [0:1, 0:4, 0:4] {whale.strategy = #s0} : (tensor<2x4x4xf32>) -> tensor<1x4x4xf32>
    %r1 = stablehlo.slice %w [1:2, 0:4, 0:4] {whale.strategy = #s1} : (tensor<2x4x4xf32>) -> tensor<1x4x4xf32>
    %m0 = stablehlo.reshape %r0 {whale.strategy = #s0} : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
    %m1 = stablehlo.reshape %r1 {whale.strategy = #s1} : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
    %y0 = stablehlo.multiply %x, %m0 {whale.strategy = #s0} : tensor<4x4xf32>
    %y1 = stablehlo.multiply %y0, %m1 {whale.strategy = #s1} : tensor<4x4xf32>
    return %y1, %q#1 : tensor<4x4xf32>, tensor<2x4xf32>
  }
}
