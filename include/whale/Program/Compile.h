//===- Compile.h - From StableHLO text to a program -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The whole compiler behind one function: whale-compile is thin around it.
// docs/compile.md describes the pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAM_COMPILE_H
#define WHALE_PROGRAM_COMPILE_H

#include "whale/Conversion/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class PassManager;
} // namespace mlir

namespace whale {

namespace format {
class Libraries;
} // namespace format

/// What whale-compile takes on its command line; docs/compile.md says more.
struct CompileOptions {
  explicit CompileOptions(const format::Libraries &libraries)
      : libraries(libraries) {}

  /// Those that will compute the program; they outlive the options.
  const format::Libraries &libraries;
  /// A cluster file's path, its text (it starts with '{'), or a number of
  /// CPU ranks.
  std::string cluster = "1";
  /// Where the program runs: "cpu", "cuda", "cuda-emulated" (on the processor,
  /// with the kernels of a GPU), or "none" for a program without code.
  std::string target = "cpu";
  /// The processor that kernels are built for, by LLVM's name; this machine's
  /// if empty.
  std::string cpu;
  /// The architecture that a cuda program's kernels are built for, as "sm_90".
  /// Empty for those of all of the cluster's kinds; sm_90 where none has one.
  std::string gpuArch;
  /// Whether GPUs may round f32 operands of default precision to TF32, whatever
  /// the text says.
  bool tf32 = false;
  /// For operations without one: "replicate", "split" or "none"; empty leaves
  /// what the text says.
  std::string strategy;
  /// Arguments of @main that carry the mini-batch in dimension 0.
  std::vector<int64_t> batchArgs;
  /// Parts that a mini-batch is cut into; 0 leaves what the text says.
  int64_t microBatches = 0;
  /// "arg0:result0,arg1:result1": which result is an argument's next value.
  std::string feedback;
  /// The text of a plan that is carried out, and the name of its file, for
  /// messages; what it doesn't say, or all if it is empty, is decided.
  std::string plan, planFile;
  /// A directory for the text of each level; nothing is written if empty.
  std::string dumpPhasesTo;
  /// Python runs the program, and makes the calls of the step.
  bool callsPython = false;
  /// Report what the compiler decided, as remarks.
  bool explain = false;
  /// Say what is held where at the peak: CompileReport::memory.
  bool explainMemory = false;
  /// If set, the step is not refused where it does not fit, and this is called
  /// with what it needs, and then, if `pricesOptions`, with what it would need
  /// with each option that there is: an object of JSON each (docs/memory.md).
  std::function<void(const std::string &)> onFit;
  bool pricesOptions = false;
  /// If set, called with each pass that begins, by its argument, and of "parse"
  /// and "emit" before and after all passes. One call at a time.
  std::function<void(llvm::StringRef)> onPass;
  /// The process ends after this: what the compiler holds is left to the
  /// system, which frees it at once. A tenth of a second and more for a large
  /// program.
  bool leavesMemory = false;
};

/// What the compiler says: one error at most, and remarks if asked for.
struct CompileMessage {
  enum Severity { Error, Warning, Remark } severity;
  /// "FILE:LINE:COLUMN", or empty. Of several the first.
  std::string location;
  std::string text;
  /// Lines that belong below it, with their ends: of an error about memory, who
  /// holds what.
  std::string table;
  /// How often it was said, of different places.
  size_t count = 1;
};

/// What can be said of a program besides.
struct CompileReport {
  /// Its readable summary as JSON; empty of a step that does not fit and has no
  /// plan that is closer.
  std::string plan;
  /// Text that shows what each device holds when it holds most, if asked for.
  std::string memory;
};

using CompileHandler = llvm::function_ref<void(const CompileMessage &)>;

/// Compiles `text` (of `fileName`, for messages) into the program directory
/// `outDir`; where that is empty, it is planned and nothing is written. On
/// failure one error has been handed to `handler`, and nothing is left at
/// `outDir` that was not there before.
llvm::LogicalResult
compileProgram(llvm::StringRef text, llvm::StringRef fileName,
               const CompileOptions &options, llvm::StringRef outDir,
               CompileHandler handler, CompileReport *report = nullptr);

/// The dialects of all levels.
void registerProgramDialects(mlir::DialectRegistry &registry);

/// One level of the IR: the pipeline (in MLIR's syntax, on a module) that
/// reaches it from the one before.
struct Level {
  llvm::StringLiteral name;
  llvm::StringLiteral pipeline;
  /// For GPUs, where it is another one.
  llvm::StringLiteral gpuPipeline = "";
  /// Of schedules for all rank classes there is much to verify: once, when they
  /// are complete.
  bool isVerified = true;
};

/// The phases from the text to a module that emitProgram takes.
llvm::ArrayRef<Level> getLevels();

/// Of the levels, the one at which all is decided but buffers, and the one at
/// which there are kernels.
inline constexpr llvm::StringLiteral kPlannedLevel = "partitioned",
                                     kKernelsLevel = "kernels";

/// A pipeline, in which `%` stands for the target.
std::string setTarget(llvm::StringRef pipeline, const Target &target);

/// The part of level 'program' that follows starts of transfers.
llvm::StringRef getBufferPipeline(bool isForGpu);

/// The part of level 'kernels' that decides how products and convolutions are
/// computed.
llvm::StringRef getProductPipeline(bool isForGpu);

/// The environment variable that has each compilation verify the IR after every
/// pass, and the program. Tests set it. Else it is verified after each level,
/// but of those with the schedules of rank classes after the last one alone.
inline constexpr llvm::StringLiteral kVerifyEachVariable = "WHALE_VERIFY_EACH";
bool isVerifyEachSet();

/// Lets the manager's verifier run, or not, as the variable says.
void configureVerifier(mlir::PassManager &manager);

/// Registers the phases as pipelines: `whale` is all of them, `whale-NAME` a
/// single one.
void registerPipelines();

} // namespace whale

#endif // WHALE_PROGRAM_COMPILE_H
