//===- BoundProgram.h - A program, ready to be executed ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program whose kernels and library functions have been found, with its
// instructions as the executor takes them. Cost: once at loading, linear in the
// instructions of all classes and of the functions that each runs, and a
// look-up by name for each kernel and library call. Memory: a few hundred bytes
// for each instruction, in loops and functions once for all runs. The executor
// then calls without looking anything up; the class of a rank is found in
// constant time.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_BOUNDPROGRAM_H
#define WHALE_RUNTIME_PROGRAM_BOUNDPROGRAM_H

#include "library/Library.h"
#include "program/Format.h"

namespace whale::runtime {

class KernelLibrary;

namespace cuda {
struct Libraries;
} // namespace cuda

using KernelFunction = void (*)(void **buffers, int64_t begin, int64_t end);

struct KernelLaunch {
  KernelFunction function;
  std::vector<BufferIndex> buffers;
  int64_t extent;
  /// Bytes touched, or arithmetic where that is more: decides the threads.
  double work;
  /// Its name; null in tests.
  const std::string *symbol = nullptr;
};

struct Copy {
  BufferIndex src, dst;
  int64_t bytes;
};

struct Call {
  std::vector<BufferIndex> inputs, outputs;
  LibraryFunction function;
  /// Of the inputs, then of the outputs.
  std::vector<int64_t> bytes = {};
  std::vector<LibraryTensor> tensors = {};
  /// What the program says.
  const format::Call *given = nullptr;
};

struct Instruction;

struct While {
  std::vector<Instruction> cond;
  BufferIndex predicate;
  std::vector<Instruction> body;
  /// How often the body runs, if that is known and the condition, in which
  /// nothing is exchanged, need not be computed.
  std::optional<int64_t> trips = std::nullopt;
};

struct Case {
  BufferIndex index;
  DType indexType;
  std::vector<std::vector<Instruction>> branches;
};

/// Stands for its transfer in traces and profiles: it has the label, the lines
/// and the costs of the start.
struct Wait {
  int64_t transfer;
  int64_t channel;
};

struct BoundFunction;

/// Runs a function on buffers of the class.
struct Run {
  const BoundFunction *function;
  const format::Run *given;
};

struct Instruction {
  /// Counts those of a class and then those of each function that it runs,
  /// which have one number for all runs.
  size_t number = 0;
  /// For errors and traces; not empty.
  std::string label;
  /// Which lines of the user's program it comes from.
  const std::vector<std::string> *lines = nullptr;
  /// For traces: what it is (the symbol of a kernel), the arithmetic that it
  /// does and the bytes that it touches; 0 where they are not known.
  std::string detail;
  double flops = 0, bytes = 0;
  /// The type that a product is computed in.
  std::optional<DType> product;
  std::variant<KernelLaunch, Copy, const Matmul *, const Convolution *, Call,
               Start, Wait, Run, While, Case>
      operation;
};

/// A function as one class runs it.
struct BoundFunction {
  const format::Function *format = nullptr;
  /// By buffer of the function: where a constant is among the buffers of the
  /// class and those of `BoundClass::functionBuffers`.
  std::vector<BufferIndex> indices;
  /// By layout: where its first local is there. The others follow.
  std::vector<BufferIndex> firstLocal;
  std::vector<Instruction> instructions;
};

/// Memory that a function uses wherever it is run.
struct FunctionBuffer {
  /// Arena or Constant.
  Space space;
  int64_t offset;
};

struct BoundClass {
  /// They are counted behind the buffers of the class.
  std::vector<FunctionBuffer> functionBuffers;
  std::vector<Instruction> instructions;
  /// Those that it runs, by number.
  std::map<int64_t, BoundFunction> functions;
  /// How many instructions these are, with those in loops and cases.
  size_t instructionCount = 0;
};

struct BoundProgram {
  explicit BoundProgram(format::Program program)
      : program(std::move(program)) {}
  BoundProgram(const BoundProgram &) = delete;
  BoundProgram &operator=(const BoundProgram &) = delete;

  const format::RankClass &classOf(int64_t rank) const {
    return program.classes[program.ranks[rank].rankClass];
  }

  const BoundClass &boundClassOf(int64_t rank) const {
    return classes[program.ranks[rank].rankClass];
  }

  const format::Program program;
  /// What it is called where processes compare what they run.
  std::string title;
  /// The contents of `program.gpu`: PTX and, if the program has them, cubins.
  struct GpuCode {
    std::vector<std::string> texts, cubins;
  };
  std::vector<GpuCode> gpu;
  /// For tests: what stands for the libraries of a GPU.
  const cuda::Libraries *testLibraries = nullptr;
  /// They refer to `program`.
  std::vector<BoundClass> classes;
};

/// Checks that this runtime runs programs for such a target, of so many ranks.
/// Throws Error with `file` and the path of the field at fault.
void checkTarget(const format::Program &program, const std::string &file);

/// Finds the kernels (null: there are none) and library functions that a
/// program calls, and checks that its constants are in a file of
/// `constantsSize` bytes. Throws Error like `checkTarget`.
std::unique_ptr<BoundProgram> bindProgram(format::Program program,
                                          const std::string &file,
                                          const KernelLibrary *kernels,
                                          int64_t constantsSize,
                                          const PythonFunction &python = {});

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_BOUNDPROGRAM_H
