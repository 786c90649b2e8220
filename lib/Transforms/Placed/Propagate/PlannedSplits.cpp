//===- PlannedSplits.cpp - Splits that plans name -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: groups of parameters that are split alike, with the pieces that each may
// be cut into, and a plan. Out: the piece of each group, or the other way
// round. Cost: linear in parameters, pieces and the plan.
//
//===----------------------------------------------------------------------===//

#include "PlannedSplits.h"

#include "whale/Transforms/Plans.h"

using namespace mlir;

namespace whale {

static Plan::Split planOf(const ParameterGroup &group, unsigned piece) {
  Plan::Split split;
  for (BlockArgument parameter : group.parameters)
    split.arguments.push_back(parameter.getArgNumber());
  split.dimension = int64_t(group.pieces[piece].dim);
  split.grains = group.pieces[piece].extent;
  split.inner = group.pieces[piece].minor;
  split.isGathered = group.isSpatial(piece);
  return split;
}

std::vector<Plan::Split> planOf(ArrayRef<ParameterGroup> groups,
                                ArrayRef<unsigned> pieces) {
  std::vector<Plan::Split> splits;
  for (auto [group, piece] : llvm::zip_equal(groups, pieces))
    splits.push_back(planOf(group, piece));
  return splits;
}

static bool isSame(const Plan::Split &one, const Plan::Split &other) {
  return one.dimension == other.dimension && one.grains == other.grains &&
         one.inner == other.inner && one.isGathered == other.isGathered;
}

static void describe(llvm::raw_ostream &text, const Plan::Split &split) {
  text << "along dimension " << split.dimension << " in " << split.grains
       << " grains";
  if (split.inner != 1)
    text << " of " << split.inner << " inner elements";
  text << (split.isGathered ? " and gathered" : "");
}

/// Finds the piece that is split so; an error where there is none.
static FailureOr<unsigned> findPiece(ModuleOp module, const Plan::Split &wanted,
                                     const ParameterGroup &group) {
  std::string known;
  llvm::raw_string_ostream text(known);
  for (unsigned piece = 0; piece < group.pieces.size(); ++piece) {
    Plan::Split split = planOf(group, piece);
    if (isSame(split, wanted))
      return piece;
    describe(text << (piece ? ", or " : ""), split);
  }
  return emitPlanError(module, wanted.place)
         << "decisions.splits: argument "
         << group.parameters.front().getArgNumber() << " can be split "
         << known;
}

using SplitTable = llvm::DenseMap<int64_t, const Plan::Split *>;

/// What the table says of a group; an error where that is not one.
static FailureOr<const Plan::Split *> findSplit(ModuleOp module,
                                                const Plan &given,
                                                const SplitTable &table,
                                                const ParameterGroup &group) {
  const Plan::Split *first = nullptr;
  for (BlockArgument parameter : group.parameters) {
    unsigned number = parameter.getArgNumber();
    const Plan::Split *own = table.lookup(number);
    if (!own)
      return emitPlanError(module, given.splits.front().place)
             << "decisions.splits: has nothing for argument " << number;
    if (first && !isSame(*first, *own))
      return emitPlanError(module, own->place)
             << "decisions.splits: argument " << number
             << " has to be split as argument "
             << group.parameters.front().getArgNumber();
    if (!first)
      first = own;
  }
  return first;
}

LogicalResult takeSplits(const Plan &given, func::FuncOp function,
                         ArrayRef<ParameterGroup> groups,
                         SmallVectorImpl<unsigned> &pieces) {
  auto module = function->getParentOfType<ModuleOp>();
  SplitTable table;
  llvm::DenseMap<int64_t, BlockArgument> parameters;
  for (const ParameterGroup &group : groups)
    for (BlockArgument parameter : group.parameters)
      parameters[parameter.getArgNumber()] = parameter;
  for (const Plan::Split &split : given.splits)
    for (int64_t argument : split.arguments) {
      if (!parameters.contains(argument))
        return emitPlanError(module, split.place)
               << "decisions.splits: argument " << argument
               << " is no parameter of a split task graph";
      if (!table.try_emplace(argument, &split).second)
        return emitPlanError(module, split.place)
               << "decisions.splits: argument " << argument
               << " is there twice";
    }
  for (const ParameterGroup &group : groups) {
    FailureOr<const Plan::Split *> split =
        findSplit(module, given, table, group);
    if (failed(split))
      return failure();
    FailureOr<unsigned> piece = findPiece(module, **split, group);
    if (failed(piece))
      return failure();
    pieces.push_back(*piece);
    std::string text;
    llvm::raw_string_ostream stream(text);
    describe(stream, **split);
    for (BlockArgument parameter : group.parameters)
      emitRemark(parameter.getLoc())
          << "argument " << parameter.getArgNumber() << " is split " << text
          << ", as the plan says";
  }
  return success();
}

} // namespace whale
