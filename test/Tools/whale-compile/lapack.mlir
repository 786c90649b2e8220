// What a library function would refuse when the program is loaded is refused
// when it is compiled.
//
// RUN: sed s/MODE/86/ %s > %t.good.mlir
// RUN: whale-compile %t.good.mlir --cluster=1 -o %t.whale --target=none
// RUN: sed s/MODE/87/ %s > %t.bad.mlir
// RUN: not whale-compile %t.bad.mlir --cluster=1 -o %t.whale --target=none 2>&1 | FileCheck %s --implicit-check-not=error:
// CHECK: bad.mlir:11:10: error: 'stablehlo.custom_call' op expects mode to be 'N' or 'V', of type ui8 (got 87 : ui8)

func.func @main(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %0:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%x) {
      mhlo.backend_config = {mode = MODE : ui8, uplo = 76 : ui8},
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[0, 1]> : tensor<2xindex>,
                        dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]
  } : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)
  return %0#1 : tensor<4xf32>
}
