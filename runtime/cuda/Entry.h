//===- Entry.h - A function of a library that is opened late ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_ENTRY_H
#define WHALE_RUNTIME_CUDA_ENTRY_H

namespace whale::runtime::cuda {

/// One row of a table of functions: null until the library has been opened, or
/// a test has put its own function there.
template <typename Signature>
struct Entry {
  /// The name in the library.
  const char *symbol;
  Signature *function = nullptr;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_ENTRY_H
