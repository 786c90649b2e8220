// RUN: whale-opt %s -whale-verify-schedule -split-input-file -verify-diagnostics

// Both ranks start in one order, whatever they wait for first. A local slice is
// in no queue.
#p0 = #whale.placement<[4] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[4] replicate 2 on [0, 1]>
#half = #whale.placement<[4] split 0 (2, 2) on [0, 1]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  %s = whale.local_slice %x channel 2 from #p1 to #half
      : (tensor<4xf32>) -> tensor<2xf32>
  %0, %t0 = whale.all_reduce %x channel 0 from #p0 to #p1
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %1, %t1 = whale.all_reduce %y channel 1 from #p0 to #p1
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %2 = whale.wait %t0 for %0 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  %3 = whale.wait %t1 for %1 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  whale.return
}
whale.schedule ranks [1] @b(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  %0, %t0 = whale.all_reduce %x channel 0 from #p0 to #p1
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %1, %t1 = whale.all_reduce %y channel 1 from #p0 to #p1
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %3 = whale.wait %t1 for %1 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  %2 = whale.wait %t0 for %0 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  %s = whale.local_slice %x channel 2 from #p1 to #half
      : (tensor<4xf32>) -> tensor<2xf32>
  whale.return
}

// -----

// The starts of one rank are swapped, the waits are not.
#p0 = #whale.placement<[4] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[4] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{channel 0 is started in another order in @b}}
  %0, %t0 = whale.all_reduce %x channel 0 from #p0 to #p1
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %1, %t1 = whale.all_reduce %y channel 1 from #p0 to #p1
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %2 = whale.wait %t0 for %0 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  %3 = whale.wait %t1 for %1 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  whale.return
}
whale.schedule ranks [1] @b(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-note@+1 {{this is started first}}
  %1, %t1 = whale.all_reduce %y channel 1 from #p0 to #p1
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %0, %t0 = whale.all_reduce %x channel 0 from #p0 to #p1
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %2 = whale.wait %t0 for %0 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  %3 = whale.wait %t1 for %1 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  whale.return
}

// -----

// What is only sent waits for its receiver, too: with buffered sends these two
// would end.
#r0 = #whale.placement<[4] on [0]>
#r1 = #whale.placement<[4] on [1]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>) {
  // expected-error@+1 {{channel 0 is started in another order in @b}}
  whale.send_recv %x channel 0 from #r0 to #r1 : (tensor<4xf32>) -> ()
  %0 = whale.send_recv channel 1 from #r1 to #r0 : () -> tensor<4xf32>
  whale.return
}
whale.schedule ranks [1] @b(%x: tensor<4xf32>) {
  // expected-note@+1 {{this is started first}}
  whale.send_recv %x channel 1 from #r1 to #r0 : (tensor<4xf32>) -> ()
  %0 = whale.send_recv channel 0 from #r0 to #r1 : () -> tensor<4xf32>
  whale.return
}

// -----

#p0 = #whale.placement<[4] partial sum 2 on [0, 1]>
#p1 = #whale.placement<[4] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>) {
  %0 = whale.all_reduce %x channel 0 from #p0 to #p1
      : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{channel 0 is started more often than in @b}}
  %1 = whale.all_reduce %0 channel 0 from #p0 to #p1
      : (tensor<4xf32>) -> tensor<4xf32>
  whale.return
}
whale.schedule ranks [1] @b(%x: tensor<4xf32>) {
  %0 = whale.all_reduce %x channel 0 from #p0 to #p1
      : (tensor<4xf32>) -> tensor<4xf32>
  whale.return
}

// -----

// Each iteration has an order; but @b exchanges with @c in the loop, and @c
// does so only when it is done with all that it exchanges with @a in it.
#r0 = #whale.placement<[4] on [0]>
#r1 = #whale.placement<[4] on [1]>
#r2 = #whale.placement<[4] on [2]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>, %more: tensor<i1>) {
  %0 = stablehlo.while(%m = %more) : tensor<i1>
  cond {
    stablehlo.return %m : tensor<i1>
  } do {
    // expected-error@+1 {{channel 0 is started in another order in @b}}
    whale.send_recv %x channel 0 from #r0 to #r1 : (tensor<4xf32>) -> ()
    whale.send_recv %x channel 1 from #r0 to #r2 : (tensor<4xf32>) -> ()
    stablehlo.return %m : tensor<i1>
  }
  whale.return
}
whale.schedule ranks [1] @b(%x: tensor<4xf32>, %more: tensor<i1>) {
  %0 = stablehlo.while(%m = %more) : tensor<i1>
  cond {
    stablehlo.return %m : tensor<i1>
  } do {
    %1 = whale.send_recv channel 0 from #r0 to #r1 : () -> tensor<4xf32>
    // expected-note@+1 {{this is started first}}
    whale.send_recv %x channel 2 from #r1 to #r2 : (tensor<4xf32>) -> ()
    stablehlo.return %m : tensor<i1>
  }
  whale.return
}
whale.schedule ranks [2] @c(%more: tensor<i1>) {
  %0 = stablehlo.while(%m = %more) : tensor<i1>
  cond {
    stablehlo.return %m : tensor<i1>
  } do {
    %1 = whale.send_recv channel 1 from #r0 to #r2 : () -> tensor<4xf32>
    stablehlo.return %m : tensor<i1>
  }
  %2 = stablehlo.while(%m = %more) : tensor<i1>
  cond {
    stablehlo.return %m : tensor<i1>
  } do {
    %3 = whale.send_recv channel 2 from #r1 to #r2 : () -> tensor<4xf32>
    stablehlo.return %m : tensor<i1>
  }
  whale.return
}

// -----

// Parts of a transfer start together, and are waited for together.
#r0 = #whale.placement<[4] on [0]>
#r1 = #whale.placement<[4] on [1]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>) {
  %t0 = whale.send_recv %x channel 0 from #r0 to #r1
      : (tensor<4xf32>) -> !whale.token
  %t1 = whale.send_recv %x channel 1 with 0 from #r0 to #r1
      : (tensor<4xf32>) -> !whale.token
  whale.wait %t0 keeps %x : (!whale.token, tensor<4xf32>) -> ()
  whale.wait %t1 keeps %x : (!whale.token, tensor<4xf32>) -> ()
  whale.return
}
whale.schedule ranks [1] @b() {
  // expected-error@+1 {{the transfer of channel 0 has other parts in another place}}
  %r0, %t0 = whale.send_recv channel 0 from #r0 to #r1
      : () -> (tensor<4xf32>, !whale.token)
  %r1, %t1 = whale.send_recv channel 1 from #r0 to #r1
      : () -> (tensor<4xf32>, !whale.token)
  %0 = whale.wait %t0 for %r0 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  %1 = whale.wait %t1 for %r1 : (!whale.token, tensor<4xf32>) -> tensor<4xf32>
  whale.return
}

// -----

#r0 = #whale.placement<[4] on [0]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>) {
  %r0, %t0 = whale.send_recv %x channel 0 from #r0 to #r0
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %0 = stablehlo.negate %x : tensor<4xf32>
  // expected-error@+1 {{is a part of the transfer of channel 0, which does not start before it}}
  %r1, %t1 = whale.send_recv %x channel 1 with 0 from #r0 to #r0
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %1 = whale.wait %t0 for %r0 keeps %x
      : (!whale.token, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = whale.wait %t1 for %r1 keeps %x
      : (!whale.token, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  whale.return
}

// -----

#r0 = #whale.placement<[4] on [0]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>) {
  %r0, %t0 = whale.send_recv %x channel 0 from #r0 to #r0
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  // expected-error@+1 {{is not waited for together with the others of its transfer}}
  %r1, %t1 = whale.send_recv %x channel 1 with 0 from #r0 to #r0
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %1 = whale.wait %t0 for %r0 keeps %x
      : (!whale.token, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = stablehlo.negate %1 : tensor<4xf32>
  %2 = whale.wait %t1 for %r1 keeps %x
      : (!whale.token, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  whale.return
}

// -----

#r0 = #whale.placement<[4] on [0]>
whale.schedule ranks [0] @a(%x: tensor<4xf32>) {
  %r0, %t0 = whale.broadcast %x channel 0 from #r0 to #r0
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  // expected-error@+1 {{is a part of another kind of transfer}}
  %r1, %t1 = whale.send_recv %x channel 1 with 0 from #r0 to #r0
      : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
  %1 = whale.wait %t0 for %r0 keeps %x
      : (!whale.token, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = whale.wait %t1 for %r1 keeps %x
      : (!whale.token, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  whale.return
}
