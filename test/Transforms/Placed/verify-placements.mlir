// Placed programs, some valid, the others with one mistake each: placements
// that the rule of an operation does not allow, partial values that it is not
// linear in, too few rows for a convolution, loops and branches whose condition
// a device lacks. Valid ones have to pass, and each mistake gives the error
// noted above it. One that passes would compute something else, or hang.

// RUN: whale-opt %s -whale-verify-placements -split-input-file -verify-diagnostics

// A product with a split contraction: the result is partial, until a reshard.
#x = #whale.placement<[8, 4] split 1 (1, 3) on [0, 1]>
#w = #whale.placement<[4, 6] split 0 (1, 3) on [0, 1]>
#terms = #whale.placement<[8, 6] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8, 6] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8x4xf32> {whale.placement = #x},
                %w: tensor<4x6xf32> {whale.placement = #w})
    -> tensor<8x6xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      {whale.placements = [#terms]}
      : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = whale.reshard %0 from #terms to #whole : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// Of the gradient of attention, cotangents of queries are split as their rows
// are, those of keys and values are partial.
#q = #whale.placement<[8, 4] split 0 (2, 6) on [0, 1]>
#k = #whale.placement<[6, 4] replicate 2 on [0, 1]>
#terms = #whale.placement<[6, 4] partial sum 2 on [0, 1]>
func.func @main(%q: tensor<8x4xf32> {whale.placement = #q},
                %k: tensor<6x4xf32> {whale.placement = #k})
    -> tensor<8x4xf32> {
  %0:3 = whale.attention_gradient query "qd" %q key "kd" %k value "ke" %k
      cotangent "qe" %q to "qd", "kd", "ke" scale 1.0
      {whale.placements = [#q, #terms, #terms]}
      : (tensor<8x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

#q = #whale.placement<[8, 4] split 0 (2, 6) on [0, 1]>
#k = #whale.placement<[6, 4] replicate 2 on [0, 1]>
#terms = #whale.placement<[6, 4] partial sum 2 on [0, 1]>
func.func @main(%q: tensor<8x4xf32> {whale.placement = #q},
                %k: tensor<6x4xf32> {whale.placement = #k})
    -> tensor<8x4xf32> {
  // expected-error@+1 {{result #2 is placed}}
  %0:3 = whale.attention_gradient query "qd" %q key "kd" %k value "ke" %k
      cotangent "qe" %q to "qd", "kd", "ke" scale 1.0
      {whale.placements = [#q, #terms, #k]}
      : (tensor<8x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>)
  return %0#0 : tensor<8x4xf32>
}

// -----

// Views that cut a dimension in the same pieces agree through a reshape.
#flat = #whale.placement<[3, 4] split 1 (1, 3) on [0, 1]>
#cube = #whale.placement<[3, 4] split 1 (1, 3) on [0, 1]>
func.func @main(%x: tensor<12xf32> {whale.placement = #flat})
    -> tensor<3x4xf32> {
  %0 = stablehlo.reshape %x {whale.placements = [#cube]}
      : (tensor<12xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// A share may be empty; then nothing is compared on its device.
#a = #whale.placement<[8] split 0 (8, 0) on [0, 1]>
#b = #whale.placement<[8] on [0]>
func.func @main(%x: tensor<8xf32> {whale.placement = #a}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {whale.placements = [#b]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A loop's zero has no terms, what goes round in it does.
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#bit = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #terms})
    -> tensor<8xf32> {
  %zero = stablehlo.constant {whale.placements = [#whole]}
      dense<0.0> : tensor<8xf32>
  %0 = stablehlo.while(%sum = %zero) : tensor<8xf32>
      attributes {whale.placements = [#terms]}
  cond {
    %more = stablehlo.constant {whale.placements = [#bit]}
        dense<false> : tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %1 = stablehlo.add %sum, %x {whale.placements = [#terms]} : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #whole})
    -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.tanh' op result #0 has no placement}}
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{argument #0 has no placement}}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

#whole = #whale.placement<[9] replicate 2 on [0, 1]>
// expected-error@+1 {{argument #0 has the placement [9] replicate 2 on [0, 1], which is none of 'tensor<8xf32>'}}
func.func @main(%x: tensor<8xf32> {whale.placement = #whole})
    -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}
#whole = #whale.placement<[8] replicate 2 on [0, 2]>
// expected-error@+1 {{argument #0 is placed on device 2, and the cluster has 2}}
func.func @main(%x: tensor<8xf32> {whale.placement = #whole})
    -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

#half = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #half})
    -> tensor<8xf32> {
  // expected-error@+1 {{wants its operands placed otherwise; run whale-insert-reshards first}}
  %0 = stablehlo.tanh %x {whale.placements = [#whole],
      whale.operand_placements = [#whole]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#half = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #half})
    -> tensor<8xf32> {
  // expected-error@+1 {{is from [8] replicate 2 on [0, 1], and its operand is [8] split 0 (4, 4) on [0, 1]}}
  %0 = whale.reshard %x from #whole to #whole : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#even = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#uneven = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
func.func @main(%a: tensor<8xf32> {whale.placement = #even},
                %b: tensor<8xf32> {whale.placement = #uneven})
    -> tensor<8xf32> {
  // expected-error@+1 {{operand #1 is placed [8] split 0 (3, 5) on [0, 1] and operand #0 [8] split 0 (4, 4) on [0, 1]: they disagree about a dimension that they share on device 0}}
  %0 = stablehlo.add %a, %b {whale.placements = [#even]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Equal sizes, but the other way round.
#rows = #whale.placement<[4, 4] split 0 (2, 2) on [0, 1]>
func.func @main(%a: tensor<4x4xf32> {whale.placement = #rows})
    -> tensor<4x4xf32> {
  // expected-error@+1 {{result #0 is placed [4, 4] split 0 (2, 2) on [0, 1] and operand #0 [4, 4] split 0 (2, 2) on [0, 1]: they disagree}}
  %0 = stablehlo.transpose %a, dims = [1, 0] {whale.placements = [#rows]}
      : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

#cut = #whale.placement<[12] split 0 (5, 7) on [0, 1]>
#whole = #whale.placement<[3, 4] replicate 2 on [0, 1]>
func.func @main(%x: tensor<12xf32> {whale.placement = #cut})
    -> tensor<3x4xf32> {
  // expected-error@+1 {{operand #0 is placed [12] split 0 (5, 7) on [0, 1], which cuts across the factors of its rule}}
  %0 = stablehlo.reshape %x {whale.placements = [#whole]}
      : (tensor<12xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

#a = #whale.placement<[2, 6] split 0 (1, 1) on [0, 1]>
#b = #whale.placement<[3, 4] split 0 (1, 2) on [0, 1]>
func.func @main(%a: tensor<12xf32> {whale.placement = #a},
                %b: tensor<12xf32> {whale.placement = #b}) -> tensor<12xf32> {
  // expected-error@+1 {{cuts a dimension in pieces that don't divide each other}}
  %0 = stablehlo.add %a, %b {whale.placements = [#a]} : tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

#half = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #half})
    -> tensor<8xf32> {
  // expected-error@+1 {{operand #0 is placed [8] split 0 (4, 4) on [0, 1], which cuts a dimension that the operation needs whole}}
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {whale.placements = [#half]} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #terms})
    -> tensor<8xf32> {
  // expected-error@+1 {{operand #0 is partial, and the operation is not linear in it}}
  %0 = stablehlo.tanh %x {whale.placements = [#terms]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #terms})
    -> tensor<8xf32> {
  // expected-error@+1 {{result #0 must be partial as operand #0 is}}
  %0 = stablehlo.negate %x {whale.placements = [#whole]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#half = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#scalar = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #half}) -> tensor<f32> {
  %zero = stablehlo.constant {whale.placements = [#scalar]}
      dense<0.0> : tensor<f32>
  // expected-error@+1 {{result #0 is placed [] replicate 2 on [0, 1], but operand #0 is split along a dimension that is reduced by sum}}
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [0] {whale.placements = [#scalar]}
      : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#rows = #whale.placement<[8, 8] split 0 (4, 4) on [0, 1]>
func.func @main(%x: tensor<8x8xf32> {whale.placement = #rows})
    -> tensor<8x8xf32> {
  // expected-error@+1 {{is split or partial, and has no rule that says how}}
  %0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {whale.placements = [#rows]}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#half = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#bit = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #half})
    -> tensor<8xf32> {
  // expected-error@+1 {{carries a value from [8] split 0 (4, 4) on [0, 1] to [8] replicate 2 on [0, 1]}}
  %0 = stablehlo.while(%sum = %x) : tensor<8xf32>
      attributes {whale.placements = [#whole]}
  cond {
    %more = stablehlo.constant {whale.placements = [#bit]}
        dense<false> : tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    stablehlo.return %sum : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#half = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#index = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%i: tensor<i32> {whale.placement = #index},
                %x: tensor<8xf32> {whale.placement = #half})
    -> tensor<8xf32> {
  %0 = "stablehlo.case"(%i) ({
    // expected-error@+1 {{carries a value from [8] split 0 (4, 4) on [0, 1] to [8] replicate 2 on [0, 1]}}
    stablehlo.return %x : tensor<8xf32>
  }) {whale.placements = [#whole]} : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Devices may have more rows of an image than they read, but not fewer.
#x = #whale.placement<[1, 8, 2] split 1 (3, 5) on [0, 1]>
#read = #whale.placement<[1, 8, 2] split 1 (0:4, 1:8) on [0, 1]>
#k = #whale.placement<[3, 2, 2] replicate 2 on [0, 1]>
#y = #whale.placement<[1, 8, 2] split 1 (3, 5) on [0, 1]>
func.func @main(%x: tensor<1x8x2xf32> {whale.placement = #x},
                %k: tensor<3x2x2xf32> {whale.placement = #k})
    -> tensor<1x8x2xf32> {
  %0 = whale.reshard %x from #x to #read : tensor<1x8x2xf32>
  %1 = stablehlo.convolution(%0, %k)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       whale.placements = [#y]}
      : (tensor<1x8x2xf32>, tensor<3x2x2xf32>) -> tensor<1x8x2xf32>
  return %1 : tensor<1x8x2xf32>
}

// -----

#x = #whale.placement<[1, 8, 2] split 1 (3, 5) on [0, 1]>
#read = #whale.placement<[1, 8, 2] split 1 (0:4, 3:8) on [0, 1]>
#k = #whale.placement<[3, 2, 2] replicate 2 on [0, 1]>
#y = #whale.placement<[1, 8, 2] split 1 (3, 5) on [0, 1]>
func.func @main(%x: tensor<1x8x2xf32> {whale.placement = #x},
                %k: tensor<3x2x2xf32> {whale.placement = #k})
    -> tensor<1x8x2xf32> {
  %0 = whale.reshard %x from #x to #read : tensor<1x8x2xf32>
  // expected-error@+1 {{operand #0 is placed [1, 8, 2] split 1 (0:4, 3:8) on [0, 1], and device 1 reads 2:8 of dimension 1}}
  %1 = stablehlo.convolution(%0, %k)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       whale.placements = [#y]}
      : (tensor<1x8x2xf32>, tensor<3x2x2xf32>) -> tensor<1x8x2xf32>
  return %1 : tensor<1x8x2xf32>
}

// -----

#x = #whale.placement<[1, 8, 2] split 1 (3, 5) on [0, 1]>
#read = #whale.placement<[1, 8, 2] split 1 (0:0, 2:8) on [0, 1]>
#k = #whale.placement<[3, 2, 2] replicate 2 on [0, 1]>
#y = #whale.placement<[1, 8, 2] split 1 (3, 5) on [0, 1]>
func.func @main(%x: tensor<1x8x2xf32> {whale.placement = #x},
                %k: tensor<3x2x2xf32> {whale.placement = #k})
    -> tensor<1x8x2xf32> {
  %0 = whale.reshard %x from #x to #read : tensor<1x8x2xf32>
  // expected-error@+1 {{operand #0 is placed [1, 8, 2] split 1 (0:0, 2:8) on [0, 1], and device 0 reads 0:4 of dimension 1}}
  %1 = stablehlo.convolution(%0, %k)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       whale.placements = [#y]}
      : (tensor<1x8x2xf32>, tensor<3x2x2xf32>) -> tensor<1x8x2xf32>
  return %1 : tensor<1x8x2xf32>
}

// -----

#x = #whale.placement<[1, 8, 2] replicate 2 on [0, 1]>
#k = #whale.placement<[3, 2, 2] replicate 2 on [0, 1]>
#y = #whale.placement<[1, 4, 2, 2] split 2 (1, 1) on [0, 1]>
func.func @main(%x: tensor<1x8x2xf32> {whale.placement = #x},
                %k: tensor<3x2x2xf32> {whale.placement = #k})
    -> tensor<1x8x2xf32> {
  // expected-error@+1 {{is placed [1, 4, 2, 2] split 2 (1, 1) on [0, 1], which cuts an image into other parts than runs of rows}}
  %1 = stablehlo.convolution(%x, %k)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       whale.placements = [#y]}
      : (tensor<1x8x2xf32>, tensor<3x2x2xf32>) -> tensor<1x8x2xf32>
  return %1 : tensor<1x8x2xf32>
}

// -----

// Sums would count a row twice.
#x = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#read = #whale.placement<[8] split 0 (0:4, 2:8) on [0, 1]>
#terms = #whale.placement<[] partial sum 2 on [0, 1]>
#zero = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xf32> {whale.placement = #x}) -> tensor<f32> {
  %z = stablehlo.constant {whale.placements = [#zero]} dense<0.0> : tensor<f32>
  %0 = whale.reshard %x from #x to #read : tensor<8xf32>
  // expected-error@+1 {{operand #0 is placed [8] split 0 (0:4, 2:8) on [0, 1], and the operation reads no windows of dimension 0}}
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add
      across dimensions = [0] {whale.placements = [#terms]}
      : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

#read = #whale.placement<[8] split 0 (0:4, 2:8) on [0, 1]>
// expected-error@+1 {{argument #0 has the placement [8] split 0 (0:4, 2:8) on [0, 1]: no value is made in windows}}
func.func @main(%x: tensor<8xf32> {whale.placement = #read}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// Each micro-batch is one device's term of the sum.
#first = #whale.placement<[] on [0]>
#second = #whale.placement<[] on [1]>
#terms = #whale.placement<[] partial sum 2 on [0, 1]>
func.func @main(%x: tensor<f32> {whale.placement = #first},
                %y: tensor<f32> {whale.placement = #second}) -> tensor<f32> {
  %0 = whale.micro_batches [0, 1](%x, %y)
      reduce [#whale.reduction<sum>] batch_dims [-1]
      attributes {whale.placements = [#terms]}
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>) {
  ^bb0(%a: tensor<f32>):
    whale.yield %a : tensor<f32>
  }, {
  ^bb0(%b: tensor<f32>):
    whale.yield %b : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// What both have would count twice.
#both = #whale.placement<[] replicate 2 on [0, 1]>
#terms = #whale.placement<[] partial sum 2 on [0, 1]>
func.func @main(%x: tensor<f32> {whale.placement = #both}) -> tensor<f32> {
  %0 = whale.micro_batches [0](%x)
      reduce [#whale.reduction<sum>] batch_dims [-1]
      attributes {whale.placements = [#terms]}
      : (tensor<f32>) -> (tensor<f32>) {
  ^bb0(%a: tensor<f32>):
    // expected-error@+1 {{yields a term from [] replicate 2 on [0, 1] to [] partial sum 2 on [0, 1]}}
    whale.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// Every device that goes through a loop knows whether to go on.
#both = #whale.placement<[8] replicate 2 on [0, 1]>
#bit = #whale.placement<[] on [0]>
func.func @main(%x: tensor<8xf32> {whale.placement = #both})
    -> tensor<8xf32> {
  // expected-note@+1 {{and that it needs for this}}
  %0 = stablehlo.while(%sum = %x) : tensor<8xf32>
      attributes {whale.placements = [#both]}
  cond {
    %more = stablehlo.constant {whale.placements = [#bit]}
        dense<false> : tensor<i1>
    // expected-error@+1 {{decides by a value that is placed [] on [0], which device 1 does not have}}
    stablehlo.return %more : tensor<i1>
  } do {
    stablehlo.return %sum : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

// Terms of a predicate are none yet.
#half = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#terms = #whale.placement<[] partial or 2 on [0, 1]>
#bit = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%x: tensor<8xi1> {whale.placement = #half}) -> tensor<8xi1> {
  %0 = stablehlo.while(%sum = %x) : tensor<8xi1>
      attributes {whale.placements = [#half]}
  cond {
    %no = stablehlo.constant {whale.placements = [#bit]}
        dense<false> : tensor<i1>
    %any = stablehlo.reduce(%sum init: %no) applies stablehlo.or
        across dimensions = [0] {whale.placements = [#terms]}
        : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    // expected-error@+1 {{decides by a value that is placed [] partial or 2 on [0, 1]; every device needs the whole of it}}
    stablehlo.return %any : tensor<i1>
  } do {
    stablehlo.return %sum : tensor<8xi1>
  }
  return %0 : tensor<8xi1>
}

// -----

// The index of one element has a part for one device alone.
#both = #whale.placement<[8] replicate 2 on [0, 1]>
#index = #whale.placement<[1] split 0 (1, 0) on [0, 1]>
func.func @main(%i: tensor<i32> {whale.placement = #index},
                %x: tensor<8xf32> {whale.placement = #both})
    -> tensor<8xf32> {
  // expected-error@+1 {{decides by a value that is placed [1] split 0 (1, 0) on [0, 1]; every device needs the whole of it}}
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<8xf32>
  }) {whale.placements = [#both]} : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A device that no result needs may still take part in what is inside.
#first = #whale.placement<[8] on [0]>
#second = #whale.placement<[8] on [1]>
#index = #whale.placement<[] on [0]>
func.func @main(%i: tensor<i32> {whale.placement = #index},
                %x: tensor<8xf32> {whale.placement = #first})
    -> tensor<8xf32> {
  // expected-error@+1 {{decides by a value that is placed [] on [0], which device 1 does not have}}
  %0 = "stablehlo.case"(%i) ({
    // expected-note@+1 {{and that it needs for this}}
    %1 = whale.reshard %x from #first to #second : tensor<8xf32>
    %2 = stablehlo.tanh %1 {whale.placements = [#second]} : tensor<8xf32>
    %3 = whale.reshard %2 from #second to #first : tensor<8xf32>
    stablehlo.return %3 : tensor<8xf32>
  }) {whale.placements = [#first]} : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// What a predicate is computed from is equal everywhere as well.
#half = #whale.placement<[2] split 0 (1, 1) on [0, 1]>
#bit = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%x: tensor<2xi1> {whale.placement = #half}) -> tensor<2xi1> {
  %0 = stablehlo.while(%bits = %x) : tensor<2xi1>
      attributes {whale.placements = [#half]}
  cond {
    %no = stablehlo.constant {whale.placements = [#bit]}
        dense<false> : tensor<i1>
    // expected-error@+1 {{result #0 is placed [] replicate 2 on [0, 1], but operand #0 is split along a dimension that is reduced by or}}
    %any = stablehlo.reduce(%bits init: %no) applies stablehlo.or
        across dimensions = [0] {whale.placements = [#bit]}
        : (tensor<2xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    stablehlo.return %bits : tensor<2xi1>
  }
  return %0 : tensor<2xi1>
}

// -----

#half = #whale.placement<[2] split 0 (1, 1) on [0, 1]>
#bit = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%x: tensor<2xi1> {whale.placement = #half}) -> tensor<2xi1> {
  %0 = stablehlo.while(%bits = %x) : tensor<2xi1>
      attributes {whale.placements = [#half]}
  cond {
    %more = stablehlo.constant {whale.placements = [#bit]}
        dense<false> : tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %1 = stablehlo.not %bits : tensor<2xi1>
    // expected-error@+1 {{operand #0 has no placement}}
    stablehlo.return %1 : tensor<2xi1>
  }
  return %0 : tensor<2xi1>
}

// -----

// Terms of a conjunction are none of a disjunction.
#terms = #whale.placement<[] partial and 2 on [0, 1]>
#whole = #whale.placement<[] replicate 2 on [0, 1]>
func.func @main(%x: tensor<i1> {whale.placement = #terms},
                %y: tensor<i1> {whale.placement = #whole}) -> tensor<i1> {
  %0 = stablehlo.and %x, %y {whale.placements = [#terms]} : tensor<i1>
  // expected-error@+1 {{operand #0 is partial, and the operation is not linear in it}}
  %1 = stablehlo.or %0, %y {whale.placements = [#terms]} : tensor<i1>
  return %1 : tensor<i1>
}
