// A start of 2^64 - 1 is far behind the end, not before the beginning.

func.func @dynamic_slice() {
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %start = stablehlo.constant dense<18446744073709551615> : tensor<1xui64>
  %scalar = stablehlo.reshape %start : (tensor<1xui64>) -> tensor<ui64>
  %0 = stablehlo.dynamic_slice %x, %scalar, sizes = [2] : (tensor<3xi32>, tensor<ui64>) -> tensor<2xi32>
  check.expect_eq_const %0, dense<[2, 3]> : tensor<2xi32>
  func.return
}

// 200 is no negative number in ui8.
func.func @byte() {
  %x = stablehlo.iota dim = 0 : tensor<300xi32>
  %start = stablehlo.constant dense<200> : tensor<ui8>
  %0 = stablehlo.dynamic_slice %x, %start, sizes = [2] : (tensor<300xi32>, tensor<ui8>) -> tensor<2xi32>
  check.expect_eq_const %0, dense<[200, 201]> : tensor<2xi32>
  func.return
}

func.func @shape() {
  %x = stablehlo.constant dense<7> : tensor<1xi32>
  %size = stablehlo.constant dense<200> : tensor<1xui8>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %size, dims = [0] : (tensor<1xi32>, tensor<1xui8>) -> tensor<200xi32>
  %1 = stablehlo.constant dense<7> : tensor<200xi32>
  check.expect_eq %0, %1 : tensor<200xi32>
  func.return
}
