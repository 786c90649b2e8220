//===- PlanRead.h - The parts of a plan that reports show -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_REPORT_PLANREAD_H
#define WHALE_LIB_REPORT_PLANREAD_H

#include "whale/System/Json.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace whale::report {

using Json = nlohmann::ordered_json;

/// What a step does at one name: a TaskGraph.
struct Work {
  std::string name, strategy;
  /// The devices of each copy.
  std::vector<std::vector<int64_t>> groups;
  /// By phase: forward, backward, apply.
  double flops[3] = {};
  double allFlops() const { return flops[0] + flops[1] + flops[2]; }
  /// By device, in the order of the groups: the part of the work that it does.
  /// One number stands for all.
  std::vector<double> shares;
  /// Of one device; 0 if it does nothing.
  double shareOf(int64_t device) const;
  /// All devices, ascending.
  std::vector<int64_t> devices() const;
};

/// Something that goes on for a while; both are shares of a step.
struct Piece {
  double begin = 0, end = 0;
  std::string what;
  /// The micro-batch, or -1.
  int64_t moment = -1;
};

/// Part of the memory that a device needs.
struct Held {
  std::string what;
  double bytes = 0;
};

/// Devices that do the same.
struct Devices {
  std::vector<int64_t> ranks;
  std::string kind;
  double memoryBytes = 0, neededBytes = 0;
  std::vector<Held> held;
  double computeSeconds = 0, communicationSeconds = 0, idleSeconds = 0;
  std::vector<Piece> computed, transferred;
  /// Of a simulation: from when on, as a share of the step, so many bytes are
  /// needed.
  std::vector<std::pair<double, double>> memory;
};

struct Exchange {
  /// The kind of a collective, or the name of a link.
  std::string name;
  int64_t count = 0;
  /// In total.
  double bytes = 0;
  /// Of links alone.
  double seconds = 0;
};

struct Argument {
  std::string label, placement;
  /// Of the whole.
  double bytes = 0;
};

/// A name, and seconds of it.
struct Timed {
  std::string what;
  double seconds = 0;
};

/// A program on a cluster, beside others.
struct Compared {
  std::string program, cluster;
  double stepSeconds = 0, samplesPerSecond = 0, mostBytes = 0;
  bool fits = true;
};

/// A plan; what it lacks is empty or 0.
struct Plan {
  std::vector<Work> work;
  std::vector<Devices> devices;
  std::vector<Exchange> collectives, links;
  std::vector<Argument> arguments;
  /// Of a simulation: what the step consists of, and how long it would take if
  /// something were better.
  std::vector<Timed> criticalPath, changes;
  std::vector<Compared> comparison;
  double stepSeconds = 0;
  int64_t samples = 0, microBatches = 0;
};

/// Reads the text of a plan.
Plan readPlan(std::string_view text);

} // namespace whale::report

#endif // WHALE_LIB_REPORT_PLANREAD_H
