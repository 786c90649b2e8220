//===- KnownMatches.cpp - Collectives of steps, found once ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step's placements, and the topology. Out: its collective and groups.
//
// A compilation has few different steps and asks for the collective of each
// many times: where it divides, prices, checks and writes them, and once more
// for each plan of other options. What was found is kept for all threads, until
// it holds mostShards shards of placements: then all is forgotten. Cost: a
// look-up by the hashes that placements store, or that of matchStep.
//
//===----------------------------------------------------------------------===//

#include "Flow.h"
#include "llvm/ADT/Hashing.h"

#include <mutex>
#include <unordered_map>

using namespace llvm;
using namespace whale;

namespace {
class KnownMatches {
public:
  std::shared_ptr<const Match> find(const Placement &from, const Placement &to,
                                    const Topology &topology);

private:
  /// Some ten megabytes.
  static constexpr size_t mostShards = size_t(1) << 17;

  struct Step {
    Placement from, to;
    std::vector<unsigned> node;
    bool operator==(const Step &other) const = default;
  };
  struct Hash {
    size_t operator()(const Step &step) const {
      return hash_combine(step.from, step.to);
    }
  };

  std::mutex mutex;
  std::unordered_map<Step, std::shared_ptr<const Match>, Hash> known;
  size_t shards = 0;
};
} // namespace

std::shared_ptr<const Match> KnownMatches::find(const Placement &from,
                                                const Placement &to,
                                                const Topology &topology) {
  Step step{from, to, topology.node};
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (auto it = known.find(step); it != known.end())
      return it->second;
  }
  auto match =
      std::make_shared<const Match>(matchStep(Flow(from, to), topology));
  std::lock_guard<std::mutex> lock(mutex);
  size_t count = from.shards().size() + to.shards().size();
  if (shards + count > mostShards) {
    known.clear();
    shards = 0;
  }
  if (known.try_emplace(std::move(step), match).second)
    shards += count;
  return match;
}

std::shared_ptr<const Match> whale::findMatch(const Placement &from,
                                              const Placement &to,
                                              const Topology &topology) {
  static KnownMatches matches;
  return matches.find(from, to, topology);
}
