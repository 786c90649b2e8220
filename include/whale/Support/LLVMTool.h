//===- LLVMTool.h - What a command on LLVM does first -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SUPPORT_LLVMTOOL_H
#define WHALE_SUPPORT_LLVMTOOL_H

#include "whale/Runtime/Staging.h"
#include "whale/Runtime/Tool.h"
#include "whale/Version.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace whale {

/// Made at the beginning of `main`: LLVM's set-up and the runtime's, and what
/// LLVM would call "LLVM ERROR" is one line like other errors.
class LLVMTool {
public:
  LLVMTool(int &argc, char **&argv)
      : init(argc, argv, /*InstallPipeSignalExitHandler=*/false) {
    runtime::beginTool();
    llvm::install_fatal_error_handler(reportFatalError, this);
    llvm::install_bad_alloc_error_handler(reportFatalError, this);
    llvm::cl::SetVersionPrinter(
        [](llvm::raw_ostream &os) { os << WHALE_VERSION_TEXT << "\n"; });
  }

  ~LLVMTool() {
    llvm::remove_fatal_error_handler();
    llvm::remove_bad_alloc_error_handler();
  }

  /// Writes out what was printed on standard output. False, after an error, if
  /// it could not be.
  static bool flushOutput() {
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return true;
    llvm::errs() << "error: cannot write the standard output: "
                 << llvm::outs().error().message() << "\n";
    llvm::outs().clear_error();
    return false;
  }

  /// The file that LLVM's own code writes, for errors: standard output if it
  /// is not said, or "-".
  void setOutput(llvm::StringRef file) { output = file == "-" ? "" : file; }

private:
  // Without LLVM's streams: one of them may be what failed.
  static void reportFatalError(void *tool, const char *reason, bool) {
    const std::string &output = static_cast<LLVMTool *>(tool)->output;
    llvm::StringRef text(reason);
    std::string prefix;
    if (text.consume_front("IO failure on output stream: "))
      prefix = "cannot write " +
               (output.empty() ? "the standard output" : "'" + output + "'") +
               ": ";
    runtime::abandonStaging();
    std::fprintf(stderr, "error: %s%s\n", prefix.c_str(), text.data());
    std::_Exit(1);
  }

  llvm::InitLLVM init;
  std::string output;
};

} // namespace whale

#endif // WHALE_SUPPORT_LLVMTOOL_H
