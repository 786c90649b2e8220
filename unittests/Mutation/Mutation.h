//===- Mutation.h - Programs with a wrong order -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_MUTATION_MUTATION_H
#define WHALE_UNITTESTS_MUTATION_MUTATION_H

#include "whale/ProgramFormat/Program.h"

#include <random>

namespace whale::transfers {

enum class Kind : uint8_t {
  DropWait,     ///< of one transfer
  ShiftBuffer,  ///< by 64 bytes of the arena: a buffer, or a function's local
  SwapStarts,   ///< of two channels; perhaps their waits, too
  ExchangeSend, ///< a start that sends and one that receives; as above
  Move,         ///< an instruction across one or more others
  PutOff,       ///< a copy from the compute queue to that of transfers
  Synchronize,  ///< a transfer that goes on while the compute queue stands
};
inline constexpr size_t kindCount = 7;
std::string_view name(Kind kind);

struct Mutant {
  Kind kind;
  /// What was changed, for messages.
  std::string what;
  format::Program program;
};

/// Changes one thing about a program's transfers or buffers, so that each
/// instruction still computes the same of its buffers: what is moved is a start
/// or a wait, or is beside one, and the starts of one channel keep their
/// order. Nothing where the kind finds nothing to change.
std::optional<Mutant> mutate(const format::Program &program, Kind kind,
                             std::mt19937 &random);

/// Why a program is refused, by the loader or by what is checked of programs
/// that the compiler has written; empty if it is not.
std::string refusal(const format::Program &program);

} // namespace whale::transfers

#endif // WHALE_UNITTESTS_MUTATION_MUTATION_H
