//===- Error.h - Failures that name what is at fault ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that goes wrong for a reason outside Whale's own code when a
// program is read or run (a damaged file, a tensor of the wrong shape, a rank
// that fails) is thrown as one exception whose message names what is at fault.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_ERROR_H
#define WHALE_PROGRAMFORMAT_ERROR_H

#include "whale/ProgramFormat/Printable.h"

#include <stdexcept>
#include <string_view>

namespace whale::format {

/// Its message names the file, field, tensor, or rank and instruction at fault;
/// it is one line, printable whatever its names hold, and has no "error: " in
/// front.
class Error : public std::runtime_error {
public:
  explicit Error(std::string_view text)
      : std::runtime_error(diagnosticLine(text)) {}
};

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_ERROR_H
