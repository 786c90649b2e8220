// Where transfers start and where they are waited for: reductions of gradients,
// sends between stages, gathers, transfers beside a loop and packed ones.
// Judged by the order of starts, waits and launches in the schedules. The
// second run schedules the result again, and has to give the same.

// RUN: whale-opt %s -split-input-file -whale-start-transfers | FileCheck %s
// What has starts already is scheduled anew.
// RUN: whale-opt %s -split-input-file -whale-start-transfers -whale-start-transfers | FileCheck %s

#p0 = #whale.placement<[4] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[4] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
  }
  // Gradients are made from the last layer to the first: so they are reduced,
  // each beside what comes behind it. One that is read elsewhere too stays.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0, 1] @rank_class_0(%x: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    // CHECK: %[[LAST:.*]] = whale.launch @k0
    // CHECK: %[[R1:.*]]:2 = whale.all_reduce %[[LAST]] channel 1
    // CHECK-SAME: -> (tensor<4xf32>, !whale.token)
    // CHECK: %[[FIRST:.*]] = whale.launch @k0
    // CHECK: %[[R0:.*]]:2 = whale.all_reduce %[[FIRST]] channel 0
    // CHECK: %[[READ:.*]] = whale.launch @k0
    // CHECK: whale.all_reduce %[[READ]] channel 2
    // CHECK-SAME: -> tensor<4xf32>
    // CHECK: %[[W0:.*]] = whale.wait %[[R0]]#1 for %[[R0]]#0
    // CHECK-SAME: : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
    // CHECK: whale.launch @k0(%[[W0]])
    // CHECK: %[[W1:.*]] = whale.wait %[[R1]]#1 for %[[R1]]#0
    // CHECK: whale.return %{{.*}}, %[[W1]]
    %last = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %first = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %read = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %0 = whale.all_reduce %first channel 0
        from #p0 to #p1
        : (tensor<4xf32>) -> tensor<4xf32>
    %1 = whale.all_reduce %last channel 1
        from #p0 to #p1
        : (tensor<4xf32>) -> tensor<4xf32>
    %2 = whale.all_reduce %read channel 2
        from #p0 to #p1
        : (tensor<4xf32>) -> tensor<4xf32>
    %3 = whale.launch @k0(%0) : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %3, %1, %2, %read
        : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

#p0 = #whale.placement<[2, 2] replicate 1 on [0]>
#p1 = #whale.placement<[2, 2] replicate 1 on [1]>
#p2 = #whale.placement<[4] replicate 1 on [1]>
#p3 = #whale.placement<[4] replicate 1 on [0]>
module {
  module @kernels {
    func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
        attributes {whale.bytes = 6400000000 : i64}
  }
  // Two stages, one after the other. What is sent is kept until it is over;
  // what is received has memory from when it is sent, also under a shape.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: %[[A:.*]] = whale.launch @k0
    // CHECK: %[[VIEW:.*]] = stablehlo.reshape %[[A]]
    // CHECK: %[[T0:.*]] = whale.send_recv %[[VIEW]] channel 0
    // CHECK-SAME: (tensor<2x2xf32>) -> !whale.token
    // CHECK: %[[B:.*]] = whale.launch @k0
    // CHECK: %[[BACK:.*]]:2 = whale.send_recv channel 1
    // CHECK: whale.wait %[[T0]] keeps %[[VIEW]]
    // CHECK-SAME: (!whale.token, tensor<2x2xf32>) -> ()
    // CHECK: whale.launch
    // CHECK: %[[GOT:.*]] = whale.wait %[[BACK]]#1 for %[[BACK]]#0
    // CHECK: whale.launch @k0(%[[GOT]])
    %a = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %v = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<2x2xf32>
    whale.send_recv %v channel 0
        from #p0 to #p1
        : (tensor<2x2xf32>) -> ()
    %b = whale.launch @k0(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %c = whale.launch @k0(%b) : (tensor<4xf32>) -> tensor<4xf32>
    %d = whale.launch @k0(%c) : (tensor<4xf32>) -> tensor<4xf32>
    %e = whale.launch @k0(%d) : (tensor<4xf32>) -> tensor<4xf32>
    %r = whale.send_recv channel 1
        from #p2 to #p3
        : () -> tensor<4xf32>
    %f = whale.launch @k0(%r) : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %f : tensor<4xf32>
  }
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
  whale.schedule ranks [1] @rank_class_1(%x: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: %[[IN:.*]]:2 = whale.send_recv channel 0
    // CHECK: %[[GOT:.*]] = whale.wait %[[IN]]#1 for %[[IN]]#0
    // CHECK-NEXT: %[[FLAT:.*]] = stablehlo.reshape %[[GOT]]
    // CHECK-NEXT: %[[A:.*]] = whale.launch @k0(%[[FLAT]])
    // CHECK-NEXT: %[[T1:.*]] = whale.send_recv %[[A]] channel 1
    // CHECK: whale.wait %[[T1]] keeps %[[A]]
    %r = whale.send_recv channel 0
        from #p0 to #p1
        : () -> tensor<2x2xf32>
    %v = stablehlo.reshape %r : (tensor<2x2xf32>) -> tensor<4xf32>
    %a = whale.launch @k0(%v) : (tensor<4xf32>) -> tensor<4xf32>
    whale.send_recv %a channel 1
        from #p2 to #p3
        : (tensor<4xf32>) -> ()
    %b = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %b : tensor<4xf32>
  }
}

// -----

#p0 = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#p1 = #whale.placement<[8] replicate 2 on [0, 1]>
#p2 = #whale.placement<[4] partial sum 2 on [0, 1]>
#p3 = #whale.placement<[4] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
  }
  // What is in loops is over where it is, and a gather that nothing is
  // computed beside.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK-NOT: token
  whale.schedule ranks [0, 1] @rank_class_0(
      %x: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
    %0 = whale.all_gather %x channel 0
        from #p0 to #p1
        : (tensor<4xf32>) -> tensor<8xf32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %1 = stablehlo.while(%i = %x) : tensor<4xf32>
    cond {
      stablehlo.return %c : tensor<i1>
    } do {
      %a = whale.launch @k0(%i) : (tensor<4xf32>) -> tensor<4xf32>
      %b = whale.all_reduce %a channel 1
          from #p2 to #p3
          : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %b : tensor<4xf32>
    }
    whale.return %0, %1 : tensor<8xf32>, tensor<4xf32>
  }
}

// -----

#first = #whale.placement<[4] replicate 1 on [0]>
#second = #whale.placement<[4] replicate 1 on [1]>
#third = #whale.placement<[4] replicate 1 on [2]>

// What is passed on is sent where it is there.
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[IN:.*]]:2 = whale.send_recv channel 0
// CHECK: %[[GOT:.*]] = whale.wait %[[IN]]#1 for %[[IN]]#0
// CHECK: whale.send_recv %[[GOT]] channel 1
// CHECK-SAME: (tensor<4xf32>) -> ()
whale.schedule ranks [1] @rank_class_0() {
  %0 = whale.send_recv channel 0 from #first to #second : () -> tensor<4xf32>
  whale.send_recv %0 channel 1 from #second to #third : (tensor<4xf32>) -> ()
  whale.return
}
whale.schedule ranks [0] @rank_class_1(%x: tensor<4xf32>) {
  whale.send_recv %x channel 0 from #first to #second : (tensor<4xf32>) -> ()
  whale.return
}
whale.schedule ranks [2] @rank_class_2() -> tensor<4xf32> {
  %0 = whale.send_recv channel 1 from #second to #third : () -> tensor<4xf32>
  whale.return %0 : tensor<4xf32>
}

// -----

#part = #whale.placement<[8000000] split 0 (4000000, 4000000) on [0, 1]>
#whole = #whale.placement<[8000000] replicate 2 on [0, 1]>
module {
  whale.cluster @cluster {
    nodes = [{devices = [{kind = "cpu", count = 2}],
              link = {bandwidth = 1.0e9}}]}
  module @kernels {
    func.func private @k0(memref<8000000xf32>, memref<8000000xf32>,
                          memref<8000000xf32>, index, index)
        attributes {whale.bytes = 640000000 : i64}
  }
  // Gathers are one ahead, where that pays: the second begins beside what uses
  // the first, the third when the second is used.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0, 1] @rank_class_0(
      %x: tensor<8000000xf32>, %a: tensor<4000000xf32>,
                          %b: tensor<4000000xf32>, %c: tensor<4000000xf32>)
      -> tensor<8000000xf32> {
    // CHECK: %[[A:.*]]:2 = whale.all_gather %{{.*}} channel 0
    // CHECK-NEXT: %[[B:.*]]:2 = whale.all_gather %{{.*}} channel 1
    // CHECK-NEXT: %[[WA:.*]] = whale.wait %[[A]]#1 for %[[A]]#0
    // CHECK-NEXT: whale.launch @k0(%{{.*}}, %[[WA]])
    // CHECK-NEXT: %[[C:.*]]:2 = whale.all_gather %{{.*}} channel 2
    // CHECK-NEXT: %[[WB:.*]] = whale.wait %[[B]]#1 for %[[B]]#0
    // CHECK-NEXT: whale.launch @k0(%{{.*}}, %[[WB]])
    // CHECK-NEXT: %[[WC:.*]] = whale.wait %[[C]]#1 for %[[C]]#0
    // CHECK-NEXT: whale.launch @k0(%{{.*}}, %[[WC]])
    %0 = whale.all_gather %a channel 0 from #part to #whole
        : (tensor<4000000xf32>) -> tensor<8000000xf32>
    %1 = whale.launch @k0(%x, %0)
        : (tensor<8000000xf32>, tensor<8000000xf32>) -> tensor<8000000xf32>
    %2 = whale.all_gather %b channel 1 from #part to #whole
        : (tensor<4000000xf32>) -> tensor<8000000xf32>
    %3 = whale.launch @k0(%1, %2)
        : (tensor<8000000xf32>, tensor<8000000xf32>) -> tensor<8000000xf32>
    %4 = whale.all_gather %c channel 2 from #part to #whole
        : (tensor<4000000xf32>) -> tensor<8000000xf32>
    %5 = whale.launch @k0(%3, %4)
        : (tensor<8000000xf32>, tensor<8000000xf32>) -> tensor<8000000xf32>
    whale.return %5 : tensor<8000000xf32>
  }
}

// -----

#p2 = #whale.placement<[4] replicate 1 on [1]>
#p3 = #whale.placement<[4] replicate 1 on [0]>
module {
  module @kernels {
    func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
        attributes {whale.bytes = 6400000000 : i64}
  }
  // A loop takes as long as its rounds: what is sent meanwhile is received
  // beside it, so the receive starts before it.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK: %[[GOT:.*]]:2 = whale.send_recv channel 0
  // CHECK-NEXT: stablehlo.while
  // CHECK: stablehlo.return
  // CHECK: stablehlo.return
  // CHECK-NEXT: }
  // CHECK-NEXT: whale.launch
  // CHECK-NEXT: whale.launch
  // CHECK-NEXT: whale.launch
  // CHECK-NEXT: whale.wait %[[GOT]]#1
  whale.schedule ranks [0] @rank_class_0(
      %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %c = stablehlo.constant dense<true> : tensor<i1>
    %0 = stablehlo.while(%i = %x) : tensor<4xf32>
        attributes {whale.trips = 4 : i64}
    cond {
      stablehlo.return %c : tensor<i1>
    } do {
      %1 = whale.launch @k0(%i) : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }
    %2 = whale.launch @k0(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = whale.launch @k0(%2) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = whale.launch @k0(%3) : (tensor<4xf32>) -> tensor<4xf32>
    %r = whale.send_recv channel 0
        from #p2 to #p3
        : () -> tensor<4xf32>
    whale.return %4, %r : tensor<4xf32>, tensor<4xf32>
  }
  whale.schedule ranks [1] @rank_class_1(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %b = whale.launch @k0(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %c = whale.launch @k0(%b) : (tensor<4xf32>) -> tensor<4xf32>
    whale.send_recv %c channel 0
        from #p2 to #p3
        : (tensor<4xf32>) -> ()
    whale.return %c : tensor<4xf32>
  }
}

// -----

#p0 = #whale.placement<[8] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[8] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
  }
  // What is reduced side by side starts with the last part, and is waited for
  // where the first one is read.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0, 1] @rank_class_0(%x: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    // CHECK: %[[A:.*]] = whale.launch @k0
    // CHECK: %[[B:.*]] = whale.launch @k0
    // CHECK-NEXT: %[[PACK:.*]] = whale.pack %[[A]], %[[B]]
    // CHECK-NEXT: %[[R:.*]]:2 = whale.all_reduce %[[PACK]]
    // CHECK-NEXT: whale.launch @k0
    // CHECK-NEXT: %[[W:.*]] = whale.wait %[[R]]#1 for %[[R]]#0
    // CHECK-NEXT: %[[SUMS:.*]]:2 = whale.unpack %[[W]]
    // CHECK-NEXT: whale.launch @k0(%[[SUMS]]#1)
    %a = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %b = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %other = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %0 = whale.pack %a, %b : tensor<4xf32>, tensor<4xf32> to tensor<8xf32>
    %1 = whale.all_reduce %0 channel 0
        from #p0 to #p1
        : (tensor<8xf32>) -> tensor<8xf32>
    %2:2 = whale.unpack %1 : tensor<8xf32> to tensor<4xf32>, tensor<4xf32>
    %3 = whale.launch @k0(%2#1) : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %2#0, %3, %other : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

#p0 = #whale.placement<[4] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[4] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k0(memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>,
                          index, index)
  }
  // Two that are read by one instruction keep their order before it.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0, 1] @rank_class_0(
      %a: tensor<4xf32>, %b: tensor<4xf32>)
      -> tensor<2x2xf32> {
    // CHECK: %[[A:.*]] = stablehlo.reshape
    // CHECK-NEXT: %[[B:.*]] = stablehlo.reshape
    // CHECK-NEXT: whale.launch @k0(%[[A]], %[[B]])
    %0 = whale.all_reduce %a channel 0
        from #p0 to #p1
        : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<2x2xf32>
    %2 = whale.all_reduce %b channel 1
        from #p0 to #p1
        : (tensor<4xf32>) -> tensor<4xf32>
    %3 = stablehlo.reshape %2 : (tensor<4xf32>) -> tensor<2x2xf32>
    %4 = whale.launch @k0(%1, %3)
        : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    whale.return %4 : tensor<2x2xf32>
  }
}
