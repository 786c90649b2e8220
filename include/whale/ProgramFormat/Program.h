//===- Program.h - The index of a program directory -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contents of manifest.json (docs/program-format.md) as plain structures.
// The compiler fills them in and writes them (WriteProgram.h); the runtime and
// other readers get them from readProgram.
//
// Cost: memory is linear in instructions, buffers, ranks and the cells of
// collectives; a layout, a collective or a list of cells that several use is
// stored once, and a copy of a program shares it. Equality compares contents,
// independently of what is shared: linear in the program, and shared values are
// compared again for each user unless both have the very same. Finding the
// communicators sorts the groups of all different collectives; the other
// functions are linear in what they are given.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_PROGRAM_H
#define WHALE_PROGRAMFORMAT_PROGRAM_H

#include "whale/Cluster/OpClass.h"
#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/ProgramFormat/Products.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

namespace whale::format {

/// The version that is written, and the only one that is read.
inline constexpr int64_t formatVersion = 11;

/// A value with several owners: a large one is stored once, in memory and in
/// the file. Compared by value.
template <typename T>
struct Shared : std::shared_ptr<const T> {
  using std::shared_ptr<const T>::shared_ptr;
  Shared(std::shared_ptr<const T> other)
      : std::shared_ptr<const T>(std::move(other)) {}

  friend bool operator==(const Shared &a, const Shared &b) {
    return a.get() == b.get() || (a.get() && b.get() && *a == *b);
  }
};

/// A rank and the device that it was planned for.
struct Rank {
  /// Index of its rank class.
  int64_t rankClass = 0;
  int64_t device = 0;
  std::string kind = "cpu";
  int64_t node = 0;
  double slowdown = 1;
  bool operator==(const Rank &) const = default;
};

/// The purpose of an argument.
enum class Role : uint8_t { State, Batch, Input };

/// What a result is for that Python gets when the step has ended.
struct CallbackOperand {
  /// The number of the function among those of the step.
  int64_t index = 0;
  /// Which of its operands the result is; none where it says by booleans
  /// whether the call is made.
  std::optional<int64_t> operand;
  /// Whether the function's first operand is a token, before those.
  bool hasToken = false;
  /// Calls are made by these numbers, which loops have, too.
  int64_t order = 0;
  /// For each loop around the call, from the outermost on, its number and how
  /// often it runs: the result's first dimensions.
  std::vector<std::pair<int64_t, int64_t>> loops;
  bool operator==(const CallbackOperand &) const = default;
};

/// An argument or a result of a program.
struct Parameter {
  /// "arg0", "result0": its name in tensor files.
  std::string name;
  /// The user's name for it ("params['w']"); may be empty.
  std::string label;
  DType dtype = {};
  /// The shape of the whole tensor.
  Shape shape;
  Shared<Layout> layout;
  /// Whether ranks hold it in the memory of their node's host, and not of their
  /// device.
  bool isInHost = false;

  /// Arguments only, like the next three fields.
  Role role = Role::Input;
  /// The dimension that carries the mini-batch.
  std::optional<int64_t> batchDim;
  /// The result that is the next step's value of this argument.
  std::optional<int64_t> fedBy;
  /// Whether running the program consumes the array.
  bool donated = false;
  /// Arguments only: where it is no argument of the user's, its elements in the
  /// first step, of f32.
  std::vector<int64_t> initial;

  /// Results only: the donated argument whose memory the result reuses.
  std::optional<int64_t> alias;
  /// Results only.
  std::optional<CallbackOperand> callback;
  bool operator==(const Parameter &) const = default;
};

/// The memory that a buffer is in: in a function operands, results, locals and
/// constants; in a class all others.
enum class Space : uint8_t {
  Arena,
  Argument,
  Result,
  Constant,
  RankConstant,
  Operand,
  Local
};

/// A buffer of a class or function; instructions refer to it by its index.
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
  /// Buffers with the same number are one value, seen as several types; a
  /// buffer without one is a value by itself.
  std::optional<int64_t> value = {};
  bool operator==(const BufferInfo &) const = default;
};

/// A generated kernel over [0, extent).
struct Kernel {
  std::string symbol;
  /// Inputs, followed by outputs.
  std::vector<BufferIndex> buffers;
  int64_t extent = 0;
  bool operator==(const Kernel &) const = default;
};

struct Copy {
  BufferIndex src = 0, dst = 0;
  bool operator==(const Copy &) const = default;
};

/// A call of a function of the runtime.
struct Call {
  std::string function;
  std::vector<BufferIndex> inputs, outputs;
  /// JSON text without spaces, keys in ascending order.
  std::string config = "{}";
  bool operator==(const Call &) const = default;
};

/// Starts a transfer of the rank on a channel. Until the matching wait, nothing
/// may write a `src`, and nothing may read or write a `dst`.
struct Start {
  int64_t channel = 0;
  /// Number of the transfer: the starts of a class are numbered from 0 in
  /// order.
  int64_t transfer = 0;
  /// What the rank gives and takes of a part of the channel.
  struct Ends {
    std::optional<BufferIndex> src, dst;
    bool operator==(const Ends &) const = default;
  };
  /// One for each of the channel's.
  std::vector<Ends> parts = std::vector<Ends>(1);
  bool operator==(const Start &) const = default;
};

/// Blocks until a transfer that was started earlier in the same list no longer
/// uses the rank's buffers.
struct Wait {
  int64_t transfer = 0;
  bool operator==(const Wait &) const = default;
};

/// Runs a function on buffers of the class.
struct Run {
  int64_t function = 0;
  std::vector<BufferIndex> operands, results;
  /// The micro-batch that it computes, for traces.
  std::optional<int64_t> moment;
  /// Which of the class's layouts the function's locals have.
  int64_t layout = 0;
  bool operator==(const Run &) const = default;
};

struct Instruction;

struct While {
  std::vector<Instruction> cond;
  BufferIndex predicate = 0;
  std::vector<Instruction> body;
  /// The number of iterations of the body, if known in advance.
  std::optional<int64_t> trips = {};
  bool operator==(const While &) const;
};

struct Case {
  BufferIndex index = 0;
  std::vector<std::vector<Instruction>> branches;
  bool operator==(const Case &) const;
};

/// The source of instructions.
struct Origin {
  /// For errors and traces; may be empty.
  std::string label;
  /// Locations in the user's program, "model.py:12"; that of the result first.
  std::vector<std::string> lines;
  auto operator<=>(const Origin &) const = default;
};

using Operation = std::variant<Kernel, Copy, Matmul, Convolution, Call, Start,
                               Wait, Run, While, Case>;

struct Instruction {
  /// Index into the program's origins.
  std::optional<int64_t> origin = {};
  /// FLOPs, and bytes read and written, if known; saturated at the largest
  /// number.
  std::optional<int64_t> flops = {}, bytes = {};
  Operation operation;
  /// What it does for the cost model, where its kind and its buffers do not say
  /// so (workOf in ProgramModel.h).
  std::optional<OpClass> opClass = {};
  std::optional<DType> computesIn = {};
  /// Index into the program's TaskGraphs; of an instruction of a function that
  /// has none, that of its run counts.
  std::optional<int64_t> taskGraph = {};
  bool operator==(const Instruction &) const = default;
};

inline bool While::operator==(const While &) const = default;
inline bool Case::operator==(const Case &) const = default;

/// Instructions and the buffers that they refer to.
struct Body {
  std::vector<BufferInfo> buffers;
  std::vector<Instruction> instructions;
  bool operator==(const Body &) const = default;
};

/// Instructions that classes run repeatedly with different operands and
/// results. Its buffers define locals 0, 1, ...; it starts no transfers and
/// runs no functions.
struct Function : Body {
  /// The numbers of operands and of results.
  int64_t operands = 0, results = 0;
  bool operator==(const Function &) const = default;
};

/// Ranks that run the same instructions.
struct RankClass : Body {
  /// Ascending.
  std::vector<int64_t> ranks;
  int64_t arenaBytes = 0;
  /// What libraries of a GPU may use besides, for one operation at a time.
  int64_t workspaceBytes = 0;
  /// For each function that the class runs, and each layout of its locals,
  /// their offsets in the arena.
  std::map<int64_t, std::vector<std::vector<int64_t>>> locals;
  /// Whether a program for GPUs runs it on the processor.
  bool isForProcessor = false;
  /// The architecture of the GPUs that it was compiled for, as "sm_90": what
  /// libraries compute, and which kernels there are, depends on it. Later ones
  /// run it, too. Empty if it is not for GPUs.
  std::string arch = {};
  bool operator==(const RankClass &) const = default;
};

enum class Reduction : uint8_t { Sum, Product, Min, Max, And, Or };

/// A box of a receiver's destination and its sources.
struct Cell {
  Shape dstStart;
  Shape size;
  struct Contribution {
    int64_t peer;
    Shape start;
    bool operator==(const Contribution &) const = default;
  };
  /// One source: a copy. Several: their reduction in this order. None: the
  /// reduction's identity.
  std::vector<Contribution> from;
  bool operator==(const Cell &) const = default;
};

/// Distinct ranks. The transport that connects ranks makes a communicator of
/// each group of a program, in their order: larger ones first.
using Group = std::vector<int64_t>;
struct LargerFirst {
  bool operator()(const Group &a, const Group &b) const {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  }
};
using Groups = std::set<Group, LargerFirst>;

/// A tensor that moves in a channel.
struct ChannelPart {
  DType dtype = {};
  std::optional<Reduction> reduction;
  /// By receiving rank; empty for an all-reduce.
  std::map<int64_t, Shared<std::vector<Cell>>> cells;
  /// By rank, the extents in which cells give positions: the buffer's own, or
  /// others with as many elements. Absent for a rank that does not send or does
  /// not receive.
  std::map<int64_t, Shape> srcShapes;
  std::map<int64_t, Shape> dstShapes;
  bool operator==(const ChannelPart &) const = default;
};

/// The operation of a channel.
struct Collective {
  std::string kind;
  /// Ascending.
  std::vector<int64_t> participants;
  /// Disjoint. A participant exchanges data only with its group; one that is in
  /// no group exchanges data with nobody.
  Groups groups;
  /// What moves at one time; one tensor in an all-reduce.
  std::vector<ChannelPart> parts = std::vector<ChannelPart>(1);

  /// Whether the `dst` of each rank becomes the reduction of the `src` of all
  /// ranks of its group, in the group's order; all are equal whole buffers.
  /// Otherwise `cells` define what moves.
  bool isAllReduce() const { return kind == "all_reduce"; }
  /// Whether each rank takes from itself alone, out of the order of its queue.
  bool isLocalSlice() const { return kind == "local_slice"; }
  /// Whether each rank copies a whole buffer between the memories of its node's
  /// host and its device, in a queue of its own.
  bool isHostCopy() const {
    return kind == "host_to_device" || kind == "device_to_host";
  }
  /// Whether ranks exchange nothing.
  bool isLocal() const { return isLocalSlice() || isHostCopy(); }
  bool operator==(const Collective &) const = default;
};

/// What the GPU of a rank has to be.
struct GpuKind {
  /// Exactly of this architecture, as "sm_90"; empty where any will do that
  /// runs the rank's class.
  std::string arch;
  /// As the cluster's file has it: what a GPU says of itself is a few percent
  /// less.
  int64_t memoryBytes = 0;
  bool operator==(const GpuKind &) const = default;
};

/// How a GPU runs a kernel: blocks of threads in one dimension, the shared
/// memory that its PTX declares, and a pointer for each buffer. An iteration is
/// a block if there are as many blocks as iterations, else a thread.
struct GpuLaunch {
  /// Which of the program's modules has it, counted through those of all
  /// architectures.
  int64_t module = 0;
  int64_t blocks = 1, threads = 1;
  bool operator==(const GpuLaunch &) const = default;
};

/// The properties that all launches of a kernel share.
struct KernelSignature {
  size_t inputs = 0;
  /// Bytes of each buffer.
  std::vector<int64_t> bytes;
  int64_t extent = 0;
  /// For GPUs only.
  std::optional<GpuLaunch> gpu = {};
  /// Pairs of an input and an output, by their places among the buffers, that
  /// may be the same memory: the kernel writes there only what it has read.
  std::set<std::pair<size_t, size_t>> inplace = {};
  bool operator==(const KernelSignature &) const = default;
};

/// A file of the program's directory.
struct File {
  std::string name;
  /// Hash of its bytes (Checksum.h); empty if unknown.
  std::string hash;
  bool operator==(const File &) const = default;
};

/// The kernels of the classes for an architecture.
struct GpuCode {
  /// As "sm_90"; GPUs of later ones run them too.
  std::string arch;
  int capability() const { return capabilityOf(arch); }
  /// Texts of PTX.
  std::vector<File> modules;
  /// The same for GPUs of exactly `arch`: one for each text, or none.
  std::vector<File> cubins = {};
  bool operator==(const GpuCode &) const = default;
};

struct Program {
  /// "cpu", "cuda", "cuda-emulated", or "none" for a program without code.
  std::string target;
  /// Used in messages.
  std::string name;
  std::vector<Rank> ranks;
  std::vector<Parameter> arguments;
  std::vector<Parameter> results;
  std::vector<Origin> origins;
  /// Of the parts of the step that instructions belong to, the names.
  std::vector<std::string> taskGraphs = {};
  /// The functions that classes run.
  std::vector<Function> functions;
  std::vector<RankClass> classes;
  /// By number. Equal channels share one Collective.
  std::map<int64_t, Shared<Collective>> channels;
  /// Where only the part of some ranks was read: more than the numbers of all
  /// channels.
  int64_t unreadChannelEnd = 0;
  std::optional<File> kernels;
  /// Of a program for GPUs that has kernels: by architecture, from the lowest
  /// on.
  std::vector<GpuCode> gpu;
  /// By the names of ranks' kinds, of those that are GPUs.
  std::map<std::string, GpuKind> gpuKinds;
  /// What the kernels need of a processor (Processor.h).
  std::vector<std::string> kernelFeatures;
  /// By symbol.
  std::optional<std::map<std::string, KernelSignature>> kernelSignatures;
  std::optional<File> constants;
  /// The cluster that it was compiled for, as the text of a cluster file; empty
  /// where it was for a number of ranks.
  std::string cluster;
  /// A summary for people and tools: JSON text without spaces.
  std::string plan = "null";
  bool operator==(const Program &) const = default;
};

/// Returns the name in the file.
std::string_view name(Reduction reduction);
std::string_view name(Space space);
std::string_view name(Role role);

/// Returns the code that has a module, and the module's number in it.
std::pair<size_t, size_t> findModule(const std::vector<GpuCode> &codes,
                                     int64_t module);

/// Returns the groups of all channels: their communicators.
Groups communicatorsOf(const Program &program);

/// A size in bytes, and the alignment of its offset.
struct Extent {
  int64_t bytes = 0, alignment = 1;
  bool operator==(const Extent &) const = default;
};
/// Returns the sizes and alignments of a function's operands, results or
/// locals, from its buffers: entries with the same index have equal sizes.
std::vector<Extent> extentsOf(const Function &function, Space space);

/// Returns the bytes of a tensor with this type and shape.
int64_t byteCount(DType dtype, const Shape &shape);

/// Returns the text of an element type and a shape: "f32[2,3]".
std::string tensorType(DType dtype, const Shape &shape);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_PROGRAM_H
