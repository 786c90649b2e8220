// RUN: whale-opt %s -whale-copy-host-state -split-input-file \
// RUN:   -verify-diagnostics | FileCheck %s

// Each tensor has a channel for either way, the same in all classes, behind
// those that there are. What several instructions read is fetched once, for the
// first of them. State that is given back as it is, and what has no elements on
// a rank, is not copied.

#p = #whale.placement<[4] replicate 2 on [0, 1]>
#one = #whale.placement<[4] on [0]>
#sums = #whale.placement<[4] partial sum 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k0(memref<4xf32>, memref<4xf32>, memref<4xf32>, index,
                          index)
  }
  // CHECK-LABEL: @rank_class_0(
  // CHECK-SAME: %[[M:[a-z0-9]+]]: {{[^%]*}}%[[KEPT:[a-z0-9]+]]: {{[^%]*}}%[[N:[a-z0-9]+]]: {{[^%]*}}%[[X:[a-z0-9]+]]
  whale.schedule ranks [0] @rank_class_0(
      %m: tensor<4xf32> {whale.donated, whale.fed_by = 0 : i64,
                         whale.in_host, whale.placement = #p},
      %kept: tensor<4xf32> {whale.donated, whale.fed_by = 1 : i64,
                            whale.in_host, whale.placement = #p},
      %n: tensor<4xf32> {whale.donated, whale.fed_by = 2 : i64,
                         whale.in_host, whale.placement = #one},
      %x: tensor<4xf32>)
      -> (tensor<4xf32> {whale.in_host, whale.placement = #p},
          tensor<4xf32> {whale.in_host, whale.placement = #p},
          tensor<4xf32> {whale.in_host, whale.placement = #one},
          tensor<4xf32>) {
    // CHECK: %[[S:.*]] = whale.all_reduce %[[X]] channel 3
    %s = whale.all_reduce %x channel 3 from #sums to #p
        : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK-NEXT: %[[F:.*]] = whale.host_to_device %[[M]] channel 4 at
    // CHECK-NEXT: %[[A:.*]] = whale.launch @k0(%[[F]], %[[S]])
    // CHECK-NEXT: %[[B:.*]] = whale.device_to_host %[[A]] channel 8 at
    // CHECK-NEXT: %[[C:.*]] = whale.launch @k0(%[[F]], %[[A]])
    // CHECK-NEXT: %[[G:.*]] = whale.host_to_device %[[N]] channel 6 at
    // CHECK-NEXT: %[[D:.*]] = whale.launch @k0(%[[G]], %[[A]])
    // CHECK-NEXT: %[[E:.*]] = whale.device_to_host %[[D]] channel 10 at
    // CHECK-NEXT: whale.return %[[B]], %[[KEPT]], %[[E]], %[[C]]
    %a = whale.launch @k0(%m, %s)
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = whale.launch @k0(%m, %a)
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = whale.launch @k0(%n, %a)
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    whale.return %a, %kept, %d, %c
        : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  // CHECK-LABEL: @rank_class_1(
  whale.schedule ranks [1] @rank_class_1(
      %m: tensor<4xf32> {whale.donated, whale.fed_by = 0 : i64,
                         whale.in_host, whale.placement = #p},
      %kept: tensor<4xf32> {whale.donated, whale.fed_by = 1 : i64,
                            whale.in_host, whale.placement = #p},
      %n: tensor<0xf32> {whale.donated, whale.fed_by = 2 : i64,
                         whale.in_host, whale.placement = #one},
      %x: tensor<4xf32>)
      -> (tensor<4xf32> {whale.in_host, whale.placement = #p},
          tensor<4xf32> {whale.in_host, whale.placement = #p},
          tensor<0xf32> {whale.in_host, whale.placement = #one},
          tensor<4xf32>) {
    %s = whale.all_reduce %x channel 3 from #sums to #p
        : (tensor<4xf32>) -> tensor<4xf32>
    // What goes to the host of several results goes for each of them.
    // CHECK: %[[F:.*]] = whale.host_to_device %{{.*}} channel 4 at
    // CHECK-NEXT: %[[A:.*]] = whale.launch @k0(%[[F]],
    // CHECK-NEXT: whale.device_to_host %[[A]] channel 9 at
    // CHECK-NEXT: whale.device_to_host %[[A]] channel 8 at
    // CHECK-NEXT: whale.return
    %a = whale.launch @k0(%m, %s)
        : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    whale.return %a, %a, %n, %s
        : tensor<4xf32>, tensor<4xf32>, tensor<0xf32>, tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{what is 'whale.in_host' has no whale.placement}}
whale.schedule ranks [0] @rank_class_0(%m: tensor<4xf32> {whale.in_host})
    -> tensor<4xf32> {
  whale.return %m : tensor<4xf32>
}
