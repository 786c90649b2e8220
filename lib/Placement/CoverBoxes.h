//===- CoverBoxes.h - Compare what lists of boxes cover ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PLACEMENT_COVERBOXES_H
#define WHALE_LIB_PLACEMENT_COVERBOXES_H

#include "whale/Placement/Box.h"

namespace whale {

/// Whether two lists of boxes cover every element equally often.
bool coverAlike(llvm::ArrayRef<const Box *> a, llvm::ArrayRef<const Box *> b);

/// Whether the boxes cover `whole`, each element once.
inline bool tiles(llvm::ArrayRef<const Box *> parts, const Box &whole) {
  return coverAlike(parts, {&whole});
}

} // namespace whale

#endif // WHALE_LIB_PLACEMENT_COVERBOXES_H
