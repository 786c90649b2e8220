//===- BFloat16.h - bf16 on processors without it ---------------*- C++ -*-
//===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM moves bf16 through f32 on some processors without instructions for it
// (a select of vectors, say), and then rounds by a function that libgcc has
// since version 13 only. Kernels therefore hold bf16 as its bits.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TARGET_CPU_BFLOAT16_H
#define WHALE_TARGET_CPU_BFLOAT16_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/Operation.h"

namespace whale {

/// Converts between bf16 and f32 by integer arithmetic, in all of `root`, and
/// makes constants of bf16 from their bits. `makesShortNans` says that the NaNs
/// of the processor's own have zeros in their lower 16 bits, as those of x86
/// and not of NVIDIA GPUs, which makes rounding cheaper.
void expandBFloat16(mlir::Operation *root, bool makesShortNans = false);

/// Has `converter` lower bf16 to i16. What it converts went through
/// `expandBFloat16`.
void holdBFloat16AsBits(mlir::LLVMTypeConverter &converter);

} // namespace whale

#endif // WHALE_TARGET_CPU_BFLOAT16_H
