//===- LibraryCalls.h - Checks of calls of the library ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARYCALLS_H
#define WHALE_RUNTIME_LIBRARYCALLS_H

#include "whale/Runtime/Types.h"

#include <string>
#include <vector>

namespace whale::runtime {

/// An operand or result of a library function.
struct LibraryTensor {
  DType dtype;
  Shape shape;
};

/// Checks a call as loading a program does. Throws Error if the function
/// doesn't exist, or doesn't support these tensors or this configuration (JSON
/// text). Kernels that the configuration names aren't checked.
void checkLibraryCall(const std::string &function,
                      std::vector<LibraryTensor> inputs,
                      std::vector<LibraryTensor> outputs,
                      const std::string &config);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARYCALLS_H
