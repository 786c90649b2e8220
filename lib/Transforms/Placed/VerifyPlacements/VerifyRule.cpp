//===- VerifyRule.cpp - Placements around one operation -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an operation with placed operands and results, and its rule. Out: an
// error where they don't fit. Each tensor is seen in a view with a dimension
// for each piece in which any of them cuts a factor; on every device a piece
// must then have one interval. Cost: linear in the shards of the operation's
// tensors times the dimensions of their views, with a search by device and
// piece for each.
//
//===----------------------------------------------------------------------===//

#include "VerifyRule.h"

#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/Reducers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace whale {

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

/// By device and piece of a factor: where it starts, its size, and a tensor
/// that says so.
struct Interval {
  int64_t start, size, extent;
  const Tensor *tensor;
};
using Intervals =
    llvm::MapVector<std::tuple<DeviceId, unsigned, int64_t>, Interval>;

} // namespace

/// Whether windows of a tensor's dimension are read.
static bool isWindowed(const Tensor &tensor, const OpRule &rule, unsigned dim) {
  return llvm::any_of(rule.windows, [&](const OperandWindow &read) {
    return !tensor.isResult && read.operand == tensor.index && read.dim == dim;
  });
}

/// The cuts that the view of a placement makes in the factors of a tensor.
static void collectCuts(const Tensor &tensor, const OpRule &rule,
                        FactorCuts &cuts) {
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
static bool refineView(Tensor &tensor, const OpRule &rule,
                       const FactorCuts &cuts) {
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
  return !box ||
         llvm::is_contained(ArrayRef(box->size).slice(first, last - first), 0);
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
               << ", and device " << device << " reads " << needed.begin << ":"
               << needed.end << " of dimension " << read.dim;
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

/// Whether each term of the result follows from those of operands, which are
/// all of one reduction, and of whole values.
static bool combines(Operation *op, ArrayRef<Tensor> tensors) {
  std::optional<Reduction> reduction;
  for (const Tensor &tensor : tensors) {
    if (!tensor.placement.isPartial())
      continue;
    std::optional<Reduction> own = tensor.placement.reduction();
    if (!own || reduction.value_or(*own) != *own || !combinesTerms(op, *own))
      return false;
    reduction = own;
  }
  return reduction.has_value();
}

/// Terms are passed on where the operation is linear in them, or combines them.
static LogicalResult verifyPartials(Operation *op, const OpRule &rule,
                                    ArrayRef<Tensor> tensors) {
  SmallVector<unsigned> partial;
  for (const Tensor &tensor : tensors)
    if (!tensor.isResult && tensor.placement.isPartial())
      partial.push_back(tensor.index);
  if (partial.empty())
    return success();
  bool isLinear = llvm::any_of(rule.linear, [&](ArrayRef<unsigned> operands) {
    return llvm::all_of(partial, [&](unsigned operand) {
      return llvm::is_contained(operands, operand);
    });
  });
  if (!isLinear && !combines(op, tensors))
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

LogicalResult verifyRule(Operation *op, const OpRule &rule) {
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

} // namespace whale
