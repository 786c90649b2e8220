//===- Reporter.h - Errors and remarks for the caller -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_REPORTER_H
#define WHALE_LIB_PROGRAM_REPORTER_H

#include "whale/Program/Compile.h"

#include "mlir/IR/Diagnostics.h"

#include <mutex>
#include <string>
#include <vector>

namespace whale {

/// Passes diagnostics on: the first error, and remarks if they are wanted.
/// Whatever isn't an error is held back until it is known that it stays true.
/// Diagnostics may come from several threads.
class Reporter {
public:
  Reporter(CompileHandler handler, bool remarks, llvm::StringRef source)
      : handler(handler), remarks(remarks), source(source) {}

  void report(mlir::Diagnostic &diagnostic);
  void error(const std::string &location, const std::string &text);
  /// What the next error has below it.
  void attach(std::string table) { errorTable = std::move(table); }
  bool hasFailed() const { return failed; }

  /// What is held back: how much of it, all but the first `count` forgotten,
  /// and all handed over.
  size_t getNumHeld() const { return held.size(); }
  void forget(size_t count) { held.resize(std::min(count, held.size())); }
  void passOn();

private:
  void hold(CompileMessage::Severity severity, llvm::StringRef location,
            llvm::StringRef text);
  std::string explainUnknown(mlir::Location loc);

  CompileHandler handler;
  bool remarks;
  llvm::StringRef source;
  bool failed = false;
  std::string errorTable;
  std::vector<CompileMessage> held;
  std::mutex mutex;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_REPORTER_H
