//===- StepCost.cpp - Time of a resolver step -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/StepCost.h"
#include "llvm/ADT/DenseMap.h"

using namespace whale;

/// Returns all messages of a step; those between the same two devices are
/// merged.
static Exchange transfersOf(const Step &step, int64_t elementBytes,
                            const Topology &topology) {
  Exchange exchange;
  // Where the list has the message to the receiver at hand from each sender.
  llvm::DenseMap<DeviceId, size_t> positions;
  forEachReceiver(step, topology, [&](const Receiver &receiver) {
    positions.clear();
    for (const Cell &cell : receiver.cells)
      for (const Contribution &contribution : cell.contributions) {
        if (contribution.peer == receiver.device)
          continue;
        auto [position, isNew] =
            positions.try_emplace(contribution.peer, exchange.transfers.size());
        if (isNew)
          exchange.transfers.push_back({contribution.peer, receiver.device, 0});
        exchange.transfers[position->second].bytes +=
            double(cell.box.volume()) * double(elementBytes);
      }
    return true;
  });
  return exchange;
}

/// Returns the exchanges of a step's groups, for elements of `elementBytes`
/// bytes. Only messages need the table, which is large on many devices.
static std::vector<Exchange> exchangesOf(const Step &step, int64_t elementBytes,
                                         const Topology &topology) {
  std::optional<Exchange::Kind> kind;
  // The placement whose shards determine the bytes of the exchange.
  const Placement *side = &step.from;
  switch (step.kind) {
  case StepKind::LocalSlice:
    return {};
  case StepKind::AllReduce:
    kind = Exchange::Kind::AllReduce;
    break;
  case StepKind::ReduceScatter:
    kind = Exchange::Kind::ReduceScatter;
    side = &step.to;
    break;
  case StepKind::AllGather:
    kind = Exchange::Kind::AllGather;
    break;
  case StepKind::Broadcast:
    kind = Exchange::Kind::Broadcast;
    break;
  case StepKind::AllToAll:
  case StepKind::SendRecv: {
    Exchange messages = transfersOf(step, elementBytes, topology);
    messages.isAllToAll = step.kind == StepKind::AllToAll;
    return {std::move(messages)};
  }
  }
  std::vector<Exchange> exchanges;
  for (const llvm::SmallVector<DeviceId> &group : groups(step, topology)) {
    Exchange &exchange = exchanges.emplace_back();
    exchange.kind = *kind;
    for (DeviceId device : group) {
      std::optional<Box> box = side->box(device);
      exchange.devices.push_back(device);
      exchange.bytes.push_back(
          box ? double(box->volume()) * double(elementBytes) : 0);
    }
  }
  return exchanges;
}

double whale::stepSeconds(const CostModel &model, const Step &step,
                          int64_t elementBytes, const Topology &topology) {
  return model.exchangeSeconds(exchangesOf(step, elementBytes, topology));
}
