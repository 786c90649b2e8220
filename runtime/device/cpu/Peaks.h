//===- Peaks.h - How fast a CPU device can be -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The roofline of a trace, measured where it is drawn: what the library reaches
// in a large square product, and what copying large blocks moves.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_PEAKS_H
#define WHALE_RUNTIME_DEVICE_CPU_PEAKS_H

#include "device/cpu/Operations.h"

namespace whale::runtime {

/// Bytes a second, read and written, of `threads` threads that copy.
double measureBandwidth(int64_t threads);

/// FLOP/s of a product of matrices of `dtype` (F32 or BF16).
double measureProducts(DType dtype, CpuContext &context);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_PEAKS_H
