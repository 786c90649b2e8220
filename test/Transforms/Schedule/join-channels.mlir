// RUN: whale-opt %s -split-input-file -whale-join-channels -whale-verify-schedule | FileCheck %s
// RUN: whale-opt %s -split-input-file -whale-join-channels -whale-join-channels | FileCheck %s
// RUN: whale-opt %s -split-input-file -whale-join-channels -whale-start-transfers | FileCheck %s --check-prefix=APART
// APART-NOT: with

#first = #whale.placement<[4] on [0]>
#next = #whale.placement<[4] split 0 (1, 3) on [1, 2]>

// A stage sends two tensors, whose waits stand apart. They are over together:
// where memory is given back in who sends, where the first is needed in who
// receives. What is only received starts with the first.
module {
  module @kernels {
    func.func private @k(memref<4xf32>, memref<4xf32>, index, index)
  }
  // CHECK-LABEL: whale.schedule ranks [0] @rank_class_0
  // CHECK-NEXT: %[[S0:.*]] = whale.send_recv %arg0 channel 0 from
  // CHECK-NEXT: %[[S1:.*]] = whale.send_recv %arg1 channel 1 with 0 from
  // CHECK-NEXT: %[[K:.*]] = whale.launch
  // CHECK-NEXT: whale.wait %[[S0]] keeps %arg0
  // CHECK-NEXT: whale.wait %[[S1]] keeps %arg1
  // CHECK-NEXT: whale.return
  whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>, %y: tensor<4xi32>)
      -> tensor<4xf32> {
    %t0 = whale.send_recv %x channel 0 from #first to #next
        : (tensor<4xf32>) -> !whale.token
    %t1 = whale.send_recv %y channel 1 from #first to #next
        : (tensor<4xi32>) -> !whale.token
    whale.wait %t0 keeps %x : (!whale.token, tensor<4xf32>) -> ()
    %0 = whale.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    whale.wait %t1 keeps %y : (!whale.token, tensor<4xi32>) -> ()
    whale.return %0 : tensor<4xf32>
  }
  // CHECK-LABEL: whale.schedule ranks [1] @rank_class_1
  // CHECK-NEXT: %[[R0:.*]]:2 = whale.send_recv channel 0 from
  // CHECK-NEXT: %[[R1:.*]]:2 = whale.send_recv channel 1 with 0 from
  // CHECK-NEXT: whale.launch
  // CHECK-NEXT: %[[A:.*]] = whale.wait %[[R0]]#1 for %[[R0]]#0
  // CHECK-NEXT: %[[B:.*]] = whale.wait %[[R1]]#1 for %[[R1]]#0
  // CHECK-NEXT: whale.launch
  whale.schedule ranks [1] @rank_class_1(%z: tensor<4xf32>)
      -> (tensor<1xf32>, tensor<1xi32>, tensor<4xf32>) {
    %r0, %t0 = whale.send_recv channel 0 from #first to #next
        : () -> (tensor<1xf32>, !whale.token)
    %0 = whale.launch @k(%z) : (tensor<4xf32>) -> tensor<4xf32>
    %r1, %t1 = whale.send_recv channel 1 from #first to #next
        : () -> (tensor<1xi32>, !whale.token)
    %b = whale.wait %t1 for %r1 : (!whale.token, tensor<1xi32>) -> tensor<1xi32>
    %1 = whale.launch @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %a = whale.wait %t0 for %r0 : (!whale.token, tensor<1xf32>) -> tensor<1xf32>
    whale.return %a, %b, %1 : tensor<1xf32>, tensor<1xi32>, tensor<4xf32>
  }
  // CHECK-LABEL: whale.schedule ranks [2] @rank_class_2
  // CHECK-NEXT: whale.send_recv channel 0 from
  // CHECK-NEXT: whale.send_recv channel 1 with 0 from
  whale.schedule ranks [2] @rank_class_2() -> (tensor<3xf32>, tensor<3xi32>) {
    %r0, %t0 = whale.send_recv channel 0 from #first to #next
        : () -> (tensor<3xf32>, !whale.token)
    %r1, %t1 = whale.send_recv channel 1 from #first to #next
        : () -> (tensor<3xi32>, !whale.token)
    %a = whale.wait %t0 for %r0 : (!whale.token, tensor<3xf32>) -> tensor<3xf32>
    %b = whale.wait %t1 for %r1 : (!whale.token, tensor<3xi32>) -> tensor<3xi32>
    whale.return %a, %b : tensor<3xf32>, tensor<3xi32>
  }
}

// -----

// Micro-batches use channels again. What is computed in between holds nothing
// back, and three parts are one.
#r0 = #whale.placement<[4] on [0]>
#r1 = #whale.placement<[4] on [1]>
module {
  module @kernels {
    func.func private @k(memref<4xf32>, memref<4xf32>, index, index)
  }
  // CHECK-LABEL: whale.schedule ranks [0] @rank_class_0
  // CHECK: whale.send_recv %arg0 channel 0 from
  // CHECK-NEXT: whale.send_recv %arg1 channel 1 with 0 from
  // CHECK-NEXT: whale.send_recv %arg1 channel 2 with 0 from
  // CHECK: whale.launch
  // CHECK: %[[D:.*]] = whale.send_recv %{{.*}} channel 3 from
  // CHECK: whale.send_recv %arg0 channel 0 from
  // CHECK-NEXT: whale.send_recv %arg1 channel 1 with 0 from
  // CHECK-NEXT: whale.send_recv %arg1 channel 2 with 0 from
  whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>, %y: tensor<4xf32>) {
    %t0 = whale.send_recv %x channel 0 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %t1 = whale.send_recv %y channel 1 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %t2 = whale.send_recv %y channel 2 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %0 = whale.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %t3 = whale.send_recv %0 channel 3 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %t4 = whale.send_recv %x channel 0 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %t5 = whale.send_recv %y channel 1 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %t6 = whale.send_recv %y channel 2 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    whale.wait %t0 keeps %x : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t1 keeps %y : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t2 keeps %y : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t3 keeps %0 : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t4 keeps %x : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t5 keeps %y : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t6 keeps %y : (!whale.token, tensor<4xf32>) -> ()
    whale.return
  }
  // CHECK-LABEL: whale.schedule ranks [1] @rank_class_1
  // CHECK: whale.send_recv channel 0 from
  // CHECK-NEXT: whale.send_recv channel 1 with 0 from
  // CHECK-NEXT: whale.send_recv channel 2 with 0 from
  // CHECK: whale.send_recv channel 3 from
  // CHECK: whale.send_recv channel 0 from
  // CHECK-NEXT: whale.send_recv channel 1 with 0 from
  // CHECK-NEXT: whale.send_recv channel 2 with 0 from
  whale.schedule ranks [1] @rank_class_1() {
    %r0, %t0 = whale.send_recv channel 0 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %r1, %t1 = whale.send_recv channel 1 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %r2, %t2 = whale.send_recv channel 2 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %a = whale.wait %t0 for %r0 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %b = whale.wait %t1 for %r1 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %c = whale.wait %t2 for %r2 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %r3, %t3 = whale.send_recv channel 3 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %d = whale.wait %t3 for %r3 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %r4, %t4 = whale.send_recv channel 0 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %r5, %t5 = whale.send_recv channel 1 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %r6, %t6 = whale.send_recv channel 2 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %e = whale.wait %t4 for %r4 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %f = whale.wait %t5 for %r5 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %g = whale.wait %t6 for %r6 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    whale.return
  }
}

// -----

// What is too large, of another kind, or goes to others stays by itself.
#r0 = #whale.placement<[4] on [0]>
#r1 = #whale.placement<[4] on [1]>
#both = #whale.placement<[4] replicate 2 on [1, 2]>
#r2 = #whale.placement<[4] on [2]>
#large0 = #whale.placement<[64] on [0]>
#large1 = #whale.placement<[64] on [1]>
module attributes {whale.config = {communication = {bucket_bytes = 64 : i64}}} {
  // CHECK-LABEL: whale.schedule ranks [0] @rank_class_0
  // CHECK-NOT: with
  whale.schedule ranks [0] @rank_class_0(
      %x: tensor<4xf32>, %y: tensor<64xf32>) {
    %t0 = whale.send_recv %x channel 0 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %t1 = whale.send_recv %y channel 1 from #large0 to #large1
        : (tensor<64xf32>) -> !whale.token
    %t2 = whale.send_recv %x channel 2 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %t3 = whale.broadcast %x channel 3 from #r0 to #both
        : (tensor<4xf32>) -> !whale.token
    %t4 = whale.send_recv %x channel 4 from #r0 to #r2
        : (tensor<4xf32>) -> !whale.token
    whale.wait %t0 keeps %x : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t1 keeps %y : (!whale.token, tensor<64xf32>) -> ()
    whale.wait %t2 keeps %x : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t3 keeps %x : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t4 keeps %x : (!whale.token, tensor<4xf32>) -> ()
    whale.return
  }
  whale.schedule ranks [1] @rank_class_1() {
    %r0, %t0 = whale.send_recv channel 0 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %r1, %t1 = whale.send_recv channel 1 from #large0 to #large1
        : () -> (tensor<64xf32>, !whale.token)
    %r2, %t2 = whale.send_recv channel 2 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %r3, %t3 = whale.broadcast channel 3 from #r0 to #both
        : () -> (tensor<4xf32>, !whale.token)
    %a = whale.wait %t0 for %r0 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %b = whale.wait %t1 for %r1
        : (!whale.token, tensor<64xf32>) -> tensor<64xf32>
    %c = whale.wait %t2 for %r2 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %d = whale.wait %t3 for %r3 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    whale.return
  }
  whale.schedule ranks [2] @rank_class_2() {
    %r3, %t3 = whale.broadcast channel 3 from #r0 to #both
        : () -> (tensor<4xf32>, !whale.token)
    %r4, %t4 = whale.send_recv channel 4 from #r0 to #r2
        : () -> (tensor<4xf32>, !whale.token)
    %d = whale.wait %t3 for %r3 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %e = whale.wait %t4 for %r4 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    whale.return
  }
}

// -----

// What was sent long before something else waits for nothing. What is needed
// before the second one starts is not held back, either.
#r0 = #whale.placement<[4] on [0]>
#r1 = #whale.placement<[4] on [1]>
module {
  module @kernels {
    func.func private @k(memref<4xf32>, memref<4xf32>, index, index)
        attributes {whale.flops = 100000000 : i64}
  }
  // CHECK-LABEL: whale.schedule ranks [0] @rank_class_0
  // CHECK-NOT: with
  whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>) {
    %t0 = whale.send_recv %x channel 0 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    %0 = whale.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %t1 = whale.send_recv %0 channel 1 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    whale.wait %t0 keeps %x : (!whale.token, tensor<4xf32>) -> ()
    %t2 = whale.send_recv %0 channel 2 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    whale.wait %t2 keeps %0 : (!whale.token, tensor<4xf32>) -> ()
    %t3 = whale.send_recv %0 channel 3 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    whale.wait %t1 keeps %0 : (!whale.token, tensor<4xf32>) -> ()
    whale.wait %t3 keeps %0 : (!whale.token, tensor<4xf32>) -> ()
    %4 = whale.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %t4 = whale.send_recv %4 channel 4 from #r0 to #r1
        : (tensor<4xf32>) -> !whale.token
    whale.wait %t4 keeps %4 : (!whale.token, tensor<4xf32>) -> ()
    whale.return
  }
  whale.schedule ranks [1] @rank_class_1() {
    %r0, %t0 = whale.send_recv channel 0 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %r1, %t1 = whale.send_recv channel 1 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %a = whale.wait %t0 for %r0 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %b = whale.wait %t1 for %r1 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %c = whale.send_recv channel 2 from #r0 to #r1 : () -> tensor<4xf32>
    %r3, %t3 = whale.send_recv channel 3 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %d = whale.wait %t3 for %r3 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    %r4, %t4 = whale.send_recv channel 4 from #r0 to #r1
        : () -> (tensor<4xf32>, !whale.token)
    %e = whale.wait %t4 for %r4 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    whale.return
  }
}
