//===- LossScale.h - Scaled gradients, and steps without effect -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_MIXEDPRECISION_LOSSSCALE_H
#define WHALE_LIB_TRANSFORMS_IMPORT_MIXEDPRECISION_LOSSSCALE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace whale {

/// Multiplies the gradients of @main by `scale` while they are computed, and
/// keeps what is fed back to arguments in a step in which one of them is not
/// finite. Without a number, the scale is an argument that is added to @main,
/// with a result that feeds it. A remark says what that takes. An error where
/// gradients are not linear.
mlir::LogicalResult scaleGradients(mlir::func::FuncOp main,
                                   std::optional<int64_t> scale);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_MIXEDPRECISION_LOSSSCALE_H
