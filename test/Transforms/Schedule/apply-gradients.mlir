// Where updates of the state stand: behind the reduction of their gradient and
// what reads the old value, before the backward goes on.

// RUN: whale-opt %s -split-input-file -whale-start-transfers -verify-diagnostics | FileCheck %s
// What has starts already is scheduled anew.
// RUN: whale-opt %s -split-input-file -whale-start-transfers -whale-start-transfers | FileCheck %s
// RUN: whale-opt %s -split-input-file -whale-start-transfers -whale-start-transfers=late | FileCheck %s --check-prefix=LATE

#p0 = #whale.placement<[4] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[4] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k(memref<4xf32>, memref<4xf32>, index, index)
    func.func private @update(memref<4xf32>, memref<4xf32>, memref<4xf32>, index, index)
  }
  // CHECK-LABEL: @alone
  whale.schedule ranks [0, 1] @alone(
      %w0: tensor<4xf32> {whale.donated, whale.fed_by = 0 : i64},
      %w1: tensor<4xf32> {whale.donated, whale.fed_by = 1 : i64},
      %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK: %[[D1:.*]] = whale.launch @k(%arg2)
    // CHECK: %[[G1:.*]] = whale.launch @k(%[[D1]])
    // CHECK: %[[S1:.*]]:2 = whale.all_reduce %[[G1]] channel 1
    // CHECK: %[[D0:.*]] = whale.launch @update(%[[D1]], %arg1)
    // CHECK: %[[R1:.*]] = whale.wait %[[S1]]#1
    // CHECK: whale.launch @update(%arg1, %[[R1]])
    // CHECK: %[[G0:.*]] = whale.launch @k(%[[D0]])
    // CHECK: whale.all_reduce %[[G0]] channel 0
    // CHECK: whale.launch @update(%arg0,
    %d1 = whale.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %g1 = whale.launch @k(%d1) : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = whale.launch @update(%d1, %w1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %g0 = whale.launch @k(%d0) : (tensor<4xf32>) -> tensor<4xf32>
    %r0 = whale.all_reduce %g0 channel 0 from #p0 to #p1 : (tensor<4xf32>) -> tensor<4xf32>
    %r1 = whale.all_reduce %g1 channel 1 from #p0 to #p1 : (tensor<4xf32>) -> tensor<4xf32>
    %n0 = whale.launch @update(%w0, %r0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %n1 = whale.launch @update(%w1, %r1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    whale.return %n0, %n1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// In one group all updates are behind the last gradient.
#p0 = #whale.placement<[4] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[4] replicate 2 on [0, 1]>
module attributes {whale.config = {optimizer = {num_apply_group = 1 : i64}}} {
  module @kernels {
    func.func private @k(memref<4xf32>, memref<4xf32>, index, index)
    func.func private @update(memref<4xf32>, memref<4xf32>, memref<4xf32>, index, index)
  }
  // CHECK-LABEL: @grouped
  // CHECK: whale.all_reduce {{.*}} channel 1
  // CHECK: whale.all_reduce {{.*}} channel 0
  // CHECK: whale.launch @update
  // CHECK: whale.launch @update
  whale.schedule ranks [0, 1] @grouped(
      %w0: tensor<4xf32> {whale.donated, whale.fed_by = 0 : i64},
      %w1: tensor<4xf32> {whale.donated, whale.fed_by = 1 : i64},
      %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %g1 = whale.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %d0 = whale.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %g0 = whale.launch @k(%d0) : (tensor<4xf32>) -> tensor<4xf32>
    %r0 = whale.all_reduce %g0 channel 0 from #p0 to #p1 : (tensor<4xf32>) -> tensor<4xf32>
    %r1 = whale.all_reduce %g1 channel 1 from #p0 to #p1 : (tensor<4xf32>) -> tensor<4xf32>
    %n0 = whale.launch @update(%w0, %r0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %n1 = whale.launch @update(%w1, %r1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    whale.return %n0, %n1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A norm of all gradients is there behind the last one, for which the others
// wait.
#p0 = #whale.placement<[64] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[64] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k(memref<64xf32>, memref<64xf32>, index, index)
    func.func private @square(memref<64xf32>, memref<64xf32>, memref<f32>, index, index)
    func.func private @update(memref<64xf32>, memref<64xf32>, memref<f32>, memref<64xf32>, index, index)
  }
  // CHECK-LABEL: @norm
  // expected-remark@+1 {{apply: on device 0 256 bytes of gradients wait for a value that is computed of several, such as their norm}}
  whale.schedule ranks [0, 1] @norm(
      %w0: tensor<64xf32> {whale.donated, whale.fed_by = 0 : i64},
      %w1: tensor<64xf32> {whale.donated, whale.fed_by = 1 : i64},
      %x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
    %g1 = whale.launch @k(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %d0 = whale.launch @k(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %g0 = whale.launch @k(%d0) : (tensor<64xf32>) -> tensor<64xf32>
    %r0 = whale.all_reduce %g0 channel 0 from #p0 to #p1 : (tensor<64xf32>) -> tensor<64xf32>
    %r1 = whale.all_reduce %g1 channel 1 from #p0 to #p1 : (tensor<64xf32>) -> tensor<64xf32>
    %n = whale.launch @square(%r0, %r1) : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    %n0 = whale.launch @update(%w0, %r0, %n) : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    %n1 = whale.launch @update(%w1, %r1, %n) : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    whale.return %n0, %n1 : tensor<64xf32>, tensor<64xf32>
  }
}

// -----

// Where the network is slow, an update does not wait for it, but with `late`.
#p0 = #whale.placement<[1048576] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[1048576] replicate 2 on [0, 1]>
module {
  whale.cluster @cluster {nodes = [{count = 2 : i64, devices = [{kind = "cpu"}]}], network = {bandwidth = 1.0e9 : f64, latency = 1.0e-5 : f64}}
  module @kernels {
    func.func private @k(memref<1048576xf32>, memref<1048576xf32>, index, index) attributes {whale.flops = 10000000000 : i64, whale.bytes = 8388608 : i64}
    func.func private @update(memref<1048576xf32>, memref<1048576xf32>, memref<1048576xf32>, index, index)
  }
  // CHECK-LABEL: @slow
  // CHECK: whale.all_reduce {{.*}} channel 1
  // CHECK-NEXT: whale.launch @k
  // CHECK-NEXT: whale.wait
  // CHECK-NEXT: whale.launch @update
  // CHECK-NEXT: whale.launch @k
  // LATE-LABEL: @slow
  // LATE: whale.all_reduce {{.*}} channel 1
  // LATE-NEXT: whale.wait
  // LATE-NEXT: whale.launch @update
  // LATE-NEXT: whale.launch @k
  whale.schedule ranks [0, 1] @slow(
      %w0: tensor<1048576xf32> {whale.donated, whale.fed_by = 0 : i64},
      %w1: tensor<1048576xf32> {whale.donated, whale.fed_by = 1 : i64},
      %x: tensor<1048576xf32>) -> (tensor<1048576xf32>, tensor<1048576xf32>) {
    %g1 = whale.launch @k(%x) : (tensor<1048576xf32>) -> tensor<1048576xf32>
    %d0 = whale.launch @k(%x) : (tensor<1048576xf32>) -> tensor<1048576xf32>
    %g0 = whale.launch @k(%d0) : (tensor<1048576xf32>) -> tensor<1048576xf32>
    %r0 = whale.all_reduce %g0 channel 0 from #p0 to #p1 : (tensor<1048576xf32>) -> tensor<1048576xf32>
    %r1 = whale.all_reduce %g1 channel 1 from #p0 to #p1 : (tensor<1048576xf32>) -> tensor<1048576xf32>
    %n0 = whale.launch @update(%w0, %r0) : (tensor<1048576xf32>, tensor<1048576xf32>) -> tensor<1048576xf32>
    %n1 = whale.launch @update(%w1, %r1) : (tensor<1048576xf32>, tensor<1048576xf32>) -> tensor<1048576xf32>
    whale.return %n0, %n1 : tensor<1048576xf32>, tensor<1048576xf32>
  }
}
