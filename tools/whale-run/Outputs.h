//===- Outputs.h - The files that whale-run writes --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALERUN_OUTPUTS_H
#define WHALE_TOOLS_WHALERUN_OUTPUTS_H

#include "Options.h"
#include "whale/Runtime/Program.h"
#include "whale/System/Io.h"

#include <memory>
#include <span>
#include <string>

namespace whale::runtime {

/// Each file is replaced as a whole, so none may be another one, be read, or be
/// a part of the program.
/// Throws Error.
void checkFiles(const Options &options);

/// Results, and what else is asked for. They are opened before the work, so
/// that a path that can't be written is said then; a pipe is opened only once,
/// as its reader goes when it is closed.
class Outputs {
public:
  explicit Outputs(const Options &options);

  /// All or nothing: a full disk is noticed before the first file is replaced.
  void write(const Program &program, std::span<const Array> results,
             const std::string &stats, const std::string &trace);

private:
  system::FileWriter results;
  std::unique_ptr<system::FileWriter> stats, trace;
};

} // namespace whale::runtime

#endif // WHALE_TOOLS_WHALERUN_OUTPUTS_H
