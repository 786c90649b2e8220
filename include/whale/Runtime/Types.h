//===- Types.h - Tensors and failures at run time ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The names of other folders that the runtime and its callers use as the
// runtime's own.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TYPES_H
#define WHALE_RUNTIME_TYPES_H

#include "whale/ProgramFormat/DType.h"
#include "whale/ProgramFormat/Layout.h"
#include "whale/System/Error.h"

namespace whale::runtime {

using format::DType;

using format::byteSize;
using format::isComplex;
using format::isFloat;
using format::isInteger;
using format::name;
using format::parseDType;

using format::Box;
using format::Layout;
using format::Shape;

using format::covers;
using format::elementCount;
using format::intersect;
using format::toString;

using system::Error;

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TYPES_H
