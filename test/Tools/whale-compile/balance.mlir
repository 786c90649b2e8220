// Who takes how much of the mini-batch: by speed, within the memory of the
// devices. A device with little memory gives its load to one that has some; an
// error says what is missing where there is no way.
//
// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"kinds": {"fast": {"flops": {"f32": 4e9}, "memory_bytes": 1e6, "memory_bandwidth": 1e12}, "slow": {"flops": {"f32": 1e9}, "memory_bytes": 98000, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "fast"}, {"kind": "slow"}]}]}' > %t/much.json
// RUN: sed 's/1e6/60000/' %t/much.json > %t/some.json
// RUN: sed 's/1e6/40000/' %t/much.json > %t/little.json
// RUN: sed 's/1e6/30000/' %t/much.json > %t/short.json

// RUN: whale-compile %s --cluster=%t/much.json --target=none -o %t/o.whale --explain | FileCheck %s --check-prefix=MUCH
// MUCH: load balance of 'default': device 0: 52 of 64 samples, 3{{..}} us, {{.*}} of 1.00 MB (fast); device 1: 12 of 64 samples

// RUN: whale-compile %s --cluster=%t/some.json --target=none -o %t/o.whale --explain | FileCheck %s --check-prefix=SOME
// SOME: load balance of 'default': device 0: 35 of 64 samples, {{.*}} of 60.0 kB (fast); device 1: 29 of 64 samples

// With nothing to do it would need zeros in the place of its part of the
// gradient, which takes more than a few samples do.
// RUN: whale-compile %s --cluster=%t/little.json --target=none -o %t/o.whale --explain | FileCheck %s --check-prefix=LITTLE
// LITTLE: load balance of 'default': device 0: {{[1-9]}} of 64 samples, {{.*}} of 40.0 kB (fast)

// RUN: not whale-compile %s --cluster=%t/short.json --target=none -o %t/o.whale 2>&1 | FileCheck %s --check-prefix=SHORT --implicit-check-not=error:
// SHORT: error: memory: device 0 (fast) lacks 19.2 kB: it has 30.0 kB and needs 49.2 kB, 16.4 kB of them for its arguments; about {{[0-9.]+}} kB with 
// SHORT-NEXT: memory of device 0 (fast) at the peak: 49.2 kB of 30.0 kB
// SHORT-NEXT:   16.4 kB  arguments (2 values)
// SHORT-NEXT:   16.4 kB  constants
// SHORT-NEXT:   16.4 kB  balance.mlir:[[# @LINE + 14]]

module attributes {whale.default_strategy = #whale.replicate<>} {
  func.func @main(%w: tensor<64x64xf32> {whale.fed_by = 0 : i64, whale.donated},
                  %x: tensor<64x64xf32> {whale.batch_dim = 0 : i64})
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
