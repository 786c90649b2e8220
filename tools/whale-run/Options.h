//===- Options.h - What the command line of whale-run says ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALERUN_OPTIONS_H
#define WHALE_TOOLS_WHALERUN_OPTIONS_H

#include <CLI/App.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace whale::runtime {

struct Options {
  std::string program, inputs, outputs, data, stats, trace, slowdowns, network;
  int64_t steps = 1;
  int64_t checkReplicas = 0;
  int64_t threads = 0;
  bool profile = false;
  std::string coordinator, node, logDirectory;
  int64_t processes = 0, restarts = 0;
  std::string transport;
  std::optional<double> progressLimit;
  std::string checkpointDirectory;
  std::optional<int64_t> checkpointEvery, keep;
  bool resumes = false;
  /// As they are given; see parseSwitch.
  std::vector<std::string> switches;
};

/// Makes `app` put what it reads into `options`, which outlive it.
void addOptions(CLI::App &app, Options &options);

/// The factors of --slowdowns. Throws Error.
std::vector<double> parseSlowdowns(std::string_view text);

/// --node's "I/K": node I, counted from 0, of K. Throws Error.
/// The step and the program of "N:PATH". Throws Error.
std::pair<int64_t, std::string> parseSwitch(const std::string &text);

std::pair<int64_t, int64_t> parseNode(const std::string &text);

} // namespace whale::runtime

#endif // WHALE_TOOLS_WHALERUN_OPTIONS_H
