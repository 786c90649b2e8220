//===- TransportConformance.h - What every transport must do ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests of an implementation of Transport whose ranks are threads of the test.
// One gains them all by
//
//   INSTANTIATE_TEST_SUITE_P(Name, TransportConformance,
//                            testing::Values(TransportMaker(create)));
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_TRANSPORTCONFORMANCE_H
#define WHALE_UNITTESTS_RUNTIME_TRANSPORTCONFORMANCE_H

#include "transport/Transport.h"

#include <gtest/gtest.h>

namespace whale::runtime::test {

/// The program outlives the transport.
using TransportMaker =
    std::function<std::unique_ptr<Transport>(const format::Program &)>;

/// How ranks have ended that did not come to their end.
struct Outcome {
  int errors = 0, aborted = 0;
  bool operator==(const Outcome &) const = default;
};

/// Resets the transport and runs a job on a thread for each of the ranks, which
/// finish after it. An Error aborts the run.
Outcome runRanks(Transport &transport, int64_t ranks,
                 const std::function<void(int64_t rank)> &job);

/// Posts a transfer and waits for it.
Traffic run(Transport &transport, int64_t rank, int64_t channel,
            const void *src, void *dst);

class TransportConformance : public testing::TestWithParam<TransportMaker> {};

/// Of a transport whose ranks are given the buffers that transfers use, not
/// others that these are copied to and from.
class DirectTransport : public testing::TestWithParam<TransportMaker> {};

/// Of a transport that sees all ranks: ranks that wait for one another get an
/// error. Between processes the control connection ends such a run.
class StuckTransport : public testing::TestWithParam<TransportMaker> {};

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_TRANSPORTCONFORMANCE_H
