//===- PlanPage.h - A picture of a plan -------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_REPORT_PLANPAGE_H
#define WHALE_REPORT_PLANPAGE_H

#include <string>
#include <string_view>

namespace whale {

/// Draws a plan (its JSON, as for PlanText.h) as one page of HTML that needs
/// nothing besides, no scripts either: the summary; which part of each
/// TaskGraph each device computes; the memory of devices against their limits;
/// when they compute and exchange what; of a simulated step its critical path,
/// what would help, and other programs and clusters beside it; and the
/// arguments by their placements. What has many rows or columns shows the first
/// ones and counts the others.
std::string makePlanPage(std::string_view plan);

} // namespace whale

#endif // WHALE_REPORT_PLANPAGE_H
