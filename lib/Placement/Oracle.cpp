//===- Oracle.cpp - Verify tables of cells --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifies a table of cells against the placements of its step. In: the step
// and its table. Out: nullopt, or the first error. The idea: along each
// dimension, elements between two neighbouring starts or ends of boxes are in
// the same boxes, so one element of each such piece is checked: that it is
// written once, from devices that hold it, and that its terms make up the
// value. Uses the trees alone, none of the code that builds tables. Cost: the
// number of pieces, times the number of devices.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Oracle.h"
#include "Flow.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace llvm;
using namespace whale;
using Kind = PlacementNode::Kind;

namespace {
/// A rectangle of global elements and its start in a shard.
struct Piece {
  Box global;
  Extents local;
};

/// The terms of an element on a device, with multiplicity. The key is the node
/// of the source tree whose value the term is: the root or a child of a partial
/// node.
using Terms = std::map<const FlowTree::Node *, int>;

class Oracle {
public:
  Oracle(const Step &step, const CellTable &table)
      : step(step), table(table), flow(step.from, step.to), from(flow.from),
        to(flow.to) {
    noteValues(from.root(), &from.root());
  }

  std::optional<std::string> run() {
    if (step.from.hasWindows())
      return "a value is taken from windows";
    if (!checkDevices() || !locateCells() || !paint() || !checkValues())
      return message;
    return std::nullopt;
  }

private:
  using Node = FlowTree::Node;

  const Step &step;
  const CellTable &table;
  Flow flow;
  FlowTree from, to;
  std::string message;
  /// For each leaf of `from`, the node whose value the leaf holds.
  std::vector<const Node *> valueOf;

  /// A cell in global coordinates.
  struct GlobalCell {
    unsigned leaf;
    Box box;
    const Cell *cell;
  };
  std::vector<GlobalCell> globalCells;
  /// Per dimension, where any box starts or ends. The elements between two
  /// neighbours are in the same boxes, so only the first of them is checked.
  SmallVector<std::vector<int64_t>> cuts;
  /// The cell that writes each such element of each leaf of `to`.
  std::vector<std::vector<const Cell *>> written;

  template <typename Fn>
  bool fail(Fn &&print) {
    raw_string_ostream os(message);
    os << stringifyStepKind(step.kind) << ": ";
    print(os);
    return false;
  }

  static void show(raw_ostream &os, ArrayRef<int64_t> point) {
    os << '[';
    llvm::interleaveComma(point, os);
    os << ']';
  }

  void noteValues(const Node &node, const Node *value) {
    if (node.isLeaf())
      valueOf.push_back(value);
    for (const Node &child : node.children)
      noteValues(child, node.kind() == Kind::Partial ? &child : value);
  }

  //===--------------------------------------------------------------------===//
  // Coordinates
  //===--------------------------------------------------------------------===//

  Extents extents() const {
    if (flow.flat)
      return {volumeOf(flow.to.view())};
    return Extents(flow.to.view());
  }

  std::vector<Piece> piecesOf(const Shard &shard,
                              const Placement &owner) const {
    std::vector<Piece> pieces;
    if (shard.box.empty())
      return pieces;
    if (!flow.flat)
      return {{shard.box, Extents(shard.box.start.size(), 0)}};
    int64_t local = 0;
    for (auto [first, last] : runsOf(shard.box, owner.view())) {
      pieces.push_back({{{first}, {last - first}}, {local}});
      local += last - first;
    }
    return pieces;
  }

  Extents shapeOf(const Shard &shard) const {
    return flow.flat ? Extents{shard.box.volume()} : shard.box.size;
  }

  /// Converts a global point to coordinates of a placement's own view.
  Extents pointIn(const Placement &placement, ArrayRef<int64_t> point) const {
    if (!flow.flat)
      return Extents(point);
    Extents own(placement.rank());
    int64_t offset = point[0];
    for (unsigned d = own.size(); d-- != 0;) {
      own[d] = offset % placement.view()[d];
      offset /= placement.view()[d];
    }
    return own;
  }

  //===--------------------------------------------------------------------===//
  // Checks
  //===--------------------------------------------------------------------===//

  bool checkDevices() {
    if (table.receivers.size() != to.shards().size())
      return fail([&](auto &os) {
        os << table.receivers.size() << " receivers for " << to.shards().size()
           << " devices";
      });
    for (auto [receiver, shard] : llvm::zip(table.receivers, to.shards()))
      if (receiver.device != shard.device || receiver.shape != shapeOf(shard))
        return fail([&](auto &os) {
          os << "device " << receiver.device << " is listed in place of device "
             << shard.device << ", or with another shape";
        });
    return true;
  }

  /// Converts each cell to global coordinates and checks that its contributions
  /// are the same elements.
  bool locateCells() {
    cuts.resize(extents().size());
    auto cut = [&](const Box &box) {
      for (unsigned d = 0; d != cuts.size(); ++d) {
        cuts[d].push_back(box.start[d]);
        cuts[d].push_back(box.start[d] + box.size[d]);
      }
    };
    for (const FlowTree *tree : {&from, &to})
      for (const Shard &shard : tree->shards())
        for (const Piece &piece :
             piecesOf(shard, tree == &from ? flow.from : flow.to))
          cut(piece.global);
    std::vector<std::vector<Piece>> sources;
    for (const Shard &shard : from.shards())
      sources.push_back(piecesOf(shard, flow.from));
    for (auto [leaf, receiver] : llvm::enumerate(table.receivers)) {
      std::vector<Piece> pieces = piecesOf(to.shards()[leaf], flow.to);
      for (const Cell &cell : receiver.cells) {
        if (cell.box.size.size() != receiver.shape.size() ||
            cell.box.start.size() != receiver.shape.size() ||
            !Box::whole(receiver.shape).contains(cell.box) || cell.box.empty())
          return fail([&](auto &os) {
            os << "device " << receiver.device
               << " has a cell outside its shard";
          });
        if (cell.contributions.size() != 1 && !table.reduction)
          return fail([&](auto &os) {
            os << "device " << receiver.device << " has a cell of "
               << cell.contributions.size() << " terms, but nothing is reduced";
          });
        for (const Piece &piece : pieces) {
          std::optional<Box> local =
              Box{piece.local, piece.global.size}.intersect(cell.box);
          if (!local)
            continue;
          Box global = *local;
          Extents offset(local->start);
          for (unsigned d = 0; d != offset.size(); ++d) {
            offset[d] -= cell.box.start[d];
            global.start[d] += piece.global.start[d] - piece.local[d];
          }
          for (const Contribution &contribution : cell.contributions)
            if (!checkSource(receiver, contribution, offset, global, sources))
              return false;
          cut(global);
          globalCells.push_back({unsigned(leaf), std::move(global), &cell});
        }
      }
    }
    for (std::vector<int64_t> &along : cuts) {
      llvm::sort(along);
      along.erase(std::unique(along.begin(), along.end()), along.end());
    }
    return true;
  }

  /// Whether the part of a contribution that starts at `offset` holds the
  /// elements of `global`.
  bool checkSource(const Receiver &receiver, const Contribution &contribution,
                   ArrayRef<int64_t> offset, const Box &global,
                   ArrayRef<std::vector<Piece>> sources) {
    int leaf = from.leafOf(contribution.peer);
    Box rest = global;
    if (leaf >= 0 && contribution.start.size() == offset.size()) {
      Box wanted{contribution.start, global.size};
      for (unsigned d = 0; d != offset.size(); ++d)
        wanted.start[d] += offset[d];
      for (const Piece &piece : sources[leaf]) {
        std::optional<Box> local =
            Box{piece.local, piece.global.size}.intersect(wanted);
        if (!local)
          continue;
        for (unsigned d = 0; d != offset.size(); ++d) {
          int64_t meant = global.start[d] + local->start[d] - wanted.start[d];
          int64_t found =
              piece.global.start[d] + local->start[d] - piece.local[d];
          if (meant != found)
            return fail([&](auto &os) {
              os << "device " << receiver.device << " takes for element ";
              show(os, global.start);
              os << " another element of device " << contribution.peer;
            });
        }
        // In the flat case the pieces are consecutive.
        if (flow.flat) {
          rest.start[0] += local->size[0];
          rest.size[0] -= local->size[0];
        } else if (local->size == wanted.size) {
          rest.size.assign(rest.size.size(), 0);
        }
      }
    }
    if (leaf >= 0 && (offset.empty() || rest.empty()))
      return true;
    return fail([&](auto &os) {
      os << "device " << receiver.device << " takes element ";
      show(os, rest.start);
      os << " from device " << contribution.peer << ", which does not hold it";
    });
  }

  size_t numPoints() const {
    size_t count = 1;
    for (const std::vector<int64_t> &along : cuts)
      count *= along.empty() ? 0 : along.size() - 1;
    return count;
  }

  /// Calls `fn` with the index of each point that a box covers.
  template <typename Fn>
  void forEachPoint(const Box &box, Fn &&fn) const {
    unsigned rank = cuts.size();
    SmallVector<std::pair<size_t, size_t>> range;
    for (unsigned d = 0; d != rank; ++d) {
      size_t first = llvm::lower_bound(cuts[d], box.start[d]) - cuts[d].begin();
      size_t last = llvm::lower_bound(cuts[d], box.start[d] + box.size[d]) -
                    cuts[d].begin();
      if (first == last)
        return;
      range.push_back({first, last});
    }
    SmallVector<size_t> at;
    for (auto [first, last] : range)
      at.push_back(first);
    while (true) {
      size_t index = 0;
      for (unsigned d = 0; d != rank; ++d)
        index = index * (cuts[d].size() - 1) + at[d];
      fn(index);
      unsigned d = rank;
      while (d != 0 && ++at[d - 1] == range[d - 1].second) {
        --d;
        at[d] = range[d].first;
      }
      if (d == 0)
        return;
    }
  }

  Extents pointOf(size_t index) const {
    Extents point(cuts.size());
    for (unsigned d = cuts.size(); d-- != 0;) {
      point[d] = cuts[d][index % (cuts[d].size() - 1)];
      index /= cuts[d].size() - 1;
    }
    return point;
  }

  /// Records which cell writes each element, and that each is written once.
  bool paint() {
    size_t points = numPoints();
    written.assign(to.shards().size(),
                   std::vector<const Cell *>(points, nullptr));
    std::optional<std::pair<unsigned, size_t>> twice;
    for (const GlobalCell &cell : globalCells)
      forEachPoint(cell.box, [&](size_t index) {
        const Cell *&slot = written[cell.leaf][index];
        if (slot && !twice)
          twice = {cell.leaf, index};
        slot = cell.cell;
      });
    if (twice)
      return fail([&](auto &os) {
        os << "device " << to.shards()[twice->first].device
           << " receives element ";
        show(os, pointOf(twice->second));
        os << " twice";
      });
    for (auto [leaf, shard] : llvm::enumerate(to.shards())) {
      std::optional<size_t> never;
      for (const Piece &piece : piecesOf(shard, flow.to))
        forEachPoint(piece.global, [&](size_t index) {
          if (!written[leaf][index] && !never)
            never = index;
        });
      if (never)
        return fail([&](auto &os) {
          os << "device " << shard.device << " never receives element ";
          show(os, pointOf(*never));
        });
    }
    return true;
  }

  /// Replaces all terms of a partial node by its value, innermost nodes first.
  static void reduce(const Node &node, const Node *value,
                     ArrayRef<int64_t> point, Terms &terms) {
    if (!node.hasPartial)
      return;
    if (node.kind() == Kind::Split)
      return reduce(node.childAt(point), value, point, terms);
    bool partial = node.kind() == Kind::Partial;
    for (const Node &child : node.children)
      reduce(child, partial ? &child : value, point, terms);
    if (!partial)
      return;
    int whole = terms[&node.children.front()];
    for (const Node &child : node.children)
      whole = std::min(whole, terms[&child]);
    for (const Node &child : node.children)
      terms[&child] -= whole;
    terms[value] += whole;
  }

  /// Returns the terms that the devices below a node of `to` hold together;
  /// nullopt if replicas differ.
  std::optional<Terms> termsAt(const Node &node, size_t index,
                               ArrayRef<int64_t> source,
                               ArrayRef<int64_t> target) {
    Terms terms;
    if (node.isLeaf()) {
      for (const Contribution &contribution :
           written[node.firstLeaf][index]->contributions)
        ++terms[valueOf[from.leafOf(contribution.peer)]];
      reduce(from.root(), &from.root(), source, terms);
    } else if (node.kind() == Kind::Split && node.node->starts.empty()) {
      return termsAt(node.childAt(target), index, source, target);
    } else if (node.kind() == Kind::Split) {
      return windowTermsAt(node, index, source, target);
    } else {
      for (auto [i, child] : llvm::enumerate(node.children)) {
        std::optional<Terms> own = termsAt(child, index, source, target);
        if (!own)
          return std::nullopt;
        if (node.kind() == Kind::Partial)
          for (auto [value, count] : *own)
            terms[value] += count;
        else if (i != 0 && *own != terms)
          return std::nullopt;
        else
          terms = std::move(*own);
      }
      reduce(from.root(), &from.root(), source, terms);
    }
    std::erase_if(terms, [](auto &entry) { return entry.second == 0; });
    return terms;
  }

  /// Each window that contains the element must have its whole value; an
  /// element outside all windows needs no check.
  std::optional<Terms> windowTermsAt(const Node &node, size_t index,
                                     ArrayRef<int64_t> source,
                                     ArrayRef<int64_t> target) {
    Terms terms{{&from.root(), 1}};
    int64_t at = target[node.node->dim];
    for (auto [begin, end, child] :
         llvm::zip(node.begins, node.ends, node.children))
      if (begin <= at && at < end &&
          termsAt(child, index, source, target) != terms)
        return std::nullopt;
    return terms;
  }

  bool checkValues() {
    Terms whole{{&from.root(), 1}};
    for (size_t index = 0, points = numPoints(); index != points; ++index) {
      Extents point = pointOf(index);
      Extents source = pointIn(flow.from, point);
      Extents target = pointIn(flow.to, point);
      if (termsAt(to.root(), index, source, target) == whole)
        continue;
      return fail([&](auto &os) { blame(os, index, point, source, target); });
    }
    return true;
  }

  /// Prints the device that does not hold the whole element; if the value stays
  /// partial, prints the element alone.
  void blame(raw_ostream &os, size_t index, const Extents &point,
             const Extents &source, const Extents &target) {
    Terms whole{{&from.root(), 1}};
    os << "element ";
    show(os, point);
    if (!flow.to.isPartial())
      for (unsigned leaf = 0; leaf != to.shards().size(); ++leaf)
        if (written[leaf][index] && termsAt(leafNode(to.root(), leaf), index,
                                            source, target) != whole) {
          os << " on device " << to.shards()[leaf].device
             << " is not the whole value: it has the terms of devices ";
          llvm::interleaveComma(written[leaf][index]->contributions, os,
                                [&](const Contribution &c) { os << c.peer; });
          return;
        }
    os << ": the terms that the devices hold do not make up its value";
  }

  static const Node &leafNode(const Node &node, unsigned leaf) {
    return node.isLeaf() ? node
                         : leafNode(node.children[node.childOf(leaf)], leaf);
  }
};
} // namespace

std::optional<std::string> whale::verifyTable(const Step &step,
                                              const CellTable &table) {
  return Oracle(step, table).run();
}

std::optional<std::string> whale::verifySteps(ArrayRef<Step> steps,
                                              const Placement &from,
                                              const Placement &to,
                                              const Topology &topology) {
  if (steps.empty())
    return from.isEquivalent(to)
               ? std::nullopt
               : std::optional<std::string>("no steps between " + from.str() +
                                            " and " + to.str());
  // Each step starts from the placement that the previous one was proved to
  // produce.
  const Placement *held = &from;
  for (const Step &step : steps) {
    if (step.from != *held)
      return "a step starts at " + step.from.str() + ", but the value is at " +
             held->str();
    if (std::optional<std::string> message =
            verifyTable(step, cells(step, topology)))
      return message;
    held = &step.to;
  }
  if (*held != to)
    return "the steps end at " + held->str() + " instead of " + to.str();
  return std::nullopt;
}
