// Numbers of devices beyond the largest cluster, and the two that hash tables
// keep for themselves, wherever a text carries one. A failure means that a
// number passes that no cluster has, or crashes the reader.

// RUN: whale-opt %s -split-input-file -verify-diagnostics

// The largest one.
#last = #whale.placement<[8] on [32767]>
whale.virtual_device @vd [[32767]]
module attributes {whale.virtual_devices = [array<i64: 32767>]} {}
whale.schedule ranks [32767] @last() {
  whale.return
}
// Of a mesh that is not followed, any number is right.
sdy.mesh @mesh = <["a"=2], device_ids=[9223372036854775807, 9223372036854775806]>

// -----

// expected-error@+1 {{invalid placement: device 32768 is in no cluster: the largest has 32768 devices}}
#placement = #whale.placement<[8] on [32768]>

// -----

// expected-error@+1 {{invalid placement: device 9223372036854775807 is in no cluster}}
#placement = #whale.placement<[8] on [9223372036854775807]>

// -----

// expected-error@+1 {{invalid placement: device 9223372036854775806 is in no cluster}}
#placement = #whale.placement<[8] split 0 (4, 4) on [0, 9223372036854775806]>

// -----

// expected-error@+1 {{'whale.virtual_device' op device 32768 is in no cluster}}
whale.virtual_device @vd [[0], [32768]]

// -----

// expected-error@+1 {{'whale.virtual_device' op device 9223372036854775807 is in no cluster}}
whale.virtual_device @vd [[9223372036854775807]]

// -----

// expected-error@+1 {{'whale.virtual_device' op device 9223372036854775806 is in no cluster}}
whale.virtual_device @vd [[9223372036854775806]]

// -----

// expected-error@+1 {{attribute 'whale.virtual_devices': device 32768 is in no cluster}}
module attributes {whale.virtual_devices = [array<i64: 32768>]} {}

// -----

// expected-error@+1 {{attribute 'whale.like_devices': device 32768 is in no cluster}}
module attributes {whale.like_devices = {one = [array<i64: 32768>]}} {}

// -----

// expected-error@+1 {{attribute 'whale.like_devices': device 9223372036854775807 is in no cluster}}
module attributes {whale.like_devices = {one = [array<i64: 0>], two = [array<i64: 9223372036854775807>]}} {}

// -----

// expected-error@+1 {{attribute 'whale.virtual_devices': device 9223372036854775807 is in no cluster}}
module attributes {whale.virtual_devices = [array<i64: 0>, array<i64: 9223372036854775807>]} {}

// -----

// expected-error@+1 {{attribute 'whale.virtual_devices': device 9223372036854775806 is in no cluster}}
module attributes {whale.virtual_devices = [array<i64: 9223372036854775806>]} {}

// -----

// expected-error@+1 {{'whale.schedule' op rank 32768 is in no cluster}}
whale.schedule ranks [0, 32768] @class() {
  whale.return
}

// -----

// expected-error@+1 {{'whale.schedule' op rank 9223372036854775807 is in no cluster}}
whale.schedule ranks [9223372036854775807] @class() {
  whale.return
}

// -----

// expected-error@+1 {{'whale.schedule' op rank 9223372036854775806 is in no cluster}}
whale.schedule ranks [9223372036854775806] @class() {
  whale.return
}

// -----

// expected-error@+1 {{device 32768 is in no cluster}}
#order = #whale.order<[32768]: forward 0>

// -----

// expected-error@+1 {{device 9223372036854775807 is in no cluster}}
#order = #whale.order<[0, 9223372036854775807]: forward 0>

// -----

func.func @bytes() {
  // expected-error@+1 {{attribute 'whale.loop_bytes': device 32768 is in no cluster}}
  whale.micro_batches [0]() reduce [] batch_dims [] attributes {whale.loop_bytes = [{devices = array<i64: 32768>, fixed = 1 : i64, kept = {}, outside = 1 : i64, sums = {}}]} : () -> () {
    whale.yield
  }
  return
}

// -----

func.func @bytes() {
  // expected-error@+1 {{attribute 'whale.loop_bytes': device 9223372036854775806 is in no cluster}}
  whale.micro_batches [0]() reduce [] batch_dims [] attributes {whale.loop_bytes = [{devices = array<i64: 0, 9223372036854775806>, fixed = 1 : i64, kept = {}, outside = 1 : i64, sums = {}}]} : () -> () {
    whale.yield
  }
  return
}
