//===- Fail.h - Errors of the planner ---------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PLANNER_FAIL_H
#define WHALE_LIB_PLANNER_FAIL_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace whale {

inline llvm::Error fail(const llvm::Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

} // namespace whale

#endif // WHALE_LIB_PLANNER_FAIL_H
