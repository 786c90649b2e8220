// A loop that loads and stores complex numbers, and works in place, is told to
// be parallel: it becomes one over vectors. One number at a time would take
// several times as long.
//
// RUN: rm -rf %t && mkdir %t
// RUN: whale-compile %s --cluster=1 --cpu=x86-64-v3 -o %t/o.whale
// RUN: llvm-objdump -d %t/o.whale/kernels.so | FileCheck %s

// CHECK: <k0>:
// CHECK: vmovups {{.*}}, %ymm
// CHECK: {{vmulps|vfm.*ps|vfn.*ps}} {{.*}}%ymm
// CHECK: vmovups %ymm{{.*}}, {{.*}}(

func.func @main(%x: tensor<4096xcomplex<f32>> {whale.donated,
                                               whale.fed_by = 0 : i64})
    -> tensor<4096xcomplex<f32>> {
  %0 = stablehlo.multiply %x, %x : tensor<4096xcomplex<f32>>
  %1 = stablehlo.add %0, %x : tensor<4096xcomplex<f32>>
  return %1 : tensor<4096xcomplex<f32>>
}
