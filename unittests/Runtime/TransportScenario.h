//===- TransportScenario.h - Collectives for tests --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_TRANSPORTSCENARIO_H
#define WHALE_UNITTESTS_RUNTIME_TRANSPORTSCENARIO_H

#include "transport/Transport.h"

#include <random>

namespace whale::runtime::test {

using Bytes = std::vector<uint8_t>;

/// Whether elements of this type can be reduced so.
bool isAllowed(DType dtype, Reduction reduction);

/// Small numbers that every type has, with different bits in each place.
Bytes randomElements(std::mt19937 &random, DType dtype, int64_t count);

/// What a collective makes of its sources of a part, one element after the
/// other; all by rank. `out` holds the destinations as they were before.
void apply(const Collective &channel, size_t part,
           const std::vector<Bytes> &src, std::vector<Bytes> &out);

/// A collective with its buffers, by part and rank.
struct Scenario {
  using Buffers = std::vector<std::vector<Bytes>>;
  Collective channel;
  Buffers src, dst;
  /// An all-reduce whose destination is the source.
  bool inPlace = false;
};

/// Up to eight ranks, or so many, in groups or with cells between random boxes.
Scenario randomScenario(std::mt19937 &random, DType dtype,
                        std::optional<Reduction> reduction, bool groups,
                        int64_t ranks = 0);

/// One of the parts of all, which are of the same ranks.
Scenario join(std::vector<Scenario> scenarios);

/// What all of a scenario's sources become.
Scenario::Buffers expectedOf(const Scenario &scenario);
/// The buffers of a rank, of which it receives into `dst`, or into `src` if it
/// is in place.
std::vector<PartBuffers> buffersOf(const Scenario &scenario,
                                   const Scenario::Buffers &src,
                                   Scenario::Buffers &dst, int64_t rank);

/// A collective of a kind over as many ranks as there are shares: of what each
/// holds of the shared dimension.
Collective makeCollective(const std::string &kind,
                          const std::vector<int64_t> &shares);

/// One i32 from a rank to another one.
Collective makeSend(int64_t from, int64_t to);

Scenario scenarioOf(std::mt19937 &random, Collective channel, bool inPlace);

/// Channels are numbered by their place in the list.
format::Program programOf(int64_t ranks, const std::vector<Collective> &list);

/// Gives a new transport the channels of a program, with the same numbers.
template <typename AnyTransport>
std::unique_ptr<AnyTransport> withChannels(std::unique_ptr<AnyTransport> made,
                                           const format::Program &program) {
  made->addChannels(program.channels,
                    static_cast<int64_t>(program.channels.size()));
  return made;
}
std::unique_ptr<Transport> localTransportOf(const format::Program &program,
                                            const Network &network = {});

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_TRANSPORTSCENARIO_H
