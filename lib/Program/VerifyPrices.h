//===- VerifyPrices.h - One price for each transfer -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_VERIFYPRICES_H
#define WHALE_LIB_PROGRAM_VERIFYPRICES_H

#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Program.h"

namespace whale {

/// Checks that each transfer has the same price whether it is asked of its
/// placements, as planning does, or of its channel, as who reads the program
/// does. Channels of several tensors have a price of their own.
mlir::LogicalResult verifyPrices(
    mlir::ModuleOp module, llvm::ArrayRef<ScheduleOp> classes,
    const std::map<int64_t, format::Shared<format::Collective>> &channels);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_VERIFYPRICES_H
