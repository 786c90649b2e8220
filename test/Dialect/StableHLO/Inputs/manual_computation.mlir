module {
  sdy.mesh @mesh = <["a"=4, "b"=2]>
  func.func @g(%arg0: tensor<4x4xf32>) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a", "b"} (%arg1: tensor<1x4xf32>) {
      sdy.return %arg1 : tensor<1x4xf32>
    } {foo.bar = 1 : i32} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
      sdy.return
    } : () -> ()
    return
  }
}
