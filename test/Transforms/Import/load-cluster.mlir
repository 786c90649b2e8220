// RUN: whale-opt %s -whale-load-cluster=file=%S/Inputs/two-nodes.json \
// RUN:   | FileCheck %s
// RUN: whale-opt %s -whale-load-cluster=file=%S/Inputs/two-nodes.json \
// RUN:   | whale-opt | FileCheck %s
// RUN: whale-opt %s -whale-load-cluster=ranks=2 \
// RUN:   | FileCheck %s --check-prefix=RANKS

// CHECK: whale.cluster @cluster
// Built-in kinds are written out.
// CHECK-SAME: "P100-PCIe-16GB" = {flops = {f16 = 1.870000e+13 : f64,
// CHECK-SAME: f32 = 9.300000e+12 : f64
// CHECK-SAME: memory_bandwidth = 7.320000e+11 : f64, memory_bytes = 17179869184 : i64}
// CHECK-SAME: "V100-SXM2-32GB" = {flops = {f16 = 1.250000e+14 : f64, f32 = 1.570000e+13 : f64}
// CHECK-SAME: network = {bandwidth = 6.250000e+09 : f64, latency = 1.000000e-05 : f64}
// CHECK-SAME: nodes = [{devices = [{count = 8 : i64, kind = "V100-SXM2-32GB"}],
// CHECK-SAME: link = {bandwidth = 1.500000e+11 : f64, latency = 3.000000e-06 : f64}, name = "a"}
// CHECK-SAME: {count = 2 : i64, devices = [{count = 4 : i64, kind = "P100-PCIe-16GB", slowdown = 1.500000e+00 : f64}]
// CHECK-SAME: host = {bandwidth = 1.000000e+10 : f64, memory_bytes = 1000000000000 : i64}, name = "b"}]
// CHECK-NEXT: func.func @main

// RANKS: whale.cluster @cluster
// RANKS-SAME: kinds = {cpu = {
// RANKS-NOT: network
// RANKS-SAME: nodes = [{devices = [{count = 2 : i64, kind = "cpu"}], name = "local"}]
// RANKS-NEXT: func.func @main
func.func @main() {
  return
}
