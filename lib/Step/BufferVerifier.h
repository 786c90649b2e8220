//===- BufferVerifier.h - Runs a buffer plan on symbols ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the verifier of buffer plans, which shares no code with the
// planner. Memory is a set of byte ranges, each with the values that it holds.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_BUFFERVERIFIER_H
#define WHALE_LIB_STEP_BUFFERVERIFIER_H

#include "whale/Step/BufferPlan.h"

#include "llvm/ADT/Twine.h"

#include <map>
#include <set>
#include <tuple>

namespace whale {

class BufferVerifier {
public:
  BufferVerifier(const BufferFunction &function, const BufferPlan &plan)
      : function(function), plan(plan), named(function.values.size()) {}

  std::optional<std::string> run();
  /// Runs a segment in the buffers of a call. Only checks that depend on the
  /// call are repeated. Returns an error or nullopt.
  std::optional<std::string> runCall();

private:
  /// Space, index, first byte. Parts of arguments, which are never written, are
  /// separate ranges, identified by the number of the buffer.
  using Address = std::tuple<BufferSpace, unsigned, int64_t>;
  struct Held {
    int64_t end;
    std::set<unsigned> values;
  };
  using Memory = std::map<Address, Held>;

  struct Ids {
    unsigned instr;
    unsigned region;
  };
  bool fail(const llvm::Twine &message) {
    if (!error)
      error = message.str();
    return false;
  }
  bool isInside(const PlannedBuffer &buffer) const;
  bool checkBuffers();
  bool checkLayouts(const BufferRegion &region, unsigned &next);
  void collectConstants();
  void collectLocals();
  static Ids skip(const BufferRegion &region, Ids ids);
  Address address(unsigned buffer) const {
    const PlannedBuffer &b = plan.buffers[buffer];
    if (b.space == BufferSpace::Part)
      return {b.space, b.index, buffer};
    return {b.space, b.space == BufferSpace::Arena ? 0 : b.index, b.offset};
  }
  Held *find(unsigned buffer, unsigned value);
  bool read(unsigned value, const char *what);
  bool write(unsigned buffer, std::set<unsigned> values);
  void erase(unsigned buffer);
  void erase(BufferSpace space, unsigned index, int64_t begin, int64_t end);
  void eraseLocals(unsigned segment, unsigned layout);
  void lose(const BufferRegion &region, Ids ids);
  bool copyAll(const std::vector<BufferCopy> &copies);
  void forget(const BufferRegion &region);
  bool rename(llvm::ArrayRef<unsigned> from, llvm::ArrayRef<unsigned> to);
  bool region(const BufferRegion &region, Ids ids);
  bool instruction(const BufferInstr &instr, Ids ids);
  bool part(const BufferInstr &instr);
  bool pack(const BufferInstr &instr, const std::vector<BufferCopy> &copies);
  bool unpack(const BufferInstr &instr, const std::vector<BufferCopy> &copies);
  bool updates(const BufferInstr &instr, llvm::ArrayRef<InPlace> pairs);
  bool results(const BufferInstr &instr);
  bool call(const BufferInstr &instr, Ids ids);
  bool loop(const BufferInstr &instr, Ids ids);
  bool branch(const BufferInstr &instr, Ids ids);

  const BufferFunction &function;
  const BufferPlan &plan;
  Memory memory;
  /// By value: whether it became the content of a buffer by renaming.
  std::vector<bool> named;
  /// By segment and layout: the byte ranges of its locals in the arena.
  std::vector<std::vector<TimeIntervals>> localRanges;
  /// The buffers of calls that have been checked; equal calls are checked once.
  std::set<std::vector<int64_t>> ran;
  /// By buffer: the constants that it holds.
  std::map<unsigned, std::set<unsigned>> constants;
  std::optional<std::string> error;
};

} // namespace whale

#endif // WHALE_LIB_STEP_BUFFERVERIFIER_H
