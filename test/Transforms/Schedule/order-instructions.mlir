// RUN: whale-opt %s -whale-order-instructions -split-input-file | FileCheck %s

module {
  module @kernels {
    func.func @spread(%0: memref<4xf32>, %1: memref<64xf32>, %b: index,
                      %e: index) attributes {whale.extent = 1 : i64} {
      return
    }
    func.func @sum(%0: memref<64xf32>, %1: memref<4xf32>, %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
  }

  // What is large is used up before the next large value is made, through
  // views as well.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>, %y: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK: launch @spread(%arg0)
    // CHECK: launch @sum
    // CHECK: launch @spread(%arg1)
    // CHECK: launch @sum
    %a = whale.launch @spread(%x) : (tensor<4xf32>) -> tensor<64xf32>
    %b = whale.launch @spread(%y) : (tensor<4xf32>) -> tensor<64xf32>
    %v = stablehlo.reshape %a : (tensor<64xf32>) -> tensor<8x8xf32>
    %w = stablehlo.reshape %v : (tensor<8x8xf32>) -> tensor<64xf32>
    %c = whale.launch @sum(%w) : (tensor<64xf32>) -> tensor<4xf32>
    %d = whale.launch @sum(%b) : (tensor<64xf32>) -> tensor<4xf32>
    whale.return %c, %d : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

#terms = #whale.placement<[4] partial sum 2 on [0, 1]>
#whole = #whale.placement<[4] replicate 2 on [0, 1]>
module {
  module @kernels {
    func.func @spread(%0: memref<4xf32>, %1: memref<64xf32>, %b: index,
                      %e: index) attributes {whale.extent = 1 : i64} {
      return
    }
    func.func @sum(%0: memref<64xf32>, %1: memref<4xf32>, %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
  }

  // Collectives keep their places: the same instructions around them stay on
  // their sides.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  whale.schedule ranks [0, 1] @rank_class_0(
      %x: tensor<4xf32>, %y: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    // CHECK: launch @spread(%arg0)
    // CHECK: launch @spread(%arg1)
    // CHECK: whale.all_reduce
    // CHECK: launch @sum
    // CHECK: launch @sum
    %a = whale.launch @spread(%x) : (tensor<4xf32>) -> tensor<64xf32>
    %b = whale.launch @spread(%y) : (tensor<4xf32>) -> tensor<64xf32>
    %r = whale.all_reduce %x channel 0 from #terms to #whole
      : (tensor<4xf32>) -> tensor<4xf32>
    %c = whale.launch @sum(%a) : (tensor<64xf32>) -> tensor<4xf32>
    %d = whale.launch @sum(%b) : (tensor<64xf32>) -> tensor<4xf32>
    whale.return %c, %d, %r : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

module {
  module @kernels {
    func.func @write(%0: memref<64xf32>, %1: memref<4xf32>, %2: memref<64xf32>,
                     %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
    func.func @sum(%0: memref<64xf32>, %1: memref<4xf32>, %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
    func.func @spread(%0: memref<4xf32>, %1: memref<64xf32>, %b: index,
                      %e: index) attributes {whale.extent = 1 : i64} {
      return
    }
    func.func @less(%0: memref<4xf32>, %1: memref<i1>, %b: index, %e: index)
        attributes {whale.extent = 1 : i64} {
      return
    }
  }

  // What reuses the memory of a carried tensor comes after all that read
  // it: %d after %c, though less would be alive the other way round.
  // CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
  // CHECK: } do {
  // CHECK: [[OLD:%.*]] = whale.launch @sum(%iterArg)
  // CHECK: launch @write(%iterArg
  // CHECK: launch @spread([[OLD]])
  // CHECK: launch @spread(%iterArg_0)
  // CHECK: launch @sum
  // CHECK: launch @sum
  whale.schedule ranks [0] @rank_class_0(%x: tensor<64xf32>, %y: tensor<4xf32>)
      -> (tensor<64xf32>, tensor<4xf32>, tensor<4xf32>) {
    %r:3 = stablehlo.while(%iterArg = %x, %iterArg_0 = %y, %iterArg_1 = %y)
        : tensor<64xf32>, tensor<4xf32>, tensor<4xf32>
    cond {
      %p = whale.launch @less(%iterArg_0) : (tensor<4xf32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %a = whale.launch @sum(%iterArg) : (tensor<64xf32>) -> tensor<4xf32>
      %b = whale.launch @spread(%a) : (tensor<4xf32>) -> tensor<64xf32>
      %c = whale.launch @spread(%iterArg_0) : (tensor<4xf32>) -> tensor<64xf32>
      %d = whale.launch @sum(%b) : (tensor<64xf32>) -> tensor<4xf32>
      %e = whale.launch @sum(%c) : (tensor<64xf32>) -> tensor<4xf32>
      %w = whale.launch @write(%iterArg, %a) {updates = array<i64: 0>}
        : (tensor<64xf32>, tensor<4xf32>) -> tensor<64xf32>
      stablehlo.return %w, %d, %e : tensor<64xf32>, tensor<4xf32>, tensor<4xf32>
    }
    whale.return %r#0, %r#1, %r#2 : tensor<64xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
