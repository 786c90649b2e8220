//===- Resolver.cpp - From one placement to another -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses the steps from one placement to another: one collective if there is
// one; else the cheapest of a few plans of two or three steps, by the bytes
// that the busiest device receives in each step; else one batch of messages.
// Cost: a plan is priced by building its tables, unless they are too large.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Resolver.h"
#include "Flow.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace whale;
using Node = PlacementNode;
using Kind = PlacementNode::Kind;

namespace {
/// Elements received: by the busiest device, summed over the steps; by all.
struct Cost {
  int64_t busiest = 0, total = 0;
  size_t steps = 0;
  auto operator<=>(const Cost &other) const = default;
};

/// A plan and its cost.
struct Plan {
  Cost cost;
  std::vector<Step> steps;
};
} // namespace

static Cost costOf(const Flow &step, const Match &match,
                   const Topology &topology) {
  Cost cost{0, 0, 1};
  auto add = [&](int64_t received) {
    cost.busiest = std::max(cost.busiest, received);
    cost.total += received;
  };
  if (match.kind == StepKind::LocalSlice)
    return cost;
  if (!step.from.isPartial() && !step.to.isPartial()) {
    for (DeviceId device : step.to.devices())
      add(elementsMissing(step.from, step.to, device));
    return cost;
  }
  if (match.kind == StepKind::AllReduce ||
      match.kind == StepKind::ReduceScatter) {
    for (ArrayRef<DeviceId> group : match.groups) {
      int64_t members = group.size();
      // In an all-reduce all members hold the same box before and after.
      Extents parts;
      if (match.kind == StepKind::AllReduce && members != 0)
        parts = Placement::evenSizes(volumeOf(step.to.localView(group.front())),
                                     members);
      for (auto [i, device] : llvm::enumerate(group)) {
        int64_t after = volumeOf(step.to.localView(device));
        if (match.kind == StepKind::ReduceScatter) {
          add((members - 1) * after);
          continue;
        }
        int64_t own = parts[i];
        add((members - 1) * own + after - own);
      }
    }
    return cost;
  }
  // Too large to be priced: chosen only if there is no other plan.
  if (isTableLarge(step))
    return {std::numeric_limits<int64_t>::max() / 16,
            std::numeric_limits<int64_t>::max() / 16, 1};
  buildReceivers(step, topology, match.groups, [&](const Receiver &receiver) {
    int64_t received = 0;
    for (const Cell &cell : receiver.cells)
      for (const Contribution &contribution : cell.contributions)
        if (contribution.peer != receiver.device)
          received += cell.box.volume();
    add(received);
    return true;
  });
  return cost;
}

//===----------------------------------------------------------------------===//
// Placements between
//===----------------------------------------------------------------------===//

/// Returns the tree that gives each device its box of `region`, if the boxes
/// result from cuts through the whole region, one dimension after the other.
static std::optional<Node> treeOf(const Box &region, ArrayRef<Shard> shards) {
  if (shards.size() == 1)
    return shards.front().box == region
               ? std::optional(Node::leaf(shards.front().device))
               : std::nullopt;
  if (llvm::all_of(shards, [&](auto &shard) { return shard.box == region; })) {
    SmallVector<DeviceId> devices;
    for (const Shard &shard : shards)
      devices.push_back(shard.device);
    return Node::replicate(devices);
  }
  for (unsigned d = 0, e = region.start.size(); d != e; ++d) {
    // Cut at each position that no box crosses.
    std::vector<const Shard *> order;
    for (const Shard &shard : shards)
      order.push_back(&shard);
    llvm::sort(order, [&](const Shard *a, const Shard *b) {
      return std::tie(a->box.start[d], a) < std::tie(b->box.start[d], b);
    });
    std::vector<std::vector<Shard>> parts;
    Extents sizes;
    int64_t begin = region.start[d], end = begin;
    for (const Shard *shard : order) {
      if (parts.empty() || (shard->box.start[d] == end && end != begin)) {
        if (!parts.empty())
          sizes.push_back(end - begin);
        begin = end;
        parts.emplace_back();
      }
      end = std::max(end, shard->box.start[d] + shard->box.size[d]);
      parts.back().push_back(*shard);
    }
    sizes.push_back(end - begin);
    if (parts.size() == 1 || end != region.start[d] + region.size[d])
      continue;
    std::vector<Node> children;
    Box part = region;
    for (auto [size, own] : llvm::zip(sizes, parts)) {
      part.size[d] = size;
      std::optional<Node> child = treeOf(part, own);
      if (!child)
        break;
      children.push_back(std::move(*child));
      part.start[d] += size;
    }
    if (children.size() == parts.size())
      return Node::split(d, sizes, std::move(children));
  }
  return std::nullopt;
}

/// Returns the placement in which each device of `to` has the elements that it
/// needs and already holds; nullopt if that is not a placement.
static std::optional<Placement> keptPart(const Placement &from,
                                         const Placement &to) {
  std::vector<Shard> shards;
  for (const Shard &shard : to.shards()) {
    std::optional<Box> held = from.box(shard.device);
    std::optional<Box> kept = held ? held->intersect(shard.box) : std::nullopt;
    if (!kept)
      return std::nullopt;
    shards.push_back({shard.device, *kept});
  }
  std::optional<Node> tree = treeOf(Box::whole(to.view()), shards);
  if (!tree)
    return std::nullopt;
  Expected<Placement> placement = Placement::create(to.view(), *tree);
  if (placement)
    return *placement;
  consumeError(placement.takeError());
  return std::nullopt;
}

static void replicateToPartial(Node &node) {
  if (node.kind == Kind::Replicate) {
    node.kind = Kind::Partial;
    node.reduction = Reduction::Sum;
  }
  for (Node &child : node.children)
    replicateToPartial(child);
}

/// Makes all parts empty in every split of `dim` below.
static void starve(Node &node, int64_t dim) {
  if (node.kind == Kind::Split && node.dim == dim)
    node.sizes.assign(node.sizes.size(), 0);
  for (Node &child : node.children)
    starve(child, dim);
}

/// Among replicas with different trees, gives all elements to the one with the
/// most terms in `from`.
static void keepOneReplica(Node &node, Box &box, int64_t dim,
                           const Placement &from) {
  if (node.kind == Kind::Split) {
    int64_t start = box.start[node.dim], extent = box.size[node.dim];
    for (auto [size, child] : llvm::zip(node.sizes, node.children)) {
      box.size[node.dim] = size;
      keepOneReplica(child, box, dim, from);
      box.start[node.dim] += size;
    }
    box.start[node.dim] = start;
    box.size[node.dim] = extent;
    return;
  }
  if (node.kind != Kind::Replicate)
    return;
  unsigned best = 0, most = 0;
  for (auto [i, child] : llvm::enumerate(node.children)) {
    unsigned known = llvm::count_if(child.devices(), [&](DeviceId device) {
      return from.contains(device);
    });
    if (known > most) {
      best = i;
      most = known;
    }
  }
  Extents sizes(node.children.size(), 0);
  sizes[best] = box.size[dim];
  for (auto [i, child] : llvm::enumerate(node.children))
    if (i == best)
      keepOneReplica(child, box, dim, from);
    else
      starve(child, dim);
  node.kind = Kind::Split;
  node.dim = dim;
  node.sizes = sizes;
}

/// Returns `to` with its replicas turned into parts along `dim`, so that each
/// element has one owner: among the replicas that hold terms in `from`, or
/// among all.
static Placement withUniqueOwners(const Placement &to, int64_t dim,
                                  const Placement &from) {
  Node node = to.root();
  replicateToPartial(node);
  Placement marked = Placement::get(to.view(), node);
  auto share = [&](ArrayRef<DeviceId> devices, const Box &box) {
    SmallVector<DeviceId> owners;
    for (DeviceId device : devices)
      if (std::optional<Box> held = from.box(device);
          held && held->overlaps(box))
        owners.push_back(device);
    if (owners.empty())
      owners.assign(devices.begin(), devices.end());
    Extents even = Placement::evenSizes(box.size[dim], owners.size());
    Extents sizes;
    for (DeviceId device : devices) {
      auto owner = llvm::find(owners, device);
      sizes.push_back(owner == owners.end() ? 0 : even[owner - owners.begin()]);
    }
    return Node::split(dim, sizes, devices);
  };
  if (std::optional<Placement> unique = marked.withPartialsReplaced(share))
    return *unique;
  node = to.root();
  Box box = Box::whole(to.view());
  keepOneReplica(node, box, dim, from);
  return Placement::get(to.view(), node);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

namespace {
class Resolver {
public:
  explicit Resolver(const Topology &topology) : topology(topology) {}

  Plan resolve(const Placement &from, const Placement &to) const {
    if (from.isEquivalent(to))
      return {};
    // Reduce once, then send to all windows that contain the element.
    if (from.isPartial() && to.hasWindows()) {
      Placement parts = to.withoutWindows();
      return between(append(resolve(from, parts), single(parts, to)), from, to);
    }
    Flow flow(from, to);
    std::shared_ptr<const Match> known = findMatch(from, to, topology);
    const Match &match = *known;
    Step step{match.kind, from, to};
    if (step.kind != StepKind::SendRecv || flow.flat || to.isPartial())
      return {costOf(flow, match, topology), {step}};
    if (!from.isPartial())
      return sliceAndGather(flow, step, match);
    if (flow.from.rank() == 0) {
      // A scalar has no dimension to split among owners; its view [1] has.
      flow.from = *flow.from.withView({1});
      flow.to = *flow.to.withView({1});
    }
    return reduceFirst(flow, step, match);
  }

private:
  const Topology &topology;

  Plan single(const Placement &from, const Placement &to) const {
    if (from.isEquivalent(to))
      return {};
    std::shared_ptr<const Match> match = findMatch(from, to, topology);
    Step step{match->kind, from, to};
    return {costOf(Flow(from, to), *match, topology), {step}};
  }

  static Plan append(Plan plan, const Plan &rest) {
    plan.cost.busiest += rest.cost.busiest;
    plan.cost.total += rest.cost.total;
    plan.cost.steps += rest.cost.steps;
    llvm::append_range(plan.steps, rest.steps);
    return plan;
  }

  /// Makes consecutive steps agree: a plan that was computed in another view,
  /// or from an equivalent placement, is rewritten to the caller's placements.
  static Plan between(Plan plan, const Placement &from, const Placement &to) {
    if (!plan.steps.empty()) {
      plan.steps.front().from = from;
      plan.steps.back().to = to;
    }
    return plan;
  }

  /// Keeps parts, then gathers them: moves the same bytes as messages would.
  Plan sliceAndGather(const Flow &flow, const Step &step,
                      const Match &match) const {
    Plan direct{costOf(flow, match, topology), {step}};
    std::optional<Placement> kept = keptPart(flow.from, flow.to);
    if (!kept)
      return direct;
    Plan second = single(*kept, flow.to);
    if (second.steps.empty() ||
        second.steps.front().kind != StepKind::AllGather)
      return direct;
    return between(append(single(flow.from, *kept), second), step.from,
                   step.to);
  }

  /// For a partial value that no collective turns into `to`: reduces it to a
  /// placement with unique owners and sends it from there.
  Plan reduceFirst(const Flow &flow, const Step &step,
                   const Match &match) const {
    Plan best{costOf(flow, match, topology), {step}};
    auto consider = [&](const Placement &middle) {
      // The reduction is a single step, so a value is rounded once.
      Plan first = single(flow.from, middle);
      if (first.cost.busiest > best.cost.busiest)
        return;
      Plan plan = append(std::move(first), resolve(middle, flow.to));
      if (plan.cost < best.cost)
        best = between(std::move(plan), step.from, step.to);
    };
    ArrayRef<int64_t> view = flow.from.view();
    bool scalar = llvm::all_of(view, [](int64_t extent) { return extent < 2; });
    for (int64_t dim = 0; dim != int64_t(view.size()); ++dim) {
      if (view[dim] < 2 && !(scalar && dim == 0))
        continue;
      consider(withUniqueOwners(flow.to, dim, flow.from));
      if (std::optional<Placement> middle = flow.from.withPartialSplit(dim))
        consider(*middle);
    }
    consider(flow.from.withoutPartial());
    return best;
  }
};
} // namespace

std::vector<Step> whale::resolve(ArrayRef<int64_t> shape, const Placement &from,
                                 const Placement &to,
                                 const Topology &topology) {
  assert(from.isViewOf(shape) && to.isViewOf(shape) &&
         "placements of another tensor");
  assert(!from.hasWindows() && "no value is made in windows");
  return Resolver(topology).resolve(from, to).steps;
}
