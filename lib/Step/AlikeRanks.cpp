//===- AlikeRanks.cpp - Ranks that do the same at the same times ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The coarsest equitable partition of ranks. Cost: a round looks at all members
// of the groups of each collective, and at each rank's collectives; there are
// as many rounds as it takes for a difference to reach all ranks.
//
//===----------------------------------------------------------------------===//

#include "AlikeRanks.h"

#include "whale/Step/ProgramModel.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

namespace whale {
namespace {

class Divider {
public:
  Divider(const format::Program &program, const Cluster &cluster,
          const CostModel &model, bool joins);

  /// Whether some of those that were alike are not.
  bool divide();
  AlikeRanks take();

private:
  /// What a group's exchange takes alone: seconds, and bytes that are sent.
  using Price = std::pair<double, double>;
  /// What of it goes out of a rank, and comes in, and the same of its node.
  using Loads = std::array<double, 4>;

  void addCollective(const format::Collective &collective,
                     const CostModel &model);
  void numberGroups();
  std::vector<size_t> numberNodes() const;

  const Cluster &cluster;
  AlikeRanks alike;
  size_t count = 0;
  struct Membership {
    const format::Collective *collective;
    /// Of the rank's loads in it.
    size_t loads;
  };
  /// By rank: what it has a group in, by the collective's number.
  std::vector<std::map<size_t, Membership>> memberships;
  std::map<Loads, size_t> knownLoads;
  /// By group, in the order of the collective.
  std::map<const format::Collective *, std::vector<Price>> prices;
};

} // namespace

void Divider::addCollective(const format::Collective &collective,
                            const CostModel &model) {
  // Channels share their collectives where these are equal.
  if (collective.isLocal() || !alike.groups.try_emplace(&collective).second)
    return;
  size_t number = prices.size();
  std::vector<Price> &own = prices[&collective];
  std::vector<Exchange> exchanges = exchangesOf(collective);
  auto exchange = exchanges.begin();
  for (const format::Group &group : collective.groups) {
    own.push_back({model.exchangeSeconds(*exchange), sentBytes(*exchange)});
    std::map<size_t, double> bytesOf;
    for (const LinkLoads::Load &load : model.linkLoads({&*exchange, 1}).loads)
      bytesOf[load.link] = load.bytes;
    for (int64_t rank : group) {
      auto device = static_cast<size_t>(rank);
      size_t node = cluster.devices.size() + cluster.devices[device].node;
      Loads loads = {bytesOf[2 * device], bytesOf[2 * device + 1],
                     bytesOf[2 * node], bytesOf[2 * node + 1]};
      size_t known =
          knownLoads.try_emplace(loads, knownLoads.size()).first->second;
      memberships[rank].insert({number, {&collective, known}});
    }
    ++exchange;
  }
}

Divider::Divider(const format::Program &program, const Cluster &cluster,
                 const CostModel &model, bool joins)
    : cluster(cluster) {
  std::map<std::tuple<int64_t, unsigned, double, size_t>, size_t> known;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const Device &device = cluster.devices[rank];
    alike.numbers.push_back(
        known
            .try_emplace({program.ranks[rank].rankClass, device.kind,
                          device.slowdown, joins ? 0 : rank},
                         known.size())
            .first->second);
  }
  count = known.size();
  memberships.resize(program.ranks.size());
  for (const auto &[number, channel] : program.channels)
    addCollective(*channel, model);
  numberGroups();
}

void Divider::numberGroups() {
  for (auto &[collective, groups] : alike.groups) {
    std::map<std::pair<Price, std::vector<std::vector<size_t>>>, size_t> known;
    auto price = prices.at(collective).begin();
    for (const format::Group &group : collective->groups) {
      std::map<unsigned, std::vector<size_t>> byNode;
      for (int64_t rank : group)
        byNode[cluster.devices[rank].node].push_back(alike.numbers[rank]);
      std::vector<std::vector<size_t>> members;
      for (auto &[node, numbers] : byNode) {
        std::ranges::sort(numbers);
        members.push_back(std::move(numbers));
      }
      std::ranges::sort(members);
      size_t number =
          known.try_emplace({*price++, std::move(members)}, known.size())
              .first->second;
      for (int64_t rank : group)
        groups[rank] = number;
    }
  }
}

/// By rank: a number that its node has in common with those of the same links
/// and ranks.
std::vector<size_t> Divider::numberNodes() const {
  std::map<unsigned, std::vector<size_t>> members;
  for (size_t rank = 0; rank < alike.numbers.size(); ++rank)
    members[cluster.devices[rank].node].push_back(alike.numbers[rank]);
  std::map<std::pair<const NodeGroup *, std::vector<size_t>>, size_t> known;
  std::map<unsigned, size_t> numberOf;
  for (size_t rank = 0; rank < alike.numbers.size(); ++rank) {
    unsigned node = cluster.devices[rank].node;
    auto [number, isNew] = numberOf.try_emplace(node);
    if (!isNew)
      continue;
    std::ranges::sort(members[node]);
    number->second =
        known
            .try_emplace({&cluster.nodeOf(static_cast<int64_t>(rank)),
                          std::move(members[node])},
                         known.size())
            .first->second;
  }
  std::vector<size_t> numbers;
  for (size_t rank = 0; rank < alike.numbers.size(); ++rank)
    numbers.push_back(numberOf.at(cluster.devices[rank].node));
  return numbers;
}

bool Divider::divide() {
  std::map<std::vector<size_t>, size_t> known;
  std::vector<size_t> nodes = numberNodes(), numbers;
  for (size_t rank = 0; rank < alike.numbers.size(); ++rank) {
    std::vector<size_t> key = {alike.numbers[rank], nodes[rank]};
    for (const auto &[number, member] : memberships[rank]) {
      const auto &groups = alike.groups.at(member.collective);
      key.insert(key.end(),
                 {number, member.loads, groups.at(static_cast<int64_t>(rank))});
    }
    numbers.push_back(
        known.try_emplace(std::move(key), known.size()).first->second);
  }
  bool isDivided = known.size() > count;
  count = known.size();
  alike.numbers = std::move(numbers);
  numberGroups();
  return isDivided;
}

AlikeRanks Divider::take() {
  alike.nodes = numberNodes();
  for (size_t rank = 0; rank < alike.numbers.size(); ++rank)
    if (alike.numbers[rank] == alike.first.size())
      alike.first.push_back(static_cast<int64_t>(rank));
  return std::move(alike);
}

AlikeRanks findAlikeRanks(const format::Program &program,
                          const Cluster &cluster, const CostModel &model,
                          bool joins) {
  Divider divider(program, cluster, model, joins);
  while (divider.divide()) {
  }
  return divider.take();
}

} // namespace whale
