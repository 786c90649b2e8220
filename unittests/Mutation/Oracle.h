//===- Oracle.h - Whether a program gives one result ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_MUTATION_ORACLE_H
#define WHALE_UNITTESTS_MUTATION_ORACLE_H

#include "executor/Executor.h"
#include "program/Kernels.h"
#include "whale/System/Io.h"

#include <filesystem>

namespace whale::transfers {

/// A hash of the results of a run, or nothing if it did not come to its end.
using Result = std::optional<uint64_t>;

/// Runs a program and its mutants on late devices. Nothing checks them.
class Oracle {
public:
  /// Reads a program directory. Throws Error.
  explicit Oracle(const std::filesystem::path &directory);
  /// Of a program without kernels and constants.
  explicit Oracle(format::Program program)
      : file("program"), original(std::move(program)) {}

  const format::Program &program() const { return original; }
  /// The result of each seed from 0 on, on inputs that are always the same. A
  /// process of its own runs them: it may end in any way, or not at all.
  std::vector<Result> run(const format::Program &program, uint64_t seeds) const;

private:
  uint64_t runOnce(const runtime::BoundProgram &bound, uint64_t seed) const;
  runtime::Bindings makeArguments() const;

  std::string file;
  format::Program original;
  std::unique_ptr<runtime::KernelLibrary> kernels;
  std::unique_ptr<system::MappedFile> constants;
};

} // namespace whale::transfers

#endif // WHALE_UNITTESTS_MUTATION_ORACLE_H
