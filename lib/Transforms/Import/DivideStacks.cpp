//===- DivideStacks.cpp - Store stacked layers by stage -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, whose operations have strategies, and a cluster. Out: for an
// argument of which each stage uses other rows only, an argument for each
// stage, and of each operation on its rows one for each stage. To all passes
// that follow, these are ordinary arguments; whale-join-stacks makes one of
// them again.
//
// An operation on rows is localized as if the stages were devices over which
// the rows are split. Cost: for each stack the search (FindStacks.cpp), a few
// passes over @main, and a copy of each of its operations for each stage. What
// feeds an argument is searched among all results, and the number of an
// argument counted from the first one on: arguments times results, and for each
// piece the arguments.
//
//===----------------------------------------------------------------------===//

#include "DivideStacks/FindStacks.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Sharding/GivenPlacements.h"
#include "whale/Sharding/Localize.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/Reducers.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"
#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/Import/StackPieces.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_DIVIDESTACKS
#include "whale/Transforms/Import/Passes.h.inc"

namespace {

class Divider {
public:
  Divider(func::FuncOp main, Stack &stack)
      : main(main), body(&main.front()), stack(stack),
        builder(main.getContext()), feeds(findFeedback(main)),
        count(stack.cut.size()) {}

  LogicalResult run() {
    for (BlockArgument argument : body->getArguments())
      if (stack.arguments.contains(argument))
        explain(argument);
    SmallVector<BlockArgument> whole(stack.arguments.begin(),
                                     stack.arguments.end());
    divideArguments();
    SmallVector<Operation *> divided;
    for (Operation &op : *body)
      if (stack.operations.contains(&op))
        divided.push_back(&op);
    for (Operation *op : divided)
      if (failed(divide(op)))
        return failure();
    divideResults();
    for (BlockArgument argument : whole)
      replaceWhole(argument);
    for (Operation *op : divided)
      for (Value result : op->getResults())
        replaceWhole(result);
    // Also what may have effects, as calls of libraries.
    for (Operation *op : llvm::reverse(divided))
      op->erase();
    // With what was only made for them.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
      if (isOpTriviallyDead(&op))
        op.erase();
    writeSignature();
    return success();
  }

private:
  void explain(BlockArgument argument) {
    std::string text;
    for (auto [index, rows] : llvm::enumerate(stack.cut))
      text += (index == 0 ? " " : ", ") + std::to_string(rows.begin) + " to " +
              std::to_string(rows.end - 1) + " in '" +
              rows.stage.getName().str() + "'";
    emitRemark(argument.getLoc())
        << "argument " << getWholeArgument(main, argument.getArgNumber())
        << " is stored by rows:" << text;
  }

  RankedTensorType typeOf(Value value, size_t piece) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = stack.cut[piece].end - stack.cut[piece].begin;
    return type.clone(shape);
  }

  void setKey(Operation *op, StrategyAttr strategy, Attribute phase) {
    if (strategy)
      op->setAttr(kStrategyAttr, strategy);
    if (phase)
      op->setAttr(kPhaseAttr, phase);
  }

  /// Adds the pieces of each argument behind all others.
  void divideArguments() {
    for (BlockArgument argument : stack.arguments)
      for (size_t piece = 0; piece < count; ++piece)
        parts[argument].push_back(
            body->addArgument(typeOf(argument, piece), argument.getLoc()));
  }

  /// The rows that each stage has of a value, sliced where it is made if
  /// nothing else gives them.
  ArrayRef<Value> partsOf(Value value) {
    auto known = parts.find(value);
    if (known != parts.end())
      return known->second;
    SmallVector<Value> made;
    // Samples of another stage would come back to the one that gets its rows.
    std::optional<SmallVector<SmallVector<Value>>> pieces;
    std::optional<size_t> padded;
    if (stack.inPieces.contains(value)) {
      pieces = alignedPieces(value, stack.cut);
      padded = paddedPiece(value, stack.cut);
    }
    auto constant = value.getDefiningOp<hlo::ConstantOp>();
    auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue())
                          : SplatElementsAttr();
    Operation *producer = value.getDefiningOp();
    builder.setInsertionPointToStart(body);
    if (producer)
      builder.setInsertionPointAfter(producer);
    for (auto [index, rows] : llvm::enumerate(stack.cut)) {
      RankedTensorType type = typeOf(value, index);
      if (pieces && (*pieces)[index].size() == 1) {
        made.push_back((*pieces)[index].front());
        continue;
      }
      Operation *op;
      if (padded) {
        op = padTo(cast<hlo::PadOp>(producer), index, index == *padded);
        if (!op) {
          made.push_back(producer->getOperand(0));
          continue;
        }
      } else if (pieces) {
        op = hlo::ConcatenateOp::create(builder, value.getLoc(), type,
                                        (*pieces)[index], 0);
      } else if (splat) {
        op = hlo::ConstantOp::create(builder, value.getLoc(),
                                     splat.resizeSplat(type));
      } else {
        SmallVector<int64_t> starts(type.getRank(), 0),
            steps(type.getRank(), 1), limits(type.getShape());
        starts[0] = rows.begin;
        limits[0] = rows.end;
        op = hlo::SliceOp::create(builder, value.getLoc(), type, value, starts,
                                  limits, steps);
      }
      bool isSlice = isa<hlo::SliceOp>(op) && producer;
      setKey(op,
             isSlice ? producer->getAttrOfType<StrategyAttr>(kStrategyAttr)
                     : rows.stage,
             producer ? producer->getAttr(kPhaseAttr)
                      : PhaseAttr::get(main.getContext(), Phase::Forward));
      made.push_back(op->getResult(0));
    }
    return parts[value] = std::move(made);
  }

  /// The rows of one piece of what is padded: the padding alone, or with what
  /// is padded. Null where that has all rows of the piece.
  Operation *padTo(hlo::PadOp pad, size_t piece, bool hasOperand) {
    RankedTensorType type = typeOf(pad, piece);
    if (!hasOperand)
      return hlo::BroadcastInDimOp::create(builder, pad.getLoc(), type,
                                           pad.getPaddingValue(),
                                           builder.getDenseI64ArrayAttr({}));
    if (pad.getOperand().getType() == type)
      return nullptr;
    SmallVector<int64_t> low(pad.getEdgePaddingLow());
    SmallVector<int64_t> high(pad.getEdgePaddingHigh());
    low.front() -= stack.cut[piece].begin;
    high.front() -= stack.cut.back().end - stack.cut[piece].end;
    return hlo::PadOp::create(builder, pad.getLoc(), type, pad.getOperand(),
                              pad.getPaddingValue(), low, high,
                              pad.getInteriorPadding());
  }

  /// One operation for each stage, as if the stages were devices over which
  /// the rows are split.
  LogicalResult divide(Operation *op) {
    const RowsOfOp &rows = stack.operations.find(op)->second;
    SmallVector<int64_t> sizes;
    SmallVector<DeviceId> stages;
    for (const StackRows &piece : stack.cut) {
      sizes.push_back(piece.end - piece.begin);
      stages.push_back(stages.size());
    }
    auto place = [&](Value value, bool isMember) {
      ArrayRef<int64_t> shape =
          cast<RankedTensorType>(value.getType()).getShape();
      return isMember ? Placement::split(shape, 0, sizes, stages)
                      : Placement::replicated(shape, stages);
    };
    SmallVector<Placement> operandPlacements, resultPlacements;
    SmallVector<SmallVector<Value>> operands(count);
    for (auto [operand, isMember] :
         llvm::zip_equal(op->getOperands(), rows.operands)) {
      operandPlacements.push_back(place(operand, isMember));
      SmallVector<Value> own(count, operand);
      if (isMember)
        own = SmallVector<Value>(partsOf(operand));
      for (auto [list, value] : llvm::zip_equal(operands, own))
        list.push_back(value);
    }
    for (Value result : op->getResults())
      resultPlacements.push_back(
          rows.reduction
              ? Placement::partial(
                    cast<RankedTensorType>(result.getType()).getShape(),
                    *rows.reduction, stages)
              : place(result, true));

    builder.setInsertionPoint(op);
    SmallVector<SmallVector<Value>> results(op->getNumResults());
    for (auto [index, piece] : llvm::enumerate(stack.cut)) {
      Operation *before = op->getPrevNode();
      FailureOr<SmallVector<Value>> made =
          localize(builder, {op, operandPlacements, resultPlacements,
                             operands[index], stages[index]});
      if (failed(made))
        return failure();
      setKeys(before, op, piece.stage);
      // Of the gradients of all slices, those of other stages are zeros.
      if (isa<hlo::AddOp>(op))
        for (auto [zero, other] : {std::pair(0, 1), std::pair(1, 0)})
          if (isZero(operands[index][zero]))
            made = SmallVector<Value>{operands[index][other]};
      for (auto [list, value] : llvm::zip_equal(results, *made))
        list.push_back(value);
    }
    for (auto [result, made] : llvm::zip_equal(op->getResults(), results)) {
      if (!rows.reduction) {
        parts[result] = made;
        continue;
      }
      Operation *before = op->getPrevNode();
      Value sum = made.front();
      for (Value term : ArrayRef(made).drop_front())
        sum =
            emitCombination(builder, op->getLoc(), *rows.reduction, sum, term);
      // Terms of half precision are f32, rounded once.
      if (sum.getType() != result.getType())
        sum = hlo::ConvertOp::create(builder, op->getLoc(), result.getType(),
                                     sum);
      setKeys(before, op, op->getAttrOfType<StrategyAttr>(kStrategyAttr));
      result.replaceAllUsesWith(sum);
    }
    return success();
  }

  /// Of what has been made between `before` and `op`.
  void setKeys(Operation *before, Operation *op, StrategyAttr strategy) {
    for (Operation *made = before ? before->getNextNode() : &body->front();
         made != op; made = made->getNextNode())
      setKey(made, strategy, op->getAttr(kPhaseAttr));
  }

  /// Gives whoever uses rows of a divided value their piece, and whoever uses
  /// all of it the pieces put together.
  void replaceWhole(Value value) {
    auto known = parts.find(value);
    if (known == parts.end())
      return;
    SmallVector<Value> own = known->second;
    for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
      if (isRowSlice(user))
        replaceSlice(cast<hlo::SliceOp>(user), own);
    Operation *first = nullptr;
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = body->findAncestorOpInBlock(*user);
      if (!stack.operations.contains(ancestor) &&
          (!first || ancestor->isBeforeInBlock(first)))
        first = ancestor;
    }
    if (!first)
      return;
    Operation *producer = value.getDefiningOp();
    Operation *key =
        producer || first->hasTrait<OpTrait::IsTerminator>() ? producer : first;
    builder.setInsertionPoint(first);
    auto whole = hlo::ConcatenateOp::create(builder, value.getLoc(),
                                            value.getType(), own, 0);
    if (key)
      setKey(whole, key->getAttrOfType<StrategyAttr>(kStrategyAttr),
             key->getAttr(kPhaseAttr));
    value.replaceUsesWithIf(whole, [&](OpOperand &use) {
      return !stack.operations.contains(use.getOwner()) &&
             use.getOwner() != whole;
    });
  }

  void replaceSlice(hlo::SliceOp slice, ArrayRef<Value> own) {
    int64_t begin = slice.getStartIndices().front();
    int64_t end = slice.getLimitIndices().front();
    for (auto [rows, part] : llvm::zip_equal(stack.cut, own)) {
      if (begin < rows.begin || end > rows.end)
        continue;
      if (part.getType() == slice.getType()) {
        slice.replaceAllUsesWith(part);
        slice.erase();
        return;
      }
      SmallVector<int64_t> starts(slice.getStartIndices());
      SmallVector<int64_t> limits(slice.getLimitIndices());
      starts.front() -= rows.begin;
      limits.front() -= rows.begin;
      slice.setStartIndices(starts);
      slice.setLimitIndices(limits);
      slice.getOperandMutable().assign(part);
      setKey(slice, rows.stage, {});
      assert(
          (!part.getDefiningOp() || part.getDefiningOp()->isBeforeInBlock(
                                        body->findAncestorOpInBlock(*slice))) &&
          "pieces are made where their whole is, at the latest");
      return;
    }
  }

  /// Returns the pieces of what feeds divided arguments, and of other results
  /// that come in pieces.
  void divideResults() {
    Operation *terminator = body->getTerminator();
    SmallVector<std::optional<unsigned>> fed(terminator->getNumOperands());
    for (auto [argument, next] : llvm::enumerate(feeds))
      if (next)
        fed[*next] = argument;
    SmallVector<Value> results;
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      bool isPiece = getStackPiece(main.getResultAttrDict(index)).has_value();
      bool isDivided =
          fed[index] ? stack.arguments.contains(main.getArgument(*fed[index]))
                     : !isPiece && parts.contains(value);
      if (!isDivided) {
        results.push_back(value);
        newResults.push_back({unsigned(index), std::nullopt});
        continue;
      }
      ArrayRef<Value> own = partsOf(value);
      for (size_t piece = 0; piece < count; ++piece) {
        results.push_back(own[piece]);
        newResults.push_back({unsigned(index), piece});
      }
    }
    terminator->setOperands(results);
  }

  /// The attributes of a piece of the argument or result of this number.
  DictionaryAttr withPiece(DictionaryAttr attributes, Type whole, size_t piece,
                           unsigned number) {
    NamedAttrList list(attributes);
    list.set(kStackPieceAttr,
             makeStackPiece(main.getContext(),
                            {stack.cut[piece].begin,
                             cast<RankedTensorType>(whole), number}));
    if (auto given =
            dyn_cast_or_null<PlacementAttr>(list.get(kGivenPlacementAttr))) {
      const Placement &all = given.getValue();
      std::optional<Placement> rows;
      // Rows are what the first dimension of the view counts.
      if (all.rank() > 0 &&
          all.view().front() == cast<RankedTensorType>(whole).getDimSize(0))
        rows = takeRows(all, stack.cut[piece].begin, stack.cut[piece].end);
      list.erase(kGivenPlacementAttr);
      if (rows)
        list.set(kGivenPlacementAttr,
                 PlacementAttr::get(main.getContext(), *rows));
    }
    return list.getDictionary(main.getContext());
  }

  /// Puts the pieces where their whole was, and what feeds what in order.
  void writeSignature() {
    bool isWritten =
        llvm::any_of(llvm::seq<unsigned>(0, feeds.size()), [&](unsigned i) {
          return bool(main.getArgAttr(i, kFedByAttr));
        });
    if (!isWritten)
      main->setAttr(kFeedbackFoundAttr, builder.getUnitAttr());
    SmallVector<DictionaryAttr> argumentAttrs, resultAttrs;
    SmallVector<Type> resultTypes;
    FunctionType type = main.getFunctionType();
    auto resultAttrsOf = [&](unsigned i) { return main.getResultAttrDict(i); };
    for (auto [index, value] :
         llvm::enumerate(body->getTerminator()->getOperands())) {
      auto [old, piece] = newResults[index];
      DictionaryAttr attributes = main.getResultAttrDict(old);
      resultTypes.push_back(value.getType());
      resultAttrs.push_back(piece ? withPiece(attributes, type.getResult(old),
                                              *piece,
                                              getWhole(old, resultAttrsOf))
                                  : attributes);
    }
    auto feed = [&](DictionaryAttr attributes, unsigned old,
                    std::optional<size_t> piece) {
      if (!feeds[old])
        return attributes;
      std::pair<unsigned, std::optional<size_t>> result(*feeds[old], piece);
      NamedAttrList list(attributes);
      list.set(kFedByAttr,
               builder.getI64IntegerAttr(llvm::find(newResults, result) -
                                         newResults.begin()));
      return list.getDictionary(main.getContext());
    };
    unsigned old = feeds.size();
    SmallVector<Value> order;
    for (unsigned i = 0; i < old; ++i) {
      BlockArgument argument = body->getArgument(i);
      DictionaryAttr attributes = main.getArgAttrDict(i);
      if (!stack.arguments.contains(argument)) {
        order.push_back(argument);
        argumentAttrs.push_back(feed(attributes, i, std::nullopt));
        continue;
      }
      for (size_t piece = 0; piece < count; ++piece) {
        order.push_back(parts[argument][piece]);
        argumentAttrs.push_back(
            feed(withPiece(attributes, argument.getType(), piece,
                           getWholeArgument(main, i)),
                 i, piece));
      }
    }
    // Block arguments can't be moved: all are made anew.
    unsigned all = body->getNumArguments();
    SmallVector<Type> argumentTypes;
    for (Value value : order) {
      argumentTypes.push_back(value.getType());
      value.replaceAllUsesWith(
          body->addArgument(value.getType(), value.getLoc()));
    }
    body->eraseArguments(0, all);
    main.setType(
        FunctionType::get(main.getContext(), argumentTypes, resultTypes));
    main.setAllArgAttrs(argumentAttrs);
    main.setAllResultAttrs(resultAttrs);
  }

  func::FuncOp main;
  Block *body;
  Stack &stack;
  OpBuilder builder;
  SmallVector<std::optional<unsigned>> feeds;
  size_t count;
  llvm::DenseMap<Value, SmallVector<Value>> parts;
  /// The results as they will be: of which old one, and which piece of it.
  SmallVector<std::pair<unsigned, std::optional<size_t>>> newResults;
};

struct DivideStacksPass : impl::DivideStacksBase<DivideStacksPass> {
  using DivideStacksBase::DivideStacksBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto clusters = module.getOps<ClusterOp>();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    // Without devices nothing is stored anywhere.
    if (!main || main.isExternal() || !main.getBody().hasOneBlock() ||
        clusters.empty())
      return;
    Cluster cluster = (*clusters.begin()).getCluster();
    findDevices(module, main, cluster);
    SmallVector<StackCut> known;
    auto isApart = [&](const StackCut &cut) { return areApart(cut); };
    while (std::optional<Stack> stack = findStack(main, known, isApart)) {
      known.push_back(stack->cut);
      if (!stack->arguments.empty() && failed(Divider(main, *stack).run()))
        return signalPassFailure();
    }
  }

private:
  void findDevices(ModuleOp module, func::FuncOp main, const Cluster &cluster) {
    llvm::SmallSetVector<StrategyAttr, 8> strategies;
    for (Operation &op : main.front())
      if (auto strategy = op.getAttrOfType<StrategyAttr>(kStrategyAttr))
        strategies.insert(strategy);
    llvm::Expected<std::vector<VirtualDevice>> found =
        virtualDevicesOf(module, cluster, strategies.getArrayRef());
    // whale-assign-devices says what is wrong.
    if (!found) {
      llvm::consumeError(found.takeError());
      return;
    }
    for (auto [strategy, device] : llvm::zip_equal(strategies, *found))
      for (ArrayRef<int64_t> group : device)
        devices[strategy].append(group.begin(), group.end());
  }

  bool areApart(const StackCut &cut) {
    llvm::SmallDenseSet<int64_t> seen;
    for (const StackRows &rows : cut) {
      auto own = devices.find(rows.stage);
      if (own == devices.end())
        return false;
      for (int64_t device : own->second)
        if (!seen.insert(device).second)
          return false;
    }
    return true;
  }

  llvm::DenseMap<StrategyAttr, SmallVector<int64_t>> devices;
};

} // namespace
} // namespace whale
