//===- Turns.h - What rank classes compute alike ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the operations that a rank computes of one moment one after the other, a
// turn, and the sizes of what it holds of their values. Out: the segments and
// collectives that an earlier moment, or another rank class with these sizes,
// has written for them.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_TURNS_H
#define WHALE_LIB_TRANSFORMS_PARTITION_TURNS_H

#include "RankClasses.h"
#include "ResolveReshards.h"
#include "Segments.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"

namespace whale {

/// A part of a turn that later moments repeat.
struct TurnPart {
  /// Calls this segment,
  const Segment *segment = nullptr;
  /// or visits an operation of the step in the schedule,
  mlir::Operation *op = nullptr;
  /// or gives what a task graph yields the name of its result.
  mlir::Value yielded = {}, result = {};
};

/// A turn as it was written out.
struct Turn {
  std::vector<TurnPart> parts;
  /// Values of the step that were there before, and that were not.
  std::vector<mlir::Value> needs, lacks;
};

/// The turns that compute the same operations.
class TurnKind {
public:
  TurnKind(MicroBatchesOp loop, llvm::ArrayRef<mlir::Operation *> ops,
           const ResolvedReshards &reshards);

  /// What the code of a turn depends on, besides what is there before it.
  const LocalSizes &getSizes() const { return sizes; }

  /// A turn that was written with these sizes and fits; null if there is none.
  /// For several threads, as `add`.
  const Turn *find(const std::vector<int64_t> &sizes,
                   llvm::function_ref<bool(const Turn &)> fits) const;
  void add(const std::vector<int64_t> &sizes, Turn turn);

private:
  LocalSizes sizes;
  mutable std::mutex mutex;
  std::map<std::vector<int64_t>, std::vector<std::unique_ptr<Turn>>> turns;
};

/// All turns and segments of a step. For several threads.
class TurnTable {
public:
  explicit TurnTable(const ResolvedReshards &reshards) : reshards(reshards) {}

  TurnKind &getKind(MicroBatchesOp loop, llvm::ArrayRef<mlir::Operation *> ops);
  const Segment *add(std::unique_ptr<Segment> segment);

private:
  const ResolvedReshards &reshards;
  std::mutex mutex;
  std::map<std::vector<mlir::Operation *>, std::unique_ptr<TurnKind>> kinds;
  std::vector<std::unique_ptr<Segment>> segments;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_TURNS_H
