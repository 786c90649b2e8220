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
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

namespace whale {

/// A part of a turn that later moments and other classes repeat.
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
  /// The values of the step that were looked for, if the turn hasn't made them
  /// itself: what was there before. Null stands for nothing, a unit for a value
  /// and other attributes for a constant.
  llvm::MapVector<mlir::Value, mlir::Attribute> seen;
  /// The sums to which the moment had added before.
  llvm::BitVector isReduced;
};

/// The turns that compute the same operations on the same local sizes. Who
/// looks for one and writes it if there is none holds the mutex meanwhile: so
/// none is written twice.
struct TurnVariant {
  std::mutex mutex;
  std::vector<std::unique_ptr<const Turn>> turns;
};

/// The turns that compute the same operations.
class TurnKind {
public:
  TurnKind(MicroBatchesOp loop, llvm::ArrayRef<mlir::Operation *> ops,
           const ResolvedReshards &reshards);

  /// The turns with the local sizes of this rank. For several threads.
  TurnVariant &getVariant(int64_t rank);

private:
  /// What the code of a turn depends on, besides what is there before it.
  LocalSizes sizes;
  std::mutex mutex;
  std::map<std::vector<int64_t>, TurnVariant> variants;
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
