//===- MicroBatch.cpp - Compute the step one micro-batch at a time --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main with strategies and phases, and the number of micro-batches. Out:
// what depends on the samples in loops over micro-batches, everything else
// between them.
//
// All that a loop needs to know is how each value is on the axis of time: split
// values are cut before and joined after a loop, partial ones accumulated.
// Micro-batches with the same sizes of everything share a region. Cost: besides
// the propagation along the axis of time (MicroBatch/TimeAxis.cpp), for each
// loop a pass over @main, and a copy of its operations for each region. Sizes
// are compared for each micro-batch and placement. Joining a value walks over
// what joins those before it: the square of their number.
//
//===----------------------------------------------------------------------===//

#include "CarryAttributes.h"
#include "MicroBatch/MomentValues.h"
#include "MicroBatch/TimeAxis.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/BlockLocalizer.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include <map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_MICROBATCH
#include "whale/Transforms/Import/Passes.h.inc"

namespace {

/// How the values of earlier loops are found: whole, and moment by moment.
struct LoopResults {
  DenseMap<Value, Value> whole;
  DenseMap<Value, SmallVector<Value>> pieces;
};

/// The arguments of a loop's regions, all variants of which have the same ones.
class Arguments {
public:
  Arguments(OpBuilder &builder, const TimeAxis &time,
            const LoopResults &earlier)
      : builder(builder), time(time), earlier(earlier) {}

  /// The index of the argument that an operand is, placed so over time. The
  /// pieces are cut where the first operation that uses them belongs.
  unsigned ofOperand(OpOperand &operand, const Placement &placement) {
    Value value = operand.get();
    Operation *user = operand.getOwner();
    auto attr = PlacementAttr::get(builder.getContext(), placement);
    auto [index, isNew] =
        insert({value.getAsOpaquePointer(), attr.getAsOpaquePointer(),
                user->getAttr(kStrategyAttr).getAsOpaquePointer()});
    if (!isNew)
      return index;
    auto it = earlier.pieces.find(value);
    if (it != earlier.pieces.end() &&
        time.getRequired(operand) == time.getState(value)) {
      pieces[index] = it->second;
      return index;
    }
    if (Value whole = earlier.whole.lookup(value))
      value = whole;
    CarryAttributes carry;
    builder.setListener(&carry);
    for (int64_t moment = 0; moment < time.getNumMoments(); ++moment)
      pieces[index].push_back(emitPart(builder, value, placement, moment));
    builder.setListener(nullptr);
    carry.carryFrom(user);
    if (auto argument = dyn_cast<BlockArgument>(operand.get()))
      if (auto main = cast<func::FuncOp>(argument.getOwner()->getParentOp());
          auto dim = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                        kBatchDimAttr))
        batchDims[index] = dim.getInt();
    return index;
  }

  /// The index of the argument that is where a moment starts.
  unsigned ofOffset(ShardOffsetOp op) {
    auto [index, isNew] =
        insert({op.getPlacementAttr().getAsOpaquePointer(),
                op.getDimAttr().getAsOpaquePointer(), nullptr});
    if (isNew)
      for (int64_t moment = 0; moment < time.getNumMoments(); ++moment) {
        int64_t start =
            op.getPlacement().getValue().box(moment)->start[op.getDim()];
        Operation *constant = hlo::ConstantOp::create(
            builder, op.getLoc(),
            DenseElementsAttr::get(
                cast<ShapedType>(op.getType()),
                builder.getIntegerAttr(getElementTypeOrSelf(op.getType()),
                                       start)));
        carryAttributes(op, constant);
        pieces[index].push_back(constant->getResult(0));
      }
    return index;
  }

  ArrayRef<SmallVector<Value>> getPieces() const { return pieces; }
  ArrayRef<int64_t> getBatchDims() const { return batchDims; }

private:
  using Key = std::tuple<const void *, const void *, const void *>;
  std::pair<unsigned, bool> insert(Key key) {
    auto [it, isNew] = numbers.try_emplace(key, pieces.size());
    if (isNew) {
      pieces.emplace_back();
      batchDims.push_back(-1);
    }
    return {it->second, isNew};
  }

  OpBuilder &builder;
  const TimeAxis &time;
  const LoopResults &earlier;
  std::map<Key, unsigned> numbers;
  SmallVector<SmallVector<Value>> pieces;
  SmallVector<int64_t> batchDims;
};

/// Writes the region of one variant. Its first moment stands for all.
class MomentBuilder : BlockLocalizer {
public:
  MomentBuilder(OpBuilder &builder, int64_t moment, const TimeAxis &time,
                const LoopResults &earlier, Arguments &arguments)
      : BlockLocalizer(builder, moment), time(time), earlier(earlier),
        arguments(arguments) {}

  LogicalResult build(Block &block, Location loc, ArrayRef<Operation *> ops,
                      ArrayRef<Value> yields) {
    body = &block;
    builder.setInsertionPointToEnd(body);
    for (Operation *op : ops)
      if (failed(visit(op)))
        return failure();
    SmallVector<Value> results;
    for (Value value : yields)
      results.push_back(values.lookup(value));
    YieldOp::create(builder, loc, results);
    // What other loops compute for themselves.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
      if (isOpTriviallyDead(&op))
        op.erase();
    SmallVector<ShardOffsetOp> offsets;
    body->walk([&](ShardOffsetOp op) { offsets.push_back(op); });
    for (ShardOffsetOp op : offsets) {
      op.replaceAllUsesWith(
          getArgument(arguments.ofOffset(op), op.getType(), op.getLoc()));
      op.erase();
    }
    return success();
  }

private:
  /// Copies keep the strategy and phase of the original.
  LogicalResult visit(Operation *op) override {
    Block *block = builder.getInsertionBlock();
    Operation *last = block->empty() ? nullptr : &block->back();
    if (failed(BlockLocalizer::visit(op)))
      return failure();
    Operation *copy = last ? last->getNextNode() : &block->front();
    for (; copy; copy = copy->getNextNode())
      carryAttributes(op, copy);
    return success();
  }

  /// The variants ask for the same arguments in the same order.
  Value getArgument(unsigned index, Type type, Location loc) {
    assert(index <= body->getNumArguments() && "asked for out of order");
    if (index == body->getNumArguments())
      body->addArgument(type, loc);
    return body->getArgument(index);
  }

  Value getOperand(OpOperand &operand) override {
    Value value = operand.get();
    AxisState required = time.getRequired(operand);
    if (!values.contains(value) && time.goesAlong(operand))
      return computeHere(value);
    if (Value local = values.lookup(value)) {
      bool isCutHere = required.isSplit() && local.getType() == value.getType();
      return isCutHere ? emitOwnPart(builder, local,
                                     time.place(value, required), device)
                       : local;
    }
    if (required.isCut()) {
      Placement placement = time.place(value, required);
      auto type = *getLocalType(cast<RankedTensorType>(value.getType()),
                                placement, device);
      if (Value spread = required.isSplit() ? spreadHere(value, type) : Value())
        return spread;
      return getArgument(arguments.ofOperand(operand, placement), type,
                         value.getLoc());
    }
    if (Value whole = earlier.whole.lookup(value))
      return whole;
    Operation *op = value.getDefiningOp();
    if (!op || !op->hasTrait<OpTrait::ConstantLike>())
      return value;
    // Constants go along with their users.
    Value &copy = values[value];
    OpBuilder::InsertionGuard guard(builder);
    goToPrologue();
    prologueEnd = builder.clone(*op);
    return copy = prologueEnd->getResult(0);
  }

  /// Copies that operations of the region use are at its start, behind those
  /// that they may use themselves.
  void goToPrologue() {
    if (prologueEnd)
      builder.setInsertionPointAfter(prologueEnd);
    else
      builder.setInsertionPointToStart(body);
  }

  /// What is spread over the samples behind an earlier loop goes along with its
  /// users, as constants do: a moment needs no more than its part. Null if the
  /// value is none, or its parts differ in more than their size.
  Value spreadHere(Value value, RankedTensorType type) {
    hlo::BroadcastInDimOp spread = TimeAxis::toSpread(value.getDefiningOp());
    if (!spread || time.getLoop(spread))
      return {};
    ArrayRef<int64_t> sizes = spread.getOperand().getType().getShape();
    for (auto [size, dim] :
         llvm::zip_equal(sizes, spread.getBroadcastDimensions()))
      if (size != 1 && type.getDimSize(dim) != size)
        return {};
    Value &copy = spreads[{value, type}];
    if (!copy) {
      OpBuilder::InsertionGuard guard(builder);
      goToPrologue();
      prologueEnd = builder.clone(*spread);
      if (Value whole = earlier.whole.lookup(spread.getOperand()))
        prologueEnd->setOperand(0, whole);
      copy = prologueEnd->getResult(0);
      copy.setType(type);
    }
    return copy;
  }

  /// Computes again what is of another loop and needs nothing of it; null after
  /// an error.
  Value computeHere(Value value) {
    if (Value copy = copies.lookup(value))
      return copy;
    Operation *op = value.getDefiningOp();
    CarryAttributes carry;
    OpBuilder::InsertionGuard guard(builder);
    OpBuilder::Listener *outer = builder.getListener();
    goToPrologue();
    builder.setListener(&carry);
    LogicalResult result = BlockLocalizer::visit(op);
    builder.setListener(outer);
    carry.carryFrom(op);
    if (failed(result))
      return {};
    prologueEnd = &*std::prev(builder.getInsertionPoint());
    // Uses that need the whole value get that of the other loop.
    Value copy = values.lookup(value);
    values.erase(value);
    return copies[value] = copy;
  }

  Placement getOperandPlacement(OpOperand &operand) override {
    return time.place(operand.get(), time.getRequired(operand));
  }

  void map(Value value, Value local) override { values[value] = local; }

  const TimeAxis &time;
  const LoopResults &earlier;
  Arguments &arguments;
  Block *body = nullptr;
  DenseMap<Value, Value> values;
  /// Of other loops, what is computed again.
  DenseMap<Value, Value> copies;
  Operation *prologueEnd = nullptr;
  DenseMap<std::pair<Value, Type>, Value> spreads;
};

/// Builds the loops of a function and puts everything else between them.
class LoopBuilder {
public:
  LoopBuilder(func::FuncOp main, const TimeAxis &time)
      : main(main), time(time), builder(main.getContext()) {}

  LogicalResult run() {
    writePlacements();
    SmallVector<Operation *> ops = llvm::map_to_vector(
        main.front().without_terminator(), [](Operation &op) { return &op; });
    for (unsigned loop = 0; loop <= time.getNumLoops(); ++loop) {
      SmallVector<Operation *> members;
      for (Operation *op : ops) {
        if (time.getLoop(op) == loop)
          members.push_back(op);
        else if (!time.getLoop(op) && time.getTurn(op) == loop)
          op->moveBefore(main.front().getTerminator());
      }
      if (!members.empty() && failed(buildLoop(loop, members)))
        return failure();
    }
    explain();
    for (Operation *op : llvm::reverse(ops))
      if (time.getLoop(op) || (TimeAxis::toSpread(op) && isOpTriviallyDead(op)))
        op->erase();
    return success();
  }

private:
  /// Says what waits for all samples.
  void explain() const {
    if (Operation *meeting = time.getMeeting())
      emitRemark(meeting->getLoc())
          << "micro-batches: samples meet here, and what follows is computed "
             "of the whole mini-batch, behind all "
          << (time.getNumLoops() > 1 ? "forwards and before all backwards"
                                     : "micro-batches")
          << "; " << keptBytes << " bytes are kept until then";
    SmallVector<Operation *> readers = time.getStatisticReaders();
    if (!readers.empty()) {
      InFlightDiagnostic remark = emitRemark(readers.front()->getLoc());
      remark
          << "micro-batches: needs a statistic of all samples, so layers from "
             "here on wait for the forwards of all micro-batches";
      if (readers.size() > 1)
        remark << ", and so do " << readers.size() - 1 << " operations behind";
      remark << "; " << keptBytes << " bytes are kept until then";
    }
  }

  /// For the localizer: the placement of each result of an operation in a loop.
  void writePlacements() {
    auto write = [&](Operation *op) {
      SmallVector<Attribute> placements;
      for (Value result : op->getResults())
        placements.push_back(PlacementAttr::get(
            builder.getContext(), time.place(result, time.getState(result))));
      op->setAttr(placementsAttrName, builder.getArrayAttr(placements));
    };
    for (Operation &top : main.front().without_terminator())
      if (time.getLoop(&top))
        top.walk<WalkOrder::PreOrder>([&](Operation *op) {
          if (op->getNumResults() != 0)
            write(op);
          return hlo::isControlFlow(op) ? WalkResult::advance()
                                        : WalkResult::skip();
        });
  }

  /// Which values leave the loop, and how.
  struct Leaving {
    bool whole = false, pieces = false;
  };
  llvm::MapVector<Value, Leaving> findLeaving(unsigned loop,
                                              ArrayRef<Operation *> members) {
    llvm::MapVector<Value, Leaving> leaving;
    for (Operation *op : members)
      for (Value result : op->getResults())
        for (OpOperand &use : result.getUses()) {
          Operation *user = main.front().findAncestorOpInBlock(*use.getOwner());
          std::optional<unsigned> other = time.getLoop(user);
          if (other == loop || (other && time.goesAlong(use)))
            continue;
          bool byPiece = other && time.getState(result).isCut() &&
                         time.getRequired(use) == time.getState(result);
          (byPiece ? leaving[result].pieces : leaving[result].whole) = true;
        }
    return leaving;
  }

  /// Moments with the same sizes of everything share a region.
  SmallVector<int64_t> findVariants(ArrayRef<Operation *> members) {
    llvm::SetVector<Attribute> placements;
    for (Operation *op : members)
      op->walk([&](Operation *inner) {
        if (auto list = inner->getAttrOfType<ArrayAttr>(placementsAttrName))
          placements.insert(list.begin(), list.end());
        for (OpOperand &operand : inner->getOpOperands())
          if (AxisState state = time.getRequired(operand); state.isCut())
            placements.insert(PlacementAttr::get(
                builder.getContext(), time.place(operand.get(), state)));
      });
    std::map<std::vector<int64_t>, int64_t> numbers;
    SmallVector<int64_t> variants;
    for (int64_t moment = 0; moment < time.getNumMoments(); ++moment) {
      std::vector<int64_t> key;
      for (Attribute placement : placements)
        llvm::append_range(
            key, cast<PlacementAttr>(placement).getValue().box(moment)->size);
      variants.push_back(
          numbers.try_emplace(key, int64_t(numbers.size())).first->second);
    }
    return variants;
  }

  LogicalResult buildLoop(unsigned loop, ArrayRef<Operation *> members) {
    llvm::MapVector<Value, Leaving> leaving = findLeaving(loop, members);
    // Reduced values come first.
    SmallVector<Value> yields;
    SmallVector<Attribute> reductions;
    for (auto &[value, how] : leaving)
      if (AxisState state = time.getState(value);
          state.isPartial() && how.whole) {
        yields.push_back(value);
        reductions.push_back(
            ReductionAttr::get(builder.getContext(), state.reduction));
      }
    for (auto &[value, how] : leaving)
      if (how.pieces || !time.getState(value).isPartial()) {
        yields.push_back(value);
        keptBytes += getTensorBytes(value.getType());
      }

    builder.setInsertionPoint(main.front().getTerminator());
    SmallVector<int64_t> variants = findVariants(members);
    OperationState state(members.front()->getLoc(),
                         MicroBatchesOp::getOperationName());
    Arguments arguments(builder, time, earlier);
    for (int64_t variant = 0; llvm::is_contained(variants, variant);
         ++variant) {
      int64_t moment = llvm::find(variants, variant) - variants.begin();
      OpBuilder inside(builder.getContext());
      if (failed(MomentBuilder(inside, moment, time, earlier, arguments)
                     .build(state.addRegion()->emplaceBlock(), state.location,
                            members, yields)))
        return failure();
    }
    for (unsigned i = 0; i < reductions.size(); ++i)
      state.addTypes(yieldOf(state, 0)->getOperand(i).getType());
    for (unsigned i = reductions.size(); i < yields.size(); ++i)
      for (int64_t variant : variants)
        state.addTypes(yieldOf(state, variant)->getOperand(i).getType());
    for (ArrayRef<Value> pieces : arguments.getPieces())
      state.addOperands(pieces);
    auto &properties = state.getOrAddProperties<MicroBatchesOp::Properties>();
    properties.variants = builder.getDenseI64ArrayAttr(variants);
    properties.reductions = builder.getArrayAttr(reductions);
    properties.batch_dims =
        builder.getDenseI64ArrayAttr(arguments.getBatchDims());
    collectResults(cast<MicroBatchesOp>(builder.create(state)), yields,
                   leaving);
    return success();
  }

  static Operation *yieldOf(OperationState &state, int64_t variant) {
    return state.regions[variant]->front().getTerminator();
  }

  /// Gives the values that left the loop to what comes after it.
  void collectResults(MicroBatchesOp op, ArrayRef<Value> yields,
                      const llvm::MapVector<Value, Leaving> &leaving) {
    unsigned result = 0;
    for (auto [index, value] : llvm::enumerate(yields)) {
      auto type = cast<RankedTensorType>(value.getType());
      if (index < op.getNumReduced()) {
        // Sums of half precision were kept in f32.
        Value sum = op.getResult(result++);
        if (sum.getType() != type)
          sum = hlo::ConvertOp::create(builder, sum.getLoc(), type, sum);
        earlier.whole[value] = sum;
      } else {
        auto pieces = op.getResults().slice(result, op.getNumMoments());
        result += op.getNumMoments();
        AxisState state = time.getState(value);
        if (leaving.lookup(value).pieces)
          earlier.pieces[value] = llvm::to_vector_of<Value>(pieces);
        if (leaving.lookup(value).whole && state.isSplit())
          earlier.whole[value] =
              emitJoin(builder, type, pieces, time.place(value, state));
        else if (leaving.lookup(value).whole && !state.isPartial())
          earlier.whole[value] = pieces.front();
      }
      Value whole = earlier.whole.lookup(value);
      if (!whole)
        continue;
      Operation *producer = value.getDefiningOp();
      Operation *made = whole.getDefiningOp();
      for (; made != op; made = made->getPrevNode())
        carryAttributes(producer, made);
      Value(value).replaceUsesWithIf(whole, [&](OpOperand &use) {
        return !time.getLoop(
            main.front().findAncestorOpInBlock(*use.getOwner()));
      });
    }
  }

  func::FuncOp main;
  const TimeAxis &time;
  OpBuilder builder;
  LoopResults earlier;
  /// Of what leaves a loop for each micro-batch, of all of them together.
  int64_t keptBytes = 0;
};

struct MicroBatchPass : impl::MicroBatchBase<MicroBatchPass> {
  using MicroBatchBase::MicroBatchBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    Config config(module);
    int64_t moments = config.getNumMicroBatches().value_or(1);
    FailureOr<func::FuncOp> main = getMainFunction(module);
    if (failed(main))
      return signalPassFailure();
    std::optional<ScheduleKind> schedule = config.getSchedule();
    if (moments == 1 && schedule) {
      emitError(main->front().front().getLoc(), "pipeline.strategy: '")
          << stringifyScheduleKind(*schedule)
          << "' orders micro-batches, and there is only one; set "
             "num_micro_batch, or leave pipeline.strategy out";
      return signalPassFailure();
    }
    if (moments == 1)
      return;
    TimeAxis time(*main, moments, config.hasOwnStatistics());
    if (failed(time.run()) || failed(LoopBuilder(*main, time).run()))
      return signalPassFailure();
  }
};

} // namespace
} // namespace whale
