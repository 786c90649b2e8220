//===- PlanDiff.h - What differs between two plans --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_REPORT_PLANDIFF_H
#define WHALE_REPORT_PLANDIFF_H

#include <string>
#include <string_view>
#include <vector>

namespace whale {

/// What differs between two plans (their JSON, as for PlanText.h), a line each:
/// the decisions of the one and the other, and what follows of the seconds of a
/// step, the bytes of the fullest device and those that devices exchange. Empty
/// if they decide the same.
std::vector<std::string> comparePlans(std::string_view one,
                                      std::string_view other);

} // namespace whale

#endif // WHALE_REPORT_PLANDIFF_H
