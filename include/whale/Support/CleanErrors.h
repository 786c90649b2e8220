//===- CleanErrors.h - Standard error for terminals -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's own diagnostics quote the input as it is. What it would do to a
// terminal is escaped on the way out.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SUPPORT_CLEANERRORS_H
#define WHALE_SUPPORT_CLEANERRORS_H

namespace whale {

/// While it lives, each line of standard error goes through format::escaped. A
/// process of its own does that, so that nothing is lost where this one dies.
/// There is one at most.
class CleanErrors {
public:
  CleanErrors();
  ~CleanErrors();
  CleanErrors(const CleanErrors &) = delete;
  CleanErrors &operator=(const CleanErrors &) = delete;

  /// Waits until everything is out, where there is such an object. What is
  /// printed after that goes out as it is.
  static void finish();

private:
  /// The true standard error; -1 where lines go there as they are.
  static int kept;
  static int child;
  /// Closed to end the other process: others may hold on to standard error.
  static int control;
};

} // namespace whale

#endif // WHALE_SUPPORT_CLEANERRORS_H
