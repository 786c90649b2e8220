//===- LinkTimes.h - How long a transfer takes on links ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_LINKTIMES_H
#define WHALE_RUNTIME_TRANSPORT_LINKTIMES_H

#include "program/Format.h"
#include "whale/Runtime/Network.h"

namespace whale::runtime {

/// By participant, the seconds that its part of a collective takes on the links
/// of a network once all that it exchanges data with are there; 0 where it
/// exchanges none. As long as the cost model says of its group alone
/// (CostModel.h): groups don't share links.
std::map<int64_t, double> linkSeconds(const Collective &collective,
                                      const Network &network);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_LINKTIMES_H
