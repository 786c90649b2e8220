//===- ParameterSplits.h - Which dimension of each parameter is split ----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// `split` means that every parameter of rank 2 or more that a contraction,
// convolution or gather of the TaskGraph uses is stored sharded. This finds
// these parameters and chooses the piece along which each is cut, so that the
// communication and computation of the whole program cost least. Parameters
// that play the same role in different layers are cut in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_PARAMETERSPLITS_H
#define WHALE_SHARDING_PARAMETERSPLITS_H

#include "whale/Sharding/AxisPropagation.h"
#include "whale/Sharding/Factorization.h"

#include <limits>

namespace whale {

/// Parameters that are to be cut in the same way, with the pieces to choose
/// from.
struct ParameterGroup {
  /// The common part of their names, `params['blocks'][#]['w1']`.
  std::string name;
  llvm::SmallVector<mlir::BlockArgument> parameters;
  llvm::SmallVector<DimPiece> pieces;
  /// The last of them is that before it, once more: the parameter is stored so,
  /// and gathered for convolutions that are split along their images.
  bool mayBeSpatial = false;

  bool isSpatial(unsigned piece) const {
    return mayBeSpatial && piece + 1 == pieces.size();
  }
};

/// Whether `operand` is what a contraction, convolution or gather computes
/// with (not the indices of a gather).
bool isHeavyUse(mlir::OpOperand &operand);

/// The value that is `use`'s own but for layout and precision: a parameter that
/// was moved is still that parameter. Null if the operation computes.
mlir::Value passesOn(mlir::OpOperand &use);

/// The parameters of `function` that operations split over `partsOf` > 1
/// devices use as `split` means it, grouped by role, in the order of arguments,
/// with the pieces that give each device a share where there are such.
/// `isParameter` is true for arguments that may be parameters.
llvm::SmallVector<ParameterGroup>
findSplitParameters(mlir::func::FuncOp function, Factorization &factorization,
                    llvm::function_ref<int64_t(mlir::Operation *)> partsOf,
                    llvm::function_ref<bool(mlir::BlockArgument)> isParameter);

/// Joins groups of equal types and pieces, whatever their names, where the
/// groups have more than `most` pieces to choose from in all.
void joinManyGroups(llvm::SmallVectorImpl<ParameterGroup> &groups, size_t most);

/// A piece for each group, and what was weighed: the seconds of the program
/// with this choice, and with each piece of each group in it.
struct SplitChoice {
  llvm::SmallVector<unsigned> pieces;
  double seconds = 0;
  /// Of a search that ended early, not all are known.
  llvm::SmallVector<llvm::SmallVector<double>> alternatives;
  bool isComplete = true;
};

/// Estimates the seconds of the program with each of these choices, all at the
/// same time if it can.
using SplitSeconds =
    llvm::function_ref<void(llvm::ArrayRef<llvm::SmallVector<unsigned>> choices,
                            llvm::MutableArrayRef<double> seconds)>;

/// Chooses a piece for each group: starting from the last one of each, changes
/// one group at a time while that makes `seconds` of the program less, and then
/// two at a time if there aren't many (a column split and the row split that
/// follows it may only pay together). The same again starting from convolutions
/// split along their images, which mostly pay all together. Each of the two
/// ends early when it has weighed so many choices. `atOnce` choices, of which
/// some may turn out to be of no use, are given to `seconds` at a time; the
/// answer doesn't depend on it. Deterministic.
SplitChoice chooseSplits(llvm::ArrayRef<ParameterGroup> groups,
                         SplitSeconds seconds,
                         size_t mostTrials = std::numeric_limits<size_t>::max(),
                         size_t atOnce = 1);

} // namespace whale

#endif // WHALE_SHARDING_PARAMETERSPLITS_H
