//===- Factorization.h - The pieces that dimensions consist of -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A dimension of 3 * D that a reshape makes of [3, H, D / H], or that slices
// cut in thirds, consists of three pieces, and only these can be split without
// tearing what the program uses together. This analysis collects the
// boundaries of all rules of a program and carries them along the dimensions
// that belong together, both ways, until nothing changes.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_FACTORIZATION_H
#define WHALE_SHARDING_FACTORIZATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Sharding/OpRule.h"
#include "llvm/ADT/DenseMap.h"

namespace whale {

class Factorization {
public:
  /// `feeds[r]` is the argument that result r of the function feeds, or -1.
  /// `ruleCache` gets the rules of all operations in the function.
  Factorization(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> feeds,
                RuleCache &ruleCache);

  /// The pieces of all dimensions of `value` with more than one element,
  /// dimension by dimension, major to minor.
  llvm::SmallVector<DimPiece> getPieces(mlir::Value value);

private:
  /// Minor products at which a dimension is cut, ascending: {4, 8} cuts 16
  /// into [2, 2, 4]. Each divides the next.
  using Cuts = llvm::SmallVector<int64_t, 2>;

  void link(mlir::Value a, mlir::Value b);
  mlir::Value leader(mlir::Value value);
  llvm::SmallVector<Cuts> &cutsOf(mlir::Value value);
  bool addCut(mlir::Value value, unsigned dim, int64_t cut);
  void linkRegions(mlir::Operation *op);
  bool refine(mlir::Operation *op, const OpRule &rule);

  llvm::DenseMap<mlir::Value, mlir::Value> parent;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Cuts>> cuts;
};

} // namespace whale

#endif // WHALE_SHARDING_FACTORIZATION_H
