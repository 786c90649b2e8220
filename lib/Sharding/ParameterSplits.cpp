//===- ParameterSplits.cpp - Which dimension of each parameter is split --===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parameter is followed through the operations that pass it on to those that
// compute with it; pieces of fewer grains than devices are left out if there
// are others. Arguments of one type whose names differ in numbers alone are a
// group, if they have the same pieces.
//
// The choice is a local search: it changes one group at a time, then two at a
// time where there are at most 64 pairs of groups, as long as that is cheaper.
// Cost: the estimates, which the caller makes. A search asks for none twice,
// and ends when it has asked for so many.
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/ParameterSplits.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

bool isHeavyUse(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op))
    return true;
  // Queries, keys and values.
  if (isAttention(op))
    return operand.getOperandNumber() < 3;
  return isa<hlo::GatherOp>(op) && operand.getOperandNumber() == 0;
}

Value passesOn(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<hlo::BroadcastInDimOp, hlo::ConvertOp, hlo::TransposeOp,
          hlo::ReshapeOp, hlo::ReverseOp, hlo::SliceOp, hlo::DynamicSliceOp,
          hlo::ReducePrecisionOp>(op))
    return use.getOperandNumber() == 0 ? op->getResult(0) : Value();
  if (isa<hlo::ConcatenateOp>(op))
    return op->getResult(0);
  if (isa<hlo::OptimizationBarrierOp>(op))
    return op->getResult(use.getOperandNumber());
  if (auto loop = dyn_cast<hlo::WhileOp>(op))
    return loop.getBody().front().getArgument(use.getOperandNumber());
  return {};
}

/// Whether an image that a convolution reads can be split so that each of as
/// many devices has some of its rows.
static bool mayBeSpatial(Operation *op, Factorization &factorization,
                         int64_t parts) {
  std::optional<OpRule> rule;
  if (isa<hlo::ConvolutionOp>(op))
    rule = getOpRule(op);
  if (!rule)
    return false;
  return llvm::any_of(rule->windows, [&](const OperandWindow &read) {
    for (const DimPiece &piece :
         factorization.getPieces(op->getOperand(read.operand))) {
      std::optional<SubFactor> sub =
          findSubFactor(*rule, rule->operands[read.operand], piece);
      if (sub && sub->factor == read.factor && sub->extent >= parts &&
          sub->extent * sub->minor == rule->factors[read.factor].extent)
        return true;
    }
    return false;
  });
}

/// The most devices over which an operation that computes with the value is
/// split, or 1, and whether some convolution can be along its image.
static std::pair<int64_t, bool>
findParts(Value root, Factorization &factorization,
          llvm::function_ref<int64_t(Operation *)> partsOf) {
  int64_t parts = 1;
  bool isSpatial = false;
  llvm::SetVector<Value> values;
  values.insert(root);
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    for (OpOperand &use : value.getUses()) {
      if (isHeavyUse(use)) {
        int64_t own = partsOf(use.getOwner());
        parts = std::max(parts, own);
        isSpatial |=
            own > 1 && mayBeSpatial(use.getOwner(), factorization, own);
      }
      if (Value next = passesOn(use))
        values.insert(next);
      if (isa<YieldOp>(use.getOwner()))
        values.insert_range(resultsOfYielded(use));
    }
  }
  return {parts, isSpatial};
}

/// The argument's name with every number replaced, so that layers agree.
static std::string roleOf(BlockArgument argument) {
  auto name = dyn_cast<NameLoc>(argument.getLoc());
  if (!name)
    return ("#" + Twine(argument.getArgNumber())).str();
  std::string role;
  for (char c : name.getName().strref()) {
    if (!llvm::isDigit(c))
      role.push_back(c);
    else if (role.empty() || role.back() != '#')
      role.push_back('#');
  }
  return role;
}

SmallVector<ParameterGroup>
findSplitParameters(func::FuncOp function, Factorization &factorization,
                    llvm::function_ref<int64_t(Operation *)> partsOf,
                    llvm::function_ref<bool(BlockArgument)> isParameter) {
  llvm::MapVector<std::pair<StringAttr, Type>, ParameterGroup> groups;
  auto keyOf = [&](const std::string &role, Type type) {
    return std::make_pair(StringAttr::get(function.getContext(), role), type);
  };
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() < 2 || !isParameter(argument))
      continue;
    auto [parts, isSpatial] = findParts(argument, factorization, partsOf);
    SmallVector<DimPiece> pieces = factorization.getPieces(argument);
    if (parts <= 1 || pieces.empty())
      continue;
    // Each device gets a share, if any dimension has enough grains.
    auto isEnough = [&, parts = parts](const DimPiece &piece) {
      return piece.extent >= parts;
    };
    if (llvm::any_of(pieces, isEnough))
      llvm::erase_if(pieces, std::not_fn(isEnough));
    if (isSpatial)
      pieces.push_back(pieces.back());
    std::string role = roleOf(argument);
    ParameterGroup &group = groups[keyOf(role, type)];
    // Layers may differ in how their dimensions are used; cut them apart.
    if (!group.parameters.empty() &&
        (group.pieces != pieces || group.mayBeSpatial != isSpatial)) {
      role += ("@" + Twine(argument.getArgNumber())).str();
      ParameterGroup &own = groups[keyOf(role, type)];
      own = {role, {argument}, pieces, isSpatial};
      continue;
    }
    group.name = role;
    group.parameters.push_back(argument);
    group.pieces = pieces;
    group.mayBeSpatial = isSpatial;
  }
  SmallVector<ParameterGroup> result;
  for (auto &entry : groups)
    result.push_back(std::move(entry.second));
  return result;
}

void joinManyGroups(SmallVectorImpl<ParameterGroup> &groups, size_t most) {
  size_t pieces = 0;
  for (const ParameterGroup &group : groups)
    pieces += group.pieces.size();
  if (pieces <= most)
    return;
  SmallVector<ParameterGroup> joined;
  llvm::DenseMap<Type, SmallVector<size_t, 1>> ofType;
  for (ParameterGroup &group : groups) {
    SmallVector<size_t, 1> &alike = ofType[group.parameters.front().getType()];
    auto *same = llvm::find_if(alike, [&](size_t index) {
      return joined[index].pieces == group.pieces &&
             joined[index].mayBeSpatial == group.mayBeSpatial;
    });
    if (same == alike.end()) {
      alike.push_back(joined.size());
      joined.push_back(std::move(group));
    } else {
      llvm::append_range(joined[*same].parameters, group.parameters);
    }
  }
  groups.assign(std::make_move_iterator(joined.begin()),
                std::make_move_iterator(joined.end()));
}

namespace {
using Pieces = SmallVector<unsigned>;

/// A local search over the choices of a piece for each group.
class SplitSearch {
public:
  SplitSearch(ArrayRef<ParameterGroup> groups, bool startsSpatial,
              SplitSeconds seconds, size_t mostTrials, size_t atOnce)
      : groups(groups), estimate(seconds), mostTrials(mostTrials),
        atOnce(atOnce) {
    for (const ParameterGroup &group : groups) {
      bool skipsLast = group.mayBeSpatial && !startsSpatial;
      choice.pieces.push_back(group.pieces.size() - 1 - skipsLast);
      choice.alternatives.emplace_back(group.pieces.size());
    }
    SmallVector<Pieces> next{choice.pieces};
    llvm::append_range(next, listAlternatives(0));
    choice.seconds = this->seconds(next);
    // What the search begins with is no trial.
    known.at(choice.pieces).isAskedFor = false;
    trials = 0;
  }

  /// Ends, since each change makes the program cheaper.
  SplitChoice run() {
    bool changed = true;
    while (changed && !isSpent()) {
      changed = false;
      for (size_t group = 0; group < groups.size() && !isSpent(); ++group)
        changed |= improve(group);
      if (!changed)
        changed = improvePairs();
    }
    choice.isComplete = !isSpent();
    return std::move(choice);
  }

private:
  bool isSpent() const { return trials >= mostTrials; }

  struct Estimate {
    double seconds = 0;
    bool isAskedFor = false;
  };

  /// The seconds of the first of these. Those that follow are likely to be
  /// asked for next: some are estimated at the same time. Each change asks for
  /// much of what was known before it again.
  double seconds(ArrayRef<Pieces> next) {
    auto [first, isNew] = known.try_emplace(next.front());
    if (isNew) {
      SmallVector<Pieces> tried{next.front()};
      SmallVector<Estimate *> results{&first->second};
      for (const Pieces &pieces : next.drop_front()) {
        if (tried.size() == atOnce)
          break;
        auto [it, isNewToo] = known.try_emplace(pieces);
        if (!isNewToo)
          continue;
        tried.push_back(pieces);
        results.push_back(&it->second);
      }
      SmallVector<double> seconds(tried.size());
      estimate(tried, seconds);
      for (auto [result, own] : llvm::zip_equal(results, seconds))
        result->seconds = own;
    }
    trials += !std::exchange(first->second.isAskedFor, true);
    return first->second.seconds;
  }

  /// Takes these pieces if the program is cheaper with them, by more than
  /// rounding. What is no number is never taken, or the search would not end.
  bool take(ArrayRef<unsigned> pieces, double cost) {
    if (!(cost < choice.seconds * (1 - 1e-9)))
      return false;
    choice.pieces.assign(pieces.begin(), pieces.end());
    choice.seconds = cost;
    return true;
  }

  /// The other pieces for this group, and for some of those after it.
  SmallVector<Pieces> listAlternatives(size_t group) const {
    SmallVector<Pieces> list;
    for (size_t first = group; group < groups.size(); ++group) {
      if (group > first && list.size() >= atOnce)
        break;
      Pieces pieces = choice.pieces;
      for (unsigned piece = 0; piece < groups[group].pieces.size(); ++piece) {
        pieces[group] = piece;
        if (piece != choice.pieces[group])
          list.push_back(pieces);
      }
    }
    return list;
  }

  bool improve(size_t group) {
    bool changed = false;
    unsigned present = choice.pieces[group];
    SmallVector<double> &costs = choice.alternatives[group];
    costs[present] = choice.seconds;
    SmallVector<Pieces> list = listAlternatives(group);
    ArrayRef<Pieces> next = list;
    for (unsigned piece = 0; piece < groups[group].pieces.size(); ++piece) {
      if (piece == present)
        continue;
      costs[piece] = seconds(next);
      changed |= take(next.front(), costs[piece]);
      next = next.drop_front();
    }
    return changed;
  }

  bool improvePairs() {
    // More would take longer than they can win.
    constexpr size_t maxPairs = 64;
    if (isSpent() || groups.size() * (groups.size() - 1) / 2 > maxPairs)
      return false;
    SmallVector<Pieces> list;
    for (size_t first = 0; first < groups.size(); ++first)
      for (size_t second = first + 1; second < groups.size(); ++second) {
        Pieces pieces = choice.pieces;
        for (unsigned one = 0; one < groups[first].pieces.size(); ++one)
          for (unsigned two = 0; two < groups[second].pieces.size(); ++two) {
            pieces[first] = one;
            pieces[second] = two;
            if (one != choice.pieces[first] && two != choice.pieces[second])
              list.push_back(pieces);
          }
      }
    for (ArrayRef<Pieces> next = list; !next.empty(); next = next.drop_front())
      if (take(next.front(), seconds(next)))
        return true;
    return false;
  }

  ArrayRef<ParameterGroup> groups;
  SplitSeconds estimate;
  size_t mostTrials, atOnce;
  /// How many estimates were asked for: others don't count.
  size_t trials = 0;
  std::map<Pieces, Estimate> known;
  SplitChoice choice;
};
} // namespace

SplitChoice chooseSplits(ArrayRef<ParameterGroup> groups, SplitSeconds seconds,
                         size_t mostTrials, size_t atOnce) {
  if (groups.empty())
    return {};
  SplitChoice choice =
      SplitSearch(groups, false, seconds, mostTrials, atOnce).run();
  if (llvm::none_of(groups, [](auto &group) { return group.mayBeSpatial; }))
    return choice;
  SplitChoice spatial =
      SplitSearch(groups, true, seconds, mostTrials, atOnce).run();
  return spatial.seconds < choice.seconds * (1 - 1e-9) ? spatial : choice;
}

} // namespace whale
