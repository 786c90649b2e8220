//===- BufferLayouts.h - Where the locals of calls are ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the buffer plan: the locals of a segment are in the same places at
// all of its calls, or at those that have one layout.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_BUFFERLAYOUTS_H
#define WHALE_LIB_STEP_BUFFERLAYOUTS_H

#include "BufferArena.h"
#include "BufferLiveness.h"
#include "llvm/ADT/DenseMap.h"

#include <set>

namespace whale {

class BufferLayouts {
public:
  BufferLayouts(const BufferFunction &function, const BufferLiveness &liveness,
                BufferPlan &plan)
      : function(function), liveness(liveness), plan(plan) {}

  /// Chooses the layouts of calls and appends requests for the locals in them.
  /// `buffers` are those at each of the requests so far.
  void request(std::vector<ArenaRequest> &requests,
               llvm::ArrayRef<llvm::SmallVector<unsigned, 1>> buffers);
  /// What the requests name as their segments.
  llvm::ArrayRef<ArenaCalls> getCalls() const { return arenaCalls; }
  /// Puts the locals at the offsets of their requests. Layouts that came out
  /// the same become one.
  void place(llvm::ArrayRef<int64_t> offsets);

private:
  void findCalls(const BufferRegion &region, unsigned &next);
  std::set<size_t> findTurnover(llvm::ArrayRef<ArenaRequest> requests,
                                const BufferInstr &call, int64_t begin) const;
  void choose(unsigned segment, llvm::ArrayRef<ArenaRequest> requests,
              int64_t peak);
  void placeLocals(unsigned segment, llvm::ArrayRef<int64_t> offsets);

  const BufferFunction &function;
  const BufferLiveness &liveness;
  BufferPlan &plan;
  /// By buffer: its request.
  llvm::DenseMap<unsigned, size_t> requestOf;
  /// A call, and the number of its instruction.
  struct Call {
    const BufferInstr *instr;
    unsigned number;
  };
  /// By segment: its calls, as in `liveness.calls`.
  std::vector<std::vector<Call>> calls;
  /// By segment and layout: when the calls with it begin.
  std::vector<std::vector<std::vector<int64_t>>> begins;
  /// By segment, layout and local: its request.
  std::vector<std::vector<std::vector<size_t>>> localRequests;
  std::vector<ArenaCalls> arenaCalls;
};

} // namespace whale

#endif // WHALE_LIB_STEP_BUFFERLAYOUTS_H
