//===- PlanText.h - A plan at a glance --------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the JSON of a plan (docs/compile.md). Out: texts for people. Pure: what
// they say is in the plan alone, and what it lacks they leave out. A plan whose
// fields have other types than the compiler writes is an exception of
// nlohmann's library. Cost: linear in the plan.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_REPORT_PLANTEXT_H
#define WHALE_REPORT_PLANTEXT_H

#include <string>
#include <string_view>

namespace whale {

/// At most ten lines: how long a step is expected to take, the devices, whether
/// they have enough memory, who computes what, what each spends its time with,
/// what is exchanged, the slowest link, and what limits the step.
std::string makeSummary(std::string_view plan);

/// A row for each TaskGraph, with its strategy, devices and FLOPs of one step
/// by phase; then the collectives of one step.
std::string makePlanTable(std::string_view plan);

} // namespace whale

#endif // WHALE_REPORT_PLANTEXT_H
