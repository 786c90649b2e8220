//===- ConvolutionFlops.h - How much convolutions do ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_CONVOLUTIONFLOPS_H
#define WHALE_DIALECT_WHALE_IR_CONVOLUTIONFLOPS_H

#include "mlir/IR/Value.h"

namespace whale {

/// Multiplications and additions of a convolution, those on padding included,
/// but not on the zeros that dilate its input: at most the largest number.
/// `features` is the dimension of the filter for output features.
int64_t countConvolutionFlops(mlir::Value filter, int64_t features,
                              mlir::Value result,
                              llvm::ArrayRef<int64_t> lhsDilation);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_CONVOLUTIONFLOPS_H
