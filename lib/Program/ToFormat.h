//===- ToFormat.h - Parts of a program in its format ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_TOFORMAT_H
#define WHALE_LIB_PROGRAM_TOFORMAT_H

#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Libraries.h"
#include "whale/ProgramFormat/Program.h"

namespace whale {

/// An element type that a program can hold.
format::DType toDType(mlir::Type element);

inline format::Shape toShape(llvm::ArrayRef<int64_t> extents) {
  return {extents.begin(), extents.end()};
}

/// A convolution, but for the numbers of its buffers.
format::Convolution toFormat(ConvolutionOp op);

/// What a library call reads or gives.
std::vector<format::LibraryTensor> describeTensors(mlir::ValueRange values);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_TOFORMAT_H
