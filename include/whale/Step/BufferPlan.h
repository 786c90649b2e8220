//===- BufferPlan.h - Memory of values --------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assigns memory to every value of a straight-line program with loops, branches
// and calls. In: a function as a plain structure without MLIR, so that the
// planner can be tested separately; whale-plan-buffers translates to and from
// it. Out: the buffer of each value, offsets in one arena, and the copies that
// are needed.
//
// A function that is called many times, a segment, is planned once. Its plan
// tells callers the last read of each operand and the first write of each
// result; its own values are at the same offsets of the caller's arena in all
// calls, or in one of a few layouts: where large operands of calls die in
// different buffers, or results are born, each call can use the memory of its
// own. Cost: linear in the values, but for merging values into buffers and
// packing the arena (BufferArena.h), which compare pairs.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_BUFFERPLAN_H
#define WHALE_STEP_BUFFERPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace whale {

/// A permission (or, if `required`, a request) to write `result` to the buffer
/// of `operand`; both are positions in the instruction's lists. An instruction
/// with a required pair writes only a part of its result: if the buffers
/// differ, the operand is copied to the result first.
struct InPlace {
  unsigned result;
  unsigned operand;
  bool required = false;
};

struct BufferRegion;
struct SegmentPlan;

/// One instruction. The caller numbers the values.
///   Op    reads all operands, writes all results
///   View  its one result is its first operand in another shape, or marks that
///         the operand is now complete; it reads the others. A result of
///         fewer bytes is a part of an argument of the function, from byte
///         `offset` on
///   Pack  its one result is the operands, one after the other. It does nothing
///         for an operand that is in its range of the result's buffer
///   Unpack  the opposite: its results are ranges of its operand
///   While regions: condition (yields the predicate) and body; both have one
///         argument for each operand, the body yields the next values
///   Case  operand 0 is the index; regions yield the results
///   Call  runs segment number `callee` of the function, whose plan states
///         what is done in place
struct BufferInstr {
  enum Kind { Op, View, Pack, Unpack, While, Case, Call };
  Kind kind = Op;
  llvm::SmallVector<unsigned, 4> operands;
  llvm::SmallVector<unsigned, 2> results;
  llvm::SmallVector<InPlace, 2> inPlace;
  std::vector<BufferRegion> regions;
  int64_t offset = 0;
  unsigned callee = 0;
  /// Instructions with the same number do the same at different times. Like the
  /// calls of segments, they share a few buffers in turn.
  std::optional<unsigned> group;
};

struct BufferRegion {
  llvm::SmallVector<unsigned, 4> args;
  std::vector<BufferInstr> instrs;
  llvm::SmallVector<unsigned, 4> yields;
};

/// A value's size in bytes, its element type (any number for each type), and
/// whether it is a constant. Constants keep their entry in a read-only table.
/// Only values of one type share a buffer, because arguments and results have a
/// type.
struct BufferValue {
  int64_t bytes = 0;
  bool constant = false;
  unsigned type = 0;
};

/// Of constants, and of buffers in the arena unless it is said otherwise.
inline constexpr int64_t bufferAlignment = 64;

/// A function: `body.args` are its arguments, `body.yields` its results,
/// `segments` the functions that it calls.
struct BufferFunction {
  /// Offsets and sizes in the arena are multiples of it.
  int64_t alignment = bufferAlignment;
  std::vector<BufferValue> values;
  BufferRegion body;
  std::vector<const SegmentPlan *> segments;
};

enum class BufferSpace { Arena, Argument, Result, Constant, Part };

/// The location of a buffer. In the arena it starts at byte `offset`. In the
/// spaces Argument, Result and Constant it is all of buffer `index` (of a
/// constant: its value number). A Part starts at byte `offset` of argument
/// `index`. If it is a range of another buffer, that is `whole`.
struct PlannedBuffer {
  BufferSpace space = BufferSpace::Arena;
  int64_t offset = 0;
  unsigned index = 0;
  int64_t bytes = 0;
  std::optional<unsigned> whole = std::nullopt;
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
  /// For each result, the argument whose buffer it reuses.
  std::vector<std::optional<unsigned>> alias;
  /// Copies to run, in order, before instruction i (numbered in preorder).
  std::vector<std::vector<BufferCopy>> before;
  /// Copies to run, in order, at the end of region i (numbered in preorder,
  /// the function's body is 0).
  std::vector<std::vector<BufferCopy>> atEnd;
  int64_t arenaBytes = 0;
  /// By segment and layout, the offset in the arena of each of its locals.
  std::vector<std::vector<std::vector<int64_t>>> locals;
  /// By instruction (numbered as above): the layout of a call's locals, else 0.
  std::vector<unsigned> layout;
};

/// Half-open, ascending and disjoint.
using TimeIntervals = std::vector<std::pair<int64_t, int64_t>>;

/// How a segment uses its own buffers and those of its callers. Times are
/// relative to the call, from 0 to `duration`.
struct SegmentPlan {
  struct Local {
    int64_t bytes;
    TimeIntervals alive;
  };
  /// The segment itself, which must outlive the plan.
  const BufferFunction *function = nullptr;
  /// Argument i is operand i of the call. A buffer in the arena is local number
  /// `index`; its callers choose the offset.
  BufferPlan plan;
  std::vector<Local> locals;
  /// By operand: the end of its last read.
  std::vector<int64_t> operandEnd;
  /// By result: when its buffer is in use, which includes the end of the call.
  std::vector<TimeIntervals> resultAlive;
  int64_t duration = 0;
  /// Results that are written to operands. For such an operand a call passes
  /// the result's buffer; if that isn't the operand's own, the operand is
  /// copied there first.
  llvm::SmallVector<InPlace, 2> inPlace;
};

/// A value is in a range of another buffer only if that starts at a multiple of
/// this: kernels of GPUs load as many bytes at once.
inline constexpr int64_t pieceAlignment = 16;

/// Plans `function`. `aliases` are pairs (argument, result): a request to put
/// the result in the argument's buffer. It is granted if no read of the
/// argument follows a write of the result. Other arguments are never written.
BufferPlan planBuffers(const BufferFunction &function,
                       llvm::ArrayRef<std::pair<unsigned, unsigned>> aliases);

/// The same in two steps, for functions that must agree on the aliases. The
/// function must outlive it.
class BufferPlanner {
public:
  using Alias = std::pair<unsigned, unsigned>;
  class Implementation;

  explicit BufferPlanner(const BufferFunction &function);
  BufferPlanner(BufferPlanner &&);
  ~BufferPlanner();

  /// Returns those of `aliases` that are granted. May be called again.
  llvm::SmallVector<Alias> grant(llvm::ArrayRef<Alias> aliases);
  /// Plans with what was granted last. Ends the use of the planner.
  BufferPlan plan();

private:
  std::unique_ptr<Implementation> implementation;
};

/// Plans a segment. The operands in `mayOverwrite` are not read after a call
/// and their buffers may be reused for results; others are never written.
SegmentPlan planSegment(const BufferFunction &function,
                        llvm::ArrayRef<unsigned> mayOverwrite);

/// Checks a plan by running it on symbols: every read must find the right value
/// in its buffer, and nothing may write to a constant or to an argument whose
/// buffer no result reuses. Returns the first error, or nullopt. Calls run
/// their segment in the buffers that they pass. The plan of the segment itself
/// is assumed to be right (see verifySegmentPlan).
std::optional<std::string> verifyBufferPlan(const BufferFunction &function,
                                            const BufferPlan &plan);

/// The same for a segment whose operands, results and locals don't overlap.
std::optional<std::string> verifySegmentPlan(const SegmentPlan &segment);

} // namespace whale

#endif // WHALE_STEP_BUFFERPLAN_H
