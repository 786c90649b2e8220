// RUN: whale-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{attribute 'whale.default_strategy' is 4 : i64, expected #whale.replicate or #whale.split}}
module attributes {whale.default_strategy = 4} {}

// -----

// expected-error@+1 {{attribute 'whale.config' is "a", expected a dictionary}}
module attributes {whale.config = "a"} {}

// -----

// expected-error@+1 {{whale.config: num_micro_batch is 0 : i64, expected a whole number from 1 to 1048576}}
module attributes {whale.config = {num_micro_batch = 0 : i64}} {}

// -----

// expected-error@+1 {{whale.config: num_micro_batch is 2 : i32, expected a whole number from 1 to 1048576}}
module attributes {whale.config = {num_micro_batch = 2 : i32}} {}

// -----

// expected-error@+1 {{whale.config: num_micro_batch is 9223372036854775807 : i64, expected a whole number from 1 to 1048576}}
module attributes {whale.config = {num_micro_batch = 9223372036854775807 : i64}} {}

// -----

// expected-error@+1 {{whale.config: num_task_graph is "two", expected a whole number from 1 to 1048576}}
module attributes {whale.config = {num_task_graph = "two"}} {}

// -----

// expected-error@+1 {{whale.config: num_task_graph is -3 : i64, expected a whole number from 1 to 1048576}}
module attributes {whale.config = {num_task_graph = -3 : i64}} {}

// -----

// expected-error@+1 {{whale.config: pipeline.strategy is "2f2b", expected one of gpipe, 1f1b, backward-optimizer, interleaved, zero-bubble}}
module attributes {whale.config = {pipeline = {strategy = "2f2b"}}} {}

// -----

// expected-error@+1 {{whale.config: pipeline is "1f1b", expected a dictionary}}
module attributes {whale.config = {pipeline = "1f1b"}} {}

// -----

// expected-error@+1 {{whale.config: cluster.uneven_replicas is 1 : i64, expected true or false}}
module attributes {whale.config = {cluster = {uneven_replicas = 1 : i64}}} {}

// -----

// expected-error@+1 {{whale.config: there is no key 'pipeline.num_stages'; the keys are num_micro_batch, num_task_graph, pipeline.strategy, cluster.uneven_replicas}}
module attributes {whale.config = {pipeline = {num_stages = 2 : i64}}} {}

// -----

// expected-error@+1 {{attribute 'whale.virtual_devices' is [0], expected a list of array<i64: ...>}}
module attributes {whale.virtual_devices = [0 : i64]} {}

// -----

func.func @strategy(%x: tensor<8xf32>) {
  // expected-error@+1 {{attribute 'whale.strategy' is unit, expected #whale.replicate or #whale.split}}
  %0 = arith.addf %x, %x {whale.strategy} : tensor<8xf32>
  return
}

// -----

func.func @phase(%x: tensor<8xf32>) {
  // expected-error@+1 {{attribute 'whale.phase' is "forward", expected a #whale.phase}}
  %0 = arith.addf %x, %x {whale.phase = "forward"} : tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{attribute 'whale.ranks' is 0 : i64, expected a list of ranks as array<i64: ...>}}
func.func @ranks() attributes {whale.ranks = 0} {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.ranks' is array<i64>, expected at least one rank}}
func.func @no_ranks() attributes {whale.ranks = array<i64>} {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.ranks': rank 1 stands twice}}
func.func @ranks_twice() attributes {whale.ranks = array<i64: 1, 1>} {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.ranks': rank -1 is negative}}
func.func @negative_rank() attributes {whale.ranks = array<i64: -1>} {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.batch_dim' of argument 1 is 1, which is no dimension of 'tensor<8xf32>'}}
func.func @batch_dim(%x: tensor<8xf32>,
                     %y: tensor<8xf32> {whale.batch_dim = 1}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.batch_dim' is 0 : i32, expected an i64}}
func.func @batch_dim_type(%x: tensor<8xf32> {whale.batch_dim = 0 : i32}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.fed_by' of argument 0 is 1, the function has 1 results}}
func.func @fed_by(%x: tensor<8xf32> {whale.fed_by = 1}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{attribute 'whale.fed_by' is "a", expected an i64}}
func.func @fed_by_type(%x: tensor<8xf32> {whale.fed_by = "a"}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.donated' is true, expected no value}}
func.func @donated(%x: tensor<8xf32> {whale.donated = true}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.placement' is unit, expected a #whale.placement}}
func.func @placement(%x: tensor<8xf32> {whale.placement}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.placement' is unit, expected a #whale.placement}}
func.func @result(%x: tensor<8xf32>) -> (tensor<8xf32> {whale.placement}) {
  return %x : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{attribute 'whale.placements' is 3 : i64, expected a list of #whale.placement}}
  %0 = stablehlo.tanh %x {whale.placements = 3} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{attribute 'whale.placements' has 0 placements, expected 1}}
  %0 = stablehlo.tanh %x {whale.placements = []} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{attribute 'whale.operand_placements': [9] on [0] is no placement of 'tensor<8xf32>'}}
  %0 = stablehlo.tanh %x {whale.operand_placements = [#whale.placement<[9] on [0]>]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{attribute 'whale.loop_bytes' is [{fixed = 1 : i64}], expected a list of {devices = array<i64: ...>, fixed = i64, kept = {NAME = i64, ...}, outside = i64}}}
module attributes {whale.loop_bytes = [{fixed = 1 : i64}]} {}
