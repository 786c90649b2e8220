//===- CompileKernels.h - Kernels to native code -------------- -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the module of kernels to a shared library.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TARGET_CPU_COMPILEKERNELS_H
#define WHALE_TARGET_CPU_COMPILEKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace whale {

struct CompileKernelsOptions {
  /// The processor to compile for, by LLVM's name; this machine's if empty.
  std::string cpu;
  /// Where to write the optimized LLVM IR, if anywhere (one file for each of
  /// KernelParts.h's parts, numbered).
  std::string dumpLLVM;
};

/// Compiles each function of `kernels` (the module that whale-outline-kernels
/// makes; it is not changed) to native code in the shared library `path`. A
/// function `@k` becomes the C function
///
///   void k(void **buffers, int64_t begin, int64_t end);
///
/// with the function's memrefs, inputs then outputs, as `buffers`. Emits a
/// diagnostic at the module if the linker or the code generator fails.
llvm::LogicalResult compileKernels(mlir::ModuleOp kernels, llvm::StringRef path,
                                   const CompileKernelsOptions &options = {});

/// Compiles a part of kernels, numbered for dumps, which is consumed, to the
/// file `object`. The context has what `loadForKernels` loads.
llvm::LogicalResult compileKernelsPart(mlir::ModuleOp part, size_t number,
                                       llvm::StringRef object,
                                       const CompileKernelsOptions &options);
void loadForKernels(mlir::MLIRContext &context);

/// Whether LLVM knows a processor of this name.
bool isProcessor(llvm::StringRef name);

/// What the kernels for a processor (this machine's, if the name is empty) need
/// of the one they run on, as whale/ProgramFormat/Processor.h lists it.
std::vector<std::string> findKernelFeatures(llvm::StringRef cpu);

} // namespace whale

#endif // WHALE_TARGET_CPU_COMPILEKERNELS_H
