//===- VerifyPlacements.cpp - The invariant of level 3 -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a function with placed values. Out: an error for the first operation
// whose placements don't fit. It reads the same rules as propagation, but
// decides nothing. Cost: linear in the operations and their values; of equal
// operations with equal placements one is looked at (VerifyPlacements/
// VerifyRule.cpp), different ones in parallel.
//
//===----------------------------------------------------------------------===//

#include "VerifyPlacements/VerifyRule.h"

#include "mlir/IR/Threading.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Sharding/OpRule.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include <atomic>
#include <set>
#include <vector>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_VERIFYPLACEMENTS
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

class Verifier {
public:
  Verifier(func::FuncOp function, std::optional<int64_t> deviceCount)
      : function(function), deviceCount(deviceCount) {}

  LogicalResult run() {
    for (BlockArgument argument : function.getArguments())
      if (failed(verifyPlaced(function, argument,
                              "argument #" + Twine(argument.getArgNumber()))))
        return failure();
    WalkResult result = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == function || isa<TaskGraphOp, YieldOp>(op))
        return WalkResult::advance();
      if (failed(verify(op)))
        return WalkResult::interrupt();
      // The bodies of reductions work on scalars.
      return hasPlacedRegions(op) ? WalkResult::advance() : WalkResult::skip();
    });
    return failure(result.wasInterrupted() || failed(verifyRules()));
  }

private:
  LogicalResult verifyPlaced(Operation *op, Value value, const Twine &what) {
    PlacementAttr attr = getPlacement(value);
    if (!attr)
      return op->emitOpError() << what << " has no placement";
    const Placement &placement = attr.getValue();
    bool isResharded = value.getDefiningOp<ReshardOp>() != nullptr;
    // Of many values one placement.
    if (!placed.insert({attr, value.getType(), isResharded}).second)
      return success();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !placement.isViewOf(type.getShape()))
      return op->emitOpError()
             << what << " has the placement " << placement.str()
             << ", which is none of " << value.getType();
    if (placement.hasWindows() && !isResharded)
      return op->emitOpError() << what << " has the placement "
                               << placement.str() << ": no value is made in "
                               << "windows";
    for (DeviceId device : placement.devices())
      if (deviceCount && device >= *deviceCount)
        return op->emitOpError() << what << " is placed on device " << device
                                 << ", and the cluster has " << *deviceCount;
    return success();
  }

  LogicalResult verifyOperandsPlaced(Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (failed(verifyPlaced(op, operand.get(),
                              "operand #" + Twine(operand.getOperandNumber()))))
        return failure();
    return success();
  }

  LogicalResult verify(Operation *op) {
    if (op->hasAttr(operandPlacementsAttrName))
      return op->emitOpError("wants its operands placed otherwise; run "
                             "whale-insert-reshards first");
    if (failed(verifyOperandsPlaced(op)))
      return failure();
    for (OpResult result : op->getResults())
      if (failed(verifyPlaced(op, result,
                              "result #" + Twine(result.getResultNumber()))))
        return failure();
    // What leaves a region is compared with the results.
    if (hasPlacedRegions(op))
      for (Region &region : op->getRegions())
        if (failed(verifyOperandsPlaced(region.front().getTerminator())))
          return failure();
    if (auto reshard = dyn_cast<ReshardOp>(op))
      return verifyReshard(reshard);
    if (hlo::isControlFlow(op))
      return failure(failed(verifyPredicate(op)) || failed(verifyRegions(op)));
    if (auto loop = dyn_cast<MicroBatchesOp>(op))
      return verifyMoments(loop);
    if (op->hasTrait<OpTrait::IsTerminator>())
      return success();
    // Layers repeat the same operations, and ranks may be many.
    if (op->getNumRegions() == 0 && !verified.insert(keyOf(op)).second)
      return success();
    if (isa<hlo::OptimizationBarrierOp>(op)) {
      for (auto [operand, result] :
           llvm::zip_equal(op->getOperands(), op->getResults()))
        if (failed(verifyCarried(op, operand, result)))
          return failure();
      return success();
    }
    if (std::optional<OpRule> rule = getOpRule(op)) {
      ruled.push_back({op, std::move(*rule)});
      return success();
    }
    return verifyWhole(op);
  }

  /// In parallel; of several errors the first is reported.
  LogicalResult verifyRules() {
    std::atomic<size_t> wrong = ruled.size();
    {
      ScopedDiagnosticHandler silent(function.getContext(),
                                     [](Diagnostic &) { return success(); });
      parallelFor(function.getContext(), 0, ruled.size(), [&](size_t i) {
        if (succeeded(verifyRule(ruled[i].first, ruled[i].second)))
          return;
        for (size_t first = wrong; i < first;)
          wrong.compare_exchange_weak(first, i);
      });
    }
    if (wrong == ruled.size())
      return success();
    const auto &[op, rule] = ruled[wrong];
    return verifyRule(op, rule);
  }

  /// What the verdict on an operation without regions depends on.
  static std::vector<const void *> keyOf(Operation *op) {
    std::vector<const void *> key{op->getName().getAsOpaquePointer(),
                                  op->getAttrDictionary().getAsOpaquePointer()};
    for (Value value :
         llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                             SmallVector<Value>(op->getResults()))) {
      key.push_back(value.getType().getAsOpaquePointer());
      key.push_back(getPlacement(value).getAsOpaquePointer());
    }
    return key;
  }

  static LogicalResult verifyReshard(ReshardOp reshard) {
    PlacementAttr given = getPlacement(reshard.getInput());
    if (given != reshard.getFromAttr())
      return reshard.emitOpError("is from ")
             << reshard.getFrom().getValue().str() << ", and its operand is "
             << given.getValue().str();
    return success();
  }

  /// What enters a loop or leaves a region is where the result does. A zero
  /// may enter where a partial value goes round: it has no terms to add.
  static LogicalResult verifyCarried(Operation *op, Value value, Value result) {
    const Placement &given = getPlacement(value).getValue();
    const Placement &wanted = getPlacement(result).getValue();
    if (given.isEquivalent(wanted) ||
        (!given.isPartial() && given.isEquivalent(wanted.withoutPartial())))
      return success();
    return op->emitOpError("carries a value from ")
           << given.str() << " to " << wanted.str();
  }

  /// Whoever computes or moves anything in a loop or branch goes the same way
  /// through it: each has the whole of what decides. Placements say which
  /// values are equal on several devices, and the rest of this verifier that
  /// they are.
  static LogicalResult verifyPredicate(Operation *op) {
    Operation *user = op;
    if (auto loop = dyn_cast<hlo::WhileOp>(op))
      user = loop.getCond().front().getTerminator();
    const Placement &decides = getPlacement(user->getOperand(0)).getValue();
    auto fail = [&]() -> InFlightDiagnostic {
      return user->emitOpError()
             << "decides by a value that is placed " << decides.str();
    };
    if (!decides.isReplicated())
      return fail() << "; every device needs the whole of it";
    llvm::SmallDenseSet<DeviceId> deciding(decides.devices().begin(),
                                           decides.devices().end());
    // Of the layers of a model many values have one placement.
    llvm::SmallDenseSet<Attribute> seen;
    WalkResult result = op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      for (Value value : inner->getResults()) {
        PlacementAttr attr = getPlacement(value);
        if (!attr || !seen.insert(attr).second)
          continue;
        for (DeviceId device : attr.getValue().devices())
          if (!deciding.contains(device)) {
            InFlightDiagnostic error = fail();
            error << ", which device " << device << " does not have";
            error.attachNote(inner->getLoc()) << "and that it needs for this";
            return WalkResult::interrupt();
          }
      }
      return hasPlacedRegions(inner) ? WalkResult::advance()
                                     : WalkResult::skip();
    });
    return failure(result.wasInterrupted());
  }

  static LogicalResult verifyRegions(Operation *op) {
    if (isa<hlo::WhileOp>(op))
      for (auto [operand, result] :
           llvm::zip_equal(op->getOperands(), op->getResults()))
        if (failed(verifyCarried(op, operand, result)))
          return failure();
    for (Region &region : op->getRegions()) {
      if (isa<hlo::WhileOp>(op) && region.getRegionNumber() == 0)
        continue;
      for (auto [value, result] : llvm::zip_equal(
               region.front().getTerminator()->getOperands(), op->getResults()))
        if (failed(
                verifyCarried(region.front().getTerminator(), value, result)))
          return failure();
    }
    return success();
  }

  /// Whether a value that is as `given` can be a term of one that is as
  /// `wanted`, to which each device that it names adds no other.
  static bool isTerm(const PlacementNode &given, const PlacementNode &wanted) {
    if (given == wanted)
      return true;
    if (wanted.kind == PlacementNode::Kind::Partial)
      return llvm::any_of(wanted.children, [&](const PlacementNode &child) {
        return isTerm(given, child);
      });
    return given.kind == wanted.kind && given.dim == wanted.dim &&
           given.sizes == wanted.sizes && given.starts == wanted.starts &&
           given.children.size() == wanted.children.size() &&
           llvm::all_of_zip(given.children, wanted.children, isTerm);
  }

  /// What leaves a moment as a term of a sum over all of them may be on those
  /// devices alone that have made it.
  static LogicalResult verifyTerm(Operation *op, Value value, Value result) {
    const Placement &given = getPlacement(value).getValue();
    const Placement &wanted = getPlacement(result).getValue();
    if (given.isEquivalent(wanted) ||
        (given.view() == wanted.view() && isTerm(given.root(), wanted.root())))
      return success();
    return op->emitOpError("yields a term from ")
           << given.str() << " to " << wanted.str();
  }

  /// Every moment takes and gives values where the loop does.
  static LogicalResult verifyMoments(MicroBatchesOp loop) {
    for (int64_t moment = 0; moment < loop.getNumMoments(); ++moment) {
      for (BlockArgument argument : loop.getBody(moment).getArguments())
        if (failed(verifyCarried(
                loop, loop.getSlice(argument.getArgNumber(), moment).get(),
                argument)))
          return failure();
      for (OpResult result : loop->getResults()) {
        auto [index, only] = loop.getYielded(result.getResultNumber());
        if (only && *only != moment)
          continue;
        Operation *yield = loop.getYield(moment);
        Value value = yield->getOperand(index);
        if (failed(only ? verifyCarried(yield, value, result)
                        : verifyTerm(yield, value, result)))
          return failure();
      }
    }
    return success();
  }

  /// An operation without a rule can only be computed whole.
  static LogicalResult verifyWhole(Operation *op) {
    auto isWhole = [](Value value) {
      return getPlacement(value).getValue().isReplicated();
    };
    if (llvm::all_of(op->getOperands(), isWhole) &&
        llvm::all_of(op->getResults(), isWhole))
      return success();
    return op->emitOpError(
        "is split or partial, and has no rule that says how");
  }

  func::FuncOp function;
  /// Placements of a type, of a reshard or not, of which the same is true.
  llvm::DenseSet<std::tuple<Attribute, Type, unsigned>> placed;
  /// Keys of operations that were found right, or will be reported.
  std::set<std::vector<const void *>> verified;
  /// Operations that have a rule.
  std::vector<std::pair<Operation *, OpRule>> ruled;
  std::optional<int64_t> deviceCount;
};

struct VerifyPlacementsPass : impl::VerifyPlacementsBase<VerifyPlacementsPass> {
  using VerifyPlacementsBase::VerifyPlacementsBase;

  void runOnOperation() final {
    markAllAnalysesPreserved();
    FailureOr<func::FuncOp> main = getMainFunction(getOperation());
    if (failed(main))
      return signalPassFailure();
    std::optional<int64_t> deviceCount;
    for (ClusterOp cluster : getOperation().getOps<ClusterOp>())
      deviceCount = cluster.getCluster().devices.size();
    if (failed(Verifier(*main, deviceCount).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace whale
