// The program computes one value for all parameters, then another, then updates
// all. What is expected is what the plan of buffers needs: the parameters, as
// many gradients, the batch, and both values of one parameter at a time.
//
// RUN: whale-compile %s --cluster=1 --target=none -o %t --explain | FileCheck %s --check-prefix=ONE
// ONE: memory: device 0 needs most, 164864 bytes, 164864 were expected
// RUN: whale-compile %s --cluster=2 --target=none -o %t --explain | FileCheck %s --check-prefix=TWO
// TWO: memory: device 0 needs most, 164352 bytes, 164352 were expected

#all = #whale.replicate<name = "all">
#forward = #whale.phase<forward>
#backward = #whale.phase<backward>
#apply = #whale.phase<apply>
module {
  func.func @main(%p0: tensor<64x64xf32> {whale.fed_by = 0 : i64, whale.donated},
                  %p1: tensor<64x64xf32> {whale.fed_by = 1 : i64, whale.donated},
                  %p2: tensor<64x64xf32> {whale.fed_by = 2 : i64, whale.donated},
                  %p3: tensor<64x64xf32> {whale.fed_by = 3 : i64, whale.donated},
                  %x: tensor<4x64xf32> {whale.batch_dim = 0 : i64})
      -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
    %y0 = stablehlo.dot_general %x, %p0, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #forward}
        : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    %y1 = stablehlo.dot_general %x, %p1, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #forward}
        : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    %y2 = stablehlo.dot_general %x, %p2, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #forward}
        : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    %y3 = stablehlo.dot_general %x, %p3, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #forward}
        : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    %g0 = stablehlo.dot_general %x, %y0, contracting_dims = [0] x [0]
        {whale.strategy = #all, whale.phase = #backward}
        : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
    %g1 = stablehlo.dot_general %x, %y1, contracting_dims = [0] x [0]
        {whale.strategy = #all, whale.phase = #backward}
        : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
    %g2 = stablehlo.dot_general %x, %y2, contracting_dims = [0] x [0]
        {whale.strategy = #all, whale.phase = #backward}
        : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
    %g3 = stablehlo.dot_general %x, %y3, contracting_dims = [0] x [0]
        {whale.strategy = #all, whale.phase = #backward}
        : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
    %u0 = stablehlo.dot_general %g0, %g0, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #apply}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %u1 = stablehlo.dot_general %g1, %g1, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #apply}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %u2 = stablehlo.dot_general %g2, %g2, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #apply}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %u3 = stablehlo.dot_general %g3, %g3, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #apply}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %v0 = stablehlo.dot_general %u0, %g0, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #apply}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %v1 = stablehlo.dot_general %u1, %g1, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #apply}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %v2 = stablehlo.dot_general %u2, %g2, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #apply}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %v3 = stablehlo.dot_general %u3, %g3, contracting_dims = [1] x [0]
        {whale.strategy = #all, whale.phase = #apply}
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %r0 = stablehlo.subtract %p0, %v0
        {whale.strategy = #all, whale.phase = #apply} : tensor<64x64xf32>
    %r1 = stablehlo.subtract %p1, %v1
        {whale.strategy = #all, whale.phase = #apply} : tensor<64x64xf32>
    %r2 = stablehlo.subtract %p2, %v2
        {whale.strategy = #all, whale.phase = #apply} : tensor<64x64xf32>
    %r3 = stablehlo.subtract %p3, %v3
        {whale.strategy = #all, whale.phase = #apply} : tensor<64x64xf32>
    return %r0, %r1, %r2, %r3 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
}
