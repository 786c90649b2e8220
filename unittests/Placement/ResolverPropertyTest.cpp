//===- ResolverPropertyTest.cpp - Random reshards, executed ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random pairs of placements are resolved, and the tables of the steps carried
// out on integers. The expected shards are cut from the whole tensor by walking
// the trees element by element, so nothing but Placement's accessors is shared
// with the resolver.
//
//===----------------------------------------------------------------------===//

#include "RandomPlacement.h"
#include "whale/Placement/DivideByNode.h"
#include "whale/Placement/GroupReduction.h"
#include "whale/Placement/Oracle.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <map>
#include <set>

using namespace llvm;
using namespace whale;
using Kind = PlacementNode::Kind;

namespace {

/// The elements of one shard, row-major.
using Values = std::vector<uint64_t>;
using Shards = std::map<DeviceId, Values>;

uint64_t combine(Reduction reduction, uint64_t a, uint64_t b) {
  return reduction == Reduction::Sum ? a + b : std::max(a, b);
}

/// Calls `fn(point, offset in the tensor, offset in the box)` for each element.
template <typename Fn>
void forEachElement(const Box &box, ArrayRef<int64_t> view, Fn &&fn) {
  int64_t volume = box.volume();
  for (int64_t local = 0; local != volume; ++local) {
    int64_t rest = local, offset = 0, stride = 1;
    Extents point(view.size());
    for (unsigned d = view.size(); d-- != 0;) {
      point[d] = box.start[d] + rest % box.size[d];
      rest /= box.size[d];
      offset += point[d] * stride;
      stride *= view[d];
    }
    fn(point, offset, local);
  }
}

/// Gives the devices below `node` values that mean `values` (of the whole
/// tensor). Terms of a partial node are drawn anew for each replica.
void scatter(const PlacementNode &node, const Placement &placement,
             const Values &values, RandomPlacement &random, Shards &shards) {
  if (node.isLeaf()) {
    Box box = *placement.box(node.device);
    Values &shard = shards[node.device];
    shard.resize(box.volume());
    forEachElement(box, placement.view(),
                   [&](const Extents &, int64_t offset, int64_t local) {
                     shard[local] = values[offset];
                   });
    return;
  }
  if (node.kind != Kind::Partial) {
    for (const PlacementNode &child : node.children)
      scatter(child, placement, values, random, shards);
    return;
  }
  size_t parts = node.children.size();
  std::vector<Values> terms(parts, Values(values.size()));
  for (size_t i = 0; i != values.size(); ++i) {
    size_t last = random.below(parts);
    uint64_t rest = values[i];
    for (size_t p = 0; p != parts; ++p) {
      if (p == last)
        continue;
      if (node.reduction == Reduction::Sum) {
        terms[p][i] = random.bits();
        rest -= terms[p][i];
      } else {
        terms[p][i] = values[i] ? random.bits() % values[i] : 0;
      }
    }
    terms[last][i] = rest;
  }
  for (size_t p = 0; p != parts; ++p)
    scatter(node.children[p], placement, terms[p], random, shards);
}

/// The value that the devices below `node` hold of an element, the one given
/// if no window has it; false if replicas or windows differ.
bool gather(const PlacementNode &node, const Placement &placement,
            const Shards &shards, Box &region, const Extents &point,
            uint64_t &value) {
  if (node.isLeaf()) {
    Box box = *placement.box(node.device);
    int64_t local = 0;
    for (unsigned d = 0; d != point.size(); ++d)
      local = local * box.size[d] + point[d] - box.start[d];
    value = shards.at(node.device).at(local);
    return true;
  }
  if (node.kind == Kind::Split) {
    int64_t start = region.start[node.dim];
    bool fine = true;
    std::optional<uint64_t> first;
    for (auto [begin, size, child] :
         zip(node.partStarts(), node.sizes, node.children)) {
      region.start[node.dim] = start + begin;
      if (point[node.dim] < start + begin ||
          point[node.dim] >= start + begin + size)
        continue;
      fine &= gather(child, placement, shards, region, point, value);
      fine &= first.value_or(value) == value;
      first = value;
    }
    region.start[node.dim] = start;
    return fine && (first || !node.starts.empty());
  }
  for (auto [i, child] : enumerate(node.children)) {
    uint64_t own = value;
    if (!gather(child, placement, shards, region, point, own))
      return false;
    if (i == 0)
      value = own;
    else if (node.kind == Kind::Partial)
      value = combine(node.reduction, value, own);
    else if (value != own)
      return false;
  }
  return true;
}

int64_t linear(ArrayRef<int64_t> point, ArrayRef<int64_t> shape) {
  int64_t offset = 0;
  for (unsigned d = 0; d != point.size(); ++d)
    offset = offset * shape[d] + point[d];
  return offset;
}

/// Carries out a table.
Shards execute(const CellTable &table, const Shards &before) {
  Shards after;
  std::map<DeviceId, Extents> shapes;
  for (const Sender &sender : table.senders)
    shapes[sender.device] = sender.shape;
  for (const Receiver &receiver : table.receivers) {
    Values &shard = after[receiver.device];
    shard.assign(volumeOf(receiver.shape), 0xdeadbeef);
    for (const Cell &cell : receiver.cells)
      forEachElement(
          cell.box, receiver.shape,
          [&](const Extents &point, int64_t offset, int64_t) {
            uint64_t value = 0; // The identity of sum and of unsigned max.
            for (auto [i, source] : enumerate(cell.contributions)) {
              Extents there(point);
              for (unsigned d = 0; d != there.size(); ++d)
                there[d] += source.start[d] - cell.box.start[d];
              uint64_t own = before.at(source.peer)
                                 .at(linear(there, shapes.at(source.peer)));
              value = i == 0 ? own : combine(*table.reduction, value, own);
            }
            shard[offset] = value;
          });
  }
  return after;
}

/// Elements of `to` that a device does not hold in `from`, counted one by one.
int64_t missing(const Placement &from, const Placement &to, DeviceId device) {
  std::optional<Box> needed = to.box(device), held = from.box(device);
  std::vector<bool> has(volumeOf(to.view()), false);
  if (held)
    forEachElement(
        *held, from.view(),
        [&](const Extents &, int64_t offset, int64_t) { has[offset] = true; });
  int64_t count = 0;
  forEachElement(
      *needed, to.view(),
      [&](const Extents &, int64_t offset, int64_t) { count += !has[offset]; });
  return count;
}

struct Case {
  Extents shape;
  Placement from, to;
  Topology topology;
};

Case drawCase(RandomPlacement &random) {
  Case drawn;
  drawn.shape = random.shape();
  int64_t most = random.chance(30) ? 1 + random.below(16) : 1 + random.below(8);
  Reduction reduction = random.chance(70) ? Reduction::Sum : Reduction::Max;
  bool partial = random.chance(50), partialTo = random.chance(15);
  SmallVector<DeviceId> devices = random.devices(most);
  Extents view = random.view(drawn.shape);
  drawn.from = random.placement(view, devices, partial, reduction);
  // Half of the pairs keep the devices, and most the view: collectives.
  if (random.chance(50))
    devices = random.devices(most);
  if (random.chance(40))
    view = random.view(drawn.shape);
  drawn.to = random.placement(view, devices, partialTo, reduction);
  if (drawn.from.isPartial() && random.chance(15))
    drawn.to = drawn.from.withoutPartial();
  if (!drawn.to.isPartial() && random.chance(15))
    drawn.to = random.windows(drawn.to);
  if (random.chance(50)) {
    for (int64_t i = 0; i != most; ++i)
      drawn.topology.node.push_back(i * 2 / most);
  }
  return drawn;
}

/// The cells and contributions of the first receiver of each box.
int64_t piecesOfDifferentBoxes(const Step &step, const CellTable &table) {
  std::vector<Box> boxes;
  int64_t pieces = 0;
  for (const Receiver &receiver : table.receivers) {
    Box box = *step.to.box(receiver.device);
    if (llvm::is_contained(boxes, box))
      continue;
    boxes.push_back(std::move(box));
    for (const Cell &cell : receiver.cells)
      pieces += 1 + int64_t(cell.contributions.size());
  }
  return pieces;
}

/// What is wrong with an all-reduce that is divided by node; nullopt if nothing
/// is, or it can't be.
std::optional<std::string> checkDivided(const Step &step,
                                        const Topology &topology) {
  std::optional<GroupReduction> reduction = GroupReduction::of(step, topology);
  if (!reduction)
    return std::nullopt;
  std::optional<int64_t> count = reduction->membersByNode(topology);
  if (!count)
    return std::nullopt;
  for (int64_t &elements : reduction->elements)
    elements = (elements + *count - 1) / *count * *count;
  Step whole = reduction->asStep();
  return verifySteps(reduction->divideByNode(topology), whole.from, whole.to,
                     topology);
}

/// How many all-gathers and reduce-scatters, and all-to-alls, were divided by
/// node.
int dividedGathers = 0, dividedExchanges = 0;

/// What is wrong with an all-gather, a reduce-scatter or an all-to-all that is
/// divided by node, of these shards; nullopt if nothing is, or it can't be.
std::optional<std::string> checkDividedGather(const Step &step,
                                              const Topology &topology,
                                              const Shards &shards) {
  std::optional<NodeDivision> division = divideByNode(step, topology);
  if (!division)
    return std::nullopt;
  bool isExchange = step.kind == StepKind::AllToAll;
  ++(isExchange ? dividedExchanges : dividedGathers);
  CellTable first = cells(division->first, topology),
            second = cells(division->second, topology),
            whole = cells(step, topology);
  if (auto message =
          verifySteps({division->first, division->second}, division->first.from,
                      division->second.to, topology))
    return *message;
  Shards divided = execute(second, execute(first, shards));
  for (auto &[device, values] : execute(whole, shards))
    if (divided[device] != values)
      return "another result where it is divided by node";
  // Between nodes each byte goes to one device of a node, or as many do in
  // fewer messages: each device sends one to each other node.
  auto between = [&](const CellTable &table) {
    std::pair<int64_t, std::set<std::pair<DeviceId, DeviceId>>> result;
    for (const Receiver &receiver : table.receivers)
      for (const Cell &cell : receiver.cells)
        for (const Contribution &from : cell.contributions)
          if (topology.nodeOf(from.peer) != topology.nodeOf(receiver.device)) {
            result.first += cell.box.volume();
            result.second.insert({from.peer, receiver.device});
          }
    return result;
  };
  auto [all, messages] = between(whole);
  if (isExchange) {
    auto [crossed, fewer] = between(second);
    std::map<unsigned, int64_t> inNode;
    for (DeviceId device : groups(step, topology).front())
      ++inNode[topology.nodeOf(device)];
    auto places = int64_t(inNode.begin()->second);
    if (between(first).first != 0 || crossed != all ||
        int64_t(fewer.size()) * places != int64_t(messages.size()))
      return "other elements or messages between nodes where it is divided";
    return std::nullopt;
  }
  if (between(first).first + between(second).first >= all)
    return "no fewer elements between nodes where it is divided";
  return std::nullopt;
}

/// What is wrong with the resolution of a case; empty if nothing is.
std::string check(const Case &drawn, RandomPlacement &random,
                  std::map<StepKind, int> &kinds) {
  std::vector<Step> steps =
      resolve(drawn.shape, drawn.from, drawn.to, drawn.topology);
  if (steps != resolve(drawn.shape, drawn.from, drawn.to, drawn.topology))
    return "not deterministic";
  if (auto message = verifySteps(steps, drawn.from, drawn.to, drawn.topology))
    return *message;
  Values values(volumeOf(drawn.shape));
  for (uint64_t &value : values)
    value = random.bits();
  Shards shards;
  scatter(drawn.from.root(), drawn.from, values, random, shards);
  std::map<DeviceId, int64_t> received;
  int64_t sent = 0;
  for (const Step &step : steps) {
    CellTable table = cells(step, drawn.topology);
    if (table != cells(step, drawn.topology))
      return "table not deterministic";
    ++kinds[step.kind];
    if (step.kind == StepKind::AllReduce)
      if (auto message = checkDivided(step, drawn.topology))
        return *message;
    if (step.kind == StepKind::AllGather ||
        step.kind == StepKind::ReduceScatter || step.kind == StepKind::AllToAll)
      if (auto message = checkDividedGather(step, drawn.topology, shards))
        return *message;
    int64_t pieces = piecesOfDifferentBoxes(step, table);
    if (countPieces(step, drawn.topology, pieces) != pieces ||
        (pieces > 0 && countPieces(step, drawn.topology, pieces - 1) < pieces))
      return "pieces counted wrong";
    std::map<DeviceId, unsigned> groupOf;
    for (auto [i, group] : enumerate(table.groups))
      for (DeviceId device : group)
        if (!groupOf.try_emplace(device, i + 1).second)
          return "a device in two groups";
    bool grouped = step.kind != StepKind::SendRecv;
    for (const Receiver &receiver : table.receivers) {
      received[receiver.device] += table.elementsReceived(receiver.device);
      for (const Cell &cell : receiver.cells)
        for (const Contribution &source : cell.contributions)
          if (grouped && source.peer != receiver.device &&
              (!groupOf[source.peer] ||
               groupOf[source.peer] != groupOf[receiver.device]))
            return "bytes between groups";
    }
    for (const Sender &sender : table.senders)
      sent += table.elementsSent(sender.device);
    shards = execute(table, shards);
  }
  const Placement &to = drawn.to;
  for (const auto &shard : to.shards())
    if (int64_t(shards[shard.device].size()) != shard.box.volume())
      return "a shard of the wrong size";
  bool right = true;
  Box region = Box::whole(to.view());
  forEachElement(
      region, to.view(), [&](const Extents &point, int64_t offset, int64_t) {
        uint64_t value = values[offset];
        right &= gather(to.root(), to, shards, region, point, value) &&
                 value == values[offset];
      });
  if (!right)
    return "wrong values";
  int64_t total = 0;
  for (DeviceId device : to.devices()) {
    total += received[device];
    if (drawn.from.isPartial() || to.isPartial())
      continue;
    int64_t bound = missing(drawn.from, to, device);
    if (received[device] != bound)
      return "device " + std::to_string(device) + " receives " +
             std::to_string(received[device]) + " elements instead of " +
             std::to_string(bound);
    if (elementsMissing(drawn.from, to, device) != bound)
      return "wrong lower bound";
  }
  if (!drawn.from.isPartial() && sent != total)
    return "sent and received differ";
  return "";
}

int numCases() {
  const char *text = std::getenv("WHALE_RESOLVER_CASES");
  return text ? std::atoi(text) : 100000;
}

TEST(ResolverProperty, EveryResolutionIsRight) {
  std::map<StepKind, int> kinds;
  int count = numCases();
  for (int i = 0; i != count; ++i) {
    RandomPlacement random(i);
    Case drawn = drawCase(random);
    std::string wrong = check(drawn, random, kinds);
    ASSERT_EQ(wrong, "") << "case " << i << ": " << drawn.from.str() << " -> "
                         << drawn.to.str();
  }
  // Every kind must have been exercised.
  for (StepKind kind :
       {StepKind::LocalSlice, StepKind::AllReduce, StepKind::ReduceScatter,
        StepKind::AllGather, StepKind::AllToAll, StepKind::Broadcast,
        StepKind::SendRecv}) {
    RecordProperty(stringifyStepKind(kind).str(), kinds[kind]);
    EXPECT_GE(kinds[kind], count / 1000) << stringifyStepKind(kind).str();
  }
  RecordProperty("divided by node", dividedGathers);
  EXPECT_GE(dividedGathers, count / 10000);
  RecordProperty("exchanged by node", dividedExchanges);
}

/// Changes one row; false if the change means nothing.
bool mutate(CellTable &table, RandomPlacement &random) {
  std::vector<Receiver *> busy;
  for (Receiver &receiver : table.receivers)
    if (!receiver.cells.empty())
      busy.push_back(&receiver);
  if (busy.empty())
    return false;
  Receiver &receiver = *busy[random.below(busy.size())];
  size_t row = random.below(receiver.cells.size());
  Cell &cell = receiver.cells[row];
  switch (random.below(6)) {
  case 0: // Drop a row.
    receiver.cells.erase(receiver.cells.begin() + row);
    return true;
  case 1: // Have a row twice.
    receiver.cells.push_back(cell);
    return true;
  case 2:   // Shift where it goes.
  case 3: { // Shift where it comes from.
    bool source = random.chance(50);
    if (cell.box.start.empty() || (source && cell.contributions.empty()))
      return false;
    size_t d = random.below(cell.box.start.size());
    (source ? cell.contributions.front().start : cell.box.start)[d] +=
        random.chance(50) ? 1 : -1;
    return true;
  }
  case 4: // Drop a term.
    if (cell.contributions.empty())
      return false;
    cell.contributions.pop_back();
    return true;
  default: // Have a term twice.
    if (cell.contributions.empty())
      return false;
    cell.contributions.push_back(cell.contributions.front());
    return true;
  }
}

TEST(ResolverProperty, EveryMutationIsCaught) {
  int mutated = 0;
  for (int i = 0; mutated != 5000; ++i) {
    RandomPlacement random(1000000 + i);
    Case drawn = drawCase(random);
    for (const Step &step :
         resolve(drawn.shape, drawn.from, drawn.to, drawn.topology)) {
      CellTable table = cells(step, drawn.topology);
      ASSERT_EQ(verifyTable(step, table), std::nullopt);
      if (!mutate(table, random))
        continue;
      ASSERT_TRUE(verifyTable(step, table))
          << "case " << i << ": " << drawn.from.str() << " -> "
          << drawn.to.str();
      ++mutated;
    }
  }
}

/// The text of every random placement is read back.
TEST(ResolverProperty, TextRoundTrips) {
  for (int i = 0; i != 5000; ++i) {
    RandomPlacement random(2000000 + i);
    Case drawn = drawCase(random);
    Expected<Placement> again = Placement::parse(drawn.from.str());
    ASSERT_TRUE(bool(again)) << drawn.from.str() << toString(again.takeError());
    EXPECT_EQ(*again, drawn.from);
    EXPECT_TRUE(again->isEquivalent(again->canonical()));
    Placement windows = random.windows(drawn.to.withoutPartial());
    again = Placement::parse(windows.str());
    ASSERT_TRUE(bool(again)) << windows.str() << toString(again.takeError());
    EXPECT_EQ(*again, windows);
    EXPECT_TRUE(again->isEquivalent(again->canonical()));
    EXPECT_FALSE(again->withoutWindows().hasWindows());
  }
}

} // namespace
