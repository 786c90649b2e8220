//===- Plan.h - What was decided about a step -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan is a value: the decisions about a step, as whale-compile
// --explain=json prints them and --plan takes them back, edited or not.
// docs/planner.md shows one. Uses no IR.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLANNER_PLAN_H
#define WHALE_PLANNER_PLAN_H

#include "whale/Planner/Schedule.h"
#include "whale/Planner/ShareCost.h"
#include "whale/System/JsonField.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace whale {

/// How the devices of a mesh share out work. Of each device, or of groups of
/// them, and relative: who takes twice as long for a unit gets half as many.
struct PlannedShares {
  using ByDevice = std::vector<std::vector<ShareCost>>;
  /// Of what a group cuts into so many pieces, or of what it cuts otherwise.
  struct Inner {
    int64_t pieces = 0;
    ByDevice costs;

    bool operator==(const Inner &other) const = default;
  };

  /// The groups, which know the mesh.
  std::vector<std::vector<int64_t>> devices;
  ByDevice batch;
  bool byGroup = false;
  std::vector<ShareCost> replicas;
  std::vector<Inner> inner;
  ByDevice otherInner;
  /// Samples of each micro-batch, if their shares differ; they repeat after
  /// `period` of them.
  std::vector<int64_t> moments;
  int64_t period = 1;
  system::TextPlace place = {};

  bool operator==(const PlannedShares &other) const;
};

/// The decisions about a step. What a part is not said about is decided.
struct Plan {
  /// What it is a plan of: checksums of the step and of its cluster.
  std::string step = {}, cluster = {};

  /// A key of the configuration, and its value, which the step leaves out and
  /// has been given so that it fits.
  struct Option {
    using Value = std::variant<bool, int64_t, std::string>;

    std::string key;
    Value value;
    system::TextPlace place = {};

    bool operator==(const Option &other) const {
      return key == other.key && value == other.value;
    }
  };
  std::vector<Option> options = {};

  /// Of automatic stages: the forward operation, in topological order, that
  /// each begins with (of a loop that is cut, an iteration is one).
  struct Cut {
    int64_t begin = 0;
    system::TextPlace place = {};

    bool operator==(const Cut &other) const { return begin == other.begin; }
  };
  std::vector<Cut> cuts = {};

  /// The devices of TaskGraphs, in the order of their first use: a list for
  /// each repetition.
  struct Devices {
    std::string taskGraph;
    std::vector<std::vector<int64_t>> groups;
    system::TextPlace place = {};

    bool operator==(const Devices &other) const {
      return taskGraph == other.taskGraph && groups == other.groups;
    }
  };
  std::vector<Devices> devices = {};

  std::vector<PlannedShares> shares = {};

  /// How parameters that play one role in split TaskGraphs are cut.
  struct Split {
    /// Their numbers among the arguments of the step, in which a stack that
    /// stages divide has become several.
    std::vector<int64_t> arguments;
    /// What is cut, and in how many pieces that stay whole.
    int64_t dimension = 0, grains = 1;
    /// How many grains of the dimension lie inside of each: 8 where it is cut
    /// along the first of 8 x 8.
    int64_t inner = 1;
    /// Whether it is stored so, but gathered where it is used.
    bool isGathered = false;
    system::TextPlace place = {};

    bool operator==(const Split &other) const {
      return arguments == other.arguments && dimension == other.dimension &&
             grains == other.grains && inner == other.inner &&
             isGathered == other.isGathered;
    }
  };
  std::vector<Split> splits = {};
  /// Whether sums of split products are scattered, and gathered where they are
  /// needed whole, instead of whole where they are made.
  struct Sums {
    bool areScattered = false;
    system::TextPlace place = {};

    bool operator==(const Sums &other) const {
      return areScattered == other.areScattered;
    }
  };
  std::optional<Sums> sums = {};

  /// The order of each pipeline's work, by stage.
  struct Pipeline {
    ScheduleKind kind = ScheduleKind::GPipe;
    Schedule steps;
    system::TextPlace place = {};

    bool operator==(const Pipeline &other) const {
      return kind == other.kind && steps == other.steps;
    }
  };
  std::vector<Pipeline> pipelines = {};

  /// What the backward on some devices computes again of their forward, in a
  /// micro-batch or the step: operations by number, as their task graphs have
  /// them one after the other.
  struct Recomputed {
    std::vector<std::vector<int64_t>> devices;
    std::vector<int64_t> operations;
    system::TextPlace place = {};

    bool operator==(const Recomputed &other) const {
      return devices == other.devices && operations == other.operations;
    }
  };
  std::vector<Recomputed> recomputed = {};

  /// An argument of the step, by number as in a split, that is in the memory of
  /// hosts. Ascending; none where that is not said.
  struct Offloaded {
    int64_t argument = 0;
    system::TextPlace place = {};

    bool operator==(const Offloaded &other) const {
      return argument == other.argument;
    }
  };
  std::vector<Offloaded> offloaded = {};

  bool operator==(const Plan &other) const = default;
};

/// Returns a plan's decisions as a JSON object, which system::printJson prints:
/// names are bytes.
nlohmann::ordered_json toJson(const Plan &plan);

/// Returns an option's value as JSON has it.
nlohmann::ordered_json toJson(const Plan::Option::Value &value);

/// Reads the text of what toJson returns, or of an object that has it as its
/// member "decisions", or of one that has that as its member "plan", as
/// --explain=json prints it. Beside the decisions is what follows from them,
/// with a checksum for each member; an edited one is an error, as it would have
/// no effect. Throws system::JsonError.
Plan parsePlan(std::string_view text);

/// Returns the checksum of what follows from decisions, as it was read from a
/// text; whatever order members have there.
std::string checksumOf(const nlohmann::ordered_json &value);

} // namespace whale

#endif // WHALE_PLANNER_PLAN_H
