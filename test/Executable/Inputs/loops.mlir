// What buffers go wrong with first: arrays filled by a loop, carried values
// that change places, a branch that passes its operand on, results that are
// arguments, constants, or the same value twice, a donated argument that is
// read after its update.
module @loops {
  func.func @main(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32},
                  %x: tensor<3x4xf32>, %n: tensor<i32>)
      -> (tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>,
          tensor<3x4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %ys = stablehlo.constant dense<0.0> : tensor<3x4xf32>
    %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %next = stablehlo.multiply %w, %c : tensor<4xf32>
    %0:6 = stablehlo.while(%i = %zero, %xs = %x, %out = %ys, %a = %next,
                           %b = %w, %limit = %three)
        : tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>,
          tensor<4xf32>, tensor<i32>
    cond {
      %p = stablehlo.compare LT, %i, %limit, SIGNED
         : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %xs, %i, %zero, sizes = [1, 4]
           : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %flat = stablehlo.reshape %row : (tensor<1x4xf32>) -> tensor<4xf32>
      %sum = stablehlo.add %flat, %a : tensor<4xf32>
      %new = stablehlo.reshape %sum : (tensor<4xf32>) -> tensor<1x4xf32>
      %filled = stablehlo.dynamic_update_slice %out, %new, %i, %zero
          : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>)
            -> tensor<3x4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %xs, %filled, %b, %a, %limit
          : tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>,
            tensor<4xf32>, tensor<i32>
    }
    %1 = "stablehlo.case"(%n) ({
      stablehlo.return %0#3 : tensor<4xf32>
    }, {
      %2 = stablehlo.add %0#3, %0#4 : tensor<4xf32>
      stablehlo.return %2 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %next, %0#2, %0#3, %1, %x, %0#0, %c, %next
        : tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>,
          tensor<3x4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>
  }
}
