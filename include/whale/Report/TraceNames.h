//===- TraceNames.h - What traces call things -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_REPORT_TRACENAMES_H
#define WHALE_REPORT_TRACENAMES_H

#include "whale/ProgramFormat/Program.h"

#include <string>
#include <vector>

namespace whale {

/// What is shown of an instruction's label.
struct ShownLabel {
  /// The modules and the operation that it comes from, and their line:
  /// "mlp/dot_general (model.py:12)".
  std::string name;
  /// "forward", "backward" or "update"; empty where the label doesn't say.
  std::string phase;
};

/// Shortens a label that is a path of JAX's names, whose wrappers and calls say
/// nothing about a model; any other label stays as it is. `line` may be empty.
ShownLabel showLabel(const std::string &label, const std::string &line);

/// The name that viewers have for the color of a phase; null for others.
const char *colorOf(const std::string &phase);

/// By rank, its device, kind and node, and the TaskGraphs that it computes:
/// "rank 2: V100-SXM2-32GB 2 of node 0, front".
std::vector<std::string> nameRanks(const format::Program &program);

} // namespace whale

#endif // WHALE_REPORT_TRACENAMES_H
