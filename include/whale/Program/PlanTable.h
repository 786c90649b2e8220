//===- PlanTable.h - A plan at a glance -------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAM_PLANTABLE_H
#define WHALE_PROGRAM_PLANTABLE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace whale {

/// A few lines of text that show the plan of a program, which is the JSON that
/// compileProgram gives: a row for each TaskGraph, with its strategy, devices
/// and FLOPs of one step by phase; then the collectives of one step.
std::string makePlanTable(llvm::StringRef plan);

} // namespace whale

#endif // WHALE_PROGRAM_PLANTABLE_H
