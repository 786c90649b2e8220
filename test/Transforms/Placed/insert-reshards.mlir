// RUN: whale-opt %s -whale-insert-reshards -split-input-file \
// RUN:   -verify-diagnostics | FileCheck %s

// Users that want the same share one reshard, right after the value.

#rows = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[R:.*]] = whale.reshard %[[X]] from #[[ROWS:.*]] to #[[WHOLE:.*]] : tensor<8xf32>
// CHECK-NEXT: stablehlo.tanh %[[R]] {whale.placements
// CHECK-NEXT: %[[S:.*]] = stablehlo.sine %[[R]]
// CHECK-NEXT: %[[BACK:.*]] = whale.reshard %[[S]] from #[[WHOLE]] to #[[ROWS]]
// CHECK-NEXT: stablehlo.add %[[BACK]], %[[X]]
// CHECK-NOT: whale.operand_placements
func.func @main(%x: tensor<8xf32> {whale.placement = #rows}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {whale.operand_placements = [#whole],
      whale.placements = [#whole]} : tensor<8xf32>
  %1 = stablehlo.sine %x {whale.operand_placements = [#whole],
      whale.placements = [#whole]} : tensor<8xf32>
  %2 = stablehlo.add %1, %x {whale.operand_placements = [#rows, #rows],
      whale.placements = [#rows]} : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A broadcast of what is whole is made in parts, and a reshard of one that is
// not: along dimension 0 a device has only its rows.

#rows = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#all = #whale.placement<[8, 6] replicate 2 on [0, 1]>
#left = #whale.placement<[8, 6] split 1 (3, 3) on [0, 1]>
#top = #whale.placement<[8, 6] split 0 (4, 4) on [0, 1]>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<8xf32> {{.*}}, %[[Y:.*]]: tensor<8xf32>
// CHECK: %[[ALL:.*]] = stablehlo.broadcast_in_dim %[[X]], dims = [0] {whale.placements = [#[[OF_ALL:.*]]]}
// CHECK-NEXT: %[[TOP:.*]] = whale.reshard %[[ALL]] from #[[OF_ALL]] to
// CHECK-NEXT: %[[LEFT:.*]] = stablehlo.broadcast_in_dim %[[X]], dims = [0] {whale.placements = [#[[SPLIT:.*]]]}
// CHECK-NEXT: stablehlo.tanh %[[LEFT]] {whale.placements = [#[[SPLIT]]]}
// CHECK: stablehlo.tanh %[[TOP]]
func.func @main(%x: tensor<8xf32> {whale.placement = #whole},
                %y: tensor<8xf32> {whale.placement = #rows})
    -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0]
      {whale.operand_placements = [#whole], whale.placements = [#all]}
      : (tensor<8xf32>) -> tensor<8x6xf32>
  %1 = stablehlo.tanh %0 {whale.operand_placements = [#left],
      whale.placements = [#left]} : tensor<8x6xf32>
  %2 = stablehlo.tanh %0 {whale.operand_placements = [#top],
      whale.placements = [#top]} : tensor<8x6xf32>
  return %1, %2 : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

// What a loop wants of a value from outside is outside.

#rows = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#bit = #whale.placement<[] replicate 2 on [0, 1]>
// CHECK-LABEL: func.func @main
// CHECK: whale.reshard
// CHECK: stablehlo.while
// CHECK-NOT: whale.reshard
func.func @main(%x: tensor<8xf32> {whale.placement = #rows},
                %y: tensor<8xf32> {whale.placement = #whole}) -> tensor<8xf32> {
  %0 = stablehlo.while(%sum = %y) : tensor<8xf32>
      attributes {whale.placements = [#whole]}
  cond {
    %more = stablehlo.constant {whale.placements = [#bit]}
        dense<false> : tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %1 = stablehlo.add %sum, %x {whale.operand_placements = [#whole, #whole],
        whale.placements = [#whole]} : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{operand #0 has no placement}}
  %0 = stablehlo.tanh %x {whale.operand_placements = [#whole],
      whale.placements = [#whole]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
