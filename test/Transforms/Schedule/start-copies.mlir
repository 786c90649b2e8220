// RUN: whale-opt %s -whale-start-copies -split-input-file | FileCheck %s
// RUN: whale-opt %s -whale-start-copies -whale-start-transfers=late=true \
// RUN:   -split-input-file | FileCheck %s --check-prefix=LATE

// A second of computation, and a second each to fetch 4 MB and to bring them
// back. Each granule is fetched while the one before is used, and not earlier:
// two are under way. What goes back is waited for when the next granule is
// there, for the queue is in order. Where memory is short, nothing goes on
// beside anything.

#p = #whale.placement<[1000000] on [0]>
module {
  whale.cluster @cluster {
    kinds = {k = {flops = {f32 = 1.0e9}, memory_bytes = 1.0e9,
                  memory_bandwidth = 1.0e9}},
    nodes = [{devices = [{kind = "k"}],
              host = {memory_bytes = 1.0e9, bandwidth = 4.0e6}}]}
  module @kernels {
    func.func private @k0(memref<1000000xf32>, memref<1000000xf32>, index,
                          index) attributes {whale.bytes = 1000000000 : i64}
  }
  // CHECK-LABEL: @rank_class_0(
  // CHECK-SAME: %[[M:[a-z0-9]+]]: {{[^%]*}}%[[N:[a-z0-9]+]]: {{[^%]*}}%[[O:[a-z0-9]+]]: {{[^%]*}}%[[X:[a-z0-9]+]]
  // LATE-LABEL: @rank_class_0(
  whale.schedule ranks [0] @rank_class_0(
      %m: tensor<1000000xf32> {whale.donated, whale.fed_by = 0 : i64,
                               whale.in_host, whale.placement = #p},
      %n: tensor<1000000xf32> {whale.donated, whale.fed_by = 1 : i64,
                               whale.in_host, whale.placement = #p},
      %o: tensor<1000000xf32> {whale.donated, whale.fed_by = 2 : i64,
                               whale.in_host, whale.placement = #p},
      %x: tensor<1000000xf32>)
      -> (tensor<1000000xf32> {whale.in_host, whale.placement = #p},
          tensor<1000000xf32> {whale.in_host, whale.placement = #p},
          tensor<1000000xf32> {whale.in_host, whale.placement = #p},
          tensor<1000000xf32>) {
    // CHECK: %[[M0:.*]]:2 = whale.host_to_device %[[M]] channel 0
    // CHECK-NEXT: %[[N0:.*]]:2 = whale.host_to_device %[[N]] channel 2
    // CHECK-NEXT: whale.launch @k0(%[[X]])
    // CHECK-NEXT: %[[M1:.*]] = whale.wait %[[M0]]#1 for %[[M0]]#0 keeps %[[M]]
    // CHECK-NEXT: %[[M2:.*]] = whale.launch @k0(%[[M1]])
    // CHECK-NEXT: %[[M3:.*]]:2 = whale.device_to_host %[[M2]] channel 1
    // CHECK-NEXT: %[[O0:.*]]:2 = whale.host_to_device %[[O]] channel 4
    // CHECK-NEXT: %[[N1:.*]] = whale.wait %[[N0]]#1
    // CHECK-NEXT: %[[N2:.*]] = whale.launch @k0(%[[N1]])
    // CHECK-NEXT: whale.wait %[[M3]]#1 for %[[M3]]#0 keeps %[[M2]]
    // CHECK-NEXT: %[[N3:.*]]:2 = whale.device_to_host %[[N2]] channel 3
    // CHECK-NEXT: %[[O1:.*]] = whale.wait %[[O0]]#1
    // CHECK-NEXT: %[[O2:.*]] = whale.launch @k0(%[[O1]])
    // CHECK-NEXT: whale.wait %[[N3]]#1
    // CHECK-NEXT: %[[O3:.*]]:2 = whale.device_to_host %[[O2]] channel 5
    // CHECK-NEXT: whale.wait %[[O3]]#1
    // CHECK-NEXT: whale.return
    // LATE-NOT: whale.wait
    // LATE: whale.host_to_device
    // LATE-NEXT: whale.launch
    // LATE-NEXT: whale.device_to_host
    // LATE-NEXT: whale.host_to_device
    // LATE-NEXT: whale.launch
    // LATE-NEXT: whale.device_to_host
    // LATE-NOT: whale.wait
    // LATE: whale.return
    %y = whale.launch @k0(%x) : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %0 = whale.host_to_device %m channel 0 at #p
        : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %1 = whale.launch @k0(%0) : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %2 = whale.device_to_host %1 channel 1 at #p
        : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %3 = whale.host_to_device %n channel 2 at #p
        : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %4 = whale.launch @k0(%3) : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %5 = whale.device_to_host %4 channel 3 at #p
        : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %6 = whale.host_to_device %o channel 4 at #p
        : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %7 = whale.launch @k0(%6) : (tensor<1000000xf32>) -> tensor<1000000xf32>
    %8 = whale.device_to_host %7 channel 5 at #p
        : (tensor<1000000xf32>) -> tensor<1000000xf32>
    whale.return %2, %5, %8, %y : tensor<1000000xf32>, tensor<1000000xf32>,
        tensor<1000000xf32>, tensor<1000000xf32>
  }
}
