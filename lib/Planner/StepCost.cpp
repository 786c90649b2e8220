//===- StepCost.cpp - What a resolver step costs --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/StepCost.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

using namespace whale;

/// Bytes of each device's shard on one side.
template <typename Sides>
static llvm::DenseMap<DeviceId, double> shardBytes(const Sides &sides,
                                                   int64_t elementBytes) {
  llvm::DenseMap<DeviceId, double> bytes;
  for (const auto &side : sides)
    bytes[side.device] = double(volumeOf(side.shape)) * double(elementBytes);
  return bytes;
}

/// All messages of a table, those between the same two devices as one.
static Exchange transfersOf(const CellTable &table, int64_t elementBytes) {
  llvm::MapVector<std::pair<DeviceId, DeviceId>, double> bytes;
  for (const Receiver &receiver : table.receivers)
    for (const Cell &cell : receiver.cells)
      for (const Contribution &contribution : cell.contributions)
        if (contribution.peer != receiver.device)
          bytes[{contribution.peer, receiver.device}] +=
              double(cell.box.volume()) * double(elementBytes);
  Exchange exchange;
  for (const auto &[pair, count] : bytes)
    exchange.transfers.push_back({pair.first, pair.second, count});
  return exchange;
}

std::vector<Exchange> whale::exchangesOf(const CellTable &table,
                                         int64_t elementBytes) {
  std::optional<Exchange::Kind> kind;
  // Which side's shards the exchange is counted in.
  bool before = true;
  switch (table.kind) {
  case StepKind::LocalSlice:
    return {};
  case StepKind::AllReduce:
    kind = Exchange::Kind::AllReduce;
    break;
  case StepKind::ReduceScatter:
    kind = Exchange::Kind::ReduceScatter;
    before = false;
    break;
  case StepKind::AllGather:
    kind = Exchange::Kind::AllGather;
    break;
  case StepKind::Broadcast:
    kind = Exchange::Kind::Broadcast;
    break;
  case StepKind::AllToAll:
  case StepKind::SendRecv:
    return {transfersOf(table, elementBytes)};
  }
  llvm::DenseMap<DeviceId, double> bytes =
      before ? shardBytes(table.senders, elementBytes)
             : shardBytes(table.receivers, elementBytes);
  std::vector<Exchange> exchanges;
  for (const llvm::SmallVector<DeviceId> &group : table.groups) {
    Exchange &exchange = exchanges.emplace_back();
    exchange.kind = *kind;
    for (DeviceId device : group) {
      exchange.devices.push_back(device);
      exchange.bytes.push_back(bytes.lookup(device));
    }
  }
  return exchanges;
}

double whale::stepSeconds(const CostModel &model, const Step &step,
                          int64_t elementBytes, const Topology &topology) {
  return model.exchangeSeconds(
      exchangesOf(cells(step, topology), elementBytes));
}
