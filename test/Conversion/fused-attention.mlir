// Which attention becomes a call of cuDNN on a GPU of compute capability 90:
// forward, gradient, heads that share keys, parts of one tensor. Judged by the
// layouts, views and workspace of each call; of attention that cuDNN cannot
// compute, a remark has to say why. For capability 75 there may be no call.

// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_90+cudnn=1073741824}))' \
// RUN:   2>/dev/null | FileCheck %s
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_90+cudnn=1073741824}))' 2>&1 \
// RUN:   >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: whale-opt %s -pass-pipeline='builtin.module(func.func(whale-lower-library-ops{target=sm_75+cudnn=1073741824}))' \
// RUN:   2>/dev/null | FileCheck %s --check-prefix=OLD

// What cuDNN computes is a call, the rest a kernel, and a remark says why.

// OLD-NOT: fused_attention

// CHECK-LABEL: func.func @forward
// CHECK: whale.library_call "fused_attention"(
// CHECK-SAME: causal = 0
// CHECK-SAME: key = "bkhd"
// CHECK-SAME: query = "bqhd"
// CHECK-SAME: result = "bqhe"
// CHECK-SAME: statistics = "bhq"
// CHECK-SAME: tensor<2x4x100xf32>
func.func @forward(%q: tensor<2x100x4x64xbf16>, %k: tensor<2x77x4x64xbf16>,
                   %v: tensor<2x77x4x64xbf16>) -> tensor<2x100x4x64xbf16> {
  %0 = whale.attention query "bqhd" %q key "bkhd" %k value "bkhe" %v
      to "bqhe" scale 0.125 {causal = 0 : i64, fill = -1.0e9 : f64}
      : (tensor<2x100x4x64xbf16>, tensor<2x77x4x64xbf16>,
         tensor<2x77x4x64xbf16>) -> tensor<2x100x4x64xbf16>
  return %0 : tensor<2x100x4x64xbf16>
}

// Heads of queries that share a head of the keys are neighbours, or samples.
// CHECK-LABEL: func.func @grouped
// CHECK: whale.library_call "fused_attention"(
// CHECK: whale.library_call "fused_attention"(
// REMARK: attention is not cuDNN's: its heads are not two dimensions
func.func @grouped(%q: tensor<2x32x2x3x64xbf16>, %k: tensor<2x32x2x64xbf16>,
                   %one: tensor<2x32x64xbf16>, %3: tensor<2x32x3x64xbf16>)
    -> (tensor<2x32x2x3x64xbf16>, tensor<2x32x2x3x64xbf16>,
        tensor<2x2x3x32x64xbf16>) {
  %0 = whale.attention query "bqngd" %q key "bknd" %k value "bkne" %k
      to "bqnge" scale 1.0
      : (tensor<2x32x2x3x64xbf16>, tensor<2x32x2x64xbf16>,
         tensor<2x32x2x64xbf16>) -> tensor<2x32x2x3x64xbf16>
  %1 = whale.attention query "bqngd" %q key "bkd" %one value "bke" %one
      to "bqnge" scale 1.0
      : (tensor<2x32x2x3x64xbf16>, tensor<2x32x64xbf16>,
         tensor<2x32x64xbf16>) -> tensor<2x32x2x3x64xbf16>
  %2 = whale.attention query "bqngd" %q key "bkgd" %3 value "bkge" %3
      to "bngqe" scale 1.0
      : (tensor<2x32x2x3x64xbf16>, tensor<2x32x3x64xbf16>,
         tensor<2x32x3x64xbf16>) -> tensor<2x2x3x32x64xbf16>
  return %0, %1, %2 : tensor<2x32x2x3x64xbf16>, tensor<2x32x2x3x64xbf16>,
      tensor<2x2x3x32x64xbf16>
}

// The gradient takes output and statistics, which are computed anew where there
// is no call forward.
// CHECK-LABEL: func.func @anew
// CHECK: %[[O:.*]]:3 = whale.library_call "fused_attention"(%arg0, %arg1, %arg1)
// CHECK-SAME: tensor<2x4x100xf32>
// CHECK: whale.library_call "fused_attention_gradient"(
// CHECK-SAME: %arg0, %arg1, %arg1, %arg0, %[[O]]#0, %[[O]]#1)
// CHECK-SAME: cotangent = "bhqe"
// CHECK-SAME: key_result = "bkhd"
// CHECK-SAME: output = "bhqe"
func.func @anew(%q: tensor<2x4x100x64xbf16>, %k: tensor<2x4x128x64xbf16>)
    -> (tensor<2x100x4x64xbf16>, tensor<2x128x4x64xbf16>,
        tensor<2x4x128x64xbf16>) {
  %0:3 = whale.attention_gradient query "bhqd" %q key "bhkd" %k
      value "bhke" %k cotangent "bhqe" %q to "bqhd", "bkhd", "bhke" scale 1.0
      : (tensor<2x4x100x64xbf16>, tensor<2x4x128x64xbf16>,
         tensor<2x4x128x64xbf16>, tensor<2x4x100x64xbf16>)
      -> (tensor<2x100x4x64xbf16>, tensor<2x128x4x64xbf16>,
          tensor<2x4x128x64xbf16>)
  return %0#0, %0#1, %0#2 : tensor<2x100x4x64xbf16>, tensor<2x128x4x64xbf16>,
      tensor<2x4x128x64xbf16>
}

// CHECK-LABEL: func.func @step
// CHECK: %[[O:.*]]:3 = whale.library_call "fused_attention"(
// CHECK-NOT: "fused_attention"(
// CHECK: "fused_attention_gradient"({{.*}}, %[[O]]#0, %[[O]]#1)
// CHECK-SAME: output = "bqhe"
// Two bytes of 8 x 128 x 128 pairs, and a margin.
// CHECK-SAME: whale.workspace = 1318912
func.func @step(%q: tensor<2x4x128x64xbf16>)
    -> (tensor<2x128x4x64xbf16>, tensor<2x4x128x64xbf16>) {
  %0 = whale.attention query "bhqd" %q key "bhkd" %q value "bhke" %q to "bqhe"
      scale 1.0 : (tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>,
                   tensor<2x4x128x64xbf16>) -> tensor<2x128x4x64xbf16>
  %1:3 = whale.attention_gradient query "bhqd" %q key "bhkd" %q
      value "bhke" %q cotangent "bqhe" %0 to "bhqd", "bhkd", "bhke" scale 1.0
      : (tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>,
         tensor<2x4x128x64xbf16>, tensor<2x128x4x64xbf16>)
      -> (tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>,
          tensor<2x4x128x64xbf16>)
  return %0, %1#0 : tensor<2x128x4x64xbf16>, tensor<2x4x128x64xbf16>
}

// A transposed result is written so.
// CHECK-LABEL: func.func @transposed
// CHECK-NOT: stablehlo.transpose
// CHECK: result = "bqhe"
// CHECK: result = "bhqe"
// CHECK: stablehlo.transpose
func.func @transposed(%q: tensor<2x4x32x64xbf16>)
    -> (tensor<2x32x4x64xbf16>, tensor<2x4x64x32xbf16>) {
  %0 = whale.attention query "bhqd" %q key "bhkd" %q value "bhke" %q to "bhqe"
      scale 1.0 : (tensor<2x4x32x64xbf16>, tensor<2x4x32x64xbf16>,
                   tensor<2x4x32x64xbf16>) -> tensor<2x4x32x64xbf16>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1, 3]
      : (tensor<2x4x32x64xbf16>) -> tensor<2x32x4x64xbf16>
  %2 = whale.attention query "bhqd" %q key "bhkd" %q value "bhke" %q to "bhqe"
      scale 2.0 : (tensor<2x4x32x64xbf16>, tensor<2x4x32x64xbf16>,
                   tensor<2x4x32x64xbf16>) -> tensor<2x4x32x64xbf16>
  %3 = stablehlo.transpose %2, dims = [0, 1, 3, 2]
      : (tensor<2x4x32x64xbf16>) -> tensor<2x4x64x32xbf16>
  return %1, %3 : tensor<2x32x4x64xbf16>, tensor<2x4x64x32xbf16>
}

// Parts of one tensor are read where they are, whatever copies would be between,
// if features are neighbours there.
// CHECK-LABEL: func.func @parts
// CHECK: %[[O:.*]]:3 = whale.library_call "fused_attention"(%arg0, %arg0, %arg0)
// CHECK-SAME: key_view = {offset = 256 : i64, shape = array<i64: 2, 4, 128, 64>, strides = array<i64: 98304, 64, 768, 1>}
// CHECK-SAME: query_view = {offset = 0 : i64, shape = array<i64: 2, 4, 128, 64>, strides = array<i64: 98304, 64, 768, 1>}
// CHECK: whale.library_call "fused_attention_gradient"(%arg0, %arg0, %arg0, %{{.*}}, %[[O]]#0, %[[O]]#1)
// CHECK-SAME: value_view = {offset = 512
// CHECK: whale.library_call "fused_attention"(%arg1, %arg1, %arg1)
// CHECK-SAME: key_view = {offset = 0 : i64, shape = array<i64: 2, 32, 4, 64>, strides = array<i64: 16384, 512, 64, 1>}
// CHECK-SAME: query_view = {offset = 256
// CHECK: %[[T:.*]] = stablehlo.transpose %arg2
// CHECK: "fused_attention"(%[[T]], %[[T]], %[[T]]) {key = "bkhd", query = "bqhd"
func.func @parts(%x: tensor<2x128x3x4x64xbf16>, %y: tensor<2x32x512xbf16>,
                 %z: tensor<2x64x32x8xbf16>)
    -> (tensor<2x4x128x64xbf16>, tensor<2x32x4x64xbf16>,
        tensor<2x32x8x64xbf16>) {
  %t = stablehlo.transpose %x, dims = [2, 0, 3, 1, 4]
      : (tensor<2x128x3x4x64xbf16>) -> tensor<3x2x4x128x64xbf16>
  %q0 = stablehlo.slice %t [0:1, 0:2, 0:4, 0:128, 0:64]
      : (tensor<3x2x4x128x64xbf16>) -> tensor<1x2x4x128x64xbf16>
  %k0 = stablehlo.slice %t [1:2, 0:2, 0:4, 0:128, 0:64]
      : (tensor<3x2x4x128x64xbf16>) -> tensor<1x2x4x128x64xbf16>
  %v0 = stablehlo.slice %t [2:3, 0:2, 0:4, 0:128, 0:64]
      : (tensor<3x2x4x128x64xbf16>) -> tensor<1x2x4x128x64xbf16>
  %q = stablehlo.reshape %q0
      : (tensor<1x2x4x128x64xbf16>) -> tensor<2x4x128x64xbf16>
  %k = stablehlo.reshape %k0
      : (tensor<1x2x4x128x64xbf16>) -> tensor<2x4x128x64xbf16>
  %v = stablehlo.reshape %v0
      : (tensor<1x2x4x128x64xbf16>) -> tensor<2x4x128x64xbf16>
  %0 = whale.attention query "bhqd" %q key "bhkd" %k value "bhke" %v to "bhqe"
      scale 1.0 : (tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>,
                   tensor<2x4x128x64xbf16>) -> tensor<2x4x128x64xbf16>
  %1:3 = whale.attention_gradient query "bhqd" %q key "bhkd" %k
      value "bhke" %v cotangent "bhqe" %0 to "bhqd", "bhkd", "bhke" scale 1.0
      : (tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>,
         tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>)
      -> (tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>,
          tensor<2x4x128x64xbf16>)
  %a0 = stablehlo.slice %y [0:2, 0:32, 256:512]
      : (tensor<2x32x512xbf16>) -> tensor<2x32x256xbf16>
  %b0 = stablehlo.slice %y [0:2, 0:32, 0:256]
      : (tensor<2x32x512xbf16>) -> tensor<2x32x256xbf16>
  %a = stablehlo.reshape %a0
      : (tensor<2x32x256xbf16>) -> tensor<2x32x4x64xbf16>
  %b = stablehlo.reshape %b0
      : (tensor<2x32x256xbf16>) -> tensor<2x32x4x64xbf16>
  %2 = whale.attention query "bqhd" %a key "bkhd" %b value "bkhe" %b to "bqhe"
      scale 1.0 : (tensor<2x32x4x64xbf16>, tensor<2x32x4x64xbf16>,
                   tensor<2x32x4x64xbf16>) -> tensor<2x32x4x64xbf16>
  %c = stablehlo.transpose %z, dims = [0, 2, 3, 1]
      : (tensor<2x64x32x8xbf16>) -> tensor<2x32x8x64xbf16>
  %3 = whale.attention query "bqhd" %c key "bkhd" %c value "bkhe" %c to "bqhe"
      scale 1.0 : (tensor<2x32x8x64xbf16>, tensor<2x32x8x64xbf16>,
                   tensor<2x32x8x64xbf16>) -> tensor<2x32x8x64xbf16>
  return %1#0, %2, %3 : tensor<2x4x128x64xbf16>, tensor<2x32x4x64xbf16>,
      tensor<2x32x8x64xbf16>
}

// Cotangents of shared keys are sums, in bf16, if that is what is made of them.
// CHECK-LABEL: func.func @shared
// CHECK: "fused_attention_gradient"
// CHECK-SAME: key_result = "bkd"
// CHECK-SAME: query_result = "bhqd"
// CHECK-SAME: value_result = "bke"
// CHECK-SAME: -> (tensor<2x4x32x64xbf16>, tensor<2x128x64xbf16>, tensor<2x128x64xbf16>, tensor<{{.*}}xf32>)
// CHECK-NOT: stablehlo.reduce
// CHECK: return
// REMARK: attention is not cuDNN's: its tensors are not all of bf16
func.func @shared(%q: tensor<2x4x32x64xbf16>, %k: tensor<2x128x64xbf16>)
    -> (tensor<2x4x32x64xbf16>, tensor<2x128x64xbf16>,
        tensor<4x2x128x64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:3 = whale.attention_gradient query "bhqd" %q key "bkd" %k value "bke" %k
      cotangent "bhqe" %q to "bhqd", "hbkd", "hbke" scale 1.0
      : (tensor<2x4x32x64xbf16>, tensor<2x128x64xbf16>, tensor<2x128x64xbf16>,
         tensor<2x4x32x64xbf16>) -> (tensor<2x4x32x64xf32>,
         tensor<4x2x128x64xf32>, tensor<4x2x128x64xf32>)
  %1 = stablehlo.convert %0#0
      : (tensor<2x4x32x64xf32>) -> tensor<2x4x32x64xbf16>
  %2 = stablehlo.reduce(%0#1 init: %zero) applies stablehlo.add
      across dimensions = [0]
      : (tensor<4x2x128x64xf32>, tensor<f32>) -> tensor<2x128x64xf32>
  %3 = stablehlo.convert %2
      : (tensor<2x128x64xf32>) -> tensor<2x128x64xbf16>
  %4:3 = whale.attention_gradient query "bhqd" %q key "bkd" %k value "bke" %k
      cotangent "bhqe" %q to "bhqd", "hbkd", "hbke" scale 1.0
      : (tensor<2x4x32x64xbf16>, tensor<2x128x64xbf16>, tensor<2x128x64xbf16>,
         tensor<2x4x32x64xbf16>) -> (tensor<2x4x32x64xf32>,
         tensor<4x2x128x64xf32>, tensor<4x2x128x64xf32>)
  return %1, %3, %4#1 : tensor<2x4x32x64xbf16>, tensor<2x128x64xbf16>,
      tensor<4x2x128x64xf32>
}

// CHECK-LABEL: func.func @others
// CHECK-NOT: fused_attention
// REMARK: attention is not cuDNN's: its tensors are not all of bf16
// REMARK: attention is not cuDNN's: its heads have 20 and 20 features
// REMARK: attention is not cuDNN's: it has a mask or a bias
// REMARK: attention is not cuDNN's: what is masked may count
// REMARK: attention is not cuDNN's: its causal mask is shifted
// REMARK: attention is not cuDNN's: features are not neighbours
// REMARK: attention is not cuDNN's: gradients of 77 keys
func.func @others(%f: tensor<2x32x64xf32>, %n: tensor<2x32x20xbf16>,
                  %x: tensor<2x32x64xbf16>, %m: tensor<32x32xi1>,
                  %t: tensor<2x64x32xbf16>, %y: tensor<2x77x64xbf16>)
    -> (tensor<2x32x64xf32>, tensor<2x32x20xbf16>, tensor<2x32x64xbf16>,
        tensor<2x32x64xbf16>, tensor<2x32x64xbf16>, tensor<2x32x64xbf16>,
        tensor<2x77x64xbf16>) {
  %0 = whale.attention query "hqd" %f key "hkd" %f value "hke" %f to "hqe"
      scale 1.0 : (tensor<2x32x64xf32>, tensor<2x32x64xf32>,
                   tensor<2x32x64xf32>) -> tensor<2x32x64xf32>
  %1 = whale.attention query "hqd" %n key "hkd" %n value "hke" %n to "hqe"
      scale 1.0 : (tensor<2x32x20xbf16>, tensor<2x32x20xbf16>,
                   tensor<2x32x20xbf16>) -> tensor<2x32x20xbf16>
  %2 = whale.attention query "hqd" %x key "hkd" %x value "hke" %x mask "qk" %m
      to "hqe" scale 1.0
      : (tensor<2x32x64xbf16>, tensor<2x32x64xbf16>, tensor<2x32x64xbf16>,
         tensor<32x32xi1>) -> tensor<2x32x64xbf16>
  %3 = whale.attention query "hqd" %x key "hkd" %x value "hke" %x to "hqe"
      scale 1.0 {causal = 0 : i64, fill = -1.0e4 : f64}
      : (tensor<2x32x64xbf16>, tensor<2x32x64xbf16>, tensor<2x32x64xbf16>)
      -> tensor<2x32x64xbf16>
  %4 = whale.attention query "hqd" %x key "hkd" %x value "hke" %x to "hqe"
      scale 1.0 {causal = 1 : i64}
      : (tensor<2x32x64xbf16>, tensor<2x32x64xbf16>, tensor<2x32x64xbf16>)
      -> tensor<2x32x64xbf16>
  %5 = whale.attention query "hdq" %t key "hkd" %x value "hke" %x to "hqe"
      scale 1.0 : (tensor<2x64x32xbf16>, tensor<2x32x64xbf16>,
                   tensor<2x32x64xbf16>) -> tensor<2x32x64xbf16>
  %6:3 = whale.attention_gradient query "hqd" %y key "hkd" %y value "hke" %y
      cotangent "hqe" %y to "hqd", "hkd", "hke" scale 1.0
      : (tensor<2x77x64xbf16>, tensor<2x77x64xbf16>, tensor<2x77x64xbf16>,
         tensor<2x77x64xbf16>) -> (tensor<2x77x64xbf16>, tensor<2x77x64xbf16>,
         tensor<2x77x64xbf16>)
  return %0, %1, %2, %3, %4, %5, %6#0 : tensor<2x32x64xf32>,
      tensor<2x32x20xbf16>, tensor<2x32x64xbf16>, tensor<2x32x64xbf16>,
      tensor<2x32x64xbf16>, tensor<2x32x64xbf16>, tensor<2x77x64xbf16>
}
