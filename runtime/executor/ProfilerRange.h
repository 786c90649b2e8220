//===- ProfilerRange.h - What a thread does, for a profiler -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_EXECUTOR_PROFILERRANGE_H
#define WHALE_EXECUTOR_PROFILERRANGE_H

#include "program/BoundProgram.h"

namespace whale::runtime {

/// A range of NVTX, in the domain "Whale", as long as it lives: tools such as
/// Nsight Systems show by it which kernels and calls an operation made.
class ProfilerRange {
public:
  /// Whether a tool listens, which is so for a whole process or never; not
  /// where Whale was built without the headers of NVTX.
  static bool isOn();

  /// Names the operation and the lines of the user's program that it is of.
  explicit ProfilerRange(const Instruction &instruction);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange &) = delete;
  ProfilerRange &operator=(const ProfilerRange &) = delete;
};

} // namespace whale::runtime

#endif // WHALE_EXECUTOR_PROFILERRANGE_H
