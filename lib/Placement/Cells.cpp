//===- Cells.cpp - Which device sends which elements where ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The public functions on steps. In: a step (a placement before and one after)
// and the topology. Out: its table of cells, or the receivers one after the
// other; its groups, its kind, and what a device sends, receives or misses.
// They bring the two placements into common coordinates (Flow.h) and call the
// table builder or the matchers.
//
// Cost: a table as Cells.h says. Groups and kinds sort the devices of each node
// of the tree, but build a table where the step's result is partial or the two
// sides have no common view; of a step that was asked for before they are known
// (KnownMatches.cpp). What a device sends or receives takes one pass
// over the table. What it misses is linear in the dimensions, or in the
// row-major intervals of its boxes if these have no common view.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Cells.h"
#include "Flow.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace whale;

StringRef whale::stringifyStepKind(StepKind kind) {
  switch (kind) {
  case StepKind::LocalSlice:
    return "local_slice";
  case StepKind::AllReduce:
    return "all_reduce";
  case StepKind::ReduceScatter:
    return "reduce_scatter";
  case StepKind::AllGather:
    return "all_gather";
  case StepKind::AllToAll:
    return "all_to_all";
  case StepKind::Broadcast:
    return "broadcast";
  case StepKind::SendRecv:
    return "send_recv";
  }
  llvm_unreachable("all kinds covered");
}

raw_ostream &whale::operator<<(raw_ostream &os, const Step &step) {
  return os << stringifyStepKind(step.kind) << ' ' << step.from << " -> "
            << step.to;
}

//===----------------------------------------------------------------------===//
// Amounts
//===----------------------------------------------------------------------===//

/// Returns the elements that member `index` receives (and sends) in an
/// all-reduce of `elements` among `members`.
static std::pair<int64_t, int64_t>
allReduceVolume(int64_t elements, int64_t members, int64_t index) {
  int64_t own = Placement::evenSizes(elements, members)[index];
  int64_t others = elements - own;
  return {(members - 1) * own + others, others + (members - 1) * own};
}

/// Elements received and sent by `device` in the groups of an all-reduce.
static std::pair<int64_t, int64_t> allReduceVolume(const CellTable &table,
                                                   DeviceId device) {
  for (const SmallVector<DeviceId> &group : table.groups) {
    auto member = llvm::find(group, device);
    if (member == group.end())
      continue;
    for (const Sender &sender : table.senders)
      if (sender.device == device)
        return allReduceVolume(volumeOf(sender.shape), group.size(),
                               member - group.begin());
  }
  return {0, 0};
}

int64_t CellTable::elementsReceived(DeviceId device) const {
  if (kind == StepKind::AllReduce)
    return allReduceVolume(*this, device).first;
  int64_t elements = 0;
  for (const Receiver &receiver : receivers)
    if (receiver.device == device)
      for (const Cell &cell : receiver.cells)
        for (const Contribution &contribution : cell.contributions)
          if (contribution.peer != device)
            elements += cell.box.volume();
  return elements;
}

int64_t CellTable::elementsSent(DeviceId device) const {
  if (kind == StepKind::AllReduce)
    return allReduceVolume(*this, device).second;
  int64_t elements = 0;
  for (const Receiver &receiver : receivers)
    if (receiver.device != device)
      for (const Cell &cell : receiver.cells)
        for (const Contribution &contribution : cell.contributions)
          if (contribution.peer == device)
            elements += cell.box.volume();
  return elements;
}

static int64_t overlap(ArrayRef<std::pair<int64_t, int64_t>> a,
                       ArrayRef<std::pair<int64_t, int64_t>> b) {
  int64_t common = 0;
  while (!a.empty() && !b.empty()) {
    common +=
        std::max<int64_t>(0, std::min(a.front().second, b.front().second) -
                                 std::max(a.front().first, b.front().first));
    if (a.front().second < b.front().second)
      a = a.drop_front();
    else
      b = b.drop_front();
  }
  return common;
}

int64_t whale::elementsMissing(const Placement &from, const Placement &to,
                               DeviceId device) {
  std::optional<Box> needed = to.box(device), held = from.box(device);
  if (!needed)
    return 0;
  if (!held)
    return needed->volume();
  if (from.view() != to.view()) {
    if (std::optional<Box> same = convertBox(*needed, to.view(), from.view())) {
      std::optional<Box> common = same->intersect(*held);
      return needed->volume() - (common ? common->volume() : 0);
    }
    return needed->volume() -
           overlap(runsOf(*needed, to.view()), runsOf(*held, from.view()));
  }
  std::optional<Box> common = needed->intersect(*held);
  return needed->volume() - (common ? common->volume() : 0);
}

CellTable whale::cells(const Step &step, const Topology &topology) {
  Flow flow(step.from, step.to);
  return buildTable(flow, topology, groups(step, topology), step.kind);
}

bool whale::forEachReceiver(const Step &step, const Topology &topology,
                            function_ref<bool(Receiver)> fn) {
  return buildReceivers(Flow(step.from, step.to), topology,
                        groups(step, topology), fn);
}

int64_t whale::countPieces(const Step &step, const Topology &topology,
                           int64_t most) {
  Flow flow(step.from, step.to);
  bool isMade = flow.flat || flow.from.isPartial() || flow.to.isPartial();
  return countPieces(flow, topology,
                     isMade ? groups(step, topology)
                            : std::vector<SmallVector<DeviceId>>(),
                     most);
}

std::vector<Sender> whale::sendersOf(const Step &step) {
  return buildSenders(Flow(step.from, step.to));
}

std::optional<Reduction> whale::reductionOf(const Step &step) {
  return step.from.isPartial() ? step.from.reduction() : step.to.reduction();
}

std::vector<SmallVector<DeviceId>> whale::groups(const Step &step,
                                                 const Topology &topology) {
  if (step.kind == StepKind::SendRecv || step.kind == StepKind::LocalSlice)
    return {};
  std::shared_ptr<const Match> match = findMatch(step.from, step.to, topology);
  if (match->kind != step.kind)
    return {};
  return match->groups;
}

StepKind whale::classify(const Placement &from, const Placement &to,
                         const Topology &topology) {
  return findMatch(from, to, topology)->kind;
}
