// What each device holds at the peak: the rows of a device add up to its need.
//
// RUN: rm -rf %t && mkdir %t
// RUN: whale-compile %s --cluster=2 --target=none -o %t/o.whale --explain=memory | FileCheck %s --match-full-lines
// RUN: whale-compile %s --cluster=2 --target=none -o %t/o.whale --explain=memory --messages=json | FileCheck %s --check-prefix=JSON
// RUN: whale-compile %s --cluster='{"kinds": {"k": {"flops": {"f32": 1e9}, "memory_bytes": 1e6, "memory_bandwidth": 1e9, "reserved_bytes": {"context": 3e5, "nccl": 2e5}}}, "nodes": [{"devices": [{"kind": "k", "count": 2}]}]}' --target=none --explain=memory | FileCheck %s --check-prefix=RESERVED

// RESERVED: memory of devices 0-1 (k) at the peak: 57.3 kB of 500 kB
// RESERVED: 300 kB {{ *}}besides, reserved for context
// RESERVED-NEXT: 200 kB {{ *}}besides, reserved for nccl

// CHECK: memory of devices 0-1 (cpu) at the peak: 57.3 kB of {{[0-9.]+ [kMGT]B}}
// CHECK-NEXT:   16.4 kB  arguments: params
// CHECK-NEXT:   8.19 kB  arguments: batch
// CHECK-NEXT:   16.4 kB  explain-memory.mlir:[[# @LINE + 20]]
// CHECK-NEXT:   8.19 kB  explain-memory.mlir:[[# @LINE + 14]]
// CHECK-NEXT:   8.19 kB  explain-memory.mlir:[[# @LINE + 15]]
// CHECK-NOT: {{.}}
// JSON: {"table":"memory of devices 0-1 (cpu) at the peak: 57.3 kB of

module attributes {whale.default_strategy = #whale.replicate<>} {
  func.func @main(%w: tensor<64x64xf32> {whale.fed_by = 0 : i64, whale.donated,
                                         whale.label = "params['w']"},
                  %x: tensor<64x64xf32> {whale.batch_dim = 0 : i64,
                                         whale.label = "batch"})
      -> (tensor<64x64xf32>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        {whale.phase = #whale.phase<forward>}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.tanh %0 {whale.phase = #whale.phase<forward>}
        : tensor<64x64xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
        {whale.phase = #whale.phase<forward>}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %g = stablehlo.dot_general %1, %2, contracting_dims = [0] x [0]
        {whale.phase = #whale.phase<backward>}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = stablehlo.subtract %w, %g {whale.phase = #whale.phase<apply>}
        : tensor<64x64xf32>
    return %u : tensor<64x64xf32>
  }
}
