//===- JoinStacks.cpp - One argument of the rows of all stages ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of all rank classes, with the pieces of whale-divide-stacks
// among their arguments and results. Out: each stack of pieces as one argument
// or result again: the user's signature, of which each stage holds its rows.
//
// The placements of the pieces are joined to that of the whole. A rank that
// holds several pieces takes them as slices of the whole, and returns them
// concatenated; one that holds a single piece uses the whole as it is. Cost:
// for each class, linear in arguments and results with their placements; the
// result that feeds an argument is searched among all results.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Import/StackPieces.h"
#include "whale/Transforms/Passes.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_JOINSTACKS
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

class Joiner {
public:
  Joiner(ScheduleOp schedule, bool forgetsFeedback)
      : schedule(schedule), body(&schedule.front()),
        builder(schedule.getContext()), forgetsFeedback(forgetsFeedback) {}

  LogicalResult run() {
    auto argumentAttrs = [&](unsigned i) { return schedule.getArgAttrDict(i); };
    auto resultAttrs = [&](unsigned i) {
      return schedule.getResultAttrDict(i);
    };
    arguments = findStackRuns(schedule.getNumArguments(), argumentAttrs);
    results = findStackRuns(schedule.getNumResults(), resultAttrs);
    auto hasPieces = [](ArrayRef<StackRun> runs, auto attrsOf) {
      return llvm::any_of(runs, [&](StackRun run) {
        return getStackPiece(attrsOf(run.first)).has_value();
      });
    };
    if (!hasPieces(arguments, argumentAttrs) &&
        !hasPieces(results, resultAttrs))
      return success();

    unsigned before = schedule.getNumArguments();
    SmallVector<DictionaryAttr> newArgumentAttrs, newResultAttrs;
    SmallVector<Type> argumentTypes, resultTypes;
    builder.setInsertionPointToStart(body);
    for (auto [number, run] : llvm::enumerate(arguments)) {
      FailureOr<DictionaryAttr> attributes = join(run, number, argumentAttrs);
      if (failed(attributes))
        return failure();
      Type type = typeOf(run, *attributes, body->getArgument(run.first));
      argumentTypes.push_back(type);
      newArgumentAttrs.push_back(withFeedback(*attributes));
      BlockArgument whole =
          body->addArgument(type, body->getArgument(run.first).getLoc());
      takePieces(run, whole);
    }
    body->eraseArguments(0, before);

    Operation *terminator = body->getTerminator();
    builder.setInsertionPoint(terminator);
    SmallVector<Value> values;
    for (auto [number, run] : llvm::enumerate(results)) {
      FailureOr<DictionaryAttr> attributes = join(run, number, resultAttrs);
      if (failed(attributes))
        return failure();
      Type type = typeOf(run, *attributes, terminator->getOperand(run.first));
      resultTypes.push_back(type);
      newResultAttrs.push_back(*attributes);
      values.push_back(putPieces(
          terminator->getOperands().slice(run.first, run.last - run.first),
          cast<RankedTensorType>(type)));
    }
    terminator->setOperands(values);
    schedule.setType(builder.getFunctionType(argumentTypes, resultTypes));
    schedule.setAllArgAttrs(newArgumentAttrs);
    schedule.setAllResultAttrs(newResultAttrs);
    return success();
  }

private:
  /// That the pieces are all rows of the whole of this number, in order.
  LogicalResult
  verifyPieces(StackRun run, int64_t number,
               llvm::function_ref<DictionaryAttr(unsigned)> attrsOf) {
    int64_t rows = 0;
    RankedTensorType whole = getStackPiece(attrsOf(run.first))->whole;
    bool isRight = true;
    for (unsigned i = run.first; i < run.last; ++i) {
      StackPiece piece = *getStackPiece(attrsOf(i));
      auto type = attrsOf(i).getAs<TypeAttr>(globalTypeAttrName);
      auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue())
                         : RankedTensorType();
      isRight &= piece.stack == number && piece.whole == whole &&
                 piece.begin == rows && tensor && tensor.getRank() > 0;
      rows += isRight ? tensor.getDimSize(0) : 0;
    }
    if (isRight && rows == whole.getDimSize(0))
      return success();
    return schedule.emitError("has pieces of a ")
           << whole << ", number " << number
           << " of its signature, that are not all its rows in order";
  }

  /// The attributes of the whole, which is the argument or result `number`.
  FailureOr<DictionaryAttr>
  join(StackRun run, int64_t number,
       llvm::function_ref<DictionaryAttr(unsigned)> attrsOf) {
    DictionaryAttr first = attrsOf(run.first);
    std::optional<StackPiece> piece = getStackPiece(first);
    if (!piece)
      return first;
    if (failed(verifyPieces(run, number, attrsOf)))
      return failure();
    SmallVector<Placement> placements;
    for (unsigned i = run.first; i < run.last; ++i) {
      auto placement = attrsOf(i).getAs<PlacementAttr>(placementAttrName);
      if (!placement)
        return schedule.emitError("has pieces of stacks without a placement");
      placements.push_back(placement.getValue());
    }
    std::optional<Placement> joined =
        joinPlacements(piece->whole.getShape(), placements);
    if (!joined)
      return schedule.emitError("has pieces of a ")
             << piece->whole << " whose placements can't be joined: "
             << placements.front().str() << " and " << placements.back().str();
    MLIRContext *context = schedule.getContext();
    NamedAttrList list(first);
    list.erase(kStackPieceAttr);
    list.set(placementAttrName, PlacementAttr::get(context, *joined));
    list.set(globalTypeAttrName, TypeAttr::get(piece->whole));
    return list.getDictionary(context);
  }

  /// What the ranks of this class have of it.
  Type typeOf(StackRun run, DictionaryAttr attributes, Value first) {
    if (run.last == run.first + 1)
      return first.getType();
    auto type = cast<RankedTensorType>(
        attributes.getAs<TypeAttr>(globalTypeAttrName).getValue());
    const Placement &placement =
        attributes.getAs<PlacementAttr>(placementAttrName).getValue();
    return getLocalType(type, placement, schedule.getRanks().front())
        .value_or(getAbsentType(type));
  }

  /// What feeds the argument, by its number among the wholes.
  DictionaryAttr withFeedback(DictionaryAttr attributes) {
    auto fedBy =
        attributes ? attributes.getAs<IntegerAttr>(kFedByAttr) : IntegerAttr();
    if (!fedBy)
      return attributes;
    NamedAttrList list(attributes);
    auto *run = llvm::find_if(results, [&](StackRun run) {
      return fedBy.getInt() >= run.first && fedBy.getInt() < run.last;
    });
    list.set(kFedByAttr, builder.getI64IntegerAttr(run - results.begin()));
    if (forgetsFeedback)
      list.erase(kFedByAttr);
    return list.getDictionary(schedule.getContext());
  }

  /// A rank has one of the pieces, or all.
  void takePieces(StackRun run, BlockArgument whole) {
    int64_t at = 0;
    for (unsigned i = run.first; i < run.last; ++i) {
      BlockArgument piece = body->getArgument(i);
      if (piece.getType() == whole.getType() || piece.use_empty()) {
        piece.replaceAllUsesWith(whole);
        continue;
      }
      auto type = cast<RankedTensorType>(piece.getType());
      SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
      SmallVector<int64_t> limits(type.getShape());
      starts[0] = at;
      limits[0] += at;
      at = limits[0];
      piece.replaceAllUsesWith(hlo::SliceOp::create(
          builder, piece.getLoc(), type, whole, starts, limits, steps));
    }
  }

  Value putPieces(ValueRange pieces, RankedTensorType type) {
    // Of the others there is nothing.
    for (Value piece : pieces)
      if (piece.getType() == type)
        return piece;
    return hlo::ConcatenateOp::create(builder, pieces.front().getLoc(), type,
                                      pieces, 0);
  }

  ScheduleOp schedule;
  Block *body;
  OpBuilder builder;
  bool forgetsFeedback;
  SmallVector<StackRun> arguments, results;
};

struct JoinStacksPass : impl::JoinStacksBase<JoinStacksPass> {
  using JoinStacksBase::JoinStacksBase;

  void runOnOperation() final {
    for (ScheduleOp schedule : getRankClasses(getOperation())) {
      bool forgets = schedule->hasAttr(kFeedbackFoundAttr);
      schedule->removeAttr(kFeedbackFoundAttr);
      if (failed(Joiner(schedule, forgets).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace whale
