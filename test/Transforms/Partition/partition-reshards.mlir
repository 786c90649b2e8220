// RUN: whale-opt %s --split-input-file --whale-verify-placements \
// RUN:   --whale-partition --whale-verify-partition | FileCheck %s

// A value that both devices have becomes a sum of terms: one device keeps it,
// the other one gets zeros.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8xf32>
// CHECK: %[[TERM:.*]] = whale.local_slice %[[X]] channel 0
// CHECK: %[[SUM:.*]] = whale.all_reduce %[[TERM]] channel 1
// CHECK: whale.return %[[SUM]]
#both = #whale.placement<[8] replicate 2 on [0, 1]>
#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%x: tensor<8xf32> {whale.placement = #both})
      -> tensor<8xf32> {
    %0 = whale.reshard %x from #both to #terms : tensor<8xf32>
    %1 = whale.reshard %0 from #terms to #both : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// What is sent in halves is scaled and rounded before, and the sum is divided
// by the scale where it arrives.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8xf32>
// CHECK: %[[TERM:.*]] = whale.local_slice %[[X]] channel 0 {{.*}} -> tensor<8xf32>
// CHECK: %[[SCALE:.*]] = stablehlo.constant dense<1.280000e+02> : tensor<8xf32>
// CHECK: %[[SCALED:.*]] = stablehlo.multiply %[[TERM]], %[[SCALE]] : tensor<8xf32>
// CHECK: %[[HALF:.*]] = stablehlo.convert %[[SCALED]] : (tensor<8xf32>) -> tensor<8xf16>
// CHECK: %[[SUM:.*]] = whale.all_reduce %[[HALF]] {{.*}} -> tensor<8xf16>
// CHECK: %[[WIDE:.*]] = stablehlo.convert %[[SUM]] : (tensor<8xf16>) -> tensor<8xf32>
// CHECK: %[[PART:.*]] = stablehlo.constant dense<7.812500e-03> : tensor<8xf32>
// CHECK: %[[RESULT:.*]] = stablehlo.multiply %[[WIDE]], %[[PART]] : tensor<8xf32>
// CHECK: whale.return %[[RESULT]]
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#sum = #whale.placement<[8] partial sum 2 on [0, 1]>
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  func.func @main(%x: tensor<8xf32> {whale.placement = #whole})
      -> tensor<8xf32> {
    %0 = whale.reshard %x from #whole to #sum : tensor<8xf32>
    %1 = whale.reshard %0 from #sum to #whole {wire = f16, scale = 128.0}
        : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// A task graph drops what a device has of a value, for which nothing moves, and
// so does a later one of the moment, from what is left of the first.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: %[[ONE:.*]]:2 = func.call @segment_0(%arg0)
// CHECK: %[[ALL:.*]] = whale.broadcast %[[ONE]]#1
// CHECK: func.call @segment_1(%[[ONE]]#0, %[[ALL]],
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK-NOT: call
// CHECK-LABEL: func.func private @segment_0
// CHECK: %[[TANH:.*]] = stablehlo.tanh
// CHECK: %[[SINE:.*]] = stablehlo.sine
// CHECK: return %[[TANH]], %[[SINE]]
#both = #whale.placement<[4] replicate 2 on [0, 1]>
#first = #whale.placement<[4] on [0]>
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0, 1]]
  func.func @main(%a: tensor<4xf32> {whale.placement = #both})
      -> (tensor<4xf32> {whale.placement = #first}) {
    %0 = whale.micro_batches [0](%a) reduce [#whale.reduction<sum>]
        attributes {whale.placements = [#first]}
        : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1:2 = whale.task_graph "one" forward on @vd0
          -> tensor<4xf32>, tensor<4xf32> {
        %5 = stablehlo.tanh %x {whale.placements = [#both]} : tensor<4xf32>
        %6 = whale.reshard %5 from #both to #first : tensor<4xf32>
        %7 = stablehlo.sine %6 {whale.placements = [#first]} : tensor<4xf32>
        whale.yield %5, %7 : tensor<4xf32>, tensor<4xf32>
      }
      %2 = whale.reshard %1#1 from #first to #both : tensor<4xf32>
      %3 = whale.reshard %1#0 from #both to #first : tensor<4xf32>
      %4 = whale.task_graph "one" backward on @vd0 -> tensor<4xf32> {
        %5 = stablehlo.cosine %2 {whale.placements = [#both]} : tensor<4xf32>
        %6 = whale.reshard %5 from #both to #first : tensor<4xf32>
        %7 = stablehlo.multiply %6, %3 {whale.placements = [#first]}
            : tensor<4xf32>
        whale.yield %7 : tensor<4xf32>
      }
      whale.yield %4 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

// A constant that a task graph of a moment returns is exchanged as a value:
// who sends it makes it in the schedule, as no segment returns one.

// CHECK-LABEL: whale.schedule {{.*}}@rank_class_0
// CHECK: stablehlo.constant dense<[1.0
// CHECK-NEXT: %[[SENT:.*]] = stablehlo.constant dense<[1.0
// CHECK-NEXT: whale.send_recv %[[SENT]] channel 0
// CHECK-NOT: call
// CHECK-LABEL: whale.schedule {{.*}}@rank_class_1
// CHECK: %[[GIVEN:.*]] = whale.send_recv channel 0
// CHECK: call @segment_0({{.*}}%[[GIVEN]]
#first = #whale.placement<[4] on [0]>
#second = #whale.placement<[4] on [1]>
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2}]}]}
  whale.virtual_device @vd0 [[0]]
  whale.virtual_device @vd1 [[1]]
  func.func @main(%a: tensor<4xf32> {whale.placement = #second})
      -> (tensor<4xf32> {whale.placement = #second}) {
    %0 = whale.micro_batches [0](%a) reduce [#whale.reduction<sum>]
        attributes {whale.placements = [#second]}
        : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>):
      %1 = whale.task_graph "one" forward on @vd0 -> tensor<4xf32> {
        %4 = stablehlo.constant {whale.placements = [#first]}
            dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
        whale.yield %4 : tensor<4xf32>
      }
      %2 = whale.reshard %1 from #first to #second : tensor<4xf32>
      %3 = whale.task_graph "two" forward on @vd1 -> tensor<4xf32> {
        %4 = stablehlo.add %x, %2 {whale.placements = [#second]}
            : tensor<4xf32>
        whale.yield %4 : tensor<4xf32>
      }
      whale.yield %3 : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}
