//===- Passes.td - Passes of the CUDA target ---------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TARGET_CUDA_PASSES_TD
#define WHALE_TARGET_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

def KernelsToGpu : Pass<"whale-kernels-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Makes kernels of a GPU of the functions of a module";
  let description = [{
    Each function with a `whale.extent`, as `whale-outline-kernels{blocks}`
    makes them, becomes a `gpu.func` of the `gpu.module` that the functions move
    into. Without `whale.threads`, each of its iterations is run by a thread, in
    blocks of 128; else by a block of so many threads. The loop from `begin` to
    `end` disappears, shared memory becomes a workgroup attribution, and the
    sizes of blocks, grid and buffers are known, so that LLVM can compute
    indices in 32 bits, and the emulator can check accesses. A kernel whose
    iterations are blocks tells it by the LLVM attribute `whale-by-block`.

    Example:
    ```mlir
    func.func @k0(%x: memref<300xf32>, %y: memref<300xf32>, %begin: index,
                  %end: index) attributes {whale.extent = 300 : i64} {
      %c1 = arith.constant 1 : index
      scf.for %i = %begin to %end step %c1 {
        %0 = memref.load %x[%i] : memref<300xf32>
        %1 = arith.negf %0 : f32
        memref.store %1, %y[%i] : memref<300xf32>
      }
      return
    }
    ```
    becomes
    ```mlir
    gpu.module @kernels {
      gpu.func @k0(%arg0: memref<300xf32> {llvm.dereferenceable = 1200 : i64},
                   %arg1: memref<300xf32> {llvm.dereferenceable = 1200 : i64})
          kernel attributes {known_block_size = array<i32: 128, 1, 1>,
          known_grid_size = array<i32: 3, 1, 1>, nvvm.minctasm = 1 : i32} {
        %block_id_x = gpu.block_id x
        %thread_id_x = gpu.thread_id x
        %c128 = arith.constant 128 : index
        %0 = arith.muli %block_id_x, %c128 : index
        %1 = arith.addi %0, %thread_id_x : index
        %c300 = arith.constant 300 : index
        %2 = arith.cmpi ult, %1, %c300 : index
        scf.if %2 {
          %c1 = arith.constant 1 : index
          %3 = memref.load %arg0[%1] : memref<300xf32>
          %4 = arith.negf %3 : f32
          memref.store %4, %arg1[%1] : memref<300xf32>
        }
        gpu.return
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"
  ];
}

def CheckThreads : Pass<"whale-check-threads", "::mlir::ModuleOp"> {
  let summary = "Refuses kernels of which one thread does the work of many, or "
                "whose blocks or grids need more than GPUs have";
  let description = [{
    How often the innermost loops of one thread run, at most, follows from the
    bounds of the loops of a kernel: of those from constants to constants, to
    the smaller of several numbers, and from a number to that number plus a
    constant. An iteration of a loop with `whale.tiles`, over tiles whose elements
    all threads of a block share, counts as one. A kernel of which this is more than `most`, or not
    known, is an error at the operations that it is of, and so is one that
    allocates more than 48 KiB of shared memory, or has a grid of more than
    2,147,483,647 blocks.

    Example: one thread for all elements.
    ```mlir
    module @kernels {
      func.func @k0(%x: memref<8192xf32>, %y: memref<8192xf32>, %begin: index,
                    %end: index) attributes {whale.extent = 1 : i64} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c8192 = arith.constant 8192 : index
        scf.for %i = %begin to %end step %c1 {
          scf.for %j = %c0 to %c8192 step %c1 {
            %0 = memref.load %x[%j] : memref<8192xf32>
            memref.store %0, %y[%j] : memref<8192xf32>
          }
        }
        return
      }
    }
    ```
    is refused:
    ```text
    error: a thread of the GPU would do up to 8192 elements of this one after
        the other: more than 4096
    ```
  }];
  let options = [
    Option<"most", "most", "int64_t", "4096",
           "Elements that a thread may do one after the other">,
  ];
}

#endif // WHALE_TARGET_CUDA_PASSES_TD
