// Slices that loops read and store where they are: a stack of what is carried
// before and after its update, in half precision and as truth values too; places
// beyond the ends; two slices of one tensor; one that is read in between; one
// that is stored into itself.
module @stores {
  func.func @main(%x: tensor<3x5xf32>, %w: tensor<6x3x5xf32>,
                  %same: tensor<6x5xf32>, %n: tensor<i32>)
      -> (tensor<3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x5xbf16>,
          tensor<5x4x3xi1>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %nine = stablehlo.constant dense<9> : tensor<ui32>
    %less = stablehlo.constant dense<-3> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %half = stablehlo.constant dense<0.5> : tensor<3x5xf32>
    %f = stablehlo.constant dense<0.0> : tensor<4x3x5xf32>
    %b = stablehlo.constant dense<1.0> : tensor<4x3x5xbf16>
    %t = stablehlo.constant dense<true> : tensor<5x4x3xi1>
    %0:5 = stablehlo.while(%i = %zero, %c = %x, %fs = %f, %bs = %b, %ts = %t)
        : tensor<i32>, tensor<3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x5xbf16>,
          tensor<5x4x3xi1>
    cond {
      %p = stablehlo.compare LT, %i, %five, SIGNED
          : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 3, 5]
          : (tensor<6x3x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>)
          -> tensor<1x3x5xf32>
      %r = stablehlo.reshape %s : (tensor<1x3x5xf32>) -> tensor<3x5xf32>
      %m = stablehlo.multiply %c, %half : tensor<3x5xf32>
      %a = stablehlo.add %m, %r : tensor<3x5xf32>
      %next = stablehlo.tanh %a : tensor<3x5xf32>
      %old = stablehlo.broadcast_in_dim %c, dims = [1, 2]
          : (tensor<3x5xf32>) -> tensor<1x3x5xf32>
      %fn = stablehlo.dynamic_update_slice %fs, %old, %i, %zero, %zero
          : (tensor<4x3x5xf32>, tensor<1x3x5xf32>, tensor<i32>, tensor<i32>,
             tensor<i32>) -> tensor<4x3x5xf32>
      %h = stablehlo.convert %next : (tensor<3x5xf32>) -> tensor<3x5xbf16>
      %new = stablehlo.broadcast_in_dim %h, dims = [1, 2]
          : (tensor<3x5xbf16>) -> tensor<1x3x5xbf16>
      %bn = stablehlo.dynamic_update_slice %bs, %new, %i, %zero, %zero
          : (tensor<4x3x5xbf16>, tensor<1x3x5xbf16>, tensor<i32>, tensor<i32>,
             tensor<i32>) -> tensor<4x3x5xbf16>
      %g = stablehlo.compare GT, %next, %r
          : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi1>
      %u = stablehlo.transpose %g, dims = [1, 0]
          : (tensor<3x5xi1>) -> tensor<5x3xi1>
      %v = stablehlo.reshape %u : (tensor<5x3xi1>) -> tensor<5x1x3xi1>
      %tn = stablehlo.dynamic_update_slice %ts, %v, %zero, %i, %zero
          : (tensor<5x4x3xi1>, tensor<5x1x3xi1>, tensor<i32>, tensor<i32>,
             tensor<i32>) -> tensor<5x4x3xi1>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %next, %fn, %bn, %tn
          : tensor<i32>, tensor<3x5xf32>, tensor<4x3x5xf32>,
            tensor<4x3x5xbf16>, tensor<5x4x3xi1>
    }
    %e = stablehlo.exponential %0#1 : tensor<3x5xf32>
    %d = stablehlo.cosine %0#1 : tensor<3x5xf32>
    %nine_zero = stablehlo.constant dense<0> : tensor<ui32>
    %1 = stablehlo.dynamic_update_slice %same, %e, %nine, %nine_zero
        : (tensor<6x5xf32>, tensor<3x5xf32>, tensor<ui32>, tensor<ui32>)
        -> tensor<6x5xf32>
    %2 = stablehlo.negate %1 : tensor<6x5xf32>
    %3 = stablehlo.dynamic_update_slice %1, %d, %less, %n
        : (tensor<6x5xf32>, tensor<3x5xf32>, tensor<i32>, tensor<i32>)
        -> tensor<6x5xf32>
    %4 = stablehlo.slice %3 [0:4, 1:4] : (tensor<6x5xf32>) -> tensor<4x3xf32>
    %5 = stablehlo.dynamic_update_slice %3, %4, %n, %one
        : (tensor<6x5xf32>, tensor<4x3xf32>, tensor<i32>, tensor<i32>)
        -> tensor<6x5xf32>
    return %0#1, %0#2, %0#3, %0#4, %1, %2, %5
        : tensor<3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x5xbf16>,
          tensor<5x4x3xi1>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
  }
}
