// Where memory is short, nothing is gathered before it is needed, also where it
// was. A reduction in place takes no memory: it still starts early.
//
// RUN: whale-opt %s -split-input-file -whale-start-transfers | FileCheck %s --check-prefix=EARLY
// RUN: whale-opt %s -split-input-file -whale-start-transfers=late=true | FileCheck %s
// RUN: whale-opt %s -split-input-file -whale-start-transfers -whale-start-transfers=late=true | FileCheck %s

#part = #whale.placement<[8000000] split 0 (4000000, 4000000) on [0, 1]>
#whole = #whale.placement<[8000000] replicate 2 on [0, 1]>
#sums = #whale.placement<[8000000] partial sum 2 on [0, 1]>
module {
  whale.cluster @cluster {
    nodes = [{devices = [{kind = "cpu", count = 3}],
              link = {bandwidth = 1.0e9}}]}
  module @kernels {
    func.func private @k0(memref<8000000xf32>, memref<8000000xf32>,
                          memref<8000000xf32>, index, index)
        attributes {whale.bytes = 640000000 : i64}
  }
  // EARLY-LABEL: whale.schedule {{.*}}@rank_class_0
  // EARLY: whale.all_gather {{.*}} !whale.token
  // EARLY: whale.all_reduce {{.*}} !whale.token
  // EARLY: whale.all_gather {{.*}} !whale.token
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0, 1] @rank_class_0(
      %x: tensor<8000000xf32>, %a: tensor<4000000xf32>,
                          %b: tensor<4000000xf32>)
      -> (tensor<8000000xf32>, tensor<8000000xf32>) {
    // CHECK: %[[K:.*]] = whale.launch @k0
    // CHECK-NEXT: %[[R:.*]]:2 = whale.all_reduce %[[K]] channel 0
    // CHECK-NEXT: %[[A:.*]] = whale.all_gather
    // CHECK-NEXT: whale.launch @k0(%{{.*}}, %[[A]])
    // CHECK-NEXT: %[[B:.*]] = whale.all_gather
    // CHECK-NEXT: whale.launch @k0(%{{.*}}, %[[B]])
    // CHECK: whale.wait %[[R]]#1
    %k = whale.launch @k0(%x, %x)
        : (tensor<8000000xf32>, tensor<8000000xf32>) -> tensor<8000000xf32>
    %r = whale.all_reduce %k channel 0 from #sums to #whole
        : (tensor<8000000xf32>) -> tensor<8000000xf32>
    %0 = whale.all_gather %a channel 1 from #part to #whole
        : (tensor<4000000xf32>) -> tensor<8000000xf32>
    %1 = whale.launch @k0(%x, %0)
        : (tensor<8000000xf32>, tensor<8000000xf32>) -> tensor<8000000xf32>
    %2 = whale.all_gather %b channel 2 from #part to #whole
        : (tensor<4000000xf32>) -> tensor<8000000xf32>
    %3 = whale.launch @k0(%1, %2)
        : (tensor<8000000xf32>, tensor<8000000xf32>) -> tensor<8000000xf32>
    whale.return %3, %r : tensor<8000000xf32>, tensor<8000000xf32>
  }
}

// -----

#source = #whale.placement<[4] replicate 1 on [2]>
#both = #whale.placement<[4] replicate 2 on [0, 1]>
#sums = #whale.placement<[4] partial sum 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
  }
  // What a rank receives but doesn't use (its share may be empty) is received
  // where it is: others wait for it.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: whale.send_recv channel 0
    // CHECK: whale.all_reduce
    %0 = whale.send_recv channel 0 from #source to #both : () -> tensor<4xf32>
    %1 = whale.all_reduce %x channel 1 from #sums to #both
        : (tensor<4xf32>) -> tensor<4xf32>
    %2 = whale.launch @k0(%1) : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %2 : tensor<4xf32>
  }
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
  whale.schedule ranks [1] @rank_class_1(%x: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: whale.send_recv channel 0
    // CHECK: whale.launch
    // CHECK: whale.all_reduce
    %0 = whale.send_recv channel 0 from #source to #both : () -> tensor<4xf32>
    %1 = whale.launch @k0(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = whale.all_reduce %1 channel 1 from #sums to #both
        : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %2 : tensor<4xf32>
  }
  whale.schedule ranks [2] @rank_class_2(%x: tensor<4xf32>) {
    whale.send_recv %x channel 0 from #source to #both : (tensor<4xf32>) -> ()
    whale.return
  }
}

// -----

#source = #whale.placement<[2] replicate 1 on [2]>
#both = #whale.placement<[2] split 0 (1, 1) on [0, 1]>
#first = #whale.placement<[2] split 0 (2, 0) on [0, 1]>
module {
  module @kernels {
    func.func private @k0(memref<2xf32>, memref<1xf32>, index, index)
    func.func private @k1(memref<1xf32>, memref<1xf32>, index, index)
  }
  // A share that is empty on a rank is received there when others receive it:
  // nothing waits for it.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0] @rank_class_0() -> tensor<1xf32> {
    // CHECK: whale.send_recv channel 0
    // CHECK: whale.launch @k1
    // CHECK: whale.send_recv channel 1
    // CHECK: whale.launch @k0
    %0 = whale.send_recv channel 0 from #source to #both : () -> tensor<1xf32>
    %1 = whale.launch @k1(%0) : (tensor<1xf32>) -> tensor<1xf32>
    %2 = whale.send_recv channel 1 from #source to #first : () -> tensor<2xf32>
    %3 = whale.launch @k0(%2) : (tensor<2xf32>) -> tensor<1xf32>
    whale.return %3 : tensor<1xf32>
  }
  whale.schedule ranks [1] @rank_class_1() -> tensor<1xf32> {
    %0 = whale.send_recv channel 1 from #source to #first : () -> tensor<0xf32>
    %1 = whale.send_recv channel 0 from #source to #both : () -> tensor<1xf32>
    %2 = whale.launch @k1(%1) : (tensor<1xf32>) -> tensor<1xf32>
    whale.return %2 : tensor<1xf32>
  }
  whale.schedule ranks [2] @rank_class_2(%x: tensor<2xf32>) {
    whale.send_recv %x channel 0 from #source to #both : (tensor<2xf32>) -> ()
    whale.send_recv %x channel 1 from #source to #first : (tensor<2xf32>) -> ()
    whale.return
  }
}

// -----

#source = #whale.placement<[4] replicate 1 on [2]>
#both = #whale.placement<[4] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
  }
  // Ranks that use two values in another order can't both receive each where it
  // is used: receives start early, as without `late`.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0] @rank_class_0() -> tensor<4xf32> {
    // CHECK: whale.send_recv channel 0
    // CHECK: whale.send_recv channel 1
    // CHECK: whale.launch
    %0 = whale.send_recv channel 0 from #source to #both : () -> tensor<4xf32>
    %1 = whale.launch @k0(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = whale.send_recv channel 1 from #source to #both : () -> tensor<4xf32>
    %3 = whale.launch @k0(%2) : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %3 : tensor<4xf32>
  }
  whale.schedule ranks [1] @rank_class_1() -> tensor<4xf32> {
    %0 = whale.send_recv channel 1 from #source to #both : () -> tensor<4xf32>
    %1 = whale.launch @k0(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = whale.send_recv channel 0 from #source to #both : () -> tensor<4xf32>
    %3 = whale.launch @k0(%2) : (tensor<4xf32>) -> tensor<4xf32>
    whale.return %3 : tensor<4xf32>
  }
  whale.schedule ranks [2] @rank_class_2(%x: tensor<4xf32>) {
    whale.send_recv %x channel 0 from #source to #both : (tensor<4xf32>) -> ()
    whale.send_recv %x channel 1 from #source to #both : (tensor<4xf32>) -> ()
    whale.return
  }
}
