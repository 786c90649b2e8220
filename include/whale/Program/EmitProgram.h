//===- EmitProgram.h - Write a program directory ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAM_EMITPROGRAM_H
#define WHALE_PROGRAM_EMITPROGRAM_H

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <memory>
#include <string>

namespace whale {

namespace format {
class Libraries;
struct Program;
} // namespace format

/// A program for "cuda" that has the kernels of "cuda-emulated", too: what the
/// runtime's tests of its CUDA device run (docs/gpu.md).
inline constexpr llvm::StringLiteral kCudaTestTarget = "cuda-test";

struct EmitOptions {
  explicit EmitOptions(const format::Libraries &libraries)
      : libraries(libraries) {}

  /// As in CompileOptions.
  const format::Libraries &libraries;
  /// "cpu", "cuda", "cuda-emulated", "cuda-test", or "none" for a program
  /// without code.
  std::string target = "cpu";
  /// The processor that kernels are built for; this machine's if empty.
  std::string cpu;
  /// The compute capability of a rank's GPU, that its kernels are built for;
  /// not asked for others.
  std::function<int(int64_t rank)> capabilityOf = [](int64_t) { return 90; };
  /// Whether that is what the rank's kind has, so that no other GPU will do.
  bool areKindsCompared = true;
  /// Of the program, for messages.
  std::string name;
  /// What the ranks' libraries may use besides, by rank; empty where no GPUs
  /// compute.
  std::vector<int64_t> workspaceBytes;
  /// Whether to check the program as CheckTransfers.h and CheckValues.h
  /// do: a fault is one of the compiler.
  bool verify = false;
};

/// A program before its kernels are compiled and its files written.
class GatheredProgram {
public:
  virtual ~GatheredProgram() = default;
  virtual const format::Program &get() const = 0;
  /// Writes it, with this JSON text as the manifest's `plan`, to the directory
  /// `outDir` (format: docs/program-format.md). The directory appears when it
  /// is complete; a program that was there is replaced. Failures are
  /// diagnostics.
  virtual llvm::LogicalResult write(llvm::StringRef outDir,
                                    std::string plan) = 0;
};

/// Returns the program of `module`, whose schedules and segments
/// whale-plan-buffers has annotated; null after a diagnostic. `options` must
/// outlive it.
std::unique_ptr<GatheredProgram> gatherProgram(mlir::ModuleOp module,
                                               const EmitOptions &options);

/// Gathers it and writes it, without a plan.
llvm::LogicalResult emitProgram(mlir::ModuleOp module,
                                const EmitOptions &options,
                                llvm::StringRef outDir);

} // namespace whale

#endif // WHALE_PROGRAM_EMITPROGRAM_H
