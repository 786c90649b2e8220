//===- OpRule.h - How the dimensions of an operation relate -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sharding rule of an operation, in the manner of an einsum: a list of
// factors, and for each dimension of each operand and result the factors that
// it is the row-major product of. A matrix product [M, K] x [K, N] -> [M, N]
// has the factors M, N (parallel) and K (a reduction); a reshape
// [B, S, D] -> [B * S, D] has the factors B, S and D, of which the first two
// make up dimension 0 of the result.
//
// Propagation, micro-batching and partitioning read nothing else of an
// operation, so supporting a new one means writing its rule.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_OPRULE_H
#define WHALE_SHARDING_OPRULE_H

#include "mlir/IR/Operation.h"
#include "whale/Placement/Placement.h"
#include "whale/Sharding/RowWindow.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>
#include <optional>

namespace whale {

/// What splitting a factor over devices means for the operation.
enum class FactorKind {
  /// Every point of the factor is computed alone: results are split.
  Parallel,
  /// The factor is summed (or otherwise reduced) away: results are partial, but
  /// split where they have it.
  Reduction,
  /// Gather along a split dimension: each device looks up the rows it holds
  /// and yields zeros for the others, so results are partial sums.
  MaskedGather,
  /// Scatter into a split dimension: each device keeps the updates that fall
  /// into its rows; the result is split.
  MaskedScatter,
  /// The factor cannot be split for this operation.
  Blocked,
};

struct Factor {
  int64_t extent;
  FactorKind kind;
  /// How partial results combine; meaningful for FactorKind::Reduction.
  Reduction reduction = Reduction::Sum;
};

/// For each dimension of one tensor: its factors, major to minor. A dimension
/// of extent 1 has none.
using DimFactors = llvm::SmallVector<llvm::SmallVector<unsigned, 2>, 4>;

/// An operand of which a device needs more than its part along a factor.
struct OperandWindow {
  unsigned operand = 0;
  unsigned dim = 0;
  unsigned factor = 0;
  /// Where the positions are that read it: a dimension of the first result,
  /// or of another operand.
  bool isOfResult = true;
  unsigned positionOperand = 0;
  unsigned positionDim = 0;
  RowWindow window;
};

struct OpRule {
  llvm::SmallVector<Factor, 4> factors;
  llvm::SmallVector<DimFactors, 3> operands;
  llvm::SmallVector<DimFactors, 1> results;
  /// Sets of operands in which the operation is linear together: if exactly
  /// these are partial sums (zeros count as partial), so are the results.
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>, 2> linear;
  /// The factors here are those that an image is split along.
  llvm::SmallVector<OperandWindow, 1> windows;

  const OperandWindow *findWindow(unsigned factor) const;
};

/// A contiguous piece of a dimension that can be split: the dimension seen as
/// [outer, extent, minor], of which the middle is meant.
struct DimPiece {
  unsigned dim = 0;
  int64_t extent = 0;
  int64_t minor = 1;
  bool operator==(const DimPiece &other) const {
    return dim == other.dim && extent == other.extent && minor == other.minor;
  }
};

/// The same inside a factor of a rule: [outer, extent, minor].
struct SubFactor {
  unsigned factor = 0;
  int64_t extent = 0;
  int64_t minor = 1;
  bool operator==(const SubFactor &other) const {
    return factor == other.factor && extent == other.extent &&
           minor == other.minor;
  }
};

/// The rule of `op`, or nothing where the operation can only be computed whole
/// (its operands and results replicated). Operations with their own control
/// flow (while, case, task graphs) have no rule.
std::optional<OpRule> getOpRule(mlir::Operation *op);

/// The rules of operations, made once as long as nothing changes them.
/// References into it stay valid. Threads may share one that has the rules of
/// all that they ask for.
class RuleCache {
public:
  const std::optional<OpRule> &of(mlir::Operation *op) {
    std::unique_ptr<std::optional<OpRule>> &rule = rules[op];
    if (!rule)
      rule = std::make_unique<std::optional<OpRule>>(getOpRule(op));
    return *rule;
  }

private:
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<std::optional<OpRule>>>
      rules;
};

/// Where `piece` of a tensor with these dimension factors is in one factor,
/// or nothing if it crosses factors.
std::optional<SubFactor> findSubFactor(const OpRule &rule,
                                       const DimFactors &dims,
                                       const DimPiece &piece);

/// The piece that `sub` is in a tensor, or nothing if the factor doesn't occur
/// in it. A factor occurs at most once in a tensor that a rule describes.
std::optional<DimPiece> findPiece(const OpRule &rule, const DimFactors &dims,
                                  const SubFactor &sub);

} // namespace whale

#endif // WHALE_SHARDING_OPRULE_H
