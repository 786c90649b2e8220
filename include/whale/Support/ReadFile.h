//===- ReadFile.h - Reading a tool's input ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a text from a file, a pipe or standard input, and rejects inputs that
// would never end.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SUPPORT_READFILE_H
#define WHALE_SUPPORT_READFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>

namespace whale {

/// The maximum size in bytes of an MLIR text, and of a cluster file.
inline constexpr int64_t kMostSourceBytes = int64_t(1) << 30;
inline constexpr int64_t kMostClusterBytes = int64_t(1) << 26;

/// Returns the text of a file, followed by a zero byte that isn't counted; "-"
/// is standard input. Errors: a directory, a device other than a terminal or
/// one without bytes, a pipe without a writer, and more than `limit` bytes. The
/// error message does not contain the path.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readTextFile(llvm::StringRef path, int64_t limit);

} // namespace whale

#endif // WHALE_SUPPORT_READFILE_H
