// A plan in ten lines, of which each names the devices or bytes that it is
// about; the same remark of many places is one. Nothing need be written.
//
// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"nodes": [{"name": "a", "devices": [{"kind": "V100-SXM2-32GB"}]}, {"name": "b", "devices": [{"kind": "P100-PCIe-16GB"}]}], "network": {"bandwidth": 1e9, "latency": 1e-5}}' > %t/c.json
// RUN: whale-compile %s --cluster=%t/c.json --target=none --explain=summary | FileCheck %s
// RUN: whale-compile %s --cluster=%t/c.json --target=none --explain=all | FileCheck %s --check-prefixes=ALL
// RUN: whale-compile %s --cluster=%t/c.json --explain=json > %t/plan.json
// RUN: not ls %t/*.whale
//
// The bytes of a step in total: of the mini-batch there and back.
// CHECK: {{^}}step          about {{[0-9.]+ [mun]?s}} for 512 samples, {{.*}} samples/s; by the cost model, not measured
// CHECK-NEXT: {{^}}devices       2: device 1 is P100-PCIe-16GB, device 0 is V100-SXM2-32GB
// CHECK-NEXT: {{^}}fits          yes: device {{[01]}} is fullest, {{[0-9.]+}} kB of {{17.2|34.4}} GB (0.0 %)
// CHECK-NEXT: {{^}}work          of the FLOPs back (replicate) 60 % on device 1, front (replicate) 40 % on device 0
// CHECK-NEXT: {{^}}time          device {{[01]}}: computing {{[0-9.]+}} %, communicating {{[0-9.]+}} %, idle {{[0-9.]+}} %
// CHECK-NEXT: {{^}}              device {{[01]}}: computing {{[0-9.]+}} %, communicating {{[0-9.]+}} %, idle {{[0-9.]+}} %
// CHECK-NEXT: {{^}}exchanges     16 send_recv 65.5 kB a step, in total of all devices
// CHECK-NEXT: {{^}}slowest link  the network between nodes: {{[0-9.]+}} us of transfers, 65.5 kB in total
// CHECK-NEXT: {{^}}limit {{.*}}
// CHECK-NOT: {{.}}
//
// ALL: == summary
// ALL-NEXT: step
// ALL: == memory
// ALL-NEXT: memory of device
// ALL: == decisions
// ALL-NEXT: remark: task graph 'front' is on devices [0]
// ALL: == task graphs
// ALL-NEXT: task graph {{ *}}strategy
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
