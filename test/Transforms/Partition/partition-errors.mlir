// RUN: whale-opt %s -whale-partition -split-input-file -verify-diagnostics

// expected-error@+1 {{expects a function @main with a body}}
module {}

// -----

#rows = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #rows}) -> tensor<8xf32> {
  // expected-error@+1 {{wants its operands placed otherwise; run whale-insert-reshards first}}
  %0 = stablehlo.tanh %x {whale.operand_placements = [#whole],
      whale.placements = [#whole]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#rows = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #rows}) -> tensor<8xf32> {
  // expected-error@+1 {{has no placement; run whale-propagate first}}
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
