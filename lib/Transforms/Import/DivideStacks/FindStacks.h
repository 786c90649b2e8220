//===- FindStacks.h - What is stored row by row in stages -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the arguments of which each stage uses rows of its own, as the stacked
// parameters of layers under `lax.scan`, with the operations that can be
// computed for the rows of each stage alone: casts before the layers, and the
// optimizer.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_DIVIDESTACKS_FINDSTACKS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_DIVIDESTACKS_FINDSTACKS_H

#include "whale/Dialect/Whale/IR/WhaleAttrs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// Rows [begin, end), and the stage that uses them.
struct StackRows {
  int64_t begin = 0, end = 0;
  StrategyAttr stage;
  bool operator==(const StackRows &other) const {
    return begin == other.begin && end == other.end && stage == other.stage;
  }
};
using StackCut = llvm::SmallVector<StackRows, 4>;

/// Which operands and results of an operation have the rows as dimension 0.
/// Results without it are reduced over the rows: the rows of a stage give a
/// term.
struct RowsOfOp {
  llvm::SmallVector<bool> operands, results;
  std::optional<Reduction> reduction;
};

/// What an operation does with the rows of `value`, an operand or result of it,
/// if it can be computed for some of them alone.
std::optional<RowsOfOp> rowsOfOp(mlir::Operation *op, mlir::Value value);

/// What is cut into the same rows.
struct Stack {
  StackCut cut;
  llvm::SmallSetVector<mlir::BlockArgument, 8> arguments;
  /// Operations to compute for the rows of each stage.
  llvm::MapVector<mlir::Operation *, RowsOfOp> operations;
  /// Values that are put together from rows of the stages, each of which has
  /// its own.
  llvm::DenseSet<mlir::Value> inPieces;
};

/// The first stack whose cut is none of `known`. A cut is one between the
/// slices that several stages take of a value; `isApart` returns whether the
/// stages have devices of their own. An argument belongs to it if an operation
/// that can be divided uses it, and makes its next value, too.
std::optional<Stack>
findStack(mlir::func::FuncOp main, llvm::ArrayRef<StackCut> known,
          llvm::function_ref<bool(const StackCut &)> isApart);

/// For each piece the operands whose rows it is made of, if the value is a
/// concatenation that is made of whole pieces; else nothing.
std::optional<llvm::SmallVector<mlir::SmallVector<mlir::Value>>>
alignedPieces(mlir::Value value, const StackCut &cut);

/// The one piece whose rows a value consists of, padded with a constant in
/// front and behind, as the gradient of a slice is; else nothing.
std::optional<size_t> paddedPiece(mlir::Value value, const StackCut &cut);

/// Whether the value is a slice of some rows of another.
bool isRowSlice(mlir::Operation *op);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_DIVIDESTACKS_FINDSTACKS_H
