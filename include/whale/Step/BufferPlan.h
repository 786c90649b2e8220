//===- BufferPlan.h - Which value lives where -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives every value of a straight-line program with loops, branches and calls a
// fixed place in memory. The input is a plain structure without MLIR, so that
// the planner can be tested by itself; whale-plan-buffers translates to and
// from it.
//
// A function that is called many times, a segment, is planned once. Its callers
// see when it reads each operand last and writes each result first; its own
// values get places in the arena of the caller that are the same in all calls.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_BUFFERPLAN_H
#define WHALE_STEP_BUFFERPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace whale {

/// A permission (or, if `required`, the wish) that `result` takes the buffer
/// of `operand`; both are positions in the instruction's lists. A required one
/// writes only a part of its result: where the buffers differ, the operand is
/// copied into the result first.
struct InPlace {
  unsigned result;
  unsigned operand;
  bool required = false;
};

struct BufferRegion;
struct SegmentPlan;

/// One instruction. Values are numbered by the caller.
///   Op    reads all operands, writes all results
///   View  its one result is its first operand under another shape, or from
///         now on complete; it reads the others. A result of fewer bytes is a
///         part of an argument of the function, from byte `offset` on
///   While regions: condition (yields the predicate) and body; both have one
///         argument for each operand, the body yields the next values
///   Case  operand 0 is the index; regions yield the results
///   Call  runs the segment number `callee` of the function, whose plan says
///         what is done in place
struct BufferInstr {
  enum Kind { Op, View, While, Case, Call };
  Kind kind = Op;
  llvm::SmallVector<unsigned, 4> operands;
  llvm::SmallVector<unsigned, 2> results;
  llvm::SmallVector<InPlace, 2> inPlace;
  std::vector<BufferRegion> regions;
  int64_t offset = 0;
  unsigned callee = 0;
  /// Instructions with the same number do the same at different times. Like
  /// calls of one segment, they take turns in few buffers.
  std::optional<unsigned> group;
};

struct BufferRegion {
  llvm::SmallVector<unsigned, 4> args;
  std::vector<BufferInstr> instrs;
  llvm::SmallVector<unsigned, 4> yields;
};

/// A value's size in bytes, and whether it is a constant: those keep their
/// entry in a read-only table. Only values of one element type (any number for
/// each) share a buffer, since arguments and results are of a type.
struct BufferValue {
  int64_t bytes = 0;
  bool constant = false;
  unsigned type = 0;
};

/// A function: `body.args` are its arguments, `body.yields` its results.
/// `segments` are the functions that it calls.
struct BufferFunction {
  std::vector<BufferValue> values;
  BufferRegion body;
  std::vector<const SegmentPlan *> segments;
};

enum class BufferSpace { Arena, Argument, Result, Constant, Part };

/// Where a buffer lies: at byte `offset` of the arena, or it is the whole
/// buffer number `index` of the other spaces (of a constant: its value). A part
/// begins at byte `offset` of argument `index`.
struct PlannedBuffer {
  BufferSpace space = BufferSpace::Arena;
  int64_t offset = 0;
  unsigned index = 0;
  int64_t bytes = 0;
};

/// Copy buffer `src` to buffer `dst` (indices into BufferPlan::buffers).
struct BufferCopy {
  unsigned src;
  unsigned dst;
  bool operator==(const BufferCopy &) const = default;
};

struct BufferPlan {
  std::vector<PlannedBuffer> buffers;
  /// The buffer of each value.
  std::vector<unsigned> bufferOf;
  /// The buffer of each result of the function.
  std::vector<unsigned> resultBuffer;
  /// For each result the argument whose buffer it reuses.
  std::vector<std::optional<unsigned>> alias;
  /// Copies to run, in order, before instruction i (numbered in preorder).
  std::vector<std::vector<BufferCopy>> before;
  /// Copies to run, in order, at the end of region i (numbered in preorder,
  /// the function's body is 0).
  std::vector<std::vector<BufferCopy>> atEnd;
  int64_t arenaBytes = 0;
  /// By segment the offset in the arena of each of its locals.
  std::vector<std::vector<int64_t>> locals;
};

/// Half-open, ascending and disjoint.
using TimeIntervals = std::vector<std::pair<int64_t, int64_t>>;

/// How a segment uses its own buffers and those of its callers, on its own line
/// of time from 0 to `duration`.
struct SegmentPlan {
  struct Local {
    int64_t bytes;
    TimeIntervals alive;
  };
  /// The segment itself, which must outlive the plan.
  const BufferFunction *function = nullptr;
  /// Argument i is operand i of the call. What would be in the arena is local
  /// number `index`: where, is its callers' to say.
  BufferPlan plan;
  std::vector<Local> locals;
  /// By operand: until when it is needed.
  std::vector<int64_t> operandEnd;
  /// By result: when its buffer is in use; in the end it always is.
  std::vector<TimeIntervals> resultAlive;
  int64_t duration = 0;
  /// Results that are written to operands. A call passes the result's buffer
  /// for such an operand, which is copied there first if it is another.
  llvm::SmallVector<InPlace, 2> inPlace;
};

/// Offsets and sizes in the arena are multiples of this.
inline constexpr int64_t bufferAlignment = 64;

/// Plans `function`. `aliases` are pairs (argument, result): the result is
/// wanted in the argument's buffer, which is granted where no read of the
/// argument comes after a write of the result. Other arguments are never
/// written.
BufferPlan planBuffers(const BufferFunction &function,
                       llvm::ArrayRef<std::pair<unsigned, unsigned>> aliases);

/// Plans a segment. The operands of `mayOverwrite` are not read after a call
/// and may become results; others are never written.
SegmentPlan planSegment(const BufferFunction &function,
                        llvm::ArrayRef<unsigned> mayOverwrite);

/// Runs the plan on symbols: every read must find in its buffer the value that
/// it asks for, nothing may write to a constant or to an argument that no
/// result takes over. Returns what is wrong, nothing if the plan is right.
/// Calls run their segment in the buffers that it has there; that the plan of
/// the segment is right by itself is taken for granted.
std::optional<std::string> verifyBufferPlan(const BufferFunction &function,
                                            const BufferPlan &plan);

/// The same for a segment, with operands, results and locals apart.
std::optional<std::string> verifySegmentPlan(const SegmentPlan &segment);

} // namespace whale

#endif // WHALE_STEP_BUFFERPLAN_H
