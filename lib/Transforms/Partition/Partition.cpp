//===- Partition.cpp - One program for each rank class -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Ranks whose shards have the same shapes run the same function: the class.
// Each class gets a copy of the step on local shapes, with every reshard
// resolved to concrete collectives. What differs between the ranks of a class
// (peers, offsets) follows from the placements and is filled in when the
// program is emitted.
//
//===----------------------------------------------------------------------===//

#include "MomentOrder.h"
#include "RankClasses.h"
#include "mlir/IR/Threading.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Placement/Resolver.h"
#include "whale/Sharding/BlockLocalizer.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/Localize.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/Reducers.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_PARTITION
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

using MomentOrders = llvm::DenseMap<Operation *, MomentOrder>;

/// Writes the function of one rank class, with the shapes of its first rank.
class RankClassBuilder : BlockLocalizer {
public:
  RankClassBuilder(OpBuilder &builder, func::FuncOp main,
                   ArrayRef<int64_t> ranks, const ResolvedReshards &reshards,
                   const MomentOrders &orders)
      : BlockLocalizer(builder, ranks.front()), main(main), ranks(ranks),
        reshards(reshards), orders(orders) {}

  FailureOr<func::FuncOp> build(StringRef name) {
    SmallVector<Type> inputs, outputs;
    Operation *terminator = main.front().getTerminator();
    for (BlockArgument argument : main.getArguments())
      inputs.push_back(getLocalTypeOrAbsent(argument));
    for (Value result : terminator->getOperands())
      outputs.push_back(getLocalTypeOrAbsent(result));
    auto function = func::FuncOp::create(
        main.getLoc(), name, builder.getFunctionType(inputs, outputs));
    function->setAttr(kRanksAttrName, builder.getDenseI64ArrayAttr(ranks));
    Block *entry = function.addEntryBlock();
    SmallVector<DictionaryAttr> attributes;
    for (auto [argument, local] :
         llvm::zip(main.getArguments(), entry->getArguments())) {
      local.setLoc(argument.getLoc());
      NamedAttrList all(main.getArgAttrDict(argument.getArgNumber()));
      all.set(globalTypeAttrName, TypeAttr::get(argument.getType()));
      attributes.push_back(all.getDictionary(main.getContext()));
      if (holds(argument))
        map(argument, local);
    }
    function.setAllArgAttrs(attributes);
    builder.setInsertionPointToStart(entry);
    if (failed(visitBlock(main.front())))
      return failure();

    SmallVector<Value> results;
    attributes.clear();
    for (auto [index, result] : llvm::enumerate(terminator->getOperands())) {
      NamedAttrList all(main.getResultAttrDict(index));
      all.set(globalTypeAttrName, TypeAttr::get(result.getType()));
      all.set(placementAttrName, getPlacement(result));
      attributes.push_back(all.getDictionary(main.getContext()));
      results.push_back(holds(result) ? lookup(result)
                                      : emitAbsent(outputs[index]));
    }
    function.setAllResultAttrs(attributes);
    func::ReturnOp::create(builder, terminator->getLoc(), results);
    cutLate(*entry);
    return function;
  }

private:
  /// Arguments are there all the time, so their pieces, as those that each
  /// micro-batch takes, are cut where they are first used.
  static void cutLate(Block &block) {
    auto slices = llvm::to_vector(block.getOps<hlo::SliceOp>());
    for (hlo::SliceOp slice : llvm::reverse(slices)) {
      if (!isa<BlockArgument>(slice.getOperand()))
        continue;
      Operation *first = nullptr;
      for (Operation *user : slice->getUsers()) {
        Operation *ancestor = block.findAncestorOpInBlock(*user);
        if (!first || ancestor->isBeforeInBlock(first))
          first = ancestor;
      }
      if (first)
        slice->moveBefore(first);
    }
  }

  Value lookup(Value value) const {
    if (moment)
      if (Value local = moment->lookup(value))
        return local;
    return values.lookup(value);
  }

  void map(Value value, Value local) override {
    (moment ? *moment : values)[value] = local;
  }

  Value getOperand(OpOperand &operand) override {
    Value local = lookup(operand.get());
    if (!local && isLate(operand.get().getDefiningOp())) {
      if (failed(visit(operand.get().getDefiningOp())))
        return {};
      local = lookup(operand.get());
    }
    if (!local)
      operand.getOwner()->emitError("operand #")
          << operand.getOperandNumber() << " is not placed on device "
          << device;
    return local;
  }

  /// What another stage sends to a micro-batch is received when it is first
  /// needed, and constants stand in no stage.
  bool isLate(Operation *producer) const {
    return moment && producer &&
           (isa<ReshardOp>(producer) ||
            producer->hasTrait<OpTrait::ConstantLike>());
  }

  /// A loop or branch doesn't receive what it uses in each of its rounds.
  LogicalResult visitCaptured(Operation *op) {
    for (Value value : getReads(op)) {
      Operation *producer = value.getDefiningOp();
      if (isLate(producer) && holds(value) && !lookup(value) &&
          failed(visit(producer)))
        return failure();
    }
    return success();
  }

  Placement getOperandPlacement(OpOperand &operand) override {
    return getPlacement(operand.get()).getValue();
  }

  Value emitAbsent(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return hlo::ConstantOp::create(
        builder, main.getLoc(),
        DenseElementsAttr::get(tensor, ArrayRef<Attribute>()));
  }

  LogicalResult visit(Operation *op) override {
    if (auto graph = dyn_cast<TaskGraphOp>(op)) {
      if (failed(visitBlock(graph.getBody().front())))
        return failure();
      for (auto [result, yielded] :
           llvm::zip(op->getResults(), graph.getYield()->getOperands()))
        if (Value local = lookup(yielded))
          map(result, local);
      return success();
    }
    if (auto loop = dyn_cast<MicroBatchesOp>(op))
      return visitMicroBatches(loop);
    if (auto reshard = dyn_cast<ReshardOp>(op))
      return visitReshard(reshard);
    if (hlo::isControlFlow(op) && holds(op->getResult(0)) &&
        failed(visitCaptured(op)))
      return failure();
    return BlockLocalizer::visit(op);
  }

  /// Whether devices have all that they had, or need it no more.
  static bool isNothing(const Step &step) {
    return step.kind == StepKind::LocalSlice &&
           llvm::all_of(step.to.devices(), [&](DeviceId device) {
             std::optional<Box> from = step.from.box(device);
             std::optional<Box> to = step.to.box(device);
             return from && to && from->volume() == to->volume();
           });
  }

  LogicalResult visitReshard(ReshardOp op) {
    const ResolvedReshard &resolved = reshards.at(op);
    if (auto earlier = cast_if_present<ReshardOp>(resolved.earlier)) {
      if (!holds(earlier))
        return success();
      if (!lookup(earlier) && failed(visitReshard(earlier)))
        return failure();
      map(op.getResult(), lookup(earlier));
      return success();
    }
    auto type = cast<RankedTensorType>(op.getType());
    Value value = lookup(op.getInput());
    int64_t channel = resolved.firstChannel;
    for (const Step &step : resolved.steps) {
      std::optional<RankedTensorType> result =
          getLocalType(type, step.to, device);
      // A collective keeps the element type; what it reduced in f32 is rounded
      // after it.
      std::optional<RankedTensorType> rounded = result;
      if (result)
        result = result->clone(getLocalElementType(type, step.from));
      if (isNothing(step)) {
        value = result ? value : Value();
        ++channel;
        continue;
      }
      if (!value && !result) {
        ++channel;
        continue;
      }
      OperationState state(op->getLoc(), collectiveName(step.kind));
      if (value)
        state.addOperands(value);
      if (result)
        state.addTypes(*result);
      MLIRContext *context = builder.getContext();
      state.addAttribute("channel", builder.getI64IntegerAttr(channel++));
      state.addAttribute("from", PlacementAttr::get(context, step.from));
      state.addAttribute("to", PlacementAttr::get(context, step.to));
      Operation *collective = builder.create(state);
      value = result ? adapt(collective->getResult(0), *rounded) : Value();
    }
    // Empty shards are all alike to the steps, so 0x2 may have stayed 0x2 where
    // 2x0 is wanted.
    auto wanted = cast<RankedTensorType>(getLocalTypeOrAbsent(op.getResult()));
    if (value &&
        cast<RankedTensorType>(value.getType()).getShape() != wanted.getShape())
      value = hlo::ReshapeOp::create(builder, op->getLoc(), wanted, value);
    if (value)
      map(op.getResult(), value);
    return success();
  }

  /// The last operation up to now, or null.
  Operation *getLast() const {
    Block *block = builder.getInsertionBlock();
    return block->empty() ? nullptr : &block->back();
  }

  /// Says of all operations behind `before` of which moment they are.
  void mark(Operation *before, int64_t moment) {
    Block *block = builder.getInsertionBlock();
    Attribute number = builder.getI64IntegerAttr(moment);
    auto first = before ? std::next(before->getIterator()) : block->begin();
    for (Operation &op : llvm::make_range(first, block->end()))
      op.setAttr(kMomentAttr, number);
  }

  /// Unrolls the moments in the order of this rank's stage.
  LogicalResult visitMicroBatches(MicroBatchesOp op) {
    std::vector<llvm::DenseMap<Value, Value>> moments(op.getNumMoments());
    SmallVector<Value> reduced(op.getNumReduced());
    std::vector<llvm::BitVector> isReduced(op.getNumMoments(),
                                           llvm::BitVector(op.getNumReduced()));
    for (int64_t m = 0; m < op.getNumMoments(); ++m)
      for (BlockArgument argument : op.getBody(m).getArguments())
        if (Value local =
                values.lookup(op.getSlice(argument.getArgNumber(), m).get()))
          moments[m][argument] = local;
    auto reduce = [&](int64_t m) {
      for (unsigned i = 0; i < op.getNumReduced(); ++i) {
        Value term = lookup(op.getYield(m)->getOperand(i));
        if (!term || isReduced[m][i])
          continue;
        isReduced[m].set(i);
        auto kind = cast<ReductionAttr>(op.getReductions()[i]).getValue();
        term = adapt(term, getLocalTypeOrAbsent(op.getResult(i)));
        reduced[i] = reduced[i] ? emitCombination(builder, term.getLoc(), kind,
                                                  reduced[i], term)
                                : term;
      }
    };

    auto communicates = [&](ReshardOp reshard) {
      return llvm::any_of(reshards.at(reshard).steps, [](const Step &step) {
        return step.kind != StepKind::LocalSlice;
      });
    };
    for (const MomentItem &item : orders.at(op).itemsOf(device, communicates)) {
      Operation *before = getLast();
      moment = &moments[item.moment];
      if (failed(visit(item.op)))
        return failure();
      reduce(item.moment);
      mark(before, item.moment);
    }
    for (int64_t m = 0; m < op.getNumMoments(); ++m) {
      Operation *before = getLast();
      moment = &moments[m];
      for (OpOperand &operand : op.getYield(m)->getOpOperands())
        if (holds(operand.get()) && !getOperand(operand))
          return failure();
      reduce(m);
      mark(before, m);
    }
    moment = nullptr;
    for (OpResult result : op->getResults()) {
      auto [index, m] = op.getYielded(result.getResultNumber());
      Value local = m ? moments[*m].lookup(op.getYield(*m)->getOperand(index))
                      : reduced[index];
      if (m && !local)
        local = values.lookup(op.getYield(*m)->getOperand(index));
      // None of the terms is this device's.
      if (!m && !local && holds(result)) {
        auto type = cast<RankedTensorType>(getLocalTypeOrAbsent(result));
        auto kind = cast<ReductionAttr>(op.getReductions()[index]).getValue();
        local = hlo::ConstantOp::create(
            builder, op.getLoc(),
            DenseElementsAttr::get(type,
                                   getIdentity(kind, type.getElementType())));
      }
      if (local)
        map(result, local);
    }
    return success();
  }

  func::FuncOp main;
  ArrayRef<int64_t> ranks;
  const ResolvedReshards &reshards;
  const MomentOrders &orders;
  llvm::DenseMap<Value, Value> values;
  /// The values of the micro-batch at hand, inside of micro-batches.
  llvm::DenseMap<Value, Value> *moment = nullptr;
};

struct PartitionPass : impl::PartitionBase<PartitionPass> {
  using PartitionBase::PartitionBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> main = getMainFunction(module);
    if (failed(main))
      return signalPassFailure();
    if (failed(checkPlacements(*main)))
      return signalPassFailure();
    Topology topology;
    int64_t deviceCount = 0;
    for (ClusterOp cluster : module.getOps<ClusterOp>()) {
      topology = Topology::of(cluster.getCluster());
      deviceCount = cluster.getCluster().devices.size();
    }
    ResolvedReshards reshards = resolveReshards(*main, topology);
    FailureOr<MomentOrders> orders = createMomentOrders(*main);
    if (failed(orders))
      return signalPassFailure();
    if (failed(build(*main, findRankClasses(*main, reshards, deviceCount),
                     reshards, *orders)))
      return signalPassFailure();
    main->erase();
    for (VirtualDeviceOp device :
         llvm::make_early_inc_range(module.getOps<VirtualDeviceOp>()))
      device.erase();
  }

private:
  static FailureOr<MomentOrders> createMomentOrders(func::FuncOp main) {
    MomentOrders orders;
    for (auto loop : main.getOps<MicroBatchesOp>()) {
      FailureOr<MomentOrder> order = MomentOrder::create(loop);
      if (failed(order))
        return failure();
      orders.try_emplace(loop, std::move(*order));
    }
    return orders;
  }

  /// Adds the function of each class to the module.
  LogicalResult build(func::FuncOp main, ArrayRef<std::vector<int64_t>> classes,
                      const ResolvedReshards &reshards,
                      const MomentOrders &orders) {
    std::vector<func::FuncOp> functions(classes.size());
    auto buildOne = [&](size_t index) -> LogicalResult {
      OpBuilder builder(&getContext());
      FailureOr<func::FuncOp> function =
          RankClassBuilder(builder, main, classes[index], reshards, orders)
              .build(("rank_class_" + Twine(index)).str());
      if (succeeded(function))
        functions[index] = *function;
      return function;
    };
    LogicalResult built =
        failableParallelForEachN(&getContext(), 0, classes.size(), buildOne);
    for (func::FuncOp function : functions)
      if (function)
        getOperation().push_back(function);
    return built;
  }

  /// Everything must have been placed, and every operand as it is wanted.
  LogicalResult checkPlacements(func::FuncOp main) {
    auto result = main.walk([&](Operation *op) {
      if (op->hasAttr(operandPlacementsAttrName)) {
        op->emitError("wants its operands placed otherwise; run "
                      "whale-insert-reshards first");
        return WalkResult::interrupt();
      }
      if (op == main || isa<TaskGraphOp, ReshardOp>(op))
        return WalkResult::advance();
      if (op->getNumResults() != 0 && op->getBlock()->getParentOp() &&
          hasPlacedRegions(op->getParentOp()) &&
          !getPlacement(op->getResult(0))) {
        op->emitError("has no placement; run whale-propagate first");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace
} // namespace whale
