// RUN: not whale-opt %s -whale-check-threads 2>&1 | FileCheck %s

// Arrays of a block are added up; those of a thread are not the block's. A grid
// has at most so many blocks as every GPU takes.

module @kernels {
  // CHECK: step.py:9:1: error: a block of the GPU would need 49156 bytes of
  // CHECK-SAME: shared memory for this one: more than 49152
  func.func @arrays(%begin: index, %end: index)
      attributes {whale.extent = 1 : i64, whale.threads = 64 : i64} {
    %0 = memref.alloca() : memref<8192xf32, #gpu.address_space<workgroup>>
    %1 = memref.alloca() : memref<4097xf32, #gpu.address_space<workgroup>>
    return
  } loc("step.py":9:1)
  // CHECK: step.py:9:2: error: a grid of the GPU would have 2147483648 blocks
  // CHECK-SAME: for this one: more than 2147483647
  func.func @grid(%begin: index, %end: index)
      attributes {whale.extent = 2147483648 : i64, whale.threads = 64 : i64} {
    return
  } loc("step.py":9:2)
  // CHECK-NOT: error
  func.func @fitting(%begin: index, %end: index)
      attributes {whale.extent = 1 : i64, whale.threads = 64 : i64} {
    %0 = memref.alloca() : memref<12288xf32, #gpu.address_space<workgroup>>
    %1 = memref.alloca() : memref<1xf32>
    return
  }
}
