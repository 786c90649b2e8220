//===- Report.cpp - Plans as text and pictures ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"
#include "Text.h"
#include "whale/Report/FitTable.h"
#include "whale/Report/PlanDiff.h"
#include "whale/Report/PlanPage.h"
#include "whale/Report/PlanText.h"
#include "whale/Report/Waste.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

void whale::python::bindReport(nb::module_ &module) {
  module.def(
      "summarize_plan",
      [](const std::string &plan) { return makeSummary(plan); },
      nb::arg("plan"), "A plan, given as JSON, in at most ten lines.");
  module.def(
      "plan_page", [](const std::string &plan) { return makePlanPage(plan); },
      nb::arg("plan"), "A plan, given as JSON, as one page of HTML.");
  module.def(
      "compare_plans",
      [](const std::string &one, const std::string &other) {
        return comparePlans(one, other);
      },
      nb::arg("one"), nb::arg("other"),
      "What differs between two plans, given as JSON, a line each.");
  module.def(
      "fit_table", [](const std::string &fit) { return makeFitTable(fit); },
      nb::arg("fit"),
      "What a step needs, and would need with options, given as JSON, as "
      "tables.");
  module.def(
      "idle_devices",
      [](const std::string &plan) { return findIdleDevices(plan); },
      nb::arg("plan"),
      "Of a plan, given as JSON, a text about each group of devices with no "
      "work, or little.");
}
