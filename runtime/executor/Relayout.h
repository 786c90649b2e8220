//===- Relayout.h - An array in another layout ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_RELAYOUT_H
#define WHALE_RUNTIME_EXECUTOR_RELAYOUT_H

#include "program/Format.h"

namespace whale::runtime {

/// The transfers that bring an array from one layout to another of the same
/// view and as many ranks. A rank takes what it has from itself, else a whole
/// box from the first rank that has it, else parts from several.
std::shared_ptr<const Collective> relayoutOf(DType dtype, const Layout &from,
                                             const Layout &to);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_RELAYOUT_H
