//===- StepTimeline.h - What devices do in a modelled step ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step of a program (ProgramModel.h). Out: what the manifest's `plan`
// says of its devices and links (docs/program-format.md), which the compiler
// writes and the simulator's page shows. Uses neither LLVM nor MLIR. Cost:
// linear in the items and parts of all queues, and in the instructions of
// functions.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_STEPTIMELINE_H
#define WHALE_STEP_STEPTIMELINE_H

#include "whale/Step/ProgramModel.h"

#include <nlohmann/json.hpp>

namespace whale {

/// What instructions are for.
class InstructionPhases {
public:
  explicit InstructionPhases(const format::Program &program)
      : program(program) {}

  /// "forward", "backward" or "update": the part of training that most of an
  /// instruction's work is for; empty where the program doesn't say.
  std::string of(const format::Instruction &instruction);

private:
  std::string findOf(const format::Function &function);

  const format::Program &program;
  std::map<int64_t, std::string> ofFunction;
};

/// Writes what ranks that do the same spend a step with: pieces with begin and
/// end, in parts of the step, the number of a name, and the micro-batch where
/// there is one.
class StepTimeline {
public:
  using Json = nlohmann::ordered_json;

  StepTimeline(const format::Program &program, const ModelledStep &step)
      : program(program), step(step), phases(program) {}

  /// `ranks`, the seconds that they compute, communicate and are idle, and what
  /// they compute and transfer.
  Json describe(const ModelledRanks &ranks);
  /// The same without what a picture shows.
  static Json describeSeconds(const ModelledRanks &ranks);
  /// In parts of the step.
  int64_t scaled(double seconds) const;
  /// Adds to a plan what its pieces' numbers mean.
  void addNames(Json &plan);

private:
  void add(Json &list, const Period &period, const std::string &name,
           std::optional<int64_t> moment);

  const format::Program &program;
  const ModelledStep &step;
  InstructionPhases phases;
  Json names = Json::array();
  std::map<std::string, size_t> numbers;
};

/// What goes over links in a step, by the node that they connect or "network":
/// how many exchanges, the bytes that all ranks send together, and the seconds
/// of all exchanges, each alone; the links that take longest first.
nlohmann::ordered_json describeLinks(const format::Program &program,
                                     const Cluster &cluster,
                                     const ModelledStep &step);

} // namespace whale

#endif // WHALE_STEP_STEPTIMELINE_H
