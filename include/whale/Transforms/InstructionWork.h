//===- InstructionWork.h - What instructions do -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an instruction of a schedule or segment. Out: what the cost model asks of
// it. Orders of instructions are chosen by it, and the program says the same
// (ClassEmitter.cpp), so that whoever reads that prices each instruction alike.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_INSTRUCTIONWORK_H
#define WHALE_TRANSFORMS_INSTRUCTIONWORK_H

#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/CostModel.h"

#include <optional>

namespace whale {

/// The work of a kernel or a call of a library; nothing of what is no
/// instruction of them. `symbols` finds kernels.
std::optional<OpCost> instructionWork(mlir::Operation *op,
                                      mlir::SymbolTableCollection &symbols);

} // namespace whale

#endif // WHALE_TRANSFORMS_INSTRUCTIONWORK_H
