// Collectives of the whale dialect, each with one mistake: placements that this
// kind of exchange does not connect, shards that are not the boxes of their
// placement, a start without its wait. Each has to be refused by the error
// noted above it. One that passes would exchange wrong data, or none.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @channel(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op channel -1 is negative}}
  %0 = whale.all_reduce %x channel -1 from #terms to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @element_type(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op operand and result have element types 'f32' and 'f16'}}
  %0 = whale.all_reduce %x channel 0 from #terms to #whole
      : (tensor<8xf32>) -> tensor<8xf16>
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[9] replicate 2 on [0, 1]>
func.func @views(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op 'from' has 8 elements and 'to' 9}}
  %0 = whale.all_reduce %x channel 0 from #terms to #whole
      : (tensor<8xf32>) -> tensor<9xf32>
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @shape(%x: tensor<4xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op has operand of type 'tensor<4xf32>' but the box of rank 0 in 'from' has size [8]}}
  %0 = whale.all_reduce %x channel 0 from #terms to #whole
      : (tensor<4xf32>) -> tensor<8xf32>
  whale.return
}

// -----

#parts = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0, 1] @class(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.local_slice' op has result of type 'tensor<3xf32>' but the box of rank 1 in 'to' has size [5]}}
  %0 = whale.local_slice %x channel 0 from #whole to #parts
      : (tensor<8xf32>) -> tensor<3xf32>
  whale.return
}

// -----

// The shape is not a regrouping of the box.
#rows = #whale.placement<[8, 6] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8, 6] replicate 2 on [0, 1]>
whale.schedule ranks [0] @transposed(%y: tensor<3x8xf32>) {
  // expected-error@+1 {{'whale.all_gather' op has operand of type 'tensor<3x8xf32>' but the box of rank 0 in 'from' has size [4, 6]}}
  %0 = whale.all_gather %y channel 0 from #rows to #whole
      : (tensor<3x8xf32>) -> tensor<8x6xf32>
  whale.return
}

// -----

#owner = #whale.placement<[8] on [0]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [1] @holds_nothing(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.broadcast' op has operand of type 'tensor<8xf32>' but rank 1 holds nothing in 'from'}}
  %0 = whale.broadcast %x channel 0 from #owner to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  whale.return
}

// -----

#owner = #whale.placement<[8] on [0]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0] @holds_a_part(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.broadcast' op has no result but rank 0 holds a part in 'to'}}
  whale.broadcast %x channel 0 from #owner to #whole : (tensor<8xf32>) -> ()
  whale.return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 3 on [0, 1, 2]>
func.func @more_devices(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op device 2 of 'to' isn't in 'from'}}
  %0 = whale.all_reduce %x channel 0 from #terms to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#parts = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
func.func @all_reduce_box(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op the box of device 0 in 'from' isn't inside that in 'to'}}
  %0 = whale.all_reduce %x channel 0 from #terms to #parts
      : (tensor<8xf32>) -> tensor<3xf32>
  return
}

// -----

#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @reduces_nothing(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op reduces nothing}}
  %0 = whale.all_reduce %x channel 0 from #whole to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#sum = #whale.placement<[8] partial sum 2 partial sum 2 on [0, 1, 2, 3]>
#max = #whale.placement<[8] partial max 2 replicate 2 on [0, 1, 2, 3]>
func.func @other_reduction(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op 'from' is a partial sum and 'to' a partial max}}
  %0 = whale.all_reduce %x channel 0 from #sum to #max
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#some = #whale.placement<[8] partial sum 2 replicate 2 on [0, 1, 2, 3]>
#more = #whale.placement<[8] partial sum 2 partial sum 2 on [0, 1, 2, 3]>
func.func @more_terms(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op device 0 has one of 2 terms in 'from' and one of 4 in 'to'}}
  %0 = whale.all_reduce %x channel 0 from #some to #more
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#terms = #whale.placement<[8] replicate 2 partial sum 2 on [0, 1, 2, 3]>
#parts = #whale.placement<[8] partial sum 2 split 0 (4, 4) on [0, 1, 2, 3]>
func.func @scatter_box(%x: tensor<4xf32>) {
  // expected-error@+1 {{'whale.reduce_scatter' op the box of device 0 in 'to' isn't inside that in 'from'}}
  %0 = whale.reduce_scatter %x channel 0 from #parts to #terms
      : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

#parts = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @gather_box(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_gather' op the box of device 0 in 'from' isn't inside that in 'to'}}
  %0 = whale.all_gather %x channel 0 from #whole to #parts
      : (tensor<8xf32>) -> tensor<3xf32>
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @gather_terms(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_gather' op device 0 has one of 2 terms in 'from' and one of 1 in 'to'}}
  %0 = whale.all_gather %x channel 0 from #terms to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#inner = #whale.placement<[8] partial sum 2 replicate 2 on [0, 1, 2, 3]>
#whole = #whale.placement<[8] replicate 2 replicate 2 on [0, 1, 2, 3]>
func.func @exchange_terms(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_to_all' op device 0 has one of 2 terms in 'from' and one of 1 in 'to'}}
  %0 = whale.all_to_all %x channel 0 from #inner to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @broadcast_partial(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.broadcast' op 'from' is partial}}
  %0 = whale.broadcast %x channel 0 from #terms to #whole
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#parts = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @broadcast_box(%x: tensor<3xf32>) {
  // expected-error@+1 {{'whale.broadcast' op no device of 'from' holds the box of device 0 in 'to'}}
  %0 = whale.broadcast %x channel 0 from #parts to #whole
      : (tensor<3xf32>) -> tensor<8xf32>
  return
}

// -----

#read = #whale.placement<[8] split 0 (0:5, 3:8) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @send_recv_windows(%x: tensor<5xf32>) {
  // expected-error@+1 {{'whale.send_recv' op 'from' is [8] split 0 (0:5, 3:8) on [0, 1]: windows are allowed in 'to' only}}
  %0 = whale.send_recv %x channel 0 from #read to #whole
      : (tensor<5xf32>) -> tensor<8xf32>
  return
}

// -----

#terms = #whale.placement<[8] partial max 2 on [0, 1]>
#other = #whale.placement<[8] partial min 2 on [2, 3]>
func.func @send_recv_reduction(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.send_recv' op 'from' is a partial max and 'to' a partial min}}
  whale.send_recv %x channel 0 from #terms to #other : (tensor<8xf32>) -> ()
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#one = #whale.placement<[8] on [0]>
func.func @slice_of_terms(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.local_slice' op 'from' is partial and 'to' isn't}}
  %0 = whale.local_slice %x channel 0 from #terms to #one
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#parts = #whale.placement<[8] split 0 (3, 5) on [0, 1]>
#other = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
func.func @slice_box(%x: tensor<3xf32>) {
  // expected-error@+1 {{'whale.local_slice' op the box of device 0 in 'to' isn't inside that in 'from'}}
  %0 = whale.local_slice %x channel 0 from #parts to #other
      : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// Boxes of one view need not be boxes of the other.
#rows = #whale.placement<[6, 4] split 1 (1, 3) on [0, 1]>
#flat = #whale.placement<[24] split 0 (5, 19) on [0, 1]>
func.func @no_box(%x: tensor<4xf32>) {
  // expected-error@+1 {{'whale.all_to_all' op 'from' and 'to' have no view in common in which all parts are boxes}}
  %0 = whale.all_to_all %x channel 0 from #rows to #flat
      : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#parts = #whale.placement<[8] split 0 (3, 3, 2) on [0, 1, 2]>
func.func @unknown_device(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.all_to_all' op device 2 of 'to' isn't in 'from'}}
  %0 = whale.all_to_all %x channel 0 from #whole to #parts
      : (tensor<8xf32>) -> tensor<3xf32>
  return
}

// -----

// A view of one element has empty parts, that of a scalar has none.
#none = #whale.placement<[1] split 0 (1, 0) on [0, 1]>
#whole = #whale.placement<[] replicate 2 on [0, 1]>
whale.schedule ranks [1] @scalar(%x: tensor<1xf32>) {
  // expected-error@+1 {{'whale.all_reduce' op the box of device 1 in 'to' isn't inside that in 'from'}}
  %0 = whale.all_reduce channel 0 from #none to #whole : () -> tensor<f32>
  whale.return
}

// -----

#terms = #whale.placement<[] partial sum 2 on [0, 1]>
#first = #whale.placement<[] on [0]>
func.func @one_sided(%x: tensor<f32>) {
  // expected-error@+1 {{'whale.all_reduce' op lacks an operand or a result: each rank passes a term and receives the sum}}
  whale.all_reduce %x channel 0 from #terms to #first : (tensor<f32>) -> ()
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @token_without_wait(%x: tensor<8xf32>) {
  // expected-error@+1 {{has a token that isn't used by one whale.wait in the same block}}
  %0, %t = whale.all_reduce %x channel 0 from #terms to #whole
      : (tensor<8xf32>) -> (tensor<8xf32>, !whale.token)
  return
}

// -----

#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @early_use(%x: tensor<8xf32>) {
  // expected-note@+1 {{its transfer starts here}}
  %0, %t = whale.all_reduce %x channel 0 from #terms to #whole
      : (tensor<8xf32>) -> (tensor<8xf32>, !whale.token)
  // expected-error@+1 {{uses a shard that is still being received}}
  %1 = stablehlo.negate %0 : tensor<8xf32>
  %2 = whale.wait %t for %0 : (!whale.token, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#parts = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @source_not_kept(%x: tensor<4xf32>) {
  %0, %t = whale.all_gather %x channel 0 from #parts to #whole
      : (tensor<4xf32>) -> (tensor<8xf32>, !whale.token)
  // expected-error@+1 {{'keeps' must be the collective's operand}}
  %1 = whale.wait %t for %0 : (!whale.token, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#parts = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @nothing_for_what_is_received(%x: tensor<4xf32>) {
  %0, %t = whale.all_gather %x channel 0 from #parts to #whole
      : (tensor<4xf32>) -> (tensor<8xf32>, !whale.token)
  // expected-error@+1 {{'for' must be the collective's result}}
  whale.wait %t keeps %x : (!whale.token, tensor<4xf32>) -> ()
  return
}

// -----

#r0 = #whale.placement<[8] on [0]>
func.func @part_of_itself(%x: tensor<8xf32>) {
  // expected-error@+1 {{is a part of its own transfer}}
  %0, %t = whale.send_recv %x channel 3 with 3 from #r0 to #r0
      : (tensor<8xf32>) -> (tensor<8xf32>, !whale.token)
  %1 = whale.wait %t for %0 keeps %x
      : (!whale.token, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#r0 = #whale.placement<[8] on [0]>
func.func @part_without_token(%x: tensor<8xf32>) {
  // expected-error@+1 {{is a part of another transfer, and has no token}}
  %0 = whale.send_recv %x channel 3 with 2 from #r0 to #r0
      : (tensor<8xf32>) -> tensor<8xf32>
  return
}
