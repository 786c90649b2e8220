//===- LLVMTool.h - Set-up of a command-line tool on LLVM -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The common part of all tools that use LLVM: set-up, the command line, and
// errors. A tool creates an LLVMTool at the beginning of `main`. Every failure
// is printed as one line `error: ...` on standard error and ends with exit
// status 1, including those that LLVM reports in a form of its own (wrong
// options, fatal errors, memory exhaustion).
//
// Cost: 1 MiB of memory is kept for the case that there is no more. While the
// command line is parsed, standard error goes to a file in memory.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SUPPORT_LLVMTOOL_H
#define WHALE_SUPPORT_LLVMTOOL_H

#include "whale/Support/CleanErrors.h"
#include "whale/System/Printable.h"
#include "whale/System/Staging.h"
#include "whale/System/Tool.h"
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

/// Created at the beginning of `main`: sets up LLVM and the process, and prints
/// LLVM's fatal errors ("LLVM ERROR") as one line like other errors.
class LLVMTool {
public:
  LLVMTool(int &argc, char **&argv)
      : init(argc, argv, /*InstallPipeSignalExitHandler=*/false) {
    system::beginTool();
    llvm::install_fatal_error_handler(reportFatalError, this);
    llvm::install_bad_alloc_error_handler(reportFatalError, this);
    llvm::cl::SetVersionPrinter(
        [](llvm::raw_ostream &os) { os << WHALE_VERSION_TEXT << "\n"; });
  }

  ~LLVMTool() {
    llvm::remove_fatal_error_handler();
    llvm::remove_bad_alloc_error_handler();
  }

  /// Prints a failure as one line; the location may be empty. Returns the exit
  /// status.
  static int fail(const llvm::Twine &location, const llvm::Twine &text) {
    std::string prefix = system::diagnosticLine(location.str());
    std::string line = system::diagnosticLine(text.str());
    system::stopIfAbandoned();
    llvm::errs() << prefix << (prefix.empty() ? "" : ": ") << "error: " << line
                 << "\n";
    return 1;
  }

  /// Parses the command line. Prints an error and returns false if it is wrong.
  static bool parse(int argc, char **argv, llvm::StringRef overview) {
    // For a very long name, LLVM's search for the nearest option takes minutes.
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
    // LLVM prints errors in several forms, some of them on standard error even
    // if another stream is passed.
    keptError = dup(STDERR_FILENO);
    int held = memfd_create("command line errors", MFD_CLOEXEC);
    bool holds = keptError >= 0 && held >= 0 && dup2(held, STDERR_FILENO) >= 0;
    bool isRight =
        llvm::cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs());
    std::string captured;
    if (holds) {
      dup2(keptError, STDERR_FILENO);
      char buffer[4096];
      off_t offset = 0;
      ssize_t count;
      while ((count = pread(held, buffer, sizeof(buffer), offset)) > 0) {
        captured.append(buffer, count);
        offset += count;
      }
    }
    for (int descriptor : {keptError, held})
      if (descriptor >= 0)
        close(descriptor);
    keptError = -1;
    if (isRight) {
      llvm::errs() << captured;
      return true;
    }
    llvm::StringRef tool = llvm::sys::path::filename(argv[0]), rest = captured;
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

  /// Flushes standard output. Prints an error and returns false if that fails.
  static bool flushOutput() {
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return true;
    fail("",
         "cannot write the standard output: " + llvm::outs().error().message());
    llvm::outs().clear_error();
    return false;
  }

  /// Sets the file that LLVM's own code writes, for error messages. The
  /// default, and the meaning of "-", is standard output.
  void setOutput(llvm::StringRef file) { output = file == "-" ? "" : file; }

private:
  // Does not use LLVM's streams: one of them may be what failed.
  static void reportFatalError(void *tool, const char *reason, bool) {
    // Memory runs out for all threads at once: only the first that fails
    // reports it.
    static std::atomic_flag isReported;
    static thread_local bool isReporting = false;
    if (isReporting)
      failWithoutMemory();
    while (isReported.test_and_set())
      pause();
    isReporting = true;
    // Frees memory for printing the message; other threads may still take it.
    std::free(reserve);
    const std::string &output = static_cast<LLVMTool *>(tool)->output;
    llvm::StringRef text(reason);
    std::string prefix;
    if (text.consume_front("IO failure on output stream: "))
      prefix = "cannot write " +
               (output.empty() ? "the standard output" : "'" + output + "'") +
               ": ";
    system::abandonStaging();
    if (keptError >= 0)
      dup2(keptError, STDERR_FILENO);
    std::string line = system::diagnosticLine(prefix + text.str());
    std::fprintf(stderr, "error: %s\n", line.c_str());
    CleanErrors::finish();
    std::_Exit(1);
  }

  /// Leaves staged files; the next run removes them.
  [[noreturn]] static void failWithoutMemory() {
    constexpr llvm::StringLiteral text("error: out of memory\n");
    if (keptError >= 0)
      dup2(keptError, STDERR_FILENO);
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    std::_Exit(1);
  }

  /// Memory that is freed when no more can be allocated.
  static inline void *reserve = std::malloc(1 << 20);
  /// The original standard error while LLVM's messages there are captured.
  /// Needed for fatal errors meanwhile: printing --help may fail.
  static inline int keptError = -1;

  llvm::InitLLVM init;
  std::string output;
};

} // namespace whale

#endif // WHALE_SUPPORT_LLVMTOOL_H
