//===- Python.h - Functions of Python that a step calls ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PYTHON_H
#define WHALE_RUNTIME_PYTHON_H

#include "whale/ProgramFormat/Libraries.h"

#include <functional>
#include <span>

namespace whale::runtime {

/// A dense tensor in the host's memory.
struct HostTensor {
  format::LibraryTensor type;
  void *data;
};

/// Calls a function by its number among those of the step, which fills the
/// outputs; throws Error where it raises. Called on threads of ranks.
using PythonFunction =
    std::function<void(int64_t index, std::span<const HostTensor> inputs,
                       std::span<const HostTensor> outputs)>;

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PYTHON_H
