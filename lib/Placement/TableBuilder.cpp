//===- TableBuilder.cpp - Which device sends which elements where ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds the receivers of a step's table from its flow. Cuts each receiver's
// box where the source's owners change, and decides for one element of each
// piece which terms it needs and which devices send them. Cost: the number of
// contributions, times the depth of the trees.
//
//===----------------------------------------------------------------------===//

#include "Flow.h"
#include "llvm/ADT/STLExtras.h"

#include <compare>
#include <map>
#include <set>

using namespace llvm;
using namespace whale;

static Extents shapeOf(const Flow &flow, const Shard &shard) {
  return flow.flat ? Extents{shard.box.volume()} : shard.box.size;
}

namespace {
/// What it costs a device to get elements from one of those that hold them. It
/// gets them from that of the least cost: itself, else one in its group, else
/// one in its node, else that which has the fewest elements to send so far,
/// else that of the lowest id. The members are compared in their order.
struct OwnerCost {
  bool isAnotherDevice, isInAnotherGroup, isInAnotherNode;
  /// Elements that the owner sends to others so far.
  int64_t sent;
  DeviceId owner;
  auto operator<=>(const OwnerCost &other) const = default;
};

/// An element, in coordinates of both views.
struct Point {
  ArrayRef<int64_t> from, to;
};

class TableBuilder {
public:
  TableBuilder(const Flow &flow, const Topology &topology,
               ArrayRef<SmallVector<DeviceId>> groups)
      : flow(flow), topology(topology), from(flow.from), to(flow.to) {
    for (auto [i, group] : llvm::enumerate(groups))
      for (DeviceId device : group)
        groupOf[device] = i;
    sent.resize(from.shards().size());
  }

  bool run(function_ref<bool(Receiver)> fn) {
    if (flow.flat)
      collectBreaks();
    for (unsigned leaf = 0; leaf != to.shards().size(); ++leaf)
      if (!fn(receiverOf(leaf)))
        return false;
    return true;
  }

  int64_t count(int64_t most) {
    std::set<std::pair<Extents, Extents>> counted;
    auto isNew = [&](const Box &box) {
      return counted.insert({box.start, box.size}).second;
    };
    int64_t pieces = 0;
    if (flow.flat || from.root().hasPartial || to.root().hasPartial) {
      run([&](const Receiver &receiver) {
        if (isNew(*flow.to.box(receiver.device)))
          for (const Cell &cell : receiver.cells)
            pieces += 1 + int64_t(cell.contributions.size());
        return pieces <= most;
      });
      return pieces;
    }
    // Each cell has one contribution.
    for (const Shard &shard : to.shards()) {
      if (shard.box.empty() || !isNew(shard.box))
        continue;
      int64_t cells = 1;
      for (const SmallVector<int64_t> &ends : cutsOf(shard.box))
        cells *= int64_t(ends.size()) - 1;
      pieces += 2 * cells;
      if (pieces > most)
        break;
    }
    return pieces;
  }

private:
  using Node = FlowTree::Node;
  using Kind = PlacementNode::Kind;
  /// A node of the source whose whole value each of several devices holds.
  using Term = const Node *;

  const Flow &flow;
  const Topology &topology;
  FlowTree from, to;
  DenseMap<DeviceId, unsigned> groupOf;
  /// The number of elements that each leaf of `from` sends to others so far.
  std::vector<int64_t> sent;
  std::vector<int64_t> breaks;
  /// What elements' terms were distributed to, by partial node of `to` and
  /// element: some megabytes, then they are found anew.
  static constexpr int64_t kMostShared = int64_t(1) << 18;
  std::map<std::pair<const Node *, Extents>, std::vector<SmallVector<Term>>>
      shares;
  int64_t sharedTerms = 0;

  Receiver receiverOf(unsigned leaf) {
    const Shard &shard = to.shards()[leaf];
    Receiver receiver{shard.device, shapeOf(flow, shard), {}};
    if (!shard.box.empty() && flow.flat)
      flatCells(leaf, receiver);
    else if (!shard.box.empty())
      boxCells(leaf, receiver);
    return receiver;
  }

  //===--------------------------------------------------------------------===//
  // Terms and owners of one element of one device
  //===--------------------------------------------------------------------===//

  static bool partialAt(const Node &node, Point point) {
    if (!node.hasPartial || node.kind() == Kind::Partial)
      return node.hasPartial;
    if (node.kind() == Kind::Split)
      return partialAt(node.childAt(point.from), point);
    return llvm::any_of(node.children, [&](const Node &child) {
      return partialAt(child, point);
    });
  }

  /// Calls `fn` with the leaves that hold the element below a node; that
  /// subtree must have no partial values there.
  template <typename Fn>
  static void forEachOwner(const Node &node, ArrayRef<int64_t> point, Fn &&fn) {
    if (node.isLeaf())
      return fn(node.firstLeaf);
    if (node.kind() == Kind::Split)
      return forEachOwner(node.childAt(point), point, fn);
    for (const Node &child : node.children)
      forEachOwner(child, point, fn);
  }

  /// Returns how many devices below `source` hold the element and need it below
  /// `target`.
  unsigned localOwners(const Node &source, const Node &target, Point point) {
    unsigned count = 0;
    forEachOwner(source, point.from, [&](unsigned leaf) {
      int other = to.leafOf(from.shards()[leaf].device);
      count += other >= 0 && target.covers(other) && to.holds(other, point.to);
    });
    return count;
  }

  /// Collects the terms whose reduction is the element's value, in the order of
  /// leaves. Of replicas that are themselves partial one is chosen for
  /// everything below `target`: their terms must not be mixed.
  void chooseTerms(const Node &source, const Node &target, Point point,
                   SmallVectorImpl<Term> &terms) {
    switch (source.kind()) {
    case Kind::Leaf:
      terms.push_back(&source);
      return;
    case Kind::Split:
      return chooseTerms(source.childAt(point.from), target, point, terms);
    case Kind::Partial:
      for (const Node &child : source.children)
        chooseTerms(child, target, point, terms);
      return;
    case Kind::Replicate:
      break;
    }
    if (!partialAt(source, point)) {
      terms.push_back(&source);
      return;
    }
    const Node *best = nullptr;
    unsigned most = 0;
    for (const Node &child : source.children) {
      unsigned local = localOwners(child, target, point);
      if (!best || local > most) {
        best = &child;
        most = local;
      }
    }
    chooseTerms(*best, target, point, terms);
  }

  /// Gives each of `terms` to a child of a partial target node: to one that
  /// owns it, else to one whose devices own it, else to the one with the fewest
  /// terms. The result depends on the element alone, so that all receivers
  /// agree.
  std::vector<SmallVector<Term>> distribute(const Node &target, Point point,
                                            ArrayRef<Term> terms) {
    SmallVector<unsigned> load(target.children.size(), 0);
    std::vector<SmallVector<Term>> byChild(target.children.size());
    // The children that own the term, usually few, with the number of their
    // owners.
    SmallVector<std::pair<unsigned, std::pair<unsigned, unsigned>>> scores;
    for (Term term : terms) {
      scores.clear();
      forEachOwner(*term, point.from, [&](unsigned leaf) {
        int other = to.leafOf(from.shards()[leaf].device);
        if (other < 0 || !target.covers(other))
          return;
        unsigned child = target.childOf(other);
        auto *score = llvm::find_if(
            scores, [&](auto &entry) { return entry.first == child; });
        if (score == scores.end())
          score = scores.insert(score, {child, {0, 0}});
        score->second.first += to.holds(other, point.to);
        score->second.second += 1;
      });
      unsigned best =
          scores.empty()
              ? llvm::min_element(load) - load.begin()
              : llvm::max_element(scores, [&](auto &a, auto &b) {
                  return std::make_tuple(a.second, load[b.first], b.first) <
                         std::make_tuple(b.second, load[a.first], a.first);
                })->first;
      ++load[best];
      byChild[best].push_back(term);
    }
    return byChild;
  }

  /// The terms of the element that each child of a partial target node holds;
  /// `terms` are those of the partial nodes above it, if there are some. All
  /// leaves that have the element ask for the same.
  const std::vector<SmallVector<Term>> &
  sharesOf(const Node &target, Point point,
           const std::optional<SmallVector<Term>> &terms) {
    auto [it, isNew] = shares.try_emplace({&target, Extents(point.to)});
    if (!isNew)
      return it->second;
    SmallVector<Term> own;
    if (terms)
      own = *terms;
    else
      chooseTerms(from.root(), target, point, own);
    sharedTerms += int64_t(own.size());
    it->second = distribute(target, point, own);
    return it->second;
  }

  /// Returns the terms of the element that leaf `leaf` of the target holds.
  SmallVector<Term> termsOf(unsigned leaf, Point point) {
    if (sharedTerms > kMostShared) {
      shares.clear();
      sharedTerms = 0;
    }
    std::optional<SmallVector<Term>> terms;
    const Node *node = &to.root();
    while (!node->isLeaf()) {
      unsigned child = node->childOf(leaf);
      if (node->kind() == Kind::Partial)
        terms = sharesOf(*node, point, terms)[child];
      node = &node->children[child];
    }
    if (!terms)
      chooseTerms(from.root(), *node, point, terms.emplace());
    return std::move(*terms);
  }

  /// Returns the leaf of `from` that sends the element of `term` to `device`.
  unsigned chooseOwner(Term term, DeviceId device, Point point) {
    int own = from.leafOf(device);
    if (own >= 0 && term->covers(own) && from.holds(own, point.from))
      return own;
    auto group = groupOf.find(device);
    unsigned node = topology.nodeOf(device);
    auto costOf = [&](unsigned leaf) {
      DeviceId owner = from.shards()[leaf].device;
      auto other = groupOf.find(owner);
      bool isSameGroup = group != groupOf.end() && other != groupOf.end() &&
                         group->second == other->second;
      return OwnerCost{owner != device, !isSameGroup,
                       topology.nodeOf(owner) != node, sent[leaf], owner};
    };
    // Most elements have one owner, of which no cost is asked.
    std::optional<unsigned> best;
    std::optional<OwnerCost> least;
    forEachOwner(*term, point.from, [&](unsigned leaf) {
      if (!best) {
        best = leaf;
        return;
      }
      if (!least)
        least = costOf(*best);
      if (OwnerCost cost = costOf(leaf); cost < *least) {
        best = leaf;
        least = cost;
      }
    });
    return *best;
  }

  /// Returns the cell of an element and of the `volume` - 1 others with the
  /// same owners.
  template <typename StartFn>
  Cell makeCell(unsigned leaf, Point point, int64_t volume, StartFn &&start) {
    Cell cell;
    DeviceId device = to.shards()[leaf].device;
    for (Term term : termsOf(leaf, point)) {
      unsigned owner = chooseOwner(term, device, point);
      DeviceId peer = from.shards()[owner].device;
      if (peer != device)
        sent[owner] += volume;
      cell.contributions.push_back({peer, start(owner)});
    }
    return cell;
  }

  //===--------------------------------------------------------------------===//
  // Which elements have the same owners
  //===--------------------------------------------------------------------===//

  /// Records where the parts of splits that overlap `box` end inside it.
  static void collectCuts(const Node &node, const Box &box,
                          MutableArrayRef<SmallVector<int64_t>> cuts) {
    if (!node.hasSplit)
      return;
    if (node.kind() != Kind::Split) {
      for (const Node &child : node.children)
        collectCuts(child, box, cuts);
      return;
    }
    int64_t dim = node.node->dim, first = box.start[dim],
            last = first + box.size[dim];
    unsigned begin = llvm::upper_bound(node.ends, first) - node.ends.begin();
    for (unsigned i = begin; i != node.children.size(); ++i) {
      if (node.begins[i] != node.ends[i])
        collectCuts(node.children[i], box, cuts);
      if (node.ends[i] >= last)
        break;
      cuts[dim].push_back(node.ends[i]);
    }
  }

  /// Where the cells of a box begin, by dimension, and where the last ends.
  SmallVector<SmallVector<int64_t>> cutsOf(const Box &box) const {
    unsigned rank = box.start.size();
    SmallVector<SmallVector<int64_t>> cuts(rank);
    collectCuts(from.root(), box, cuts);
    if (to.root().hasPartial)
      collectCuts(to.root(), box, cuts);
    for (unsigned d = 0; d != rank; ++d) {
      cuts[d].push_back(box.start[d]);
      cuts[d].push_back(box.start[d] + box.size[d]);
      llvm::sort(cuts[d]);
      cuts[d].erase(std::unique(cuts[d].begin(), cuts[d].end()), cuts[d].end());
    }
    return cuts;
  }

  void boxCells(unsigned leaf, Receiver &receiver) {
    const Box &box = to.shards()[leaf].box;
    SmallVector<SmallVector<int64_t>> cuts = cutsOf(box);
    unsigned rank = cuts.size();
    SmallVector<unsigned> index(rank, 0);
    while (true) {
      Extents point;
      Box part;
      for (unsigned d = 0; d != rank; ++d) {
        point.push_back(cuts[d][index[d]]);
        part.start.push_back(point[d] - box.start[d]);
        part.size.push_back(cuts[d][index[d] + 1] - point[d]);
      }
      Cell cell =
          makeCell(leaf, {point, point}, part.volume(), [&](unsigned owner) {
            Extents start(point);
            for (unsigned d = 0; d != rank; ++d)
              start[d] -= from.shards()[owner].box.start[d];
            return start;
          });
      cell.box = std::move(part);
      receiver.cells.push_back(std::move(cell));
      unsigned d = rank;
      while (d != 0 && ++index[d - 1] == cuts[d - 1].size() - 1)
        index[--d] = 0;
      if (d == 0)
        return;
    }
  }

  void collectBreaks() {
    auto add = [&](const Placement &placement) {
      for (const Shard &shard : placement.shards())
        for (auto [first, last] : runsOf(shard.box, placement.view())) {
          breaks.push_back(first);
          breaks.push_back(last);
        }
    };
    add(flow.from);
    if (flow.to.isPartial())
      add(flow.to);
    llvm::sort(breaks);
    breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
  }

  static Extents pointAt(int64_t offset, ArrayRef<int64_t> view) {
    Extents point(view.size());
    for (unsigned d = view.size(); d-- != 0;) {
      point[d] = offset % view[d];
      offset /= view[d];
    }
    return point;
  }

  void flatCells(unsigned leaf, Receiver &receiver) {
    int64_t local = 0;
    for (auto [first, last] : runsOf(to.shards()[leaf].box, flow.to.view())) {
      auto next = llvm::upper_bound(breaks, first);
      while (first != last) {
        int64_t end = next == breaks.end() ? last : std::min(last, *next++);
        Extents there = pointAt(first, flow.from.view());
        Extents here = pointAt(first, flow.to.view());
        Cell cell =
            makeCell(leaf, {there, here}, end - first, [&](unsigned owner) {
              const Box &box = from.shards()[owner].box;
              int64_t offset = 0;
              for (unsigned d = 0; d != there.size(); ++d)
                offset = offset * box.size[d] + there[d] - box.start[d];
              return Extents{offset};
            });
        cell.box = {{local}, {end - first}};
        local += end - first;
        first = end;
        append(receiver.cells, std::move(cell));
      }
    }
  }

  /// Adds a cell; merges it with the last one if the two are contiguous in the
  /// shard and on all peers.
  static void append(std::vector<Cell> &cells, Cell cell) {
    if (!cells.empty()) {
      Cell &last = cells.back();
      int64_t length = last.box.size[0];
      if (llvm::equal(last.contributions, cell.contributions,
                      [&](const Contribution &a, const Contribution &b) {
                        return a.peer == b.peer &&
                               a.start[0] + length == b.start[0];
                      })) {
        last.box.size[0] += cell.box.size[0];
        return;
      }
    }
    cells.push_back(std::move(cell));
  }
};
} // namespace

bool whale::isTableLarge(const Flow &flow) {
  // The bound on contributions: every receiver may need a term of every sender.
  constexpr size_t kMostPairs = size_t(1) << 25;
  return flow.from.shards().size() * flow.to.shards().size() > kMostPairs;
}

bool whale::buildReceivers(const Flow &flow, const Topology &topology,
                           ArrayRef<SmallVector<DeviceId>> groups,
                           function_ref<bool(Receiver)> fn) {
  return TableBuilder(flow, topology, groups).run(fn);
}

int64_t whale::countPieces(const Flow &flow, const Topology &topology,
                           ArrayRef<SmallVector<DeviceId>> groups,
                           int64_t most) {
  return TableBuilder(flow, topology, groups).count(most);
}

std::vector<Sender> whale::buildSenders(const Flow &flow) {
  std::vector<Sender> senders;
  for (const Shard &shard : flow.from.shards())
    senders.push_back({shard.device, shapeOf(flow, shard)});
  return senders;
}

CellTable whale::buildTable(const Flow &flow, const Topology &topology,
                            std::vector<SmallVector<DeviceId>> groups,
                            StepKind kind) {
  CellTable table;
  table.reduction =
      flow.from.isPartial() ? flow.from.reduction() : flow.to.reduction();
  table.senders = buildSenders(flow);
  buildReceivers(flow, topology, groups, [&](Receiver receiver) {
    table.receivers.push_back(std::move(receiver));
    return true;
  });
  table.groups = std::move(groups);
  table.kind = kind;
  return table;
}
