//===- ModelStep.h - A profile in the model of a step -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_MODELSTEP_H
#define WHALE_RUNTIME_EXECUTOR_MODELSTEP_H

#include "program/BoundProgram.h"
#include "whale/Runtime/Network.h"
#include "whale/Runtime/Profile.h"

namespace whale::runtime {

/// Returns the seconds of a step by the model of a step (QueueModel.h), if
/// instructions take what the profile measured, means over all their runs, and
/// transfers what the links of the network take (none without one). What a rank
/// does itself in a wait, such as copies, is measured, too. nullopt if the
/// model has no time: loops or cases that exchange data or run functions, a
/// profile without steps, or one that lacks the ranks of other processes.
std::optional<double> modelSeconds(const Profile &profile,
                                   const BoundProgram &program,
                                   const Network &network);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_MODELSTEP_H
