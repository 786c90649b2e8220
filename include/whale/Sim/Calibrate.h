//===- Calibrate.h - This machine as a cluster file -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SIM_CALIBRATE_H
#define WHALE_SIM_CALIBRATE_H

#include "whale/Cluster/Cluster.h"

#include <string>

namespace whale::sim {

/// Measures this machine as `ranks` ranks of the processor. Takes some seconds.
/// Throws system::Error.
Cluster calibrate(int64_t ranks);

/// What was measured, for people.
std::string describeCalibration(const Cluster &cluster);

} // namespace whale::sim

#endif // WHALE_SIM_CALIBRATE_H
