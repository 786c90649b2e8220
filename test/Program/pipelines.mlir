// RUN: whale-opt %s -whale-load-cluster=ranks=2 -whale-annotated \
// RUN:   -whale-task-graphs -whale-placed -whale-partitioned \
// RUN:   | FileCheck %s --check-prefix=PARTITIONED
// RUN: whale-opt %s -whale-load-cluster=ranks=2 -whale \
// RUN:   | FileCheck %s --check-prefix=PROGRAM

// The phases of whale-compile are pipelines of whale-opt, one by one and all
// together.

// PARTITIONED: whale.schedule {{.*}}@rank_class_0
// PARTITIONED: stablehlo.add
// PROGRAM: whale.schedule {{.*}}@rank_class_0
// PROGRAM: whale.launch @{{.*}}whale.out
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
