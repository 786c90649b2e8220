//===- Epilogue.h - What is done to a product -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_EPILOGUE_H
#define WHALE_RUNTIME_DEVICE_CPU_EPILOGUE_H

#include "program/Format.h"

namespace whale::runtime {

/// Does to the product in `out` what its epilogue says, after the product has
/// been rounded; `bias` and `aux` are null where it has none.
void applyEpilogue(const Matmul &op, void *out, void *bias, void *aux,
                   int64_t threads);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_EPILOGUE_H
