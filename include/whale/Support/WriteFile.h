//===- WriteFile.h - Writing files with error checks ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SUPPORT_WRITEFILE_H
#define WHALE_SUPPORT_WRITEFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <system_error>

namespace whale {

/// Writes a file; removes it again if it could not be written completely.
/// Checks the stream for errors before it is destroyed, because a stream that
/// is destroyed with an unchecked error ends the process.
inline std::error_code
writeFile(llvm::StringRef path,
          llvm::function_ref<void(llvm::raw_pwrite_stream &)> write) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return error;
  write(stream);
  stream.close();
  error = stream.error();
  stream.clear_error();
  if (error && llvm::sys::fs::is_regular_file(path))
    llvm::sys::fs::remove(path);
  return error;
}

} // namespace whale

#endif // WHALE_SUPPORT_WRITEFILE_H
