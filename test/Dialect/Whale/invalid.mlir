// Attributes, clusters, virtual devices, task graphs, reshards, schedules,
// packs and epilogues of products (the whale dialect), each with one mistake.
// The parser or a verifier has to refuse it by the error noted above it. A
// failure means that a mistake passes, or that its message has changed.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{devices is 0, a strategy needs at least 1}}
module attributes {test.a = #whale.replicate<devices = 0>} {}

// -----

// expected-error@+1 {{devices is -2, a strategy needs at least 1}}
module attributes {test.a = #whale.split<devices = -2>} {}

// -----

// expected-error@+1 {{scope is -1, it can't be negative}}
module attributes {test.a = #whale.replicate<scope = -1>} {}

// -----

// expected-error@+2 {{expected one of [forward, backward, apply]}}
// expected-error@+1 {{failed to parse Whale_PhaseAttr}}
module attributes {test.a = #whale.phase<sideward>} {}

// -----

// expected-error@+1 {{unknown reduction 'mean', expected sum}}
module attributes {test.a = #whale.reduction<mean>} {}

// -----

// expected-error@+1 {{invalid placement: split sizes of dimension 0 sum to 7, but the extent to split is 8}}
module attributes {test.a = #whale.placement<[8] split 0 (3, 4) on [0, 1]>} {}

// -----

// expected-error@+1 {{invalid placement: device 0 appears twice}}
module attributes {test.a = #whale.placement<[8] replicate 2 on [0, 0]>} {}

// -----

// expected-error@+1 {{expected '>'}}
module attributes {test.a = #whale.placement<[8] on "0">} {}

// -----

// expected-error@+1 {{'whale.cluster' op nodes[0].devices[0].count: expected at least 1, found 0}}
whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 0}]}]}

// -----

// expected-error@+1 {{'whale.cluster' op kinds.k.flops.f32: expected a number, found null}}
whale.cluster @cluster {kinds = {k = {flops = {f32 = unit}}}, nodes = []}

// -----

// expected-error@+1 {{'whale.cluster' op nodes: expected at least one element}}
whale.cluster @cluster {nodes = []}

// -----

// expected-error@+1 {{'whale.virtual_device' op has no devices}}
whale.virtual_device @vd []

// -----

// expected-error@+1 {{'whale.virtual_device' op list 1 is empty}}
whale.virtual_device @vd [[0], []]

// -----

// expected-error@+1 {{'whale.virtual_device' op device -1 is negative}}
whale.virtual_device @vd [[-1]]

// -----

// expected-error@+1 {{'whale.virtual_device' op device 3 appears twice}}
whale.virtual_device @vd [[3, 1], [3]]

// -----

func.func @yield_types(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.task_graph' op yields ('tensor<8xf32>') but its results are ('tensor<4xf32>')}}
  %0 = whale.task_graph "a" forward -> tensor<4xf32> {
    whale.yield %x : tensor<8xf32>
  }
  return
}

// -----

func.func @yield_count(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.task_graph' op yields ('tensor<8xf32>') but its results are ()}}
  whale.task_graph "a" forward {
    whale.yield %x : tensor<8xf32>
  }
  return
}

// -----

func.func @no_yield(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.task_graph' op ends with 'llvm.unreachable', expected 'whale.yield'}}
  whale.task_graph "a" forward {
    llvm.unreachable
  }
  return
}

// -----

func.func @empty_name() {
  // expected-error@+1 {{'whale.task_graph' op has an empty name}}
  whale.task_graph "" forward {
    whale.yield
  }
  return
}

// -----

func.func @negative_flops() {
  // expected-error@+1 {{'whale.task_graph' op flops is negative}}
  whale.task_graph "a" forward flops -1 {
    whale.yield
  }
  return
}

// -----

func.func @negative_bytes() {
  // expected-error@+1 {{'whale.task_graph' op bytes is negative}}
  whale.task_graph "a" forward bytes -1 {
    whale.yield
  }
  return
}

// -----

func.func @nested() {
  whale.task_graph "a" forward {
    // expected-error@+1 {{'whale.task_graph' op is inside another task graph}}
    whale.task_graph "b" forward {
      whale.yield
    }
    whale.yield
  }
  return
}

// -----

func.func @unknown_phase() {
  // expected-error@+1 {{unknown phase 'sideward', expected forward, backward or apply}}
  whale.task_graph "a" sideward {
    whale.yield
  }
  return
}

// -----

func.func @undefined_device() {
  // expected-error@+1 {{'whale.task_graph' op virtual device @vd is undefined}}
  whale.task_graph "a" forward on @vd {
    whale.yield
  }
  return
}

// -----

func.func @no_device() {
  // expected-error@+1 {{'whale.task_graph' op virtual device @no_device is another kind of symbol}}
  whale.task_graph "a" forward on @no_device {
    whale.yield
  }
  return
}

// -----

func.func @stray_yield() {
  // expected-error@+1 {{'whale.yield' op expects parent op to be one of 'whale.task_graph, whale.micro_batches'}}
  whale.yield
}

// -----

#p = #whale.placement<[8] replicate 2 on [0, 1]>
#q = #whale.placement<[4, 4] replicate 2 on [0, 1]>
func.func @reshard_view(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.reshard' op 'to' has the view [4, 4], which is not a view of 'tensor<8xf32>'}}
  %0 = whale.reshard %x from #p to #q : tensor<8xf32>
  return
}

// -----

#p = #whale.placement<[8] split 0 (0:5, 3:8) on [0, 1]>
#q = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @reshard_windows(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.reshard' op 'from' is [8] split 0 (0:5, 3:8) on [0, 1]: windows are allowed in 'to' only}}
  %0 = whale.reshard %x from #p to #q : tensor<8xf32>
  return
}

// -----

#p = #whale.placement<[8] partial max 2 on [0, 1]>
#q = #whale.placement<[8] partial sum 2 on [0, 1]>
func.func @reshard_partial(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.reshard' op 'from' is a partial max and 'to' a partial sum}}
  %0 = whale.reshard %x from #p to #q : tensor<8xf32>
  return
}

// -----

#p = #whale.placement<[8] partial sum 2 on [0, 1]>
#q = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @reshard_wire(%x: tensor<8xf64>) {
  // expected-error@+1 {{'whale.reshard' op has elements of 'f64', which are not sent as 'bf16'}}
  %0 = whale.reshard %x from #p to #q {wire = bf16} : tensor<8xf64>
  return
}

// -----

#p = #whale.placement<[8] partial sum 2 on [0, 1]>
#q = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @reshard_wide_wire(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.reshard' op has elements of 'f32', which are not sent as 'f32'}}
  %0 = whale.reshard %x from #p to #q {wire = f32} : tensor<8xf32>
  return
}

// -----

#p = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#q = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @reshard_wire_of_parts(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.reshard' op 'wire' is of partial sums}}
  %0 = whale.reshard %x from #p to #q {wire = bf16} : tensor<8xf32>
  return
}

// -----

#p = #whale.placement<[8] partial sum 2 on [0, 1]>
#q = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @reshard_scale(%x: tensor<8xf32>) {
  // expected-error@+1 {{'whale.reshard' op 'scale' is positive, and stands beside 'wire'}}
  %0 = whale.reshard %x from #p to #q {scale = 2.0} : tensor<8xf32>
  return
}

// -----

#p = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @offset_dim() {
  // expected-error@+1 {{'whale.shard_offset' op dimension 1 is outside the view [8]}}
  %0 = whale.shard_offset 1 of #p : tensor<i32>
  return
}

// -----

func.func @around() {
  // expected-error@+1 {{'whale.schedule' op expects parent op 'builtin.module'}}
  whale.schedule ranks [0] @inside() {
    whale.return
  }
  return
}

// -----

// expected-error@+1 {{'whale.schedule' op has no ranks}}
whale.schedule ranks [] @no_ranks() {
  whale.return
}

// -----

// expected-error@+1 {{'whale.schedule' op rank -1 is negative}}
whale.schedule ranks [-1, 0] @negative_rank() {
  whale.return
}

// -----

// expected-error@+1 {{'whale.schedule' op rank 1 is behind rank 1, expected an ascending order}}
whale.schedule ranks [0, 1, 1] @rank_twice() {
  whale.return
}

// -----

// expected-error@+1 {{'whale.schedule' op rank 2 is behind rank 3, expected an ascending order}}
whale.schedule ranks [3, 2] @descending() {
  whale.return
}

// -----

// expected-error@+1 {{expected 'ranks'}}
whale.schedule @without_ranks() {
  whale.return
}

// -----

// expected-error@+1 {{'whale.schedule' op requires attribute 'ranks'}}
"whale.schedule"() <{function_type = () -> (), sym_name = "missing"}> ({
  "whale.return"() : () -> ()
}) : () -> ()

// -----

// expected-error@+1 {{'whale.schedule' op does not end with 'whale.return'}}
whale.schedule ranks [0] @other_end() {
  ub.unreachable
}

// -----

// expected-error@+1 {{'whale.schedule' op does not end with 'whale.return'}}
"whale.schedule"() <{function_type = () -> (), ranks = array<i64: 0>,
                     sym_name = "empty"}> ({^bb0:}) : () -> ()

// -----

whale.schedule ranks [0] @returned_types(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'whale.return' op returns ('tensor<4xf32>') but the results of @returned_types are ('tensor<8xf32>')}}
  whale.return %x : tensor<4xf32>
}

// -----

func.func @outside() {
  // expected-error@+1 {{'whale.return' op expects parent op 'whale.schedule'}}
  whale.return
}

// -----

#p = #whale.placement<[8] replicate 2 on [0, 1]>
whale.schedule ranks [0, 2] @offset_rank() {
  // expected-error@+1 {{'whale.shard_offset' op rank 2 holds no part of the value}}
  %0 = whale.shard_offset 0 of #p : tensor<i32>
  whale.return
}

// -----

#p = #whale.placement<[8] replicate 2 on [0, 1]>
func.func @offset_type() {
  // expected-error@+1 {{'whale.shard_offset' op result #0 must be 0D tensor of integer values}}
  %0 = whale.shard_offset 0 of #p : tensor<1xi32>
  return
}

// -----

func.func @pack_shape(%x: tensor<2x2xf32>) {
  // expected-error@+1 {{'whale.pack' op expects a whole of one dimension, got 'tensor<2x2xf32>'}}
  %0 = whale.pack %x : tensor<2x2xf32> to tensor<2x2xf32>
  return
}

// -----

func.func @pack_type(%x: tensor<2xf32>, %y: tensor<2xi32>) {
  // expected-error@+1 {{'whale.pack' op has a part of type 'tensor<2xi32>' of a whole of type 'tensor<4xf32>'}}
  %0 = whale.pack %x, %y : tensor<2xf32>, tensor<2xi32> to tensor<4xf32>
  return
}

// -----

func.func @unpack_size(%x: tensor<4xf32>) {
  // expected-error@+1 {{'whale.unpack' op has parts of 5 elements of a whole of 4}}
  %0:2 = whale.unpack %x : tensor<4xf32> to tensor<2xf32>, tensor<3xf32>
  return
}

// -----

func.func @unknown_epilogue(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{'whale.matmul' op has no epilogue 'relu'}}
  %0 = whale.matmul %a, %a {batch = array<i64>, epilogue = "relu",
      k = array<i64: 8, 1, 8>, m = array<i64: 8, 8, 8>, n = array<i64: 8, 1, 1>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @no_bias(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{'whale.matmul' op expects a bias with epilogue 'gelu_bias'}}
  %0 = whale.matmul %a, %a {batch = array<i64>, epilogue = "gelu_bias",
      k = array<i64: 8, 1, 8>, m = array<i64: 8, 8, 8>, n = array<i64: 8, 1, 1>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @second_without_epilogue(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{'whale.matmul' op does not expect a second result with epilogue ''}}
  %0:2 = whale.matmul %a, %a {batch = array<i64>,
      k = array<i64: 8, 1, 8>, m = array<i64: 8, 8, 8>, n = array<i64: 8, 1, 1>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>, tensor<8x8xf32>
  return %0#0 : tensor<8x8xf32>
}

// -----

func.func @epilogue_of_batch(%a: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  // expected-error@+1 {{'whale.matmul' op can have no epilogue: it is a batch of products}}
  %0 = whale.matmul %a, %a {batch = array<i64: 2, 64, 64, 64>,
      epilogue = "gelu", k = array<i64: 8, 1, 8>, m = array<i64: 8, 8, 8>,
      n = array<i64: 8, 1, 1>}
      : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}

// -----

func.func @short_bias(%a: tensor<8x8xf32>, %b: tensor<4xf32>)
    -> tensor<8x8xf32> {
  // expected-error@+1 {{'whale.matmul' op has a part of its epilogue of type 'tensor<4xf32>', expected 8 elements of the result's type}}
  %0 = whale.matmul %a, %a bias %b : tensor<4xf32> {batch = array<i64>,
      epilogue = "bias", k = array<i64: 8, 1, 8>, m = array<i64: 8, 8, 8>,
      n = array<i64: 8, 1, 1>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// expected-error@+1 {{'whale.schedule' op must be public}}
whale.schedule ranks [0] private @rank_class_0() {
  whale.return
}

// -----

// expected-error@+1 {{has 'ranks' twice}}
whale.schedule ranks [0] @rank_class_0() attributes {ranks = array<i64: 1>} {
  whale.return
}
