//===- Error.h - Failures that name their cause -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The exception for all failures whose cause is outside Whale's own code when a
// program is read or run: a damaged file, a tensor of the wrong shape, a rank
// that fails. The message names the cause.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_ERROR_H
#define WHALE_SYSTEM_ERROR_H

#include "whale/System/Printable.h"

#include <stdexcept>
#include <string_view>

namespace whale::system {

/// The message names the file, field, tensor, or rank and instruction that
/// caused the failure. It is one printable line (names are escaped) without the
/// prefix "error: ".
class Error : public std::runtime_error {
public:
  explicit Error(std::string_view text)
      : std::runtime_error(diagnosticLine(text)) {}
};

} // namespace whale::system

#endif // WHALE_SYSTEM_ERROR_H
