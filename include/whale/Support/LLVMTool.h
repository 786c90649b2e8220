//===- LLVMTool.h - What a command on LLVM does first -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SUPPORT_LLVMTOOL_H
#define WHALE_SUPPORT_LLVMTOOL_H

#include "whale/ProgramFormat/Printable.h"
#include "whale/Runtime/Staging.h"
#include "whale/Runtime/Tool.h"
#include "whale/Support/CleanErrors.h"
#include "whale/Version.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

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

  /// Prints the one line of a failure; the location may be empty. Gives the
  /// exit status.
  static int fail(const llvm::Twine &location, const llvm::Twine &text) {
    std::string prefix = format::diagnosticLine(location.str());
    std::string line = format::diagnosticLine(text.str());
    runtime::stopIfAbandoned();
    llvm::errs() << prefix << (prefix.empty() ? "" : ": ") << "error: " << line
                 << "\n";
    return 1;
  }

  /// Reads the command line. False, after an error, if it is wrong.
  static bool parse(int argc, char **argv, llvm::StringRef overview) {
    // LLVM would look for minutes which option was meant.
    constexpr size_t kLongestName = 200;
    for (llvm::StringRef argument : llvm::ArrayRef(argv + 1, argc - 1)) {
      if (argument == "--")
        break;
      if (argument.starts_with("-") &&
          argument.split('=').first.size() > kLongestName) {
        fail("", "Unknown command line argument '" + argument + "'");
        return false;
      }
    }
    // LLVM says what is wrong in lines of several forms, some of them on the
    // standard error whatever stream it is given.
    keptError = dup(STDERR_FILENO);
    int held = memfd_create("command line errors", MFD_CLOEXEC);
    bool holds = keptError >= 0 && held >= 0 && dup2(held, STDERR_FILENO) >= 0;
    bool isRight =
        llvm::cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs());
    std::string said;
    if (holds) {
      dup2(keptError, STDERR_FILENO);
      char buffer[4096];
      off_t offset = 0;
      ssize_t count;
      while ((count = pread(held, buffer, sizeof(buffer), offset)) > 0) {
        said.append(buffer, count);
        offset += count;
      }
    }
    for (int descriptor : {keptError, held})
      if (descriptor >= 0)
        close(descriptor);
    keptError = -1;
    if (isRight) {
      llvm::errs() << said;
      return true;
    }
    llvm::StringRef tool = llvm::sys::path::filename(argv[0]), rest = said;
    std::string text;
    while (!rest.empty()) {
      auto [line, after] = rest.split('\n');
      if (line.consume_front(tool))
        line.consume_front(": ");
      text += (text.empty() ? "" : " ") + line.str();
      rest = after;
    }
    fail("", text.empty() ? "the command line is wrong" : text);
    return false;
  }

  /// Writes out what was printed on standard output. False, after an error, if
  /// it could not be.
  static bool flushOutput() {
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return true;
    fail("",
         "cannot write the standard output: " + llvm::outs().error().message());
    llvm::outs().clear_error();
    return false;
  }

  /// The file that LLVM's own code writes, for errors: standard output if it
  /// is not said, or "-".
  void setOutput(llvm::StringRef file) { output = file == "-" ? "" : file; }

private:
  // Without LLVM's streams: one of them may be what failed.
  static void reportFatalError(void *tool, const char *reason, bool) {
    // Memory ends for all threads at once: the first that finds out says so.
    static std::atomic_flag said;
    static thread_local bool isSaying = false;
    if (isSaying)
      failWithoutMemory();
    while (said.test_and_set())
      pause();
    isSaying = true;
    // Enough to say it with, unless the other threads are faster.
    std::free(reserve);
    const std::string &output = static_cast<LLVMTool *>(tool)->output;
    llvm::StringRef text(reason);
    std::string prefix;
    if (text.consume_front("IO failure on output stream: "))
      prefix = "cannot write " +
               (output.empty() ? "the standard output" : "'" + output + "'") +
               ": ";
    runtime::abandonStaging();
    if (keptError >= 0)
      dup2(keptError, STDERR_FILENO);
    std::string line = format::diagnosticLine(prefix + text.str());
    std::fprintf(stderr, "error: %s\n", line.c_str());
    CleanErrors::finish();
    std::_Exit(1);
  }

  /// What is staged stays for the next run to remove.
  [[noreturn]] static void failWithoutMemory() {
    constexpr llvm::StringLiteral text("error: out of memory\n");
    if (keptError >= 0)
      dup2(keptError, STDERR_FILENO);
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    std::_Exit(1);
  }

  /// Memory to be freed when there is no more.
  static inline void *reserve = std::malloc(1 << 20);
  /// The standard error while what LLVM says there is held back: what --help
  /// prints may be what fails.
  static inline int keptError = -1;

  llvm::InitLLVM init;
  std::string output;
};

} // namespace whale

#endif // WHALE_SUPPORT_LLVMTOOL_H
