//===- FitTable.h - What options save and cost, as text ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_REPORT_FITTABLE_H
#define WHALE_REPORT_FITTABLE_H

#include <string>
#include <string_view>

namespace whale {

/// Text of a list of JSON objects, as docs/memory.md has them: the first one is
/// what a step needs, the others what it would need with options. Who holds
/// what on the fullest device; a row for each option with what it saves and
/// costs, or why it is none; the largest mini-batch.
std::string makeFitTable(std::string_view fit);

} // namespace whale

#endif // WHALE_REPORT_FITTABLE_H
