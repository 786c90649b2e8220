// Attributes of the whale dialect that have a wrong type, a value without a
// meaning or an unknown name, or are at a wrong place. Each has to be refused
// by the error noted above it, which names the attribute and says what is
// expected. One that passes would be ignored, or break a later pass.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{attribute 'whale.default_strategy' is 4 : i64, expected #whale.replicate or #whale.split}}
module attributes {whale.default_strategy = 4} {}

// -----

// expected-error@+1 {{attribute 'whale.config' is "a", expected a dictionary}}
module attributes {whale.config = "a"} {}

// -----

// expected-error@+1 {{whale.config: num_micro_batch is 0 : i64, expected a whole number from 1 to 32768}}
module attributes {whale.config = {num_micro_batch = 0 : i64}} {}

// -----

// expected-error@+1 {{whale.config: num_micro_batch is 2 : i32, expected a whole number from 1 to 32768}}
module attributes {whale.config = {num_micro_batch = 2 : i32}} {}

// -----

// expected-error@+1 {{whale.config: num_micro_batch is 9223372036854775807 : i64, expected a whole number from 1 to 32768}}
module attributes {whale.config = {num_micro_batch = 9223372036854775807 : i64}} {}

// -----

// expected-error@+1 {{whale.config: num_task_graph is "two", expected a whole number from 1 to 32768}}
module attributes {whale.config = {num_task_graph = "two"}} {}

// -----

// expected-error@+1 {{whale.config: num_task_graph is -3 : i64, expected a whole number from 1 to 32768}}
module attributes {whale.config = {num_task_graph = -3 : i64}} {}

// -----

// expected-error@+1 {{whale.config: pipeline.strategy is "2f2b", expected one of "gpipe", "1f1b", "backward-optimizer", "interleaved", "zero-bubble", "PreferForward", "PreferBackward", "PreferBackwardOptimizer"}}
module attributes {whale.config = {pipeline = {strategy = "2f2b"}}} {}

// -----

// expected-error@+1 {{whale.config: pipeline is "1f1b", expected a dictionary}}
module attributes {whale.config = {pipeline = "1f1b"}} {}

// -----

// expected-error@+1 {{whale.config: cluster.uneven_replicas is 1 : i64, expected true or false}}
module attributes {whale.config = {cluster = {uneven_replicas = 1 : i64}}} {}

// -----

// expected-error@+1 {{whale.config: there is no key 'pipeline.num_stages'; the keys are num_micro_batch, batch_norm, num_task_graph, pipeline.strategy, cluster.uneven_replicas, communication.bucket_bytes, communication.bf16, communication.fp16, communication.fp16_scale, optimizer.num_apply_group, zero.level, offload.level, gradient_checkpoint.type, fit, amp.level, amp.loss_scale, amp.debug_log, debug_nans, gpu.epilogues, gpu.tf32}}
module attributes {whale.config = {pipeline = {num_stages = 2 : i64}}} {}

// -----

// expected-error@+1 {{whale.config: amp.loss_scale is "static", expected "dynamic" or a whole number from 1 to 16777216}}
module attributes {whale.config = {amp = {level = "f16", loss_scale = "static"}}} {}

// -----

// expected-error@+1 {{whale.config: amp.loss_scale is 0 : i64, expected "dynamic" or a whole number}}
module attributes {whale.config = {amp = {level = "f16", loss_scale = 0 : i64}}} {}

// -----

// expected-error@+1 {{whale.config: amp.loss_scale belongs with amp.level "f16" or "O1"}}
module attributes {whale.config = {amp = {level = "bf16", loss_scale = 8 : i64}}} {}

// -----

// expected-error@+1 {{whale.config: amp.debug_log belongs with amp.level}}
module attributes {whale.config = {amp = {debug_log = true}}} {}

// -----

// expected-error@+1 {{whale.config: debug_nans and amp.level "f16" or "O1" exclude one another: a loss scale}}
module attributes {whale.config = {amp = {level = "O1"}, debug_nans = true}} {}

// -----

// expected-error@+1 {{attribute 'whale.virtual_devices' is [0], expected a list of array<i64: ...>}}
module attributes {whale.virtual_devices = [0 : i64]} {}

// -----

// expected-error@+1 {{attribute 'whale.scopes' is {a = 1 : i64}, expected {PATTERN = #whale.replicate or #whale.split, ...}}}
module attributes {whale.scopes = {a = 1}} {}

// -----

// expected-error@+1 {{attribute 'whale.scopes': 'a//b' is not names with slashes between}}
module attributes {whale.scopes = {"a//b" = #whale.replicate}} {}

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

// expected-error@+1 {{attribute 'whale.batch_dim' of argument 1 is 1, which is no dimension of 'tensor<8xf32>'}}
func.func @batch_dim(%x: tensor<8xf32>,
                     %y: tensor<8xf32> {whale.batch_dim = 1}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.batch_dim' of argument 0 is 0 : i32, expected an i64}}
func.func @batch_dim_type(%x: tensor<8xf32> {whale.batch_dim = 0 : i32}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.fed_by' of argument 0 is 1, the function has 1 results}}
func.func @fed_by(%x: tensor<8xf32> {whale.fed_by = 1}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{attribute 'whale.initial' of argument 0 needs f32 of one dimension}}
func.func @initial(%x: tensor<2xi32> {whale.initial = array<i64: 1, 2>}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.fed_by' of argument 0 is "a", expected an i64}}
func.func @fed_by_type(%x: tensor<8xf32> {whale.fed_by = "a"}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.donated' of argument 0 is true, expected no value}}
func.func @donated(%x: tensor<8xf32> {whale.donated = true}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.placement' of argument 0 is unit, expected a #whale.placement}}
func.func @placement(%x: tensor<8xf32> {whale.placement}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.placement' of result 0 is unit, expected a #whale.placement}}
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

func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-error@+1 {{attribute 'whale.loop_bytes' is not allowed here: it belongs on whale.micro_batches}}
  %0 = stablehlo.tanh %x {whale.loop_bytes = []} : tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// What no attribute is called is an error wherever it is.

// expected-error@+1 {{unknown attribute 'whale.configs'; did you mean 'whale.config'?; the module may have whale.default_strategy, whale.config, whale.virtual_devices, whale.like_devices, whale.scopes}}
module attributes {whale.configs = {}} {}

// -----

// expected-error@+1 {{unknown attribute 'whale.batchdim' of argument 1; did you mean 'whale.batch_dim'?; an argument of a function may have whale.batch_dim, whale.fed_by, whale.donated, whale.label, whale.given_placement}}
func.func private @unused(%x: tensor<4xf32>, %y: tensor<4xf32> {whale.batchdim = 0}) {
  return
}

// -----

// expected-error@+1 {{unknown attribute 'whale.alia' of result 0; a result of a function may have whale.given_placement}}
func.func @result(%x: tensor<4xf32>) -> (tensor<4xf32> {whale.alia = 0}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{unknown attribute 'whale.rank'; a function has no attributes of this dialect}}
func.func @function() attributes {whale.rank = array<i64: 0>} {
  return
}

// -----

func.func @operation(%x: tensor<4xf32>) {
  // expected-error@+1 {{unknown attribute 'whale.something'; an operation of a function's body may have whale.strategy, whale.phase}}
  %0 = stablehlo.tanh %x {whale.something} : tensor<4xf32>
  return
}

// -----

// Known attributes at the wrong place.

// expected-error@+1 {{attribute 'whale.batch_dim' is not allowed here: it belongs on an argument of a function}}
module attributes {whale.batch_dim = 0} {}

// -----

// expected-error@+1 {{attribute 'whale.strategy' is not allowed here: it belongs on an operation of a function's body}}
func.func @strategy_of_function() attributes {whale.strategy = #whale.split} {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.config' of argument 0 is not allowed here: it belongs on the module}}
func.func @config_of_argument(%x: tensor<4xf32> {whale.config = {}}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.donated' of result 0 is not allowed here: it belongs on an argument of a function}}
func.func @donated_result(%x: tensor<4xf32>) -> (tensor<4xf32> {whale.donated}) {
  return %x : tensor<4xf32>
}

// -----

// Values without a meaning.

// expected-error@+1 {{attribute 'whale.virtual_devices': device 1 appears twice}}
module attributes {whale.virtual_devices = [array<i64: 1, 1>]} {}

// -----

// expected-error@+1 {{attribute 'whale.virtual_devices': device -1 is negative}}
module attributes {whale.virtual_devices = [array<i64: -1>]} {}

// -----

// expected-error@+1 {{attribute 'whale.virtual_devices': there is no device}}
module attributes {whale.virtual_devices = [array<i64>]} {}

// -----

// expected-error@+1 {{attribute 'whale.batch_dim' of argument 0 is -1, which is no dimension of 'tensor<4xf32>'}}
func.func @negative(%x: tensor<4xf32> {whale.batch_dim = -1}) {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.arena_bytes' is -1 : i64, expected an i64 that is not negative}}
func.func @arena() attributes {whale.arena_bytes = -1} {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.locals' is {segment_0 = 64 : i64}, expected a dictionary of lists of array<i64: ...>}}
func.func @locals() attributes {whale.locals = {segment_0 = 64}} {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.peak' is [{bytes = 64 : i64}], expected a list of {bytes = i64, of = LOCATION}}}
func.func @peak() attributes {whale.peak = [{bytes = 64}]} {
  return
}

// -----

// expected-error@+1 {{attribute 'whale.alias' of result 0 is 1, the function has 1 arguments}}
func.func @alias(%x: tensor<4xf32>) -> (tensor<4xf32> {whale.alias = 1}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{attribute 'whale.label' of argument 0 is 3 : i64, expected a string}}
func.func @label(%x: tensor<4xf32> {whale.label = 3}) {
  return
}
