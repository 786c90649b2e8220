//===- ReductionCost.cpp - Whether to divide an all-reduce ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/ReductionCost.h"

#include "whale/Step/StepCost.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace whale;

namespace {
/// The three steps of an all-reduce that is divided by node.
struct Division {
  std::vector<Exchange> scatter, reduce, gather;

  void add(const Exchange &allReduce, const Cluster &cluster) {
    std::map<unsigned, std::vector<int64_t>> nodes;
    for (int64_t device : allReduce.devices)
      nodes[cluster.devices[device].node].push_back(device);
    size_t inNode = nodes.begin()->second.size();
    double part = allReduce.bytes.front() / double(inNode);
    std::vector<Exchange> across(inNode);
    for (const auto &[node, devices] : nodes) {
      Exchange inside;
      inside.devices = devices;
      inside.bytes.assign(inNode, part);
      inside.kind = Exchange::Kind::ReduceScatter;
      scatter.push_back(inside);
      inside.kind = Exchange::Kind::AllGather;
      gather.push_back(std::move(inside));
      for (auto [exchange, device] : llvm::zip_equal(across, devices)) {
        exchange.kind = Exchange::Kind::AllReduce;
        exchange.devices.push_back(device);
        exchange.bytes.push_back(part);
      }
    }
    llvm::append_range(reduce, std::move(across));
  }

  double seconds(const CostModel &model) const {
    return model.exchangeSeconds(scatter) + model.exchangeSeconds(reduce) +
           model.exchangeSeconds(gather) + 2 * kCollectiveStart;
  }
};
} // namespace

/// Whether each node of a group has equally many of it, and more than one, and
/// there are several nodes.
static bool canDivide(const Exchange &allReduce, const Cluster &cluster) {
  std::map<unsigned, int64_t> counts;
  for (int64_t device : allReduce.devices)
    ++counts[cluster.devices[device].node];
  return counts.size() > 1 && counts.begin()->second > 1 &&
         llvm::all_of(counts, [&](const auto &node) {
           return node.second == counts.begin()->second;
         });
}

ReductionSeconds whale::reductionSeconds(const CostModel &model,
                                         llvm::ArrayRef<Exchange> allReduces,
                                         const Cluster &cluster) {
  ReductionSeconds seconds;
  seconds.whole = model.exchangeSeconds(allReduces);
  if (allReduces.empty() || !llvm::all_of(allReduces, [&](const Exchange &one) {
        return canDivide(one, cluster);
      }))
    return seconds;
  Division division;
  for (const Exchange &one : allReduces)
    division.add(one, cluster);
  seconds.divided = division.seconds(model);
  return seconds;
}

ReductionSeconds whale::reductionSeconds(const GroupReduction &reduction,
                                         int64_t elementBytes,
                                         const Cluster &cluster) {
  std::vector<Exchange> exchanges;
  for (auto [group, count] :
       llvm::zip_equal(reduction.groups, reduction.elements)) {
    Exchange &exchange = exchanges.emplace_back();
    exchange.kind = Exchange::Kind::AllReduce;
    exchange.devices.assign(group.begin(), group.end());
    exchange.bytes.assign(group.size(), double(count) * double(elementBytes));
  }
  return reductionSeconds(*createRooflineModel(cluster), exchanges, cluster);
}
