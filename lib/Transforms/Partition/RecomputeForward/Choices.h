//===- Choices.h - Ways to have what a backward needs -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pieces of a chain of forward operations, and for each piece, and several
// in a row, what can be kept and what can be computed again.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_CHOICES_H
#define WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_CHOICES_H

#include "ForwardChain.h"
#include "whale/Planner/Recompute.h"
#include "whale/Step/CostModel.h"

namespace whale {

/// What is computed again of some operations in a row.
struct Again {
  llvm::SetVector<mlir::Operation *> ops;
  /// What these start from and what else the backward needs, of these
  /// operations and of what is made outside of the chain.
  llvm::SetVector<mlir::Value> kept;
  int64_t keptBytes = 0, againBytes = 0;
  double seconds = 0;
};

class Choices {
public:
  /// `moments` is how often the chain is computed in a step.
  Choices(const ForwardChain &chain, const CostModel &model, int64_t moments);

  int64_t getNumPieces() const { return int64_t(ends.size()); }
  llvm::ArrayRef<RecomputeChoice> getList() const { return list; }
  /// What a choice computes again; nothing where it keeps all.
  const Again &getAgain(size_t choice) const { return agains[choice]; }
  /// All that can be computed again between values that are to be kept.
  Again
  computeBetween(llvm::function_ref<bool(mlir::Operation *)> isKept) const;
  /// What is kept if nothing is computed again.
  int64_t getKeptBytes() const;

private:
  using IsAgain = llvm::function_ref<bool(mlir::Operation *)>;

  void findPieces();
  std::vector<int64_t> findCrossingBytes() const;
  void addPiece(int64_t piece);
  void addRun(int64_t first, int64_t end);
  void add(int64_t first, int64_t end, Again again);
  Again evaluate(unsigned first, unsigned end, IsAgain isAgain) const;
  void keepBefore(mlir::Value value, Again &again) const;
  bool isCheap(mlir::Operation *op) const;
  bool isReadByBackward(mlir::Operation *op) const;
  bool isLeaf(mlir::Operation *op, unsigned end, IsAgain isAgain) const;
  double secondsOf(mlir::Operation *op) const;
  double secondsOf(const Again &again) const;
  int64_t findMovedBytes(const Again &again) const;
  unsigned beginOf(int64_t piece) const {
    return piece == 0 ? 0 : ends[piece - 1];
  }

  const ForwardChain &chain;
  const CostModel &model;
  double moments;
  /// The number of the operation behind each piece.
  std::vector<unsigned> ends;
  std::vector<RecomputeChoice> list;
  std::vector<Again> agains;
  mutable llvm::DenseMap<mlir::Operation *, double> seconds;
  mutable llvm::DenseMap<mlir::Operation *, bool> cheap;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_CHOICES_H
