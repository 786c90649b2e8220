//===- LowerToNvvm.h - GPU kernels to LLVM IR -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TARGET_CUDA_LOWERTONVVM_H
#define WHALE_LIB_TARGET_CUDA_LOWERTONVVM_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace whale {

/// Loads what lowerToNvvm needs, which several threads then may call.
void loadNvvm(mlir::MLIRContext &context);

/// Lowers `kernels` (a module of its own, which is consumed) as far as LLVM IR
/// for NVPTX, with the functions of the device library that it calls. For a
/// processor bf16 is held as its bits (whale/Target/CPU/BFloat16.h).
/// Emits a diagnostic on failure.
std::unique_ptr<llvm::Module> lowerToNvvm(mlir::ModuleOp kernels,
                                          llvm::LLVMContext &context,
                                          bool isForProcessor = false);

/// Adds to `module` what it calls of the device library; an error that says
/// which package has it if there is none.
llvm::Error linkLibdevice(llvm::Module &module);

/// Replaces what only a GPU has by what whale/ProgramFormat/Emulator.h offers,
/// so that the module can be compiled for this machine's processor. A block of
/// the GPU has `blockSharedBytes` of shared memory at most.
llvm::Error emulateIntrinsics(llvm::Module &module, int64_t blockSharedBytes);

} // namespace whale

#endif // WHALE_LIB_TARGET_CUDA_LOWERTONVVM_H
