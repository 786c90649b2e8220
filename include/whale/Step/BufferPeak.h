//===- BufferPeak.h - What is held when most is -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_BUFFERPEAK_H
#define WHALE_STEP_BUFFERPEAK_H

#include "whale/Step/BufferPlan.h"

namespace whale {

/// A value that is in the arena, in a buffer of `bytes`: of the function, or of
/// the segment of this number, which runs then. Which of its calls that is
/// counts from 0, in the order of the function.
struct HeldValue {
  std::optional<unsigned> segment;
  unsigned value;
  int64_t bytes;
  unsigned call = 0;
  bool operator==(const HeldValue &) const = default;
};

/// Returns what is in the arena when most of its bytes are in use, at the first
/// such time; one value for each buffer, the one that was written last. `plan`
/// is what planBuffers returned for `function`. Cost: that of the live ranges,
/// and a sweep over them with those of each call's locals.
std::vector<HeldValue> findPeak(const BufferFunction &function,
                                const BufferPlan &plan);

} // namespace whale

#endif // WHALE_STEP_BUFFERPEAK_H
