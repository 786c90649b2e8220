//===- Reader.h - Decode a program part by part -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to this folder: the classes that decode a program. In: its parsed
// manifest, a function that reads its other files, and which ranks are wanted.
// Out: a Program that has been checked, or an error. ProgramReader decodes the
// manifest part by part, in an order in which each part's references are known;
// InstructionReader decodes a list of instructions.
//
// Cost: linear in the text that is read, which leaves out files of tables
// without a wanted rank. Besides, cells of a shared list are sorted once to
// find overlaps, and each run of a function compares the pairs of its operands,
// results and locals that must not overlap. All documents stay in memory until
// the program has been read: errors search them for paths.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_READER_H
#define WHALE_LIB_PROGRAMFORMAT_READER_H

#include "Field.h"
#include "Memory.h"
#include "ShortLists.h"
#include "whale/ProgramFormat/ReadProgram.h"

#include <deque>
#include <functional>
#include <initializer_list>
#include <set>
#include <tuple>

namespace whale::format {

/// The state of reading one program.
class ProgramReader {
public:
  ProgramReader(Document &document, const ReadFile &readFile,
                const WantedRanks &wanted, Program &program)
      : document(document), root(document), openFile(readFile), wanted(wanted),
        program(program) {}

  void read();
  /// What has been read of the tables, one object of all of them.
  nlohmann::json tablesAtLength() const;

private:
  friend class InstructionReader;

  /// What is read where not all ranks are wanted, by number.
  struct Needed {
    std::set<int64_t> classes, functions, channels;
  };
  using Numbers = std::set<int64_t> Needed::*;
  /// Whether one of [begin, end) is needed; without `end`, `begin`.
  bool isNeeded(Numbers numbers, int64_t begin,
                std::optional<int64_t> end = std::nullopt) const;
  /// The functions and channels that the needed classes use.
  void findNeeded();

  /// The elements of a table, in the manifest or in a file, with their names
  /// (empty in a list). Of a list, those that are in a file without a needed
  /// one are null; of an object, they are not there.
  using Table = std::vector<std::pair<std::string, Field>>;
  const Table &readTable(const std::string &name, Numbers numbers);
  const Document &open(const Field &entry);
  /// The elements of a list, those in files included.
  int64_t countOf(const std::string &list) const;
  void readRanks();
  /// Compares "ranks" with what the classes say.
  void checkRanks() const;
  void readOrigins();
  void readTaskGraphs();
  void readCommunicators();
  /// Shapes, boxes and roles of "arguments" and "results".
  void readParameters();
  /// Reads "channels", except for what depends on the buffers of their users.
  void readChannels();
  /// Called after the kernel signatures have been read.
  void readFunctions();
  void readFunction(const Field &field, size_t number);
  BufferInfo readBuffer(const Field &field, const Function &function,
                        int64_t count);
  void readClasses();
  void readClass(const Field &field, size_t number);
  BufferInfo readBuffer(const Field &field, const RankClass &rankClass);
  void readLocals(const Field &field, RankClass &rankClass);
  void readLayout(const Field &list, int64_t number, RankClass &rankClass);
  Collective readCollective(const Field &field) const;
  void readGroups(const Field &list, Collective &collective) const;
  /// Called after all classes have been read: checks that all participants use
  /// their channel and that cells are inside the buffers.
  void finishChannels();

  /// The shapes of a `start` instruction's buffers of one part in a class.
  struct Use {
    std::optional<Shape> src, dst;
    bool operator==(const Use &) const = default;
  };
  /// By class, of all parts.
  using Uses = std::map<int64_t, std::vector<Use>>;

  /// A channel as written in the file.
  struct Channel {
    Field field;
    /// The number of the channel that describes it; may be its own.
    int64_t described;
    /// Set if this channel is described by itself.
    Collective collective;
    Uses uses;
    /// The origin of starts without one.
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

  /// The requirements of a function on the memory that is passed to it.
  struct FunctionNeeds {
    std::vector<Extent> operands, results, locals;
    /// Pairs that must not overlap because an instruction writes one and uses
    /// the other: pairs of locals, whose offsets are fixed in a class, and all
    /// other pairs.
    Slots localsApart, apart;
    /// The operands that instructions write.
    std::set<int64_t> written;
  };

  void checkCopied(const Channel &described, const Uses &uses,
                   const Collective &collective) const;
  void checkReduced(const Channel &described, const Uses &uses,
                    const Collective &collective) const;
  void complete(const Channel &described, const Uses &uses,
                Collective &collective);

  Document &document;
  const Field root;
  const ReadFile &openFile;
  const WantedRanks &wanted;
  Program &program;
  /// Unset where all is.
  std::optional<Needed> needed;
  ListExpander shortLists;
  /// The files that contain tables, by name.
  std::map<std::string, Document> documents;
  /// By name, as far as they have been read.
  std::map<std::string, Table> tables;
  std::vector<Group> communicators;
  std::map<int64_t, Channel> channels;
  /// By function number.
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

  /// Reads the runs of a class, before its instructions.
  void readRuns(const Field &list);
  /// Reads the moments of a class's runs, before its instructions.
  void readMoments(const Field &list);
  std::vector<Instruction> readList(const Field &list);
  /// Checks that the instructions had as many runs as there are moments.
  void finishMoments(const Field &list) const;

  const std::vector<Run> &getRuns() const { return runs; }

private:
  Instruction read(const Field &field);
  Kernel readKernel(const Field &field);
  std::tuple<BufferIndex, BufferIndex, BufferIndex>
  readOperands(const Field &field);
  Copy readCopy(const Field &field);
  Matmul readMatmul(const Field &field);
  void readEpilogue(const Field &field, Matmul &matmul);
  Convolution readConvolution(const Field &field);
  Call readCall(const Field &field);
  Start readStart(const Field &field);
  void checkApart(const Field &field, const Start &start, bool isAllReduce);
  Wait readWait(const Field &field);
  Run readRunOf(const Field &field) const;
  Run readRun(const Field &field);
  While readWhile(const Field &field);
  Case readCase(const Field &field);

  BufferIndex readBuffer(const Field &field) const;
  /// Checks that buffer `place` of a kernel may be written, and overlaps none
  /// before it but those that its signature allows.
  void readKernelOutput(const Field &field, const Kernel &kernel, size_t place,
                        const KernelSignature &signature);
  /// Reads a buffer that may be written and doesn't overlap any of `inputs`.
  BufferIndex readOutput(const Field &field,
                         const std::vector<BufferIndex> &inputs);
  const BufferInfo &info(BufferIndex index) const {
    return body.buffers[index];
  }
  void checkWritable(const Field &field, BufferIndex index) const;
  /// Whether two buffers share memory. In a function this may depend on the
  /// operands and results: then records that no run may pass the same memory
  /// for both.
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
  /// The collectives found so far that all ranks of the class take part in.
  std::set<const Collective *> joined;
  int64_t starts = 0;
  /// The transfers of the current list without a wait so far.
  std::set<int64_t> open;
  std::vector<Run> runs;
  /// How many runs in a row are of which moment, without those that have been
  /// read; the first ones are at the end.
  std::vector<std::pair<int64_t, std::optional<int64_t>>> moments;
  bool hasMoments = false;
  int depth = 0;
};

/// Reads the space of a buffer, one of `spaces`, and its type and bytes. The
/// type may be left out where it is that of the last of those before.
BufferInfo readTensor(const Field &field, std::initializer_list<Space> spaces,
                      const std::vector<BufferInfo> &before);
/// Where the type of a buffer is: the buffer itself if it is left out.
Field typeOf(const Field &buffer);

int64_t readOrigin(const Field &field, const Program &program);
/// "sm_90".
std::string readArchitecture(const Field &field);

/// Parses a file of a program; checks how deep its lists nest.
Document parseDocument(std::string_view text, const std::string &file);

/// Reads the name of a file beside the manifest.
std::string readFileName(const Field &field);

/// Reads an offset that is aligned for the buffer's elements.
int64_t readOffset(const Field &field, const BufferInfo &buffer);

/// Checks that products of elements of these types are supported.
void checkProduct(const Field &field, const BufferInfo &lhs,
                  const BufferInfo &rhs, const BufferInfo &out);

/// Decodes a convolution and checks its shapes (ReadConvolution.cpp).
Convolution decodeConvolution(const Field &field, const BufferInfo &lhs,
                              const BufferInfo &rhs, const BufferInfo &out);

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_READER_H
