//===- Libraries.h - The libraries that compute programs --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARIES_H
#define WHALE_RUNTIME_LIBRARIES_H

#include "whale/ProgramFormat/Libraries.h"

namespace whale::runtime {

/// What the runtime computes programs with, for the compiler.
const format::Libraries &getLibraries();

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARIES_H
