//===- Workspace.h - Sizes of LAPACK's workspace ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A routine of LAPACK says how much workspace it wants as a number of its
// element type. In f32 that is rounded above 2^24, perhaps to less than it
// needs, so the least that its documentation names is computed here.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_WORKSPACE_H
#define WHALE_RUNTIME_LIBRARY_WORKSPACE_H

#include <cstdint>

namespace whale::runtime {

/// At least one of each. Reals are apart for complex matrices only.
struct Workspace {
  int64_t elements = 1, reals = 1, integers = 1;
};

/// The least for the eigenvalues of a matrix of order `n`, with vectors in
/// mode 'V'. Throws Error where it is more than LAPACK counts, in 32 bits.
Workspace workspaceOfSyevd(bool isComplex, char mode, int64_t n);
/// The same for the singular values of an `m` by `n` matrix, in mode 'N', 'S'
/// or 'A'.
Workspace workspaceOfGesdd(bool isComplex, char mode, int64_t m, int64_t n);

/// Elements for a routine that needs `least` and asks for `asked`.
int64_t workspaceSize(int64_t least, double asked);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_WORKSPACE_H
