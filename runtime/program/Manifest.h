//===- Manifest.h - A program, decoded and checked --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contents of manifest.json (docs/program-format.md) after every index,
// range, type, shape and box in it was checked: the executor relies on them.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_MANIFEST_H
#define WHALE_RUNTIME_PROGRAM_MANIFEST_H

#include "library/Library.h"
#include "whale/Runtime/Products.h"
#include "whale/Runtime/Program.h"

#include <map>
#include <variant>

namespace whale::runtime {

class KernelLibrary;

enum class Space : uint8_t { Arena, Argument, Result, Constant, RankConstant };

/// A buffer of a class; instructions name it by its index.
struct BufferInfo {
  Space space;
  /// Byte offset in the arena or the constants file.
  int64_t offset = 0;
  /// Index of the argument or result.
  int64_t index = 0;
  int64_t bytes = 0;
  DType dtype;
  Shape shape;
  /// RankConstant: the bytes for each rank of the class, in the class's order.
  std::vector<std::vector<uint8_t>> values;
};

enum class Reduction : uint8_t { Sum, Product, Min, Max, And, Or };

/// A box of a receiver's destination and where it comes from.
struct Cell {
  Shape dstStart;
  Shape size;
  struct Contribution {
    int64_t peer;
    Shape start;
  };
  /// One: a copy. Several: their reduction in this order.
  std::vector<Contribution> from;
};

/// A collective.
struct Channel {
  int64_t number;
  std::string kind;
  DType dtype;
  std::optional<Reduction> reduction;
  std::vector<int64_t> participants;
  /// All-reduce of equal whole buffers; else `cells` say what moves.
  std::vector<std::vector<int64_t>> groups;
  std::map<int64_t, std::vector<Cell>> cells;

  /// The extents in which cells name positions, by rank; filled from the
  /// buffers where the manifest does not give them. Absent for a rank that
  /// does not send or does not receive.
  std::map<int64_t, Shape> srcShapes;
  std::map<int64_t, Shape> dstShapes;
};

using KernelFunction = void (*)(void **buffers, int64_t begin, int64_t end);

struct KernelLaunch {
  KernelFunction function;
  std::vector<BufferIndex> buffers;
  int64_t extent;
  /// Bytes touched, or arithmetic where that is more: decides the threads.
  double work;
};

struct Copy {
  BufferIndex src, dst;
};

struct Call {
  std::vector<BufferIndex> inputs, outputs;
  LibraryFunction function;
};

struct Comm {
  const Channel *channel;
  std::optional<BufferIndex> src, dst;
};

struct Instruction;

struct While {
  std::vector<Instruction> cond;
  BufferIndex predicate;
  std::vector<Instruction> body;
};

struct Case {
  BufferIndex index;
  DType indexType;
  std::vector<std::vector<Instruction>> branches;
};

struct Instruction {
  /// For errors and traces.
  std::string label;
  /// For traces: what it is (the symbol of a kernel), the arithmetic that it
  /// does and the bytes that it touches; 0 where they are not known.
  std::string detail;
  double flops = 0, bytes = 0;
  /// The type that a product is computed in.
  std::optional<DType> product;
  std::variant<KernelLaunch, Copy, Matmul, Convolution, Call, Comm, While, Case>
      operation;
};

struct RankClass {
  std::vector<int64_t> ranks;
  int64_t arenaBytes = 0;
  std::vector<BufferInfo> buffers;
  std::vector<Instruction> instructions;
};

struct Manifest {
  std::string name;
  std::string plan;
  /// The class of each rank.
  std::vector<int64_t> classOf;
  std::vector<Parameter> arguments;
  std::vector<Parameter> results;
  std::vector<RankClass> classes;
  std::map<int64_t, Channel> channels;
  /// File names, empty where there is none.
  std::string kernelsFile;
  std::string constantsFile;
};

/// What the manifest refers to, known before its instructions are decoded.
struct ManifestContext {
  /// For errors.
  std::string file;
  /// Opens the file of kernels; called at most once, with a plain file name and
  /// the hash that its bytes must have (empty: any).
  std::function<const KernelLibrary *(const std::string &file,
                                      const std::string &hash)>
      openKernels;
  /// The size in bytes of the constants file of that name and hash.
  std::function<int64_t(const std::string &file, const std::string &hash)>
      constantsSize;
};

/// Decodes and checks the text of a manifest; throws Error with the file's name
/// and the path of the field at fault.
std::unique_ptr<Manifest> readManifest(std::string_view text,
                                       const ManifestContext &context);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_MANIFEST_H
