//===- LinearAlgebraCalls.h - JAX's calls of LAPACK -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the CPU, JAX uses LAPACK for factorizations and eigenvalues, through
// custom calls named lapack_[sdcz]NAME_ffi.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_LINEARALGEBRACALLS_H
#define WHALE_DIALECT_STABLEHLO_IR_LINEARALGEBRACALLS_H

#include "llvm/ADT/StringSwitch.h"
#include <optional>

namespace whale {

/// Returns the LAPACK routine of a custom call to `target`, under its name for
/// real matrices ("syevd" also for lapack_zheevd_ffi); nullopt if it is not
/// such a call.
inline std::optional<llvm::StringRef> getLapackRoutine(llvm::StringRef target) {
  if (!target.consume_front("lapack_") || !target.consume_back("_ffi") ||
      target.size() < 2 || !llvm::StringRef("sdcz").contains(target.front()))
    return std::nullopt;
  return llvm::StringSwitch<std::optional<llvm::StringRef>>(target.drop_front())
      .Case("gees", "gees")
      .Case("geev", "geev")
      .Case("gehrd", "gehrd")
      .Case("geqp3", "geqp3")
      .Case("geqrf", "geqrf")
      .Case("gesdd", "gesdd")
      .Case("getrf", "getrf")
      .Case("gtsv", "gtsv")
      .Cases({"orgqr", "ungqr"}, "orgqr")
      .Cases({"ormqr", "unmqr"}, "ormqr")
      .Case("potrf", "potrf")
      .Cases({"syevd", "heevd"}, "syevd")
      .Cases({"sytrd", "hetrd"}, "sytrd")
      .Case("trsm", "trsm")
      .Default(std::nullopt);
}

} // namespace whale

#endif // WHALE_DIALECT_STABLEHLO_IR_LINEARALGEBRACALLS_H
