//===- Reader.h - Decode a program part by part -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_READER_H
#define WHALE_LIB_PROGRAMFORMAT_READER_H

#include "Field.h"
#include "Memory.h"
#include "whale/ProgramFormat/ReadProgram.h"

#include <deque>
#include <functional>
#include <initializer_list>
#include <set>
#include <tuple>

namespace whale::format {

/// State of reading one program.
class ProgramReader {
public:
  ProgramReader(const Document &document, const ReadFile &readFile,
                Program &program)
      : document(document), root(document), openFile(readFile),
        program(program) {}

  void read();

private:
  friend class InstructionReader;

  /// The names of a table's elements, empty in a list, and the elements,
  /// wherever they stand.
  using Table = std::vector<std::pair<std::string, Field>>;
  Table readTable(const Field &field, bool isList);
  void readRanks();
  void readOrigins();
  void readCommunicators();
  /// Shapes, boxes and roles of "arguments" and "results".
  void readParameters();
  /// "channels", without what depends on the buffers of their users.
  void readChannels();
  /// After what kernels agree with.
  void readFunctions();
  void readFunction(const Field &field, size_t number);
  BufferInfo readBuffer(const Field &field, const Function &function,
                        int64_t count);
  void readClass(const Field &field, size_t number);
  BufferInfo readBuffer(const Field &field, const RankClass &rankClass);
  void readLocals(const Field &field, RankClass &rankClass);
  Collective readCollective(const Field &field) const;
  void readGroups(const Field &list, Collective &collective) const;
  /// After all classes: that each channel has its participants, and its cells
  /// are in their buffers.
  void finishChannels();

  /// A `start` instruction's buffers in a class: their shapes.
  struct Use {
    std::optional<Shape> src, dst;
    bool operator==(const Use &) const = default;
  };
  /// By class.
  using Uses = std::map<int64_t, Use>;

  /// A channel as it is given.
  struct Channel {
    Field field;
    /// The number of the channel that describes it, perhaps its own.
    int64_t described;
    /// Of a described one.
    Collective collective;
    Uses uses;
    /// Of the starts that do not say it.
    std::optional<int64_t> origin;
  };

  /// An operand, result or local of a function.
  struct Slot {
    Space space;
    int64_t index;
    auto operator<=>(const Slot &) const = default;
  };
  using Slots = std::set<std::pair<Slot, Slot>>;
  static std::string describe(Slot slot);
  Range rangeOf(const RankClass &rankClass, const Run &run, Slot slot) const;

  /// What a function asks of the memory that it is given.
  struct FunctionNeeds {
    std::vector<Extent> operands, results, locals;
    /// What must not overlap, since an instruction writes one and uses the
    /// other: of locals alone, which are in one place in a class, and others.
    Slots localsApart, apart;
    /// The operands that instructions write.
    std::set<int64_t> written;
  };

  void checkReduced(const Channel &described, const Uses &uses,
                    const Collective &collective) const;
  void complete(const Channel &described, const Uses &uses,
                Collective &collective);

  const Document &document;
  const Field root;
  const ReadFile &openFile;
  Program &program;
  /// The files that hold tables.
  std::deque<Document> documents;
  Table classes;
  std::vector<Group> communicators;
  std::map<int64_t, Channel> channels;
  /// By number.
  std::vector<FunctionNeeds> needs;
  /// By argument: whether a result is an alias of it.
  std::vector<bool> aliased;
};

/// Reads the instructions of one class or function, whose buffers are known.
class InstructionReader {
public:
  InstructionReader(ProgramReader &reader, const RankClass &rankClass,
                    size_t number)
      : reader(reader), number(static_cast<int64_t>(number)),
        rankClass(&rankClass), body(rankClass) {}
  InstructionReader(ProgramReader &reader, const Function &function,
                    size_t number)
      : reader(reader), number(static_cast<int64_t>(number)), body(function) {}

  /// What the class runs, before its instructions.
  void readRuns(const Field &list);
  std::vector<Instruction> readList(const Field &list);

  const std::vector<Run> &getRuns() const { return runs; }

private:
  Instruction read(const Field &field);
  Kernel readKernel(const Field &field);
  std::tuple<BufferIndex, BufferIndex, BufferIndex>
  readOperands(const Field &field);
  Copy readCopy(const Field &field);
  Matmul readMatmul(const Field &field);
  Convolution readConvolution(const Field &field);
  Call readCall(const Field &field);
  Start readStart(const Field &field);
  Wait readWait(const Field &field);
  Run readRunOf(const Field &field) const;
  Run readRun(const Field &field);
  While readWhile(const Field &field);
  Case readCase(const Field &field);

  BufferIndex readBuffer(const Field &field) const;
  /// A buffer that may be written, apart from all of `inputs`.
  BufferIndex readOutput(const Field &field,
                         const std::vector<BufferIndex> &inputs);
  const BufferInfo &info(BufferIndex index) const {
    return body.buffers[index];
  }
  void checkWritable(const Field &field, BufferIndex index) const;
  /// Whether two buffers share memory. In a function that may depend on what
  /// it is given: then no run of it may give it the same memory for both.
  bool overlap(BufferIndex input, BufferIndex output);
  Range rangeOf(BufferIndex index) const {
    return format::rangeOf(reader.program, *rankClass, index);
  }
  void readGiven(const Field &list, const char *what,
                 const std::vector<Extent> &extents,
                 const std::function<bool(int64_t)> &isWritten,
                 std::vector<BufferIndex> &given) const;
  void checkParticipation(const Field &field, int64_t channel,
                          const Collective &collective);

  ProgramReader &reader;
  const int64_t number;
  /// Null in a function.
  const RankClass *const rankClass = nullptr;
  const Body &body;
  /// The collectives that all ranks of the class take part in, as found so far.
  std::set<const Collective *> joined;
  int64_t starts = 0;
  /// The transfers of the list at hand that were not waited for yet.
  std::set<int64_t> open;
  std::vector<Run> runs;
  int depth = 0;
};

/// Reads which of the `spaces` a buffer is in and its type, and with that its
/// bytes.
BufferInfo readTensor(const Field &field, std::initializer_list<Space> spaces);

int64_t readOrigin(const Field &field, const Program &program);

/// An offset that is aligned for the buffer's elements.
int64_t readOffset(const Field &field, const BufferInfo &buffer);

/// Checks that there are products of elements of these types.
void checkProduct(const Field &field, const BufferInfo &lhs,
                  const BufferInfo &rhs, const BufferInfo &out);

/// Decodes a convolution and checks that the shapes fit (ReadConvolution.cpp).
Convolution decodeConvolution(const Field &field, const BufferInfo &lhs,
                              const BufferInfo &rhs, const BufferInfo &out);

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_READER_H
