//===- VerifyPlacements.cpp - The invariant of level 3 -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Reads the same rules as propagation, but decides nothing: on every device
// each factor of an operation must have the same interval in all tensors that
// have it, and what a rule doesn't mention must be whole.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Threading.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/OpRule.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
#include <atomic>
#include <set>
#include <vector>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_VERIFYPLACEMENTS
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

/// A dimension of a refined view: one piece of a factor, or a dimension that
/// the rule doesn't mention.
struct ViewDim {
  int64_t extent;
  std::optional<unsigned> factor;
  /// Product of the factor's pieces that are minor to this one.
  int64_t minor = 1;
  /// Rows that windows are taken of, whatever the factors.
  bool isWindowed = false;
};

/// One operand or result with its dimensions as the rule sees them.
struct Tensor {
  Value value;
  const DimFactors *dims;
  Placement placement;
  bool isResult;
  unsigned index;
  SmallVector<ViewDim> view = {};

  ArrayRef<int64_t> shape() const {
    return cast<RankedTensorType>(value.getType()).getShape();
  }
  std::string name() const {
    return ((isResult ? "result #" : "operand #") + Twine(index)).str();
  }
};

/// The minor products at which a factor is cut by the views of an operation's
/// tensors, ascending.
using FactorCuts = SmallVector<llvm::SmallSet<int64_t, 4>, 4>;

/// Whether windows of a tensor's dimension are read.
bool isWindowed(const Tensor &tensor, const OpRule &rule, unsigned dim) {
  return llvm::any_of(rule.windows, [&](const OperandWindow &read) {
    return !tensor.isResult && read.operand == tensor.index && read.dim == dim;
  });
}

/// The cuts that the view of a placement makes in the factors of a tensor.
void collectCuts(const Tensor &tensor, const OpRule &rule, FactorCuts &cuts) {
  std::optional<CommonView> common =
      commonRefinement(tensor.shape(), tensor.placement.view());
  if (!common)
    return;
  for (auto [dim, factors] : llvm::enumerate(*tensor.dims)) {
    if (isWindowed(tensor, rule, dim))
      continue;
    auto [first, last] = common->first[dim];
    int64_t minor = 1;
    for (unsigned i = last; i-- > first;) {
      minor *= common->extents[i];
      // The factor in which [minor] lies, counted from the minor end.
      int64_t below = 1;
      for (unsigned factor : llvm::reverse(factors)) {
        int64_t extent = rule.factors[factor].extent;
        if (minor % below == 0 && minor / below > 1 && minor / below < extent)
          cuts[factor].insert(minor / below);
        below *= extent;
      }
    }
  }
}

/// The view of a tensor in which every piece of every factor is a dimension;
/// false where cuts don't divide each other.
bool refineView(Tensor &tensor, const OpRule &rule, const FactorCuts &cuts) {
  for (auto [dim, extent, factors] :
       llvm::enumerate(tensor.shape(), *tensor.dims)) {
    if (isWindowed(tensor, rule, dim)) {
      tensor.view.push_back({extent, std::nullopt, 1, /*isWindowed=*/true});
      continue;
    }
    if (factors.empty())
      tensor.view.push_back({extent, std::nullopt});
    for (unsigned factor : factors) {
      SmallVector<int64_t> minors(cuts[factor].begin(), cuts[factor].end());
      llvm::sort(minors);
      int64_t above = rule.factors[factor].extent;
      for (int64_t minor : llvm::reverse(minors)) {
        if (above % minor != 0)
          return false;
        tensor.view.push_back({above / minor, factor, minor});
        above = minor;
      }
      tensor.view.push_back({above, factor, 1});
    }
  }
  return true;
}

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

  static LogicalResult verifyRule(Operation *op, const OpRule &rule) {
    SmallVector<Tensor> tensors;
    for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
      tensors.push_back({value, &dims, getPlacement(value).getValue(), false,
                         unsigned(tensors.size())});
    for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule.results))
      tensors.push_back({value, &dims, getPlacement(value).getValue(), true,
                         unsigned(tensors.size() - op->getNumOperands())});
    if (failed(verifyPartials(op, rule, tensors)))
      return failure();
    FactorCuts cuts(rule.factors.size());
    for (const Tensor &tensor : tensors)
      collectCuts(tensor, rule, cuts);
    for (Tensor &tensor : tensors)
      if (!refineView(tensor, rule, cuts))
        return op->emitOpError("cuts a dimension in pieces that don't divide "
                               "each other");
    Intervals intervals;
    for (const Tensor &tensor : tensors)
      if (failed(verifyBoxes(op, rule, tensor, intervals)) ||
          failed(verifyWindows(op, rule, tensor)))
        return failure();
    return verifyReduced(op, rule, tensors, intervals);
  }

  /// By device and piece of a factor: where it starts, its size, and a tensor
  /// that says so.
  struct Interval {
    int64_t start, size, extent;
    const Tensor *tensor;
  };
  using Intervals =
      llvm::MapVector<std::tuple<DeviceId, unsigned, int64_t>, Interval>;

  static LogicalResult verifyBoxes(Operation *op, const OpRule &rule,
                                   const Tensor &tensor, Intervals &intervals) {
    Extents view;
    for (const ViewDim &dim : tensor.view)
      view.push_back(dim.extent);
    for (const Shard &shard : tensor.placement.shards()) {
      if (shard.box.empty())
        continue;
      std::optional<Box> box =
          convertBox(shard.box, tensor.placement.view(), view);
      if (!box)
        return op->emitOpError()
               << tensor.name() << " is placed " << tensor.placement.str()
               << ", which cuts across the factors of its rule";
      for (auto [i, dim] : llvm::enumerate(tensor.view)) {
        if (dim.isWindowed)
          continue;
        bool isWhole = box->size[i] == dim.extent;
        bool canSplit =
            dim.factor && rule.factors[*dim.factor].kind != FactorKind::Blocked;
        if (!isWhole && !canSplit)
          return op->emitOpError()
                 << tensor.name() << " is placed " << tensor.placement.str()
                 << ", which cuts a dimension that the operation needs whole";
        if (!dim.factor)
          continue;
        auto [it, isNew] = intervals.try_emplace(
            {shard.device, *dim.factor, dim.minor},
            Interval{box->start[i], box->size[i], dim.extent, &tensor});
        const Interval &other = it->second;
        if (other.start != box->start[i] || other.size != box->size[i])
          return op->emitOpError()
                 << tensor.name() << " is placed " << tensor.placement.str()
                 << " and " << other.tensor->name() << " "
                 << other.tensor->placement.str()
                 << ": they disagree about a dimension that they share on "
                 << "device " << shard.device;
      }
    }
    return success();
  }

  /// Whether a device has nothing of an operand for want of rows; without
  /// channels it makes zeros.
  static bool hasNoRows(const Tensor &tensor, const OperandWindow &read,
                        DeviceId device) {
    std::optional<Box> box = tensor.placement.box(device);
    auto [first, last] =
        getViewRuns(tensor.shape(), tensor.placement.view())[read.dim];
    return !box || llvm::is_contained(
                       ArrayRef(box->size).slice(first, last - first), 0);
  }

  /// Every device has the rows that its positions read, and windows of nothing
  /// else.
  static LogicalResult verifyWindows(Operation *op, const OpRule &rule,
                                     const Tensor &tensor) {
    const Placement &placement = tensor.placement;
    for (const OperandWindow &read : rule.windows) {
      if (tensor.isResult || read.operand != tensor.index)
        continue;
      Value positions = read.isOfResult ? Value(op->getResult(0))
                                        : op->getOperand(read.positionOperand);
      const Placement &computed = getPlacement(positions).getValue();
      for (DeviceId device : placement.devices()) {
        std::optional<RowRange> wanted =
            getLocalRange(positions, computed, read.positionDim, device);
        if (!wanted && computed.holds(device))
          return op->emitOpError("is placed ")
                 << computed.str() << ", which cuts an image into other parts "
                 << "than runs of rows";
        if (!wanted)
          continue;
        RowRange needed = read.window.neededRows(*wanted);
        std::optional<RowRange> held =
            getLocalRange(tensor.value, placement, read.dim, device);
        if (held ? !held->contains(needed) : hasNoRows(tensor, read, device))
          return op->emitOpError()
                 << tensor.name() << " is placed " << placement.str()
                 << ", and device " << device << " reads " << needed.begin
                 << ":" << needed.end << " of dimension " << read.dim;
      }
    }
    if (!placement.hasWindows())
      return success();
    Placement parts = placement.withoutWindows();
    for (unsigned dim = 0; dim < tensor.shape().size(); ++dim)
      for (DeviceId device : placement.devices()) {
        std::optional<RowRange> held =
            getLocalRange(tensor.value, placement, dim, device);
        std::optional<RowRange> part =
            getLocalRange(tensor.value, parts, dim, device);
        if (held && part && *held != *part && !isWindowed(tensor, rule, dim))
          return op->emitOpError()
                 << tensor.name() << " is placed " << placement.str()
                 << ", and the operation reads no windows of dimension " << dim;
      }
    return success();
  }

  /// Terms are passed on where the operation is linear in them.
  static LogicalResult verifyPartials(Operation *op, const OpRule &rule,
                                      ArrayRef<Tensor> tensors) {
    SmallVector<unsigned> partial;
    for (const Tensor &tensor : tensors)
      if (!tensor.isResult && tensor.placement.isPartial())
        partial.push_back(tensor.index);
    if (partial.empty())
      return success();
    if (llvm::none_of(rule.linear, [&](ArrayRef<unsigned> operands) {
          return llvm::all_of(partial, [&](unsigned operand) {
            return llvm::is_contained(operands, operand);
          });
        }))
      return op->emitOpError("operand #")
             << partial.front() << " is partial, and the operation is not "
             << "linear in it";
    for (const Tensor &tensor : tensors)
      if (tensor.isResult && !tensor.placement.isPartial())
        return op->emitOpError()
               << tensor.name() << " must be partial as operand #"
               << partial.front() << " is";
    return success();
  }

  /// Where a factor is reduced in parts, results without it are partial.
  static LogicalResult verifyReduced(Operation *op, const OpRule &rule,
                                     ArrayRef<Tensor> tensors,
                                     const Intervals &intervals) {
    for (const auto &[key, interval] : intervals) {
      const Factor &factor = rule.factors[std::get<1>(key)];
      bool isReduced = factor.kind == FactorKind::Reduction ||
                       factor.kind == FactorKind::MaskedGather;
      if (!isReduced || interval.size == interval.extent)
        continue;
      Reduction reduction = factor.kind == FactorKind::Reduction
                                ? factor.reduction
                                : Reduction::Sum;
      auto hasFactor = [&, key = key](const ViewDim &dim) {
        return dim.factor == std::get<1>(key);
      };
      for (const Tensor &tensor : tensors)
        if (tensor.isResult && llvm::none_of(tensor.view, hasFactor) &&
            tensor.placement.reduction() != reduction)
          return op->emitOpError()
                 << tensor.name() << " is placed " << tensor.placement.str()
                 << ", but " << interval.tensor->name()
                 << " is split along a dimension that is reduced by "
                 << stringifyReduction(reduction);
    }
    return success();
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
