//===- Error.h - Failures of the runtime ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that goes wrong for a reason outside the runtime's own code (a
// damaged program, a tensor of the wrong shape, a rank that fails) is thrown as
// one exception whose message names what is at fault.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_ERROR_H
#define WHALE_RUNTIME_ERROR_H

#include <stdexcept>

namespace whale::runtime {

/// Its message names the file, field, tensor, or rank and instruction at fault;
/// it has no "error: " in front and no newline at its end.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_ERROR_H
