//===- Vectors.h - Loops for the vectors of each processor ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_VECTORS_H
#define WHALE_RUNTIME_LIBRARY_VECTORS_H

/// Before a function: it is compiled for each of these processors, and the
/// loader chooses.
#if defined(__x86_64__) && defined(__clang__)
#define WHALE_VECTORS                                                          \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WHALE_VECTORS
#endif

/// Before what such a function calls, so that it is compiled with it.
#define WHALE_INLINE inline __attribute__((always_inline))

#endif // WHALE_RUNTIME_LIBRARY_VECTORS_H
