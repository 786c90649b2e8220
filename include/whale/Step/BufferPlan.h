//===- BufferPlan.h - Which value lives where -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives every value of a straight-line program with loops and branches a fixed
// offset in memory. The input is a plain structure without MLIR, so that the
// planner can be tested by itself; whale-plan-buffers translates to and from
// it.
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

/// One instruction. Values are numbered by the caller.
///   Op    reads all operands, writes all results
///   View  its one result is its first operand under another shape, or from
///         now on complete; it reads the others
///   While regions: condition (yields the predicate) and body; both have one
///         argument for each operand, the body yields the next values
///   Case  operand 0 is the index; regions yield the results
struct BufferInstr {
  enum Kind { Op, View, While, Case };
  Kind kind = Op;
  llvm::SmallVector<unsigned, 4> operands;
  llvm::SmallVector<unsigned, 2> results;
  llvm::SmallVector<InPlace, 2> inPlace;
  std::vector<BufferRegion> regions;
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
struct BufferFunction {
  std::vector<BufferValue> values;
  BufferRegion body;
};

enum class BufferSpace { Arena, Argument, Result, Constant };

/// Where a buffer lies: at byte `offset` of the arena, or it is the whole
/// buffer number `index` of the other spaces (of a constant: its value).
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
  /// For each result the argument whose buffer it takes over.
  std::vector<std::optional<unsigned>> alias;
  /// Copies to run, in order, before instruction i (numbered in preorder).
  std::vector<std::vector<BufferCopy>> before;
  /// Copies to run, in order, at the end of region i (numbered in preorder,
  /// the function's body is 0).
  std::vector<std::vector<BufferCopy>> atEnd;
  int64_t arenaBytes = 0;
};

/// Offsets and sizes in the arena are multiples of this.
inline constexpr int64_t bufferAlignment = 64;

/// Plans `function`. `aliases` are pairs (argument, result): the result is
/// wanted in the argument's buffer, which is granted where no read of the
/// argument comes after a write of the result. Other arguments are never
/// written.
BufferPlan planBuffers(const BufferFunction &function,
                       llvm::ArrayRef<std::pair<unsigned, unsigned>> aliases);

/// Runs the plan on symbols: every read must find in its buffer the value that
/// it asks for, nothing may write to a constant or to an argument that no
/// result takes over. Returns what is wrong, nothing if the plan is right.
std::optional<std::string> verifyBufferPlan(const BufferFunction &function,
                                            const BufferPlan &plan);

} // namespace whale

#endif // WHALE_STEP_BUFFERPLAN_H
