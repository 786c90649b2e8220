//===- CommonView.h - Boxes of unlike views ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two views of a tensor that cut it differently ([D, 3D] and [D, 3, D]) have
// their common refinement, the coarsest view that both are groupings of; where
// they have none ([2, 3] and [3, 2]), all is one dimension. A box of one of
// them is a few boxes of the refinement, each of which lies in the shard of the
// box at strides of its own.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_COMMONVIEW_H
#define WHALE_PROGRAMFORMAT_COMMONVIEW_H

#include "whale/ProgramFormat/Layout.h"

namespace whale::format {

/// Returns the common refinement of two views with as many elements; one
/// dimension of all elements where there is none.
Shape commonView(const Shape &a, const Shape &b);

/// A part of a box, in the refinement.
struct RefinedBox {
  Box box;
  /// Where its first element is in the shard, and how far apart elements are
  /// along each dimension of the refinement.
  int64_t offset;
  Shape strides;
};

/// Returns the parts of a box of `view`, which `refined` refines; in row-major
/// order. Cost: for each dimension of the view at most two parts for each
/// factor that it has in the refinement, and one for each run of elements where
/// the refinement is one dimension.
std::vector<RefinedBox> refine(const Box &box, const Shape &view,
                               const Shape &refined);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_COMMONVIEW_H
