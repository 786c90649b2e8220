// A program that whale-verify-partition accepts, and then one with a mistake in
// each part: ranks without a schedule or with two, channels that rank classes
// use differently or in another order, arguments and results that are not the
// shards of their placement. One that passes would hang, or exchange wrong
// data.

// RUN: whale-opt %s -whale-verify-partition -split-input-file -verify-diagnostics

// Two classes that take part in one channel, and a rank that holds nothing.
whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 3} ]} ]}
#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @rank_class_0(
    %a: tensor<3xf32> {whale.placement = #rows,
                       whale.global_type = tensor<8xf32>})
    -> (tensor<8xf32> {whale.placement = #whole,
                       whale.global_type = tensor<8xf32>}) {
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  whale.return %0 : tensor<8xf32>
}
whale.schedule ranks [1] @rank_class_1(
    %a: tensor<5xf32> {whale.placement = #rows,
                       whale.global_type = tensor<8xf32>})
    -> (tensor<8xf32> {whale.placement = #whole,
                       whale.global_type = tensor<8xf32>}) {
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<5xf32>) -> tensor<8xf32>
  whale.return %0 : tensor<8xf32>
}
whale.schedule ranks [2] @rank_class_2(
    %a: tensor<0xf32> {whale.placement = #rows,
                       whale.global_type = tensor<8xf32>})
    -> (tensor<0xf32> {whale.placement = #whole,
                       whale.global_type = tensor<8xf32>}) {
  whale.return %a : tensor<0xf32>
}

// -----

// expected-error@+1 {{has no whale.schedule; run whale-partition first}}
module {}

// -----

whale.schedule ranks [0, 1] @a() {
  whale.return
}
// expected-error@+1 {{rank 1 has another schedule too: @a}}
whale.schedule ranks [1] @b() {
  whale.return
}

// -----

// expected-error@+1 {{rank 1 has no schedule}}
module {
  whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}
  whale.schedule ranks [0] @a() {
    whale.return
  }
}

// -----

#rows = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a() {
  %a = stablehlo.constant dense<0.0> : tensor<4xf32>
  // expected-error@+1 {{channel 0 is used 2 times, and 1 times in @b}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<4xf32>) -> tensor<8xf32>
  %1 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<4xf32>) -> tensor<8xf32>
  whale.return
}
whale.schedule ranks [1] @b() {
  %a = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<4xf32>) -> tensor<8xf32>
  whale.return
}

// -----

#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a() {
  %a = stablehlo.constant dense<0.0> : tensor<3xf32>
  // expected-note@+1 {{there it is this one}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  whale.return
}
whale.schedule ranks [1] @b() {
  %a = stablehlo.constant dense<0.0> : tensor<5xf32>
  // expected-error@+1 {{channel 0 has another kind in another rank class}}
  %0 = whale.send_recv %a channel 0 from #rows to #whole
      : (tensor<5xf32>) -> tensor<8xf32>
  whale.return
}

// -----

#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#others = #whale.placement<[8] split 0 (2, 6) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a() {
  %a = stablehlo.constant dense<0.0> : tensor<3xf32>
  // expected-note@+1 {{there it is this one}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  whale.return
}
whale.schedule ranks [1] @b() {
  %a = stablehlo.constant dense<0.0> : tensor<6xf32>
  // expected-error@+1 {{channel 0 has other placements in another rank class}}
  %0 = whale.all_gather %a channel 0 from #others to #whole
      : (tensor<6xf32>) -> tensor<8xf32>
  whale.return
}

// -----

#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a() {
  %a = stablehlo.constant dense<0.0> : tensor<3xf32>
  // expected-note@+1 {{there it is this one}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  whale.return
}
whale.schedule ranks [1] @b() {
  %a = stablehlo.constant dense<0> : tensor<5xi32>
  // expected-error@+1 {{channel 0 has another element type in another rank class}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<5xi32>) -> tensor<8xi32>
  whale.return
}

// -----

#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a() {
  %a = stablehlo.constant dense<0.0> : tensor<3xf32>
  // expected-error@+1 {{channel 0 waits for rank 1, whose schedule @b has none}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  whale.return
}
whale.schedule ranks [1] @b() {
  whale.return
}

// -----

#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a() {
  %a = stablehlo.constant dense<0.0> : tensor<3xf32>
  // expected-error@+1 {{channel 0 names rank 1, which has no schedule}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  whale.return
}

// -----

#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a() {
  %a = stablehlo.constant dense<0.0> : tensor<3xf32>
  // expected-error@+1 {{channel 0 is reached in another order in @b}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  %1 = whale.all_gather %a channel 1 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  whale.return
}
whale.schedule ranks [1] @b() {
  %a = stablehlo.constant dense<0.0> : tensor<5xf32>
  // expected-note@+1 {{which waits here}}
  %1 = whale.all_gather %a channel 1 from #rows to #whole
      : (tensor<5xf32>) -> tensor<8xf32>
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<5xf32>) -> tensor<8xf32>
  whale.return
}

// -----

// One class communicates in a branch that may not be taken.
#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @a() {
  %a = stablehlo.constant dense<0.0> : tensor<3xf32>
  // expected-error@+1 {{channel 0 is in another loop or branch in @b}}
  %0 = whale.all_gather %a channel 0 from #rows to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  whale.return
}
whale.schedule ranks [1] @b() {
  %a = stablehlo.constant dense<0.0> : tensor<5xf32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.case"(%i) ({
    // expected-note@+1 {{there it is this one}}
    %1 = whale.all_gather %a channel 0 from #rows to #whole
        : (tensor<5xf32>) -> tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  whale.return
}

// -----

whale.schedule ranks [0] @a() {
  whale.return
}
// expected-error@+1 {{takes 1 arguments and gives 0 results, and @a 0 and 0}}
whale.schedule ranks [1] @b(%x: tensor<8xf32>) {
  whale.return
}

// -----

// expected-error@+1 {{argument #0 has no 'whale.placement'}}
whale.schedule ranks [0] @a(%x: tensor<8xf32>) {
  whale.return
}

// -----

#one = #whale.placement<[8] replicate 2 on [0, 1]>
#two = #whale.placement<[8] replicate 2 on [1, 0]>
whale.schedule ranks [0] @a(
    %x: tensor<8xf32> {whale.placement = #one,
    whale.global_type = tensor<8xf32>}) {
  whale.return
}
// expected-error@+1 {{argument #0 has another 'whale.placement' than in @a}}
whale.schedule ranks [1] @b(
    %x: tensor<8xf32> {whale.placement = #two,
    whale.global_type = tensor<8xf32>}) {
  whale.return
}

// -----

#one = #whale.placement<[8] on [0]>
// expected-error@+1 {{attribute 'whale.global_type' of argument 0 is 8 : i64, expected a tensor type}}
whale.schedule ranks [0] @a(
    %x: tensor<8xf32> {whale.placement = #one, whale.global_type = 8}) {
  whale.return
}

// -----

#one = #whale.placement<[9] on [0]>
// expected-error@+1 {{argument #0 is a 'tensor<8xf32>', of which [9] on [0] is no placement}}
whale.schedule ranks [0] @a(
    %x: tensor<8xf32> {whale.placement = #one,
    whale.global_type = tensor<8xf32>}) {
  whale.return
}

// -----

// Of [2, 4], [8] is a view, but its shards are no boxes of it.
#one = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
// expected-error@+1 {{argument #0 is a 'tensor<2x4xf32>', of which [8] split 0 (3, 5) on [0, 1] is no placement}}
whale.schedule ranks [0] @a(
    %x: tensor<3xf32> {whale.placement = #one,
    whale.global_type = tensor<2x4xf32>}) {
  whale.return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
// expected-error@+1 {{argument #0 is partial}}
whale.schedule ranks [0, 1] @a(
    %x: tensor<8xf32> {whale.placement = #terms,
    whale.global_type = tensor<8xf32>}) {
  whale.return
}

// -----

#two = #whale.placement<[8] replicate 2 on [0, 1]>
// expected-error@+1 {{argument #0 has a part on rank 1, which has no schedule}}
whale.schedule ranks [0] @a(
    %x: tensor<8xf32> {whale.placement = #two,
    whale.global_type = tensor<8xf32>}) {
  whale.return
}

// -----

#rows = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
// expected-error@+1 {{argument #0 is a 'tensor<3xf32>', but the shard of rank 1 is a 'tensor<5xf32>'}}
whale.schedule ranks [0, 1] @a(
    %x: tensor<3xf32> {whale.placement = #rows,
    whale.global_type = tensor<8xf32>}) {
  whale.return
}

// -----

#one = #whale.placement<[8] on [0]>
// expected-error@+1 {{result #0 is a 'tensor<4xf32>', but the shard of rank 0 is a 'tensor<8xf32>'}}
whale.schedule ranks [0] @a() -> (tensor<4xf32> {whale.placement = #one,
                                  whale.global_type = tensor<8xf32>}) {
  %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
  whale.return %0 : tensor<4xf32>
}
