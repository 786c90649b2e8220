//===- Frames.h - Messages of the control connection ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A frame is the length of what follows (4 bytes, little-endian), its kind (1
// byte) and its fields.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_FRAMES_H
#define WHALE_RUNTIME_JOB_FRAMES_H

#include "whale/System/Fields.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace whale::runtime::job {

using system::FieldReader;
using system::FieldWriter;

enum class Kind : uint8_t {
  Hello = 1, ///< see Hello
  Challenge, ///< nonce, the coordinator's program, its proof
  Proof,     ///< proof of the process
  Welcome,   ///< all have joined
  Gather,    ///< name, text
  Gathered,  ///< name, texts
  Fail,      ///< text
  Beat,      ///< Progress; back: how many ms the coordinator may be silent
  Bye,       ///< from a process: it ends; to it: all do
};

struct Frame {
  Kind kind = Kind::Hello;
  std::string fields;
};

/// Most bytes of a frame before and after a process has proved that it knows
/// the secret.
inline constexpr size_t strangersBytes = 4096;
inline constexpr size_t membersBytes = size_t(1) << 31;
/// Most bytes that a process gathers; what many give together has to fit in a
/// frame, too.
inline constexpr size_t mostGathered = size_t(1) << 30;

std::string encode(Kind kind, std::string_view fields);

/// Takes a complete frame from the front of `bytes`; nothing if it is not
/// complete. `isWrong` is set where the bytes are no frame, or one of more than
/// `most` bytes.
std::optional<Frame> decode(std::string &bytes, size_t most, bool &isWrong);

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_FRAMES_H
