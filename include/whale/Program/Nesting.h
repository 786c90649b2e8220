//===- Nesting.h - How deep a text is nested --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser, printer and verifiers follow regions, attributes, types and
// locations by recursion, so a text that is nested deep enough ends them by a
// stack overflow. So do the terms of an affine expression. Aliases nest without
// brackets, and can stand for a value of any size: `#b = [#a, #a]`,
// `#c = [#b, #b]`. All are found here, before anything is parsed, with margins
// for a stack of 8 MiB.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAM_NESTING_H
#define WHALE_PROGRAM_NESTING_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace whale {

/// Brackets of the text inside one another. A loop or branch takes two at most,
/// and what JAX traces is nested some dozens of them deep.
inline constexpr unsigned mostBrackets = 512;
/// The same of an alias with those that it names: the frames of a Python
/// stack in a location.
inline constexpr unsigned mostAliasBrackets = 4096;
/// Operators in one affine expression, which is a tree as deep as a sum is
/// long.
inline constexpr unsigned mostAffineOperators = 4096;

struct NestingError {
  /// Both from 1.
  unsigned line, column;
  std::string message;
};

/// What of a text of MLIR is nested too deep, if anything. MLIR's bytecode is
/// none, and reads without recursion.
std::optional<NestingError> findDeepNesting(llvm::StringRef text);

} // namespace whale

#endif // WHALE_PROGRAM_NESTING_H
