//===- CompileCuda.h - Kernels for NVIDIA GPUs ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the module of kernels to PTX, or to code that runs the same kernels on
// the processor, thread by thread.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TARGET_CUDA_COMPILECUDA_H
#define WHALE_TARGET_CUDA_COMPILECUDA_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace whale {

/// Threads of a block whose iterations don't cooperate.
inline constexpr int64_t kBlockThreads = 128;

/// The names of the architectures that there is code for
/// (format::GpuArchitecture).
llvm::ArrayRef<llvm::StringRef> getGpuArchitectures();
bool isGpuArchitecture(llvm::StringRef name);

/// The blocks of a kernel, and the threads of each.
struct LaunchShape {
  int64_t blocks, threads;
  /// Whether an iteration is a block; else it is a thread.
  bool isByBlock;
};
/// Has LLVM functions of kernels of which an iteration is a block.
inline constexpr llvm::StringLiteral kByBlockAttrName = "whale-by-block";

/// Of a function that whale-outline-kernels{blocks} makes.
LaunchShape getLaunchShape(mlir::func::FuncOp kernel);

/// What it allocates in shared memory, which its block has once.
llvm::SmallVector<mlir::memref::AllocaOp>
findSharedMemory(mlir::Operation *kernel);
/// Of each array there, in bytes: the widest access.
inline constexpr int64_t kSharedAlignment = 16;

struct PtxKernel {
  /// Which of the texts has it.
  size_t module;
  LaunchShape shape;
};
struct Ptx {
  std::vector<std::string> modules;
  /// The same for GPUs of exactly the architecture; empty without nvJitLink.
  std::vector<std::string> cubins;
  /// By symbol.
  std::map<std::string, PtxKernel> kernels;
};

/// Compiles each function of `kernels` (the module that
/// whale-outline-kernels{blocks} makes; it is not changed) for GPUs of the
/// architecture `arch`. A function `@k` becomes the entry `k` of one of the PTX
/// texts, with a pointer for each of its memrefs, and of its cubin where
/// nvJitLink is found; a remark says that and why it isn't. Emits a diagnostic
/// where the toolkit's device library, or what a kernel needs, is missing.
llvm::FailureOr<Ptx> compilePtx(mlir::ModuleOp kernels, llvm::StringRef arch);

/// Compiles them to the shared library `path`, for this machine's processor:
/// the IR that PTX is made of, with calls of whale/ProgramFormat/Emulator.h
/// where it asks for what a GPU does. A function `@k` becomes
///
///   void k(void **buffers, int64_t begin, int64_t end);
///
/// of iterations of its extent. Kernels of ranks on the processor are compiled
/// as `compileKernels` does, for `cpu`. A block has the shared memory of the
/// architecture that its kernel says, or else of `capability`.
llvm::LogicalResult compileEmulated(mlir::ModuleOp kernels,
                                    llvm::StringRef path, int capability,
                                    llvm::StringRef cpu = "");

} // namespace whale

#endif // WHALE_TARGET_CUDA_COMPILECUDA_H
