//===- CleanErrors.h - Standard error for terminals -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's own diagnostics quote the input unchanged. Control characters in it
// could affect a terminal, so they are escaped when printed.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SUPPORT_CLEANERRORS_H
#define WHALE_SUPPORT_CLEANERRORS_H

namespace whale {

/// While an object of this class exists, each line of standard error goes
/// through system::escaped. A separate process does this, so that no line is
/// lost if this process crashes. At most one object exists at a time.
class CleanErrors {
public:
  CleanErrors();
  ~CleanErrors();
  CleanErrors(const CleanErrors &) = delete;
  CleanErrors &operator=(const CleanErrors &) = delete;

  /// If an object exists, waits until all output is written. Later output is
  /// printed unescaped.
  static void finish();

private:
  /// A duplicate of the original standard error; -1 if lines are not escaped.
  static int kept;
  static int child;
  /// Closed to end the other process. Closing its input is not enough, because
  /// other processes may have inherited standard error.
  static int control;
};

} // namespace whale

#endif // WHALE_SUPPORT_CLEANERRORS_H
