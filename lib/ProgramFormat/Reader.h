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
#include "whale/ProgramFormat/Program.h"

#include <set>

namespace whale::format {

/// State of reading one program.
class ProgramReader {
public:
  ProgramReader(const Field &root, Program &program)
      : root(root), program(program) {}

  void read();

private:
  friend class InstructionReader;

  void readRanks();
  /// Shapes, boxes and roles of "arguments" and "results".
  void readParameters();
  /// "channels", without what depends on the buffers of their users.
  void readChannels();
  void readClass(const Field &field, size_t number);
  BufferInfo readBuffer(const Field &field, const RankClass &rankClass);
  /// After all classes: that each channel has its participants, and its cells
  /// lie in their buffers.
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
  };

  void complete(const Channel &described, const Uses &uses,
                Collective &collective);

  const Field root;
  Program &program;
  std::map<int64_t, Channel> channels;
  /// By argument: whether a result is an alias of it.
  std::vector<bool> aliased;
};

/// Reads the instructions of one class, whose buffers are known.
class InstructionReader {
public:
  InstructionReader(ProgramReader &reader, size_t number)
      : reader(reader), number(static_cast<int64_t>(number)),
        rankClass(reader.program.classes[number]) {}

  std::vector<Instruction> readList(const Field &list);

private:
  Instruction read(const Field &field);
  Kernel readKernel(const Field &field);
  Copy readCopy(const Field &field);
  Matmul readMatmul(const Field &field);
  Convolution readConvolution(const Field &field);
  Call readCall(const Field &field);
  Start readStart(const Field &field);
  Wait readWait(const Field &field);
  While readWhile(const Field &field);
  Case readCase(const Field &field);

  BufferIndex readBuffer(const Field &field) const;
  /// A buffer that may be written, apart from all of `inputs`.
  BufferIndex readOutput(const Field &field,
                         const std::vector<BufferIndex> &inputs) const;
  const BufferInfo &info(BufferIndex index) const {
    return rankClass.buffers[index];
  }
  void checkWritable(const Field &field, BufferIndex index) const;
  void checkParticipation(const Field &field, int64_t channel,
                          const Collective &collective);

  ProgramReader &reader;
  const int64_t number;
  const RankClass &rankClass;
  /// The collectives that all ranks of the class take part in, as found so far.
  std::set<const Collective *> joined;
  int64_t starts = 0;
  /// The transfers of the list at hand that were not waited for yet.
  std::set<int64_t> open;
  int depth = 0;
};

/// Whether two buffers share memory; results do with the arguments that they
/// are aliases of.
bool overlap(const Program &program, const BufferInfo &a, const BufferInfo &b);

/// Checks that there are products of elements of these types.
void checkProduct(const Field &field, const BufferInfo &lhs,
                  const BufferInfo &rhs, const BufferInfo &out);

/// Decodes a convolution and checks that the shapes fit (ReadConvolution.cpp).
Convolution decodeConvolution(const Field &field, const BufferInfo &lhs,
                              const BufferInfo &rhs, const BufferInfo &out);

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_READER_H
