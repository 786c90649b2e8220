//===- Waste.h - What a plan wastes -----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_REPORT_WASTE_H
#define WHALE_REPORT_WASTE_H

#include <string>
#include <string_view>
#include <vector>

namespace whale {

/// The devices that a plan (its JSON, as for PlanText.h) leaves without work,
/// or with next to none: for each group of them a text that names them, why it
/// is so, and what to change. Of plans that don't say where everything is
/// computed, none.
std::vector<std::string> findIdleDevices(std::string_view plan);

/// How many devices compute the whole step each; 0 where its work is shared
/// out, or there is one.
size_t countRepetitions(std::string_view plan);

} // namespace whale

#endif // WHALE_REPORT_WASTE_H
