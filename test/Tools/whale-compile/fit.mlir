// Options are chosen so that a step fits, where it asks for that; what they would
// save and cost is said of any step.
//
// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"kinds": {"k": {"flops": {"f32": 1e9}, "memory_bytes": 60e3, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "k", "count": 2}]}]}' > %t/some.json
// RUN: sed 's/60e3/1e6/' %t/some.json > %t/much.json
// RUN: sed 's/60e3/9e3/' %t/some.json > %t/little.json
// RUN: sed 's/whale.config = {/&fit = "auto"/' %s > %t/auto.mlir

// RUN: not whale-compile %s --cluster=%t/some.json --target=none -o %t/o.whale 2>&1 | FileCheck %s --check-prefix=NAMED
// NAMED: error: memory: device 0 (k) lacks {{.*}}; about {{[0-9.]+}} kB with [[OPTION:num_micro_batch [248]]]

// RUN: whale-compile %t/auto.mlir --cluster=%t/some.json --target=none --explain=json | FileCheck %s --check-prefix=AUTO
// AUTO: "options": {
// AUTO-NEXT: "num_micro_batch": [[COUNT:[248]]]
// AUTO: "message": "fit: takes num_micro_batch [[COUNT]]: the fullest device needs {{[0-9.]+}} kB{{.*}}; without, device 0 (k) lacks

// What fits stays as it is.
// RUN: whale-compile %t/auto.mlir --cluster=%t/much.json --target=none --explain=json | FileCheck %s --check-prefix=STAYS
// STAYS-NOT: fit: takes
// STAYS-NOT: "options"

// RUN: not whale-compile %t/auto.mlir --cluster=%t/little.json --target=none -o %t/o.whale 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: memory: device 0 (k) lacks {{.*}}; fit: with the best of all options, num_micro_batch {{[0-9]+.*}}device 0 (k) lacks

// RUN: whale-compile %t/auto.mlir --cluster=%t/some.json --explain=fit | FileCheck %s --check-prefix=FIT
// FIT: devices 0-1 (k) are fullest: {{[0-9.]+}} kB of 60.0 kB, which does not fit; a step takes about
// FIT: arguments
// FIT: option needs saves a step takes
// FIT-DAG: zero.level v0 {{.*}}zero.level: no replicas have state of the optimizer
// FIT-DAG: num_micro_batch 2
// FIT-DAG: communication.bf16 True {{.*}}rounds otherwise
// FIT: the largest mini-batch that fits has about {{[0-9]+}} samples, and this one 512

// RUN: whale-compile %s --cluster=%t/some.json --explain=peak --messages=json | FileCheck %s --check-prefix=PEAK
// PEAK: {"plan":
// PEAK: {"fit":{"fits":false,"ranks":[0,1],"kind":"k","memory_bytes":60000,"peak_memory_bytes":
// PEAK-NOT: "fit"

// RUN: not whale-compile %s --cluster=1 --explain=fit -o %t/o.whale 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: --explain=fit generates no program; leave -o out

#forward = #whale.phase<forward>
#backward = #whale.phase<backward>
#apply = #whale.phase<apply>
module attributes {whale.config = {}, whale.default_strategy = #whale.replicate} {
  func.func @main(%w: tensor<16x16xf32> {whale.fed_by = 0 : i64, whale.donated},
                  %x: tensor<512x16xf32> {whale.batch_dim = 0 : i64})
      -> tensor<16x16xf32> {
    %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        {whale.phase = #forward}
        : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %h = stablehlo.tanh %a {whale.phase = #forward} : tensor<512x16xf32>
    %b = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
        {whale.phase = #forward}
        : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %c = stablehlo.tanh %b {whale.phase = #forward} : tensor<512x16xf32>
    %d = stablehlo.dot_general %c, %w, contracting_dims = [1] x [0]
        {whale.phase = #forward}
        : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %y = stablehlo.tanh %d {whale.phase = #forward} : tensor<512x16xf32>
    %gd = stablehlo.multiply %y, %y {whale.phase = #backward}
        : tensor<512x16xf32>
    %gw2 = stablehlo.dot_general %c, %gd, contracting_dims = [0] x [0]
        {whale.phase = #backward}
        : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %gc = stablehlo.dot_general %gd, %w, contracting_dims = [1] x [1]
        {whale.phase = #backward}
        : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %gb = stablehlo.multiply %gc, %c {whale.phase = #backward}
        : tensor<512x16xf32>
    %gw1 = stablehlo.dot_general %h, %gb, contracting_dims = [0] x [0]
        {whale.phase = #backward}
        : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %gh = stablehlo.dot_general %gb, %w, contracting_dims = [1] x [1]
        {whale.phase = #backward}
        : (tensor<512x16xf32>, tensor<16x16xf32>) -> tensor<512x16xf32>
    %ga = stablehlo.multiply %gh, %h {whale.phase = #backward}
        : tensor<512x16xf32>
    %gw0 = stablehlo.dot_general %x, %ga, contracting_dims = [0] x [0]
        {whale.phase = #backward}
        : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>
    %g01 = stablehlo.add %gw0, %gw1 {whale.phase = #backward}
        : tensor<16x16xf32>
    %g = stablehlo.add %g01, %gw2 {whale.phase = #backward} : tensor<16x16xf32>
    %u = stablehlo.subtract %w, %g {whale.phase = #apply} : tensor<16x16xf32>
    return %u : tensor<16x16xf32>
  }
}
