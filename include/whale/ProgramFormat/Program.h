//===- Program.h - What a program directory's index says --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contents of manifest.json (docs/program-format.md) as values: what the
// compiler fills in and writes, and what the runtime and other readers get.
// Two programs are equal if they say the same, wherever it is shared.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_PROGRAM_H
#define WHALE_PROGRAMFORMAT_PROGRAM_H

#include "whale/ProgramFormat/Products.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

namespace whale::format {

/// The version that is written and read.
inline constexpr int64_t formatVersion = 5;

/// A value that several owners may hold: a large one is in memory, and in the
/// file, once. Compared by value.
template <typename T>
struct Shared : std::shared_ptr<const T> {
  using std::shared_ptr<const T>::shared_ptr;
  Shared(std::shared_ptr<const T> other)
      : std::shared_ptr<const T>(std::move(other)) {}

  friend bool operator==(const Shared &a, const Shared &b) {
    return a.get() == b.get() || (a.get() && b.get() && *a == *b);
  }
};

/// A rank, and the device that the compiler has in mind for it.
struct Rank {
  /// Index of its class.
  int64_t rankClass = 0;
  int64_t device = 0;
  std::string kind = "cpu";
  int64_t node = 0;
  double slowdown = 1;
  bool operator==(const Rank &) const = default;
};

/// What an argument is for.
enum class Role : uint8_t { State, Batch, Input };

/// An argument or a result of a program.
struct Parameter {
  /// "arg0", "result0": its name in tensor files.
  std::string name;
  /// What the user calls it ("params['w']"); may be empty.
  std::string label;
  DType dtype = {};
  /// Of the whole tensor.
  Shape shape;
  Shared<Layout> layout;

  /// Arguments only, like the next three.
  Role role = Role::Input;
  /// The dimension that carries the mini-batch.
  std::optional<int64_t> batchDim;
  /// The result that is the next step's value of this argument.
  std::optional<int64_t> fedBy;
  /// Running the program takes the array over.
  bool donated = false;

  /// Results only: the donated argument whose memory the result takes.
  std::optional<int64_t> alias;
  bool operator==(const Parameter &) const = default;
};

/// Whose memory a buffer is in: in a function there are operands, results,
/// locals and constants, in a class all others.
enum class Space : uint8_t {
  Arena,
  Argument,
  Result,
  Constant,
  RankConstant,
  Operand,
  Local
};

/// A buffer of a class or function; instructions name it by its index.
struct BufferInfo {
  Space space = Space::Arena;
  /// Byte offset in the arena, in the constants file, or in the rank's part of
  /// the argument or result of the program.
  int64_t offset = 0;
  /// Index of the argument or result, or of the function's operand, result or
  /// local.
  int64_t index = 0;
  int64_t bytes = 0;
  DType dtype = {};
  Shape shape;
  /// RankConstant: the bytes for each rank of the class, in the class's order.
  std::vector<std::vector<uint8_t>> values;
  bool operator==(const BufferInfo &) const = default;
};

/// A generated kernel over [0, extent).
struct Kernel {
  std::string symbol;
  /// Inputs, then outputs.
  std::vector<BufferIndex> buffers;
  int64_t extent = 0;
  bool operator==(const Kernel &) const = default;
};

struct Copy {
  BufferIndex src = 0, dst = 0;
  bool operator==(const Copy &) const = default;
};

/// A function of the runtime.
struct Call {
  std::string function;
  std::vector<BufferIndex> inputs, outputs;
  /// JSON text without spaces, keys in ascending order.
  std::string config = "{}";
  bool operator==(const Call &) const = default;
};

/// Posts a rank's part of a channel. Until the wait for it, nobody writes `src`
/// and nobody reads or writes `dst`.
struct Start {
  int64_t channel = 0;
  /// Which of the class's transfers it is: its starts count from 0, in order.
  int64_t transfer = 0;
  std::optional<BufferIndex> src, dst;
  bool operator==(const Start &) const = default;
};

/// Goes on when a transfer that was started before, in the same list, is done
/// with the rank's buffers.
struct Wait {
  int64_t transfer = 0;
  bool operator==(const Wait &) const = default;
};

/// Runs a function on buffers of the class.
struct Run {
  int64_t function = 0;
  std::vector<BufferIndex> operands, results;
  /// The micro-batch that it is for, for traces.
  std::optional<int64_t> moment;
  bool operator==(const Run &) const = default;
};

struct Instruction;

struct While {
  std::vector<Instruction> cond;
  BufferIndex predicate = 0;
  std::vector<Instruction> body;
  /// How often the body runs, where that is known before.
  std::optional<int64_t> trips = {};
  bool operator==(const While &) const;
};

struct Case {
  BufferIndex index = 0;
  std::vector<std::vector<Instruction>> branches;
  bool operator==(const Case &) const;
};

/// What instructions come from.
struct Origin {
  /// For errors and traces; may be empty.
  std::string label;
  /// The lines of the user's program, "model.py:12"; that of the result first.
  std::vector<std::string> lines;
  auto operator<=>(const Origin &) const = default;
};

using Operation = std::variant<Kernel, Copy, Matmul, Convolution, Call, Start,
                               Wait, Run, While, Case>;

struct Instruction {
  /// Index into the program's origins.
  std::optional<int64_t> origin = {};
  /// Arithmetic that it does and bytes that it touches, where that is known; at
  /// most the largest number.
  std::optional<int64_t> flops = {}, bytes = {};
  Operation operation;
  bool operator==(const Instruction &) const = default;
};

inline bool While::operator==(const While &) const = default;
inline bool Case::operator==(const Case &) const = default;

/// Instructions, and the buffers that they name by their indices.
struct Body {
  std::vector<BufferInfo> buffers;
  std::vector<Instruction> instructions;
  bool operator==(const Body &) const = default;
};

/// Instructions that classes run, each time on other operands and results. It
/// has locals 0, 1, ... as its buffers say, starts no transfer and runs no
/// function.
struct Function : Body {
  /// How many of each it is given.
  int64_t operands = 0, results = 0;
  bool operator==(const Function &) const = default;
};

/// Ranks that run the same instructions.
struct RankClass : Body {
  /// Ascending.
  std::vector<int64_t> ranks;
  int64_t arenaBytes = 0;
  /// Of each function that the class runs: the offsets of its locals in the
  /// arena.
  std::map<int64_t, std::vector<int64_t>> locals;
  bool operator==(const RankClass &) const = default;
};

enum class Reduction : uint8_t { Sum, Product, Min, Max, And, Or };

/// A box of a receiver's destination and where it comes from.
struct Cell {
  Shape dstStart;
  Shape size;
  struct Contribution {
    int64_t peer;
    Shape start;
    bool operator==(const Contribution &) const = default;
  };
  /// One: a copy. Several: their reduction in this order. None: its identity.
  std::vector<Contribution> from;
  bool operator==(const Cell &) const = default;
};

/// Several ranks, each once. Who connects ranks makes a communicator of each
/// group that a program has, in their order: larger ones first.
using Group = std::vector<int64_t>;
struct LargerFirst {
  bool operator()(const Group &a, const Group &b) const {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  }
};
using Groups = std::set<Group, LargerFirst>;

/// What a collective does.
struct Collective {
  std::string kind;
  DType dtype = {};
  std::optional<Reduction> reduction;
  /// Ascending.
  std::vector<int64_t> participants;
  /// Without a rank in common. A participant exchanges data with those of its
  /// group alone; one that is in none has nobody to exchange data with.
  Groups groups;
  /// By receiving rank, unless it is an all-reduce.
  std::map<int64_t, Shared<std::vector<Cell>>> cells;
  /// By rank, the extents in which cells name positions: the buffer's own, or
  /// others with as many elements. Absent for a rank that does not send or
  /// does not receive.
  std::map<int64_t, Shape> srcShapes;
  std::map<int64_t, Shape> dstShapes;

  /// Whether the `dst` of each rank becomes the reduction of the `src` of its
  /// group, in the group's order: equal whole buffers. Otherwise `cells` say
  /// what moves.
  bool isAllReduce() const { return kind == "all_reduce"; }
  bool operator==(const Collective &) const = default;
};

/// What every launch of a kernel agrees with.
struct KernelSignature {
  size_t inputs = 0;
  /// Of each buffer.
  std::vector<int64_t> bytes;
  int64_t extent = 0;
  bool operator==(const KernelSignature &) const = default;
};

/// A file of the program's directory.
struct File {
  std::string name;
  /// Of its bytes (Checksum.h); empty where the program doesn't say.
  std::string hash;
  bool operator==(const File &) const = default;
};

struct Program {
  /// "cpu", or "none" for a program without code.
  std::string target;
  /// For messages.
  std::string name;
  std::vector<Rank> ranks;
  std::vector<Parameter> arguments;
  std::vector<Parameter> results;
  std::vector<Origin> origins;
  /// What classes run.
  std::vector<Function> functions;
  std::vector<RankClass> classes;
  /// By number. Channels that do the same share what they do.
  std::map<int64_t, Shared<Collective>> channels;
  std::optional<File> kernels;
  /// By symbol.
  std::optional<std::map<std::string, KernelSignature>> kernelSignatures;
  std::optional<File> constants;
  /// A summary for people and tools: JSON text without spaces.
  std::string plan = "null";
  bool operator==(const Program &) const = default;
};

/// The names of the file, in the order of the enumerators.
std::string_view name(Reduction reduction);
std::string_view name(Space space);
std::string_view name(Role role);

/// The groups of all channels: their communicators.
Groups communicatorsOf(const Program &program);

/// Bytes, and a number that offsets of what they are must be multiples of.
struct Extent {
  int64_t bytes = 0, alignment = 1;
  bool operator==(const Extent &) const = default;
};
/// What the operands, results or locals of a function need, as its buffers say:
/// entries of one index are of equal size.
std::vector<Extent> extentsOf(const Function &function, Space space);

/// The bytes of elements of this type and shape.
int64_t byteCount(DType dtype, const Shape &shape);

/// "f32[2,3]": an element type and a shape.
std::string tensorType(DType dtype, const Shape &shape);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_PROGRAM_H
