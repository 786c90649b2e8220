//===- StackPieces.h - Arguments that are rows of one -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between whale-divide-stacks and whale-join-stacks, each stage's rows of a
// stacked argument or result of @main are one of their own. The pieces of one
// follow each other, in the order of the rows, and name their whole.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_IMPORT_STACKPIECES_H
#define WHALE_TRANSFORMS_IMPORT_STACKPIECES_H

#include "whale/Placement/Placement.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace whale {

/// On an argument or result: a dictionary of `begin`, the first of its rows,
/// `whole`, the type of the argument or result that it is rows of, and `stack`,
/// the number that this has in the user's program.
inline constexpr llvm::StringLiteral kStackPieceAttr = "whale.stack_piece";
/// On @main: nothing said which result feeds which argument, but
/// `whale.fed_by` has been written for the pieces.
inline constexpr llvm::StringLiteral kFeedbackFoundAttr =
    "whale.feedback_found";

struct StackPiece {
  int64_t begin = 0;
  mlir::RankedTensorType whole;
  int64_t stack = 0;
};

/// What the attributes of an argument or result say; nothing if it is no piece.
std::optional<StackPiece> getStackPiece(mlir::DictionaryAttr attributes);

mlir::Attribute makeStackPiece(mlir::MLIRContext *context,
                               const StackPiece &piece);

/// One argument or result that is no piece, or all pieces of one:
/// [first, last).
struct StackRun {
  unsigned first = 0, last = 0;
};

/// The runs of `count` arguments or results with these attributes.
llvm::SmallVector<StackRun>
findStackRuns(unsigned count,
              llvm::function_ref<mlir::DictionaryAttr(unsigned)> attrsOf);

/// The number that an argument or result, or the whole that it is rows of, has
/// in the user's program; from the attributes of those up to it.
unsigned getWhole(unsigned index,
                  llvm::function_ref<mlir::DictionaryAttr(unsigned)> attrsOf);
unsigned getWholeArgument(mlir::func::FuncOp main, unsigned argument);

/// The placement of the whole from those of its pieces, where each device has
/// (a part of) one piece, or all devices have all of all pieces; else nothing.
std::optional<Placement> joinPlacements(llvm::ArrayRef<int64_t> shape,
                                        llvm::ArrayRef<Placement> pieces);

/// The placement of rows [begin, end) of a tensor, on the devices that have any
/// of them; nothing where it cuts the first dimension otherwise than in rows.
std::optional<Placement> takeRows(const Placement &placement, int64_t begin,
                                  int64_t end);

/// Placements of arguments or results of which the pieces can be joined: where
/// they couldn't, all devices of the first piece have all.
void makeJoinable(llvm::MutableArrayRef<Placement> placements,
                  llvm::function_ref<mlir::DictionaryAttr(unsigned)> attrsOf);

} // namespace whale

#endif // WHALE_TRANSFORMS_IMPORT_STACKPIECES_H
