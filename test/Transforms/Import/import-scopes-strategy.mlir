// RUN: whale-opt %s -whale-import-scopes=strategy=split | FileCheck %s
// RUN: whale-opt %s -whale-import-scopes=strategy=none \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: not whale-opt %s -whale-import-scopes=strategy=shard 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN

// CHECK: module attributes {whale.default_strategy = #whale.split}
// CHECK: stablehlo.tanh {{.*}} {whale.phase = #whale.phase<forward>, whale.strategy = #whale.split}
// NONE: stablehlo.tanh {{.*}} {whale.phase = #whale.phase<forward>}
// UNKNOWN: error: unknown strategy 'shard': expected replicate, split or none
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
