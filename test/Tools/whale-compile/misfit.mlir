// A schedule that the cost model has chosen gives way where its buffers turn out
// not to fit: zero bubble keeps more than is expected of it, until fewer
// micro-batches are in flight. Where nothing fits that is an error.
//
// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"kinds": {"k": {"flops": {"f32": 1e9}, "memory_bytes": 1e6, "memory_bandwidth": 1e12}, "l": {"flops": {"f32": 1e9}, "memory_bytes": 26000, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "k"}, {"kind": "l", "slowdown": 2}]}]}' > %t/some.json
// RUN: sed 's/26000/23000/' %t/some.json > %t/little.json
// RUN: sed 's/26000/13000/' %t/some.json > %t/least.json
// RUN: sed 's/26000/1e6/' %t/some.json > %t/much.json

// RUN: whale-compile %s --cluster=%t/much.json --target=none -o %t/o.whale --explain | FileCheck %s --check-prefix=MUCH --implicit-check-not='decided again'
// MUCH: pipeline: zero-bubble has the least makespan

// With a little less it is the same plan, in which transfers start later.
// RUN: whale-compile %s --cluster=%t/some.json --target=none -o %t/o.whale --explain | FileCheck %s --check-prefixes=MUCH,LATE --implicit-check-not='decided again'
// LATE: memory: nothing is received before it is needed, as else device 1 (l) lacks {{[0-9.]+ k?M?B}}

// With less still it is 1F1B. What is said is true of the program that comes out,
// and said once, with the reason why another was given up.
// RUN: whale-compile %s --cluster=%t/little.json --target=none -o %t/o.whale --explain=json | FileCheck %s --check-prefix=ONCE --implicit-check-not='"message"'
// ONCE: "message": "task graph 'front' is on devices [0]"
// ONCE: "message": "task graph 'back' is on devices [1]"
// ONCE: "message": "load balance of 'front': device 0:
// ONCE: "message": "load balance of 'back': device 1:
// ONCE: "message": "pipeline: 1f1b {{.*}}; the buffers of zero-bubble don't fit"
// ONCE: "message": "memory: decided again, as with what was decided first device 1 (l) lacks {{[0-9.]+ k?M?B}}:
// ONCE: "message": "memory: device 0 needs most, {{[0-9]+}} bytes, {{[0-9]+}} were expected"

// RUN: sed 's/num_micro_batch = 8 : i64/&, pipeline = {strategy = "zero-bubble"}/' %s > %t/named.mlir
// RUN: not whale-compile %t/named.mlir --cluster=%t/least.json --target=none -o %t/o.whale 2>&1 | FileCheck %s --check-prefix=NAMED --implicit-check-not=error:
// NAMED: error: memory: device 1 (l) lacks {{[0-9.]+ k?M?B}}

#front = #whale.replicate<devices = 1, name = "front">
#back = #whale.replicate<devices = 1, name = "back">
#forward = #whale.phase<forward>
#backward = #whale.phase<backward>
#apply = #whale.phase<apply>
module attributes {whale.config = {num_micro_batch = 8 : i64}} {
  func.func @main(%w0: tensor<16x16xf32> {whale.fed_by = 0 : i64, whale.donated},
                  %w1: tensor<16x16xf32> {whale.fed_by = 1 : i64, whale.donated},
                  %x: tensor<512x16xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<16x16xf32>, tensor<16x16xf32>) {
    %a = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0]
        {whale.strategy = #front, whale.phase = #forward}
        : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %h = stablehlo.tanh %a {whale.strategy = #front, whale.phase = #forward}
        : tensor<512x16xf32>
    %b = stablehlo.dot_general %h, %w1, contracting_dims = [1] x [0]
        {whale.strategy = #back, whale.phase = #forward}
        : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %y = stablehlo.tanh %b {whale.strategy = #back, whale.phase = #forward}
        : tensor<512x16xf32>
    %gb = stablehlo.multiply %y, %y
        {whale.strategy = #back, whale.phase = #backward} : tensor<512x16xf32>
    %gw1 = stablehlo.dot_general %h, %gb, contracting_dims = [0] x [0]
        {whale.strategy = #back, whale.phase = #backward}
        : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %gh = stablehlo.dot_general %gb, %w1, contracting_dims = [1] x [1]
        {whale.strategy = #back, whale.phase = #backward}
        : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %ga = stablehlo.multiply %gh, %h
        {whale.strategy = #front, whale.phase = #backward} : tensor<512x16xf32>
    %gw0 = stablehlo.dot_general %x, %ga, contracting_dims = [0] x [0]
        {whale.strategy = #front, whale.phase = #backward}
        : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %u0 = stablehlo.subtract %w0, %gw0
        {whale.strategy = #front, whale.phase = #apply} : tensor<16x16xf32>
    %u1 = stablehlo.subtract %w1, %gw1
        {whale.strategy = #back, whale.phase = #apply} : tensor<16x16xf32>
    return %u0, %u1 : tensor<16x16xf32>, tensor<16x16xf32>
  }
}
