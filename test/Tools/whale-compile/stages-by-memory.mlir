// The stage in front gets the device with more memory; where the program
// doesn't fit so, the stage that needs more.
//
// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"kinds": {"k": {"flops": {"f32": 1e9}, "memory_bytes": 1e6, "memory_bandwidth": 1e12}, "l": {"flops": {"f32": 1e9}, "memory_bytes": 4000, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "k"}, {"kind": "l"}]}]}' > %t/front.json
// RUN: sed 's/4000/9e5/' %t/front.json > %t/both.json
// RUN: sed 's/1e6/3000/' %t/front.json > %t/none.json

// RUN: whale-compile %s --cluster=%t/both.json --target=none -o %t/o.whale --explain | FileCheck %s --check-prefix=BOTH
// BOTH: task graph 'front' is on devices [0]
// BOTH: task graph 'back' is on devices [1]
// BOTH-NOT: is on devices

// RUN: whale-compile %s --cluster=%t/front.json --target=none -o %t/o.whale --explain | FileCheck %s --check-prefix=SWAPPED --implicit-check-not='is on devices'
// SWAPPED: task graph 'front' is on devices [1]
// SWAPPED: task graph 'back' is on devices [0]
// SWAPPED: memory: decided again, as with what was decided first device 1 (l) lacks {{[0-9.]+ k?M?B}}

// RUN: not whale-compile %s --cluster=%t/none.json --target=none -o %t/o.whale 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: memory: device {{[01]}} ({{[kl]}}) lacks {{[0-9.]+ k?M?B}}

#front = #whale.replicate<devices = 1, name = "front">
#back = #whale.replicate<devices = 1, name = "back">
module attributes {whale.config = {num_micro_batch = 2 : i64}} {
  func.func @main(%w: tensor<4x4xf32>, %v: tensor<4x512xf32>,
                  %x: tensor<8x4xf32> {whale.batch_dim = 0 : i64})
      -> tensor<8x512xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        {whale.strategy = #front}
        : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0]
        {whale.strategy = #back}
        : (tensor<8x4xf32>, tensor<4x512xf32>) -> tensor<8x512xf32>
    return %1 : tensor<8x512xf32>
  }
}
