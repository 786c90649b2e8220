// RUN: whale-opt %s -split-input-file -verify-diagnostics -whale-join-stacks | FileCheck %s

// A stack of which the first device has one row and the second two, and an
// argument that is none. Each rank's piece is its part of the stack.

// CHECK-DAG: #[[STACK:.*]] = #whale.placement<[3, 4] split 0 (1, 2) on [0, 1]>
// CHECK-DAG: #[[STEP:.*]] = #whale.placement<[] on [0]>
#w0 = #whale.placement<[1, 4] on [0]>
#w1 = #whale.placement<[2, 4] on [1]>
#i = #whale.placement<[] on [0]>
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: (%[[I:.*]]: tensor<i32> {whale.fed_by = 1 : i64, whale.global_type = tensor<i32>, whale.placement = #[[STEP]]}, %[[W:.*]]: tensor<1x4xf32> {whale.fed_by = 0 : i64, whale.global_type = tensor<3x4xf32>, whale.placement = #[[STACK]]})
// CHECK-SAME: -> (tensor<1x4xf32> {whale.global_type = tensor<3x4xf32>, whale.placement = #[[STACK]]}, tensor<i32> {
// CHECK: %[[N:.*]] = stablehlo.negate %[[W]] : tensor<1x4xf32>
// CHECK: whale.return %[[N]], %[[I]]
whale.schedule ranks [0] @rank_class_0(
    %i: tensor<i32> {whale.fed_by = 2 : i64, whale.global_type = tensor<i32>, whale.placement = #i},
    %w0: tensor<1x4xf32> {whale.fed_by = 0 : i64, whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 1 : i64, whole = tensor<3x4xf32>}},
    %w1: tensor<0x0xf32> {whale.fed_by = 1 : i64, whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 1 : i64, whole = tensor<3x4xf32>}})
    -> (tensor<1x4xf32> {whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
        tensor<0x0xf32> {whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
        tensor<i32> {whale.global_type = tensor<i32>, whale.placement = #i}) {
  %0 = stablehlo.negate %w0 : tensor<1x4xf32>
  %1 = stablehlo.constant dense<> : tensor<0x0xf32>
  whale.return %0, %1, %i : tensor<1x4xf32>, tensor<0x0xf32>, tensor<i32>
}

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK-SAME: (%[[I:.*]]: tensor<0xi32> {{{.*}}}, %[[W:.*]]: tensor<2x4xf32> {whale.fed_by = 0 : i64, whale.global_type = tensor<3x4xf32>, whale.placement = #[[STACK]]})
// CHECK: %[[N:.*]] = stablehlo.negate %[[W]] : tensor<2x4xf32>
// CHECK: whale.return %[[N]], %[[I]]
whale.schedule ranks [1] @rank_class_1(
    %i: tensor<0xi32> {whale.fed_by = 2 : i64, whale.global_type = tensor<i32>, whale.placement = #i},
    %w0: tensor<0x0xf32> {whale.fed_by = 0 : i64, whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 1 : i64, whole = tensor<3x4xf32>}},
    %w1: tensor<2x4xf32> {whale.fed_by = 1 : i64, whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 1 : i64, whole = tensor<3x4xf32>}})
    -> (tensor<0x0xf32> {whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
        tensor<2x4xf32> {whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
        tensor<0xi32> {whale.global_type = tensor<i32>, whale.placement = #i}) {
  %0 = stablehlo.negate %w1 : tensor<2x4xf32>
  %1 = stablehlo.constant dense<> : tensor<0x0xf32>
  whale.return %1, %0, %i : tensor<0x0xf32>, tensor<2x4xf32>, tensor<0xi32>
}

// -----

// Replicas inside a stage and a split inside another, in a view of its own;
// which result feeds the argument was found, not written.

// CHECK: #[[STACK:.*]] = #whale.placement<[3, 2, 2] split 0 (1, 2) {replicate 2 on [0, 1], split 2 (1, 1) on [2, 3]}>
#w0 = #whale.placement<[1, 4] replicate 2 on [0, 1]>
#w1 = #whale.placement<[2, 2, 2] split 2 (1, 1) on [2, 3]>
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: (%{{.*}}: tensor<2x2xf32> {whale.global_type = tensor<3x4xf32>, whale.placement = #[[STACK]]})
// CHECK-SAME: -> ({{[^)]*}}) {{[{]}}
whale.schedule ranks [2, 3] @rank_class_0(
    %w0: tensor<0x0xf32> {whale.fed_by = 0 : i64, whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
    %w1: tensor<2x2xf32> {whale.fed_by = 1 : i64, whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}})
    -> (tensor<0x0xf32> {whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
        tensor<2x2xf32> {whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}})
    attributes {whale.feedback_found} {
  whale.return %w0, %w1 : tensor<0x0xf32>, tensor<2x2xf32>
}

// -----

// One device has all of both pieces.

#w0 = #whale.placement<[1, 4] on [0]>
#w1 = #whale.placement<[2, 4] on [0]>
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: (%[[W:.*]]: tensor<3x4xf32> {
// CHECK-DAG: %[[W0:.*]] = stablehlo.slice %[[W]] [0:1, 0:4]
// CHECK-DAG: %[[W1:.*]] = stablehlo.slice %[[W]] [1:3, 0:4]
// CHECK: %[[ALL:.*]] = stablehlo.concatenate %[[W0]], %[[W1]], dim = 0
// CHECK: whale.return %[[ALL]] : tensor<3x4xf32>
whale.schedule ranks [0] @rank_class_0(
    %w0: tensor<1x4xf32> {whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
    %w1: tensor<2x4xf32> {whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}})
    -> (tensor<1x4xf32> {whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
        tensor<2x4xf32> {whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}}) {
  whale.return %w0, %w1 : tensor<1x4xf32>, tensor<2x4xf32>
}

// -----

#w0 = #whale.placement<[1, 4] on [0]>
#w1 = #whale.placement<[2, 4] replicate 2 on [0, 1]>
// expected-error@+1 {{has pieces of a 'tensor<3x4xf32>' whose placements can't be joined: [1, 4] on [0] and [2, 4] replicate 2 on [0, 1]}}
whale.schedule ranks [0] @rank_class_0(
    %w0: tensor<1x4xf32> {whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
    %w1: tensor<2x4xf32> {whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}}) {
  whale.return
}

// -----

// The second piece is of another stack.

#w0 = #whale.placement<[1, 4] on [0]>
#w1 = #whale.placement<[2, 4] on [0]>
// expected-error@+1 {{has pieces of a 'tensor<3x4xf32>', number 0 of its signature, that are not all its rows in order}}
whale.schedule ranks [0] @rank_class_0(
    %w0: tensor<1x4xf32> {whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
    %w1: tensor<2x4xf32> {whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 1 : i64, whole = tensor<3x4xf32>}}) {
  whale.return
}

// -----

#w0 = #whale.placement<[1, 4] on [0]>
#w1 = #whale.placement<[2, 4] on [0]>
// expected-error@+1 {{that are not all its rows in order}}
whale.schedule ranks [0] @rank_class_0(
    %w1: tensor<2x4xf32> {whale.global_type = tensor<2x4xf32>, whale.placement = #w1, whale.stack_piece = {begin = 1 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}},
    %w0: tensor<1x4xf32> {whale.global_type = tensor<1x4xf32>, whale.placement = #w0, whale.stack_piece = {begin = 0 : i64, stack = 0 : i64, whole = tensor<3x4xf32>}}) {
  whale.return
}
