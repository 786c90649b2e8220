//===- DescribeProfile.h - A profile in words -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_DESCRIBEPROFILE_H
#define WHALE_RUNTIME_EXECUTOR_DESCRIBEPROFILE_H

#include "program/BoundProgram.h"
#include "whale/Runtime/Profile.h"

namespace whale::runtime {

/// Calls `visit` with all instructions of a class that are run themselves:
/// those of loops and cases, and those of functions once, whatever their runs.
void forEachExecuted(const BoundClass &rankClass,
                     const std::function<void(const Instruction &)> &visit);

/// See Program::describe. `modelSeconds` is what a step takes by the model of a
/// step, if it has a time for the program; `leastSeconds` says how long an
/// instruction takes at the peaks of a device, or 0; `algorithmOf` what a
/// device has chosen for it, or "".
std::string describeProfile(
    const Profile &profile, const BoundProgram &program,
    std::optional<double> modelSeconds,
    const std::function<double(const Instruction &)> &leastSeconds,
    const std::function<std::string(const Instruction &)> &algorithmOf);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_DESCRIBEPROFILE_H
