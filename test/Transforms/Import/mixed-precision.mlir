// RUN: whale-opt %s -whale-mixed-precision -split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: remark: amp: 2 of 2 products of f32 take bf16{{$}}
// REMARK: remark: amp: 3 of 3 products of f32 take bf16{{$}}
// REMARK: remark: amp: 1 of 4 products of f32 take bf16, and stay in f32 2 asked for precision, 1 of the optimizer
// REMARK: 6:8: remark: amp: this product stays in f32: asked for precision
// REMARK: 5:8: remark: amp: this product takes bf16 and gives bf16
// REMARK: remark: amp: 1 of 2 products of f32 take bf16, and stay in f32 1 asked for precision
// REMARK: remark: amp: 0 of 0 products of f32 take bf16{{$}}
// REMARK: remark: amp: 1 of 1 products of f32 take bf16{{$}}
// REMARK: remark: amp: 2 of 2 products of f32 take bf16{{$}}

// Of two products, the second takes what the first one gives, transposed, as
// halves; it is also read in f32.

// CHECK-LABEL: @chain
// CHECK: %[[A:.*]] = stablehlo.convert %arg0
// CHECK: %[[W:.*]] = stablehlo.convert %arg1
// CHECK: %[[Y:.*]] = stablehlo.dot_general %[[A]], %[[W]], {{.*}} -> tensor<4x8xbf16>
// CHECK: %[[WIDE:.*]] = stablehlo.convert %[[Y]]
// CHECK: %[[T:.*]] = stablehlo.transpose %[[Y]], {{.*}} -> tensor<8x4xbf16>
// CHECK: %[[Z:.*]] = stablehlo.dot_general %[[W]], %[[T]], {{.*}} -> tensor<8x4xbf16>
// CHECK: %[[WIDEZ:.*]] = stablehlo.convert %[[Z]]
// CHECK: stablehlo.tanh %[[WIDE]]
// CHECK: stablehlo.tanh %[[WIDEZ]]
module @chain attributes {whale.config = {amp = {level = "bf16"}}} {
  func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>)
      -> (tensor<4x8xf32>, tensor<8x4xf32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %t = stablehlo.transpose %y, dims = [1, 0]
        : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %z = stablehlo.dot_general %w, %t, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %a = stablehlo.tanh %y : tensor<4x8xf32>
    %b = stablehlo.tanh %z : tensor<8x4xf32>
    return %a, %b : tensor<4x8xf32>, tensor<8x4xf32>
  }
}

// -----

// Gradients of a parameter that the optimizer reads stay in f32, added up and
// transposed too; what another product reads does not. The argument is rounded
// once for each TaskGraph that reads it, what is computed where it is made.

// CHECK-LABEL: @gradients
// CHECK: %[[W0:.*]] = stablehlo.convert %arg1 {whale.phase = #whale.phase<forward>, whale.strategy = #[[A:.*]]}
// CHECK: %[[Y:.*]] = stablehlo.tanh
// CHECK-NEXT: stablehlo.convert %[[Y]] {{.*}}name = "a"
// CHECK: stablehlo.convert %arg1 {{.*}}name = "b"
// CHECK: stablehlo.dot_general {{.*}} -> tensor<8x8xbf16>
// CHECK: stablehlo.dot_general {{.*}} (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xf32>
// CHECK-NEXT: stablehlo.transpose {{.*}} tensor<8x8xf32>
#a = #whale.replicate<name = "a">
#b = #whale.replicate<name = "b">
module @gradients attributes {whale.config = {amp = {level = "BF16"}}} {
  func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {whale.phase = #whale.phase<forward>, whale.strategy = #a}
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %y = stablehlo.tanh %0 {whale.phase = #whale.phase<forward>, whale.strategy = #a} : tensor<8x8xf32>
    %1 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] {whale.phase = #whale.phase<backward>, whale.strategy = #b}
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.dot_general %y, %1, contracting_dims = [1] x [0] {whale.phase = #whale.phase<backward>, whale.strategy = #b}
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0] {whale.phase = #whale.phase<backward>, whale.strategy = #b}
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %g = stablehlo.add %3, %x {whale.phase = #whale.phase<backward>, whale.strategy = #b} : tensor<8x8xf32>
    %next = stablehlo.subtract %w, %g {whale.phase = #whale.phase<apply>, whale.strategy = #a} : tensor<8x8xf32>
    return %next : tensor<8x8xf32>
  }
}

// -----

// What asks for precision, and what the optimizer computes, stays; halves of
// the user stay as they are; an existing conversion is looked through.

// CHECK-LABEL: @others
// CHECK: stablehlo.dot_general {{.*}} precision = [HIGHEST, HIGHEST] : (tensor<8x8xf32>
// CHECK: stablehlo.dot_general {{.*}} algorithm = {{.*}} : (tensor<8x8xf32>
// CHECK: stablehlo.dot_general %arg1, %arg1
// CHECK: stablehlo.dot_general %arg1, %arg1, {{.*}} -> tensor<8x8xbf16>
// CHECK: stablehlo.dot_general {{.*}}phase<apply>{{.*}} : (tensor<8x8xf32>
module @others attributes {whale.config = {amp = {level = "bf16"}}} {
  func.func @main(%x: tensor<8x8xf32>, %h: tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.dot_general %h, %h, contracting_dims = [1] x [0]
        : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xf32>
    %w = stablehlo.convert %h : (tensor<8x8xbf16>) -> tensor<8x8xf32>
    %3 = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %t = stablehlo.tanh %3 : tensor<8x8xf32>
    %4 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] {whale.phase = #whale.phase<apply>}
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0, %1, %2, %t, %4 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
}

// -----

// CHECK-LABEL: @log
module @log attributes {whale.config = {amp = {level = "bf16", debug_log = true}}} {
  func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("f":5:8)
    %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], precision = [HIGH, HIGH] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("f":6:8)
    %2 = stablehlo.tanh %0 : tensor<8x8xf32>
    return %2, %1 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}

// -----

// Nothing to do.

// CHECK-LABEL: @nothing
// CHECK-NEXT: @main
// CHECK-NEXT: stablehlo.dot_general %arg0, %arg0, {{.*}} tensor<8x8xf64>
// CHECK-NEXT: return
module @nothing attributes {whale.config = {amp = {level = "bf16"}}} {
  func.func @main(%x: tensor<8x8xf64>) -> tensor<8x8xf64> {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
    return %0 : tensor<8x8xf64>
  }
}

// -----

// Without the key nothing changes.

// CHECK-LABEL: @off
// CHECK-NEXT: @main
// CHECK-NEXT: stablehlo.dot_general %arg0, %arg0, {{.*}} tensor<8x8xf32>
// CHECK-NEXT: return
module @off {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}

// -----

// A convolution; an image that only it reads is reversed in halves.

// CHECK-LABEL: @convolution
// CHECK: %[[X:.*]] = stablehlo.convert %arg0
// CHECK: stablehlo.reverse %[[X]], {{.*}} : tensor<1x8x8x3xbf16>
// CHECK: stablehlo.convolution({{.*}} -> tensor<1x8x8x4xbf16>
// CHECK-NOT: stablehlo.reverse
module @convolution attributes {whale.config = {amp = {level = "bf16"}}} {
  func.func @main(%x: tensor<1x8x8x3xf32>, %w: tensor<1x1x3x4xf32>) -> tensor<1x8x8x4xf32> {
    %r = stablehlo.reverse %x, dims = [1] : tensor<1x8x8x3xf32>
    %0 = stablehlo.convolution(%r, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x8x8x3xf32>, tensor<1x1x3x4xf32>) -> tensor<1x8x8x4xf32>
    %1 = stablehlo.tanh %0 : tensor<1x8x8x4xf32>
    return %1 : tensor<1x8x8x4xf32>
  }
}

// -----

// In a loop, what is added up over its rounds is added in f32, and what it
// captures is rounded before.

// CHECK-LABEL: @loop
// CHECK: %[[W:.*]] = stablehlo.convert %arg1
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general {{.*}}, %[[W]], {{.*}} -> tensor<8x8xbf16>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<8x8xf32>
module @loop attributes {whale.config = {amp = {level = "bf16"}}} {
  func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %r:3 = stablehlo.while(%i = %zero, %h = %x, %sum = %zeros) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %0 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %1 = stablehlo.tanh %0 : tensor<8x8xf32>
      %2 = stablehlo.dot_general %1, %1, contracting_dims = [0] x [0]
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %3 = stablehlo.add %sum, %2 : tensor<8x8xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %1, %3 : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    }
    return %r#2 : tensor<8x8xf32>
  }
}
