//===- Numeric.h - Arithmetic on every element type -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The names of whale/ProgramFormat/Numeric.h that the runtime uses as its own.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_NUMERIC_H
#define WHALE_RUNTIME_NUMERIC_H

#include "whale/ProgramFormat/Numeric.h"
#include "whale/Runtime/Types.h"

namespace whale::runtime {

using format::BFloat16;
using format::Bool;
using format::dispatch;
using format::Element;
using format::Float16;
using format::Float8;
using format::hasArithmetic;
using format::isOpaque;
using format::Opaque;
using format::SmallInt;
using format::Specials;

} // namespace whale::runtime

#endif // WHALE_RUNTIME_NUMERIC_H
