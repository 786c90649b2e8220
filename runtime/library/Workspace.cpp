//===- Workspace.cpp - Sizes of LAPACK's workspace --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "library/Workspace.h"
#include "whale/Runtime/Types.h"

#include <algorithm>

namespace whale::runtime {

/// Extents are below 2^31: where one is far too large, products overflow in 64
/// bits too.
static void requireExtent(const char *routine, int64_t extent) {
  if (extent > (int64_t(1) << 29))
    throw Error(std::string(routine) + ": the matrix is too large");
}

static Workspace checked(const char *routine, Workspace least) {
  int64_t most = std::max({least.elements, least.reals, least.integers});
  if (most > INT32_MAX)
    throw Error(std::string(routine) +
                ": the matrix is too large: LAPACK counts in 32 bits, and its "
                "workspace would have " +
                std::to_string(most) + " elements");
  return least;
}

Workspace workspaceOfSyevd(bool isComplex, char mode, int64_t n) {
  requireExtent("lapack.syevd", n);
  Workspace least;
  if (n <= 1)
    return least;
  bool vectors = mode == 'V';
  int64_t reals = vectors ? 1 + 6 * n + 2 * n * n : 2 * n + 1;
  least.elements = reals;
  if (isComplex) {
    least.elements = vectors ? 2 * n + n * n : n + 1;
    least.reals = vectors ? 1 + 5 * n + 2 * n * n : n;
  }
  if (vectors)
    least.integers = 3 + 5 * n;
  return checked("lapack.syevd", least);
}

Workspace workspaceOfGesdd(bool isComplex, char mode, int64_t m, int64_t n) {
  int64_t less = std::min(m, n), more = std::max(m, n);
  Workspace least;
  if (less == 0)
    return least;
  requireExtent("lapack.gesdd", less);
  bool vectors = mode != 'N';
  least.integers = 8 * less;
  if (isComplex) {
    least.elements = 2 * less + more;
    least.reals = 7 * less;
    if (vectors) {
      least.elements += less * less + less;
      least.reals = less * std::max(5 * less + 7, 2 * more + 2 * less + 1);
    }
  } else {
    least.elements = 3 * less + std::max(more, 7 * less);
    if (vectors)
      least.elements = std::max(4 * less * less + 7 * less,
                                4 * less * less + 6 * less + more);
  }
  return checked("lapack.gesdd", least);
}

int64_t workspaceSize(int64_t least, double asked) {
  // What it asks for beyond what it needs only makes it quicker.
  double most = INT32_MAX;
  return std::max(least, static_cast<int64_t>(std::clamp(asked, 1.0, most)));
}

} // namespace whale::runtime
