//===- StepSize.h - How much a step does ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_STEPSIZE_H
#define WHALE_RUNTIME_EXECUTOR_STEPSIZE_H

#include "program/BoundProgram.h"

namespace whale::runtime {

/// What is known of a step on the processor before it runs.
struct StepSize {
  /// It ends within some tenths of a second on any machine, as do the turns of
  /// loops that are not bounded: who gives it up may wait for it.
  bool isBrief = false;
  /// No loop runs as often as its values want.
  bool isBounded = false;
  /// No operation of it is worth a second thread.
  bool isSerial = false;
};

/// The size of a step of the only rank, of this class.
StepSize findSize(const BoundClass &rankClass);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_STEPSIZE_H
