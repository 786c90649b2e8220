// RUN: rm -rf %t.whale && whale-compile %s --cluster=1 --target=none -o %t.whale
// RUN: FileCheck %s < %t.whale/manifest.json
// RUN: whale-program-test %t.whale

// A partitioned module is written as it is: parameters with the boxes of
// all ranks, a table of cells for each channel, what differs by rank as data.

#whole = #whale.placement<[8] replicate 3 on [0, 1, 2]>
#parts = #whale.placement<[8] split 0 (3, 3, 2) on [0, 1, 2]>
#terms = #whale.placement<[8] partial sum 3 on [0, 1, 2]>

module @step {
  // CHECK: "format": "whale"
  // CHECK: "target": "none"
  // CHECK: "name": "step"
  // CHECK: {"device":0,"class":0,"kind":"cpu","node":0,"slowdown":1.0}
  // CHECK: {"device":2,"class":1,

  // CHECK: "name": "arg0"
  // CHECK: "label": "params['w']"
  // CHECK: "dtype": "f32"
  // CHECK: "shape": [8]
  // CHECK: "boxes": {{\[\[\[}}0],[3]],{{\[\[}}3],[3]],{{\[\[}}6],[2]]]
  // CHECK: "role": "state"
  // CHECK: "donated": true
  // CHECK: "fed_by": 0
  // CHECK: "results"
  // CHECK: "label": "result[0]"
  // CHECK: "alias": 0

  // CHECK: "communicators": {{\[\[}}0,1,2]],

  // CHECK: "ranks": [0,1]
  // CHECK: {"rank_constant":{{\[\[}}0],[3]],"type":"i32[]"}
  // CHECK: {"start":1,"src":[{{[0-9]+}}],"dst":[{{[0-9]+}}]}
  // CHECK: "ranks": [2]
  // CHECK: {"rank_constant":{{\[\[}}6]],

  // CHECK: "channels":
  // CHECK: "kind": "all_gather"
  // CHECK: "participants": [0,1,2]
  // CHECK: "communicators": [0]
  // CHECK: "0": [
  // CHECK: {"dst":{{\[\[}}0],[3]],"from":{{\[\[}}0,[0]]]}
  // CHECK: {"dst":{{\[\[}}6],[2]],"from":{{\[\[}}2,[0]]]}
  // What another rank receives is not written again, either.
  // CHECK: "1": 0
  // CHECK: "2": 0
  // CHECK: "kind": "reduce_scatter"
  // CHECK: "reduction": "sum"
  // CHECK: {"dst":{{\[\[}}0],[2]],"from":{{\[\[}}0,[6]],[1,[6]],[2,[6]]]}
  // What an earlier channel does is not written again.
  // CHECK: "origin": {{[0-9]+}}
  // CHECK: "3": {"same_as":1,"origin":{{[0-9]+}}}
  // CHECK: "kernels": null
  whale.schedule ranks [0, 1] @rank_class_0(
      %w: tensor<3xf32> {whale.placement = #parts, whale.donated,
                         whale.fed_by = 0 : i64,
                         whale.global_type = tensor<8xf32>,
                         whale.label = "params['w']"})
      -> (tensor<3xf32> {whale.placement = #parts,
                         whale.global_type = tensor<8xf32>,
                         jax.result_info = "result[0]"},
          tensor<i32>) {
    %0 = whale.all_gather %w channel 1 from #parts to #whole
       : (tensor<3xf32>) -> tensor<8xf32>
    %1 = whale.reduce_scatter %0 channel 2 from #terms to #parts
       : (tensor<8xf32>) -> tensor<3xf32>
    %3 = whale.all_gather %1 channel 3 from #parts to #whole
       : (tensor<3xf32>) -> tensor<8xf32>
    %2 = whale.shard_offset 0 of #parts : tensor<i32>
    whale.return %1, %2 : tensor<3xf32>, tensor<i32>
  }
  whale.schedule ranks [2] @rank_class_1(
      %w: tensor<2xf32> {whale.placement = #parts, whale.donated,
                         whale.fed_by = 0 : i64,
                         whale.global_type = tensor<8xf32>})
      -> (tensor<2xf32> {whale.placement = #parts,
                         whale.global_type = tensor<8xf32>},
          tensor<i32>) {
    %0 = whale.all_gather %w channel 1 from #parts to #whole
       : (tensor<2xf32>) -> tensor<8xf32>
    %1 = whale.reduce_scatter %0 channel 2 from #terms to #parts
       : (tensor<8xf32>) -> tensor<2xf32>
    %3 = whale.all_gather %1 channel 3 from #parts to #whole
       : (tensor<2xf32>) -> tensor<8xf32>
    %2 = whale.shard_offset 0 of #parts : tensor<i32>
    whale.return %1, %2 : tensor<2xf32>, tensor<i32>
  }
}
