//===- Groups.cpp - Recognize the collective of a step --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the collective that performs a step, and its groups. Collectives are
// recognized by the boxes that devices hold before and after, not by the shape
// of the trees: devices are put in buckets by their boxes, and a bucket is a
// group if its parts tile the whole. Replicas of a group run side by side.
// Cost: sorting the devices of each node of the tree.
//
//===----------------------------------------------------------------------===//

#include "CoverBoxes.h"
#include "Flow.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace llvm;
using namespace whale;
using Kind = PlacementNode::Kind;
using Group = SmallVector<DeviceId>;

namespace {
/// A device of `from` with its boxes before and after; `to` is empty if the
/// device is not in the placement after the step.
struct Member {
  DeviceId device;
  unsigned node;
  Box from, to;
};

struct BoxLess {
  bool operator()(const Box &a, const Box &b) const {
    return std::tie(a.start, a.size) < std::tie(b.start, b.size);
  }
};
} // namespace

/// Makes all empty boxes equal, so that boxes can be compared.
static Box normalized(Box box) {
  if (box.empty()) {
    box.start.assign(box.start.size(), 0);
    box.size.assign(box.size.size(), 0);
  }
  return box;
}

/// Sorts the replicas of each part so that replicas at the same position in the
/// lists of several parts are in one node where possible.
static void sortByNode(std::vector<const Member *> &members) {
  // Members are in the order of the leaves.
  llvm::sort(members, [](const Member *a, const Member *b) {
    return std::tie(a->node, a) < std::tie(b->node, b);
  });
}

/// Makes group i of the i-th members of all lists; false if lengths differ.
static bool deal(std::vector<std::vector<const Member *>> &lists,
                 std::vector<std::vector<const Member *>> &groups) {
  size_t count = lists.front().size();
  for (auto &list : lists) {
    if (list.size() != count)
      return false;
    sortByNode(list);
  }
  for (size_t i = 0; i != count; ++i) {
    std::vector<const Member *> &group = groups.emplace_back();
    for (auto &list : lists)
      group.push_back(list[i]);
  }
  return true;
}

namespace {
/// Recognizes the collective of the devices below one node of `from`.
class Matcher {
public:
  Matcher(const Flow &flow, const Topology &topology) : from(flow.from) {
    for (const Shard &shard : flow.from.shards()) {
      std::optional<Box> to = flow.to.box(shard.device);
      members.push_back({shard.device, topology.nodeOf(shard.device),
                         normalized(shard.box),
                         normalized(to ? *to
                                       : Box{Extents(flow.to.rank(), 0),
                                             Extents(flow.to.rank(), 0)})});
    }
  }

  /// Returns nullopt if there is no collective. A match without groups whose
  /// kind is not LocalSlice means that nothing is to be done.
  std::optional<Match> run() {
    Box region = Box::whole(from.rootView());
    return matchNode(from.root(), region);
  }

private:
  /// A FlowTree with its view.
  struct Tree : FlowTree {
    Extents view;
    explicit Tree(const Placement &placement)
        : FlowTree(placement), view(placement.view()) {}
    ArrayRef<int64_t> rootView() const { return view; }
  };
  using Node = FlowTree::Node;

  Tree from;
  std::vector<Member> members;

  static void add(Match &match, ArrayRef<const Member *> group) {
    Group devices;
    for (const Member *member : group)
      devices.push_back(member->device);
    match.groups.push_back(std::move(devices));
  }

  std::optional<Match> matchNode(const Node &node, Box &region) {
    ArrayRef<Member> range = ArrayRef<Member>(members).slice(
        node.firstLeaf, node.endLeaf - node.firstLeaf);
    if (node.hasPartial) {
      if (std::optional<Match> match = matchReduce(node))
        return match;
    } else {
      if (llvm::all_of(range, [](const Member &m) { return m.from == m.to; }))
        return Match{};
      if (llvm::all_of(range,
                       [](const Member &m) { return m.from.contains(m.to); }))
        return Match{StepKind::LocalSlice, {}};
      if (std::optional<Match> match = matchGather(range))
        return match;
      if (std::optional<Match> match = matchExchange(range, region))
        return match;
    }
    if (node.kind() != Kind::Replicate && node.kind() != Kind::Split)
      return std::nullopt;
    return matchChildren(node, region);
  }

  /// Matches children that exchange nothing with each other.
  std::optional<Match> matchChildren(const Node &node, Box &region) {
    Match all;
    std::optional<StepKind> kind;
    bool split = node.kind() == Kind::Split;
    int64_t dim = node.node->dim;
    Box part = region;
    for (auto [i, child] : llvm::enumerate(node.children)) {
      if (split) {
        part.size[dim] = node.node->sizes[i];
        for (unsigned leaf = child.firstLeaf; leaf != child.endLeaf; ++leaf)
          if (!part.contains(members[leaf].to))
            return std::nullopt;
      }
      std::optional<Match> match = matchNode(child, part);
      if (split)
        part.start[dim] += part.size[dim];
      if (!match)
        return std::nullopt;
      if (match->groups.empty() && match->kind != StepKind::LocalSlice)
        continue;
      if (kind.value_or(match->kind) != match->kind)
        return std::nullopt;
      kind = match->kind;
      llvm::append_range(all.groups, match->groups);
    }
    if (kind)
      all.kind = *kind;
    return all;
  }

  /// All-gather: all devices that need one box hold parts that tile it.
  std::optional<Match> matchGather(ArrayRef<Member> range) {
    MapVector<const Box *, std::vector<const Member *>> buckets;
    std::map<Box, const Box *, BoxLess> names;
    for (const Member &member : range) {
      if (member.to.empty() && !member.from.empty())
        return std::nullopt;
      if (!member.to.empty())
        buckets[names.try_emplace(member.to, &member.to).first->second]
            .push_back(&member);
    }
    Match match{StepKind::AllGather, {}};
    for (auto &[box, bucket] : buckets) {
      std::vector<std::vector<const Member *>> lists;
      std::map<Box, unsigned, BoxLess> listOf;
      std::vector<const Member *> empty;
      SmallVector<const Box *> parts;
      for (const Member *member : bucket) {
        if (member->from.empty()) {
          empty.push_back(member);
          continue;
        }
        auto [it, fresh] = listOf.try_emplace(member->from, lists.size());
        if (fresh) {
          lists.emplace_back();
          parts.push_back(&member->from);
        }
        lists[it->second].push_back(member);
      }
      if (lists.empty() || (lists.size() == 1 && !empty.empty()) ||
          !tiles(parts, *box))
        return std::nullopt;
      if (lists.size() == 1)
        continue;
      std::vector<std::vector<const Member *>> groups;
      if (!deal(lists, groups) || empty.size() % groups.size() != 0)
        return std::nullopt;
      sortByNode(empty);
      for (auto [i, member] : llvm::enumerate(empty))
        groups[i * groups.size() / empty.size()].push_back(member);
      for (const auto &group : groups)
        add(match, group);
    }
    return match;
  }

  /// All-to-all: the devices that hold a region exchange parts of it.
  std::optional<Match> matchExchange(ArrayRef<Member> range,
                                     const Box &region) {
    // Members with the same boxes before and after are replicas.
    std::map<std::pair<Box, Box>, unsigned,
             decltype([](const auto &a, const auto &b) {
               BoxLess less;
               return less(a.first, b.first) ||
                      (!less(b.first, a.first) && less(a.second, b.second));
             })>
        listOf;
    std::vector<std::vector<const Member *>> lists;
    std::map<Box, bool, BoxLess> distinct;
    int64_t volume = 0;
    for (const Member &member : range) {
      if (distinct.try_emplace(member.from, true).second)
        volume += member.from.volume();
      if (member.from == member.to)
        continue;
      auto [it, fresh] =
          listOf.try_emplace({member.from, member.to}, lists.size());
      if (fresh)
        lists.emplace_back();
      lists[it->second].push_back(&member);
    }
    // Boxes that cover the region and have its volume in total do not overlap.
    if (volume != region.volume())
      return std::nullopt;
    EquivalenceClasses<unsigned> classes;
    for (unsigned i = 0; i != lists.size(); ++i) {
      classes.insert(i);
      for (unsigned j = 0; j != lists.size(); ++j)
        if (lists[i].front()->from.overlaps(lists[j].front()->to))
          classes.unionSets(i, j);
    }
    Match match{StepKind::AllToAll, {}};
    for (unsigned i = 0; i != lists.size(); ++i) {
      if (classes.getLeaderValue(i) != i)
        continue;
      std::vector<std::vector<const Member *>> own;
      SmallVector<const Box *> before, after;
      std::map<Box, bool, BoxLess> parts;
      for (unsigned j = 0; j != lists.size(); ++j)
        if (classes.isEquivalent(i, j)) {
          own.push_back(lists[j]);
          before.push_back(&lists[j].front()->from);
          after.push_back(&lists[j].front()->to);
          // A part that two members share rules out an exchange of parts.
          if (!before.back()->empty() &&
              !parts.try_emplace(*before.back(), true).second)
            return std::nullopt;
        }
      std::vector<std::vector<const Member *>> groups;
      if (own.size() == 1 || !coverAlike(before, after) || !deal(own, groups))
        return std::nullopt;
      for (const auto &group : groups)
        add(match, group);
    }
    return match;
  }

  /// The partial node above a leaf, if any, and the child of it that the leaf
  /// is below.
  struct Term {
    const Node *partial = nullptr;
    unsigned child = 0;
  };

  /// The terms of the leaves below a node; false if partial nodes are nested.
  static bool collectTerms(const Node &node, Term term,
                           std::vector<Term> &terms) {
    if (node.isLeaf())
      terms.push_back(term);
    if (node.kind() == Kind::Partial && term.partial)
      return false;
    for (auto [i, child] : llvm::enumerate(node.children)) {
      Term below =
          node.kind() == Kind::Partial ? Term{&node, unsigned(i)} : term;
      if (!collectTerms(child, below, terms))
        return false;
    }
    return true;
  }

  /// Reductions: devices that hold the terms of one box end with it or with
  /// parts of it.
  std::optional<Match> matchReduce(const Node &node) {
    std::vector<Term> termOfLeaf;
    if (!collectTerms(node, {}, termOfLeaf))
      return std::nullopt;
    struct Terms {
      const Node *partial;
      const Box *box;
      std::vector<std::vector<const Member *>> lists;
    };
    std::vector<Terms> all;
    std::map<std::pair<unsigned, Box>, unsigned,
             decltype([](const auto &a, const auto &b) {
               return a.first != b.first ? a.first < b.first
                                         : BoxLess()(a.second, b.second);
             })>
        index;
    for (auto [i, term] : llvm::enumerate(termOfLeaf)) {
      const Member &member = members[node.firstLeaf + i];
      if (member.from.empty() || !term.partial) {
        if (member.from != member.to)
          return std::nullopt;
        continue;
      }
      auto [it, fresh] =
          index.try_emplace({term.partial->firstLeaf, member.from}, all.size());
      if (fresh)
        all.push_back({term.partial, &member.from,
                       std::vector<std::vector<const Member *>>(
                           term.partial->children.size())});
      all[it->second].lists[term.child].push_back(&member);
    }
    Match match;
    std::optional<StepKind> kind;
    for (Terms &terms : all) {
      std::vector<std::vector<const Member *>> groups;
      if (!deal(terms.lists, groups))
        return std::nullopt;
      for (const auto &group : groups) {
        SmallVector<const Box *> after;
        for (const Member *member : group)
          after.push_back(&member->to);
        StepKind own = StepKind::ReduceScatter;
        if (llvm::all_of(after, [&](auto *b) { return *b == *terms.box; }))
          own = StepKind::AllReduce;
        else if (!tiles(after, *terms.box))
          return std::nullopt;
        if (kind.value_or(own) != own)
          return std::nullopt;
        kind = own;
        add(match, group);
      }
    }
    if (kind)
      match.kind = *kind;
    return match;
  }
};
} // namespace

/// Broadcast: owners of whole boxes send them to devices that hold nothing.
static std::optional<Match> matchBroadcast(const Flow &flow,
                                           const Topology &topology) {
  std::map<Box, std::vector<DeviceId>, BoxLess> holders;
  for (const Shard &shard : flow.from.shards())
    if (!shard.box.empty())
      holders[shard.box].push_back(shard.device);
  Match match{StepKind::Broadcast, {}};
  DenseMap<DeviceId, unsigned> groupOf;
  bool kept = false;
  for (const Shard &shard : flow.to.shards()) {
    if (shard.box.empty())
      continue;
    std::optional<Box> held = flow.from.box(shard.device);
    if (held && !held->empty()) {
      if (*held != shard.box)
        return std::nullopt;
      continue;
    }
    auto roots = holders.find(shard.box);
    if (roots == holders.end())
      return std::nullopt;
    auto rank = [&](DeviceId root) {
      auto it = groupOf.find(root);
      return std::make_tuple(
          topology.nodeOf(root) != topology.nodeOf(shard.device),
          it == groupOf.end() ? 1 : match.groups[it->second].size(), root);
    };
    DeviceId root =
        *llvm::min_element(roots->second, [&](DeviceId a, DeviceId b) {
          return rank(a) < rank(b);
        });
    auto [it, fresh] = groupOf.try_emplace(root, match.groups.size());
    if (fresh)
      match.groups.push_back({root});
    match.groups[it->second].push_back(shard.device);
    kept |= flow.to.holds(root) || match.groups[it->second].size() > 2;
  }
  // One sender with one receiver is a message, not a broadcast.
  if (!kept)
    return std::nullopt;
  return match;
}

Match whale::matchStep(const Flow &flow, const Topology &topology) {
  // The view of a scalar has no empty box for a device that holds nothing; the
  // view [1] has one.
  if (flow.from.rank() == 0 && flow.to.rank() == 0)
    return matchStep(Flow(*flow.from.withView({1}), *flow.to.withView({1})),
                     topology);
  if (flow.flat || flow.to.isPartial())
    return matchTraffic(flow, topology);
  bool known = llvm::all_of(flow.to.shards(), [&](const Shard &shard) {
    return shard.box.empty() || flow.from.contains(shard.device);
  });
  if (known) {
    if (std::optional<Match> match = Matcher(flow, topology).run()) {
      if (match->groups.empty())
        match->kind = StepKind::LocalSlice;
      // Terms without elements: a slice reduces nothing, so this becomes a
      // batch of no messages.
      if (match->kind == StepKind::LocalSlice && flow.from.isPartial())
        match->kind = StepKind::SendRecv;
      return *match;
    }
  }
  if (!flow.from.isPartial())
    if (std::optional<Match> match = matchBroadcast(flow, topology))
      return *match;
  return {};
}
