//===- Waiting.h - Python waits for steps -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PYTHON_WAITING_H
#define WHALE_PYTHON_WAITING_H

#include "whale/Runtime/Step.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

namespace whale::python {

/// Lets other Python threads go on during `call`, which gets what to ask while
/// it waits. Python handles signals in its main thread, and only where it is
/// asked to: what a handler raises there (KeyboardInterrupt) ends the call.
template <typename Call>
auto letOthersRun(bool inMainThread, Call call) {
  std::optional<nanobind::python_error> raised;
  runtime::AskInterrupted interrupted;
  if (inMainThread)
    interrupted = [&] {
      nanobind::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() != 0)
        raised.emplace();
      return raised.has_value();
    };
  try {
    nanobind::gil_scoped_release release;
    return call(interrupted);
  } catch (const runtime::Interrupted &) {
    if (!raised)
      throw;
  }
  throw nanobind::python_error(std::move(*raised));
}

} // namespace whale::python

#endif // WHALE_PYTHON_WAITING_H
