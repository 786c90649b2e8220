// The FLOPs of a kernel, a product and a convolution that are more than a number
// of 64 bits says are the largest one. Such a step can be planned; a program of
// it would not be loaded, and is none.
//
// RUN: echo '{"kinds": {"k": {"flops": {"f32": 1e12}, "memory_bytes": 1e18, "memory_bandwidth": 1e12}}, "nodes": [{"devices": [{"kind": "k", "count": 2}]}]}' > %t.json
// RUN: whale-compile %s --cluster=%t.json --strategy=replicate --target=none -o %t.whale
// RUN: FileCheck %s --input-file=%t.whale/manifest.json --implicit-check-not='"flops":-'
// CHECK-COUNT-3: 9223372036854775807
// RUN: not whale-compile %s --cluster=%t.json --strategy=replicate -o %t.none 2>&1 | FileCheck %s --check-prefix=LOADED --implicit-check-not=error:
// LOADED: error: the program could not be loaded: manifest.json: {{.*}}: the product is too large
// RUN: test ! -e %t.none

func.func @main(%a: tensor<30000000x10000000xf32>, %b: tensor<10000000x30000000xf32>, %c: tensor<3000000x1000000xi32>, %d: tensor<1000000x3000000xi32>, %e: tensor<1x1000000x64xi32>, %f: tensor<1000000x64x1000000xi32>) -> (tensor<30000000x30000000xf32>, tensor<3000000x3000000xi32>, tensor<1x1000001x1000000xi32>) {
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<30000000x10000000xf32>, tensor<10000000x30000000xf32>) -> tensor<30000000x30000000xf32>
  %q = stablehlo.dot_general %c, %d, contracting_dims = [1] x [0] : (tensor<3000000x1000000xi32>, tensor<1000000x3000000xi32>) -> tensor<3000000x3000000xi32>
  %r = stablehlo.convolution(%e, %f) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[500000, 500000]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1000000x64xi32>, tensor<1000000x64x1000000xi32>) -> tensor<1x1000001x1000000xi32>
  return %p, %q, %r : tensor<30000000x30000000xf32>, tensor<3000000x3000000xi32>, tensor<1x1000001x1000000xi32>
}
