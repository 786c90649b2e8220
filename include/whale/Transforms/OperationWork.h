//===- OperationWork.h - What operations do ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an operation of StableHLO, or the instruction that it becomes. Out: what
// the cost model asks of it. Layouts, stages and shares are chosen by the
// former, orders of instructions by the latter, and the program says the same
// (ClassEmitter.cpp), so that whoever reads that prices each instruction alike.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_OPERATIONWORK_H
#define WHALE_TRANSFORMS_OPERATIONWORK_H

#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/CostModel.h"

#include <optional>

namespace whale {

/// The work of an operation of StableHLO as an instruction of its own, or of a
/// kernel or a call of a library; nothing of what computes and moves nothing,
/// or of what is none of these. `symbols` finds kernels.
std::optional<OpCost>
operationWork(mlir::Operation *op,
              mlir::SymbolTableCollection *symbols = nullptr);

/// The type of the numbers that an operation computes with, as memory holds
/// them: of a product the wider one of its operands'.
mlir::Type getComputedType(mlir::Operation *op);

/// Whether GPUs may round the f32 operands of a dot_general or a convolution to
/// TF32: its algorithm says so, or the module's configuration does for default
/// precision.
bool mayRoundToTf32(mlir::Operation *op);

/// Whether the precision is the default one. `precision` may be null.
bool isDefault(std::optional<mlir::ArrayAttr> precision);

} // namespace whale

#endif // WHALE_TRANSFORMS_OPERATIONWORK_H
