//===- GpuArchAttribute.h - What is for which GPUs --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_GPUARCHATTRIBUTE_H
#define WHALE_DIALECT_WHALE_IR_GPUARCHATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace whale {

/// The architecture, such as "sm_90", of the GPUs that a class of ranks or a
/// kernel is for, where ranks are on several kinds of targets; those of the
/// processor have `whale.for_processor`.
inline constexpr llvm::StringLiteral kGpuArchAttrName = "whale.gpu_arch";

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_GPUARCHATTRIBUTE_H
