//===- Localize.cpp - One operation on one rank's shards -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an operation on global shapes, the placements of its operands and
// results, and a device's shards of the operands. Out: operations that compute
// the device's shards of the results.
//
// Most operations are emitted as they are, with the types of the shards. Bounds
// of slices and pads scale with the dimension. A split iota adds the offset of
// its shard. Indices into a split dimension become relative to the shard: a
// gather gives zeros for rows of other shards, a scatter drops their updates. A
// convolution gets the groups, and along an image the padding, of its part.
// Partial results of floats below f32 are computed in f32. Where all results
// are empty, they are empty constants. Cost: linear in the ranks, and a copy of
// the operation's regions.
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/Localize.h"
#include "LocalIndices.h"
#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/LocalShapes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
namespace {

/// Emits one operation; the fields are those of LocalOperation.
class Localizer {
public:
  Localizer(OpBuilder &builder, const LocalOperation &local)
      : builder(builder), local(local), op(local.op), loc(op->getLoc()) {
    for (auto [value, placement] :
         llvm::zip(op->getResults(), local.resultPlacements))
      resultTypes.push_back(*getLocalType(
          cast<RankedTensorType>(value.getType()), placement, local.device));
    operands.assign(local.operands.begin(), local.operands.end());
    // Partial sums of floats below f32 are computed in f32 throughout.
    for (auto [value, type] : llvm::zip(op->getResults(), resultTypes))
      isWidened |=
          getElementTypeOrSelf(value.getType()) != getElementTypeOrSelf(type);
    if (isWidened)
      for (Value &operand : operands)
        operand = widen(operand);
  }

  FailureOr<SmallVector<Value>> run() {
    // A share may be empty; then there is nothing to compute, and operations
    // that want at least one row need not see it.
    if (llvm::all_of(resultTypes, [](Type type) {
          return cast<RankedTensorType>(type).getNumElements() == 0;
        }))
      return llvm::map_to_vector(resultTypes, [&](Type type) -> Value {
        return hlo::ConstantOp::create(
            builder, loc,
            DenseElementsAttr::get(cast<RankedTensorType>(type),
                                   ArrayRef<Attribute>()));
      });
    return llvm::TypeSwitch<Operation *, FailureOr<SmallVector<Value>>>(op)
        .Case([&](hlo::ConstantOp constant) { return emitConstant(constant); })
        .Case([&](hlo::IotaOp iota) { return emitIota(iota); })
        .Case([&](hlo::SliceOp slice) { return emitSlice(slice); })
        .Case([&](hlo::PadOp pad) { return emitPad(pad); })
        .Case([&](hlo::DynamicSliceOp slice) { return emitDynamicSlice(); })
        .Case([&](hlo::GatherOp gather) { return emitGather(gather); })
        .Case([&](hlo::ScatterOp scatter) { return emitScatter(scatter); })
        .Case([&](hlo::ConvolutionOp conv) { return emitConvolution(); })
        .Default([&](Operation *) { return emitSame({}); });
  }

private:
  /// The operation on the local operands, with some attributes replaced.
  SmallVector<Value> emitSame(ArrayRef<NamedAttribute> replaced) {
    return emitSame(operands, replaced);
  }

  Type widen(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? tensor.clone(getWideType(tensor.getElementType())) : type;
  }
  Value widen(Value value) {
    Type type = widen(value.getType());
    if (type == value.getType())
      return value;
    return hlo::ConvertOp::create(builder, loc, type, value);
  }

  SmallVector<Value> emitSame(ValueRange values,
                              ArrayRef<NamedAttribute> replaced) {
    NamedAttrList attributes(op->getAttrDictionary());
    for (StringRef name : {"whale.placements", "whale.operand_placements",
                           "whale.strategy", "whale.phase"})
      attributes.erase(name);
    for (NamedAttribute attribute : replaced)
      attributes.set(attribute.getName(), attribute.getValue());
    OperationState state(loc, op->getName(), values, resultTypes, {});
    state.addAttributes(attributes);
    for (Region &region : op->getRegions()) {
      IRMapping mapping;
      region.cloneInto(state.addRegion(), mapping);
    }
    Operation *localOp = builder.create(state);
    if (isWidened)
      for (Region &region : localOp->getRegions())
        widenBody(region);
    return llvm::to_vector_of<Value>(localOp->getResults());
  }

  void widenBody(Region &region) {
    region.walk([&](Block *block) {
      for (BlockArgument argument : block->getArguments())
        argument.setType(widen(argument.getType()));
      for (Operation &inner : *block)
        for (Value result : inner.getResults())
          result.setType(widen(result.getType()));
    });
  }

  NamedAttribute attribute(StringRef name, ArrayRef<int64_t> values) {
    return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values));
  }

  RankedTensorType operandType(unsigned index) {
    return cast<RankedTensorType>(operands[index].getType());
  }
  ArrayRef<int64_t> globalShape(unsigned operand) {
    return cast<RankedTensorType>(op->getOperand(operand).getType()).getShape();
  }

  Value emitSplat(int64_t value, RankedTensorType type) {
    Type element = type.getElementType();
    Attribute attr =
        isa<FloatType>(element)
            ? Attribute(builder.getFloatAttr(element, double(value)))
            : Attribute(builder.getIntegerAttr(element, value));
    return hlo::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, attr));
  }

  SmallVector<Value> emitConstant(hlo::ConstantOp constant) {
    auto value = cast<DenseElementsAttr>(constant.getValue());
    auto type = cast<RankedTensorType>(resultTypes[0]);
    if (type != constant.getType())
      value = value.resizeSplat(type);
    return {hlo::ConstantOp::create(builder, loc, value)};
  }

  /// A split iota counts from the start of the shard. Where only a part of the
  /// dimension is split (view [outer, part, minor]) each part counts by its
  /// stride and the sum is what the whole iota holds.
  SmallVector<Value> emitIota(hlo::IotaOp iota) {
    auto type = cast<RankedTensorType>(resultTypes[0]);
    auto global = cast<RankedTensorType>(iota.getType());
    unsigned dim = iota.getIotaDimension();
    if (type.getDimSize(dim) == global.getDimSize(dim))
      return emitSame({});
    const Placement &placement = local.resultPlacements[0];
    std::optional<Box> box = placement.box(local.device);
    auto runs = getViewRuns(global.getShape(), placement.view());
    // The iota in view coordinates of its dimension.
    SmallVector<int64_t> viewShape;
    unsigned viewDim = 0;
    for (auto [index, run] : llvm::enumerate(runs)) {
      if (index == dim)
        viewDim = viewShape.size();
      if (index != dim)
        viewShape.push_back(type.getDimSize(index));
      else
        for (unsigned i = run.first; i < run.second; ++i)
          viewShape.push_back(box->size[i]);
    }
    // Positions are exact integers; what can't hold each of them rounds once.
    Type element = type.getElementType();
    if (!isa<IntegerType>(element))
      element = builder.getI32Type();
    auto viewType = RankedTensorType::get(viewShape, element);
    Value sum;
    int64_t stride = global.getDimSize(dim);
    for (unsigned i = runs[dim].first; i < runs[dim].second; ++i, ++viewDim) {
      stride /= placement.view()[i];
      Value part = hlo::IotaOp::create(builder, loc, viewType, viewDim);
      if (box->size[i] != placement.view()[i]) {
        Value offset = emitShardOffset(builder, loc, placement, i, element);
        offset = hlo::BroadcastInDimOp::create(
            builder, loc, viewType, offset, builder.getDenseI64ArrayAttr({}));
        part = hlo::AddOp::create(builder, loc, part, offset);
      }
      if (stride != 1)
        part =
            hlo::MulOp::create(builder, loc, part, emitSplat(stride, viewType));
      sum = sum ? hlo::AddOp::create(builder, loc, sum, part) : part;
    }
    auto counted = type.clone(element);
    if (viewType != counted)
      sum = hlo::ReshapeOp::create(builder, loc, counted, sum);
    if (counted != type)
      sum = hlo::ConvertOp::create(builder, loc, type, sum);
    return {sum};
  }

  /// A position that is aligned to whole blocks, in a dimension whose blocks
  /// have shrunk from `global / blocks` to `local / blocks` elements.
  static int64_t scale(int64_t position, int64_t local, int64_t global) {
    return local == global ? position : position * local / global;
  }

  SmallVector<Value> emitSlice(hlo::SliceOp slice) {
    SmallVector<int64_t> starts(slice.getStartIndices());
    SmallVector<int64_t> limits(slice.getLimitIndices());
    for (auto [dim, size] : llvm::enumerate(operandType(0).getShape())) {
      starts[dim] = scale(starts[dim], size, globalShape(0)[dim]);
      limits[dim] = scale(limits[dim], size, globalShape(0)[dim]);
    }
    return emitSame({attribute("start_indices", starts),
                     attribute("limit_indices", limits)});
  }

  SmallVector<Value> emitPad(hlo::PadOp pad) {
    SmallVector<int64_t> low(pad.getEdgePaddingLow());
    SmallVector<int64_t> high(pad.getEdgePaddingHigh());
    for (auto [dim, size] : llvm::enumerate(operandType(0).getShape())) {
      low[dim] = scale(low[dim], size, globalShape(0)[dim]);
      high[dim] = scale(high[dim], size, globalShape(0)[dim]);
    }
    return emitSame({attribute("edge_padding_low", low),
                     attribute("edge_padding_high", high)});
  }

  SmallVector<Value> emitDynamicSlice() {
    auto type = cast<RankedTensorType>(resultTypes[0]);
    return emitSame({attribute("slice_sizes", type.getShape())});
  }

  /// Indices in a type that holds all positions and their differences.
  Value widenIndices(Value indices) {
    auto type = cast<RankedTensorType>(indices.getType());
    Type element = type.getElementType();
    if (element.isSignlessInteger() && element.getIntOrFloatBitWidth() >= 32)
      return indices;
    return hlo::ConvertOp::create(builder, loc,
                                  type.clone(builder.getI64Type()), indices);
  }

  FailureOr<SmallVector<Value>> emitGather(hlo::GatherOp gather) {
    hlo::GatherDimensionNumbersAttr dims = gather.getDimensionNumbers();
    auto type = cast<RankedTensorType>(resultTypes[0]);
    // Rows are taken one by one; other dimensions of the operand as a whole,
    // so their local size is that of the shard.
    SmallVector<int64_t> sizes(gather.getSliceSizes());
    for (auto [dim, size] : llvm::enumerate(operandType(0).getShape()))
      if (sizes[dim] == globalShape(0)[dim])
        sizes[dim] = size;
    NamedAttribute sliceSizes = attribute("slice_sizes", sizes);
    if (operandType(0).getNumElements() == 0)
      return SmallVector<Value>{emitSplat(0, type)};
    // Indices are clamped to the whole dimension first, as gather does; then
    // a row of this shard is looked up and any other is zero.
    Lookup lookup{globalShape(0),
                  local.operandPlacements[0],
                  local.device,
                  dims.getCollapsedSliceDims(),
                  dims.getStartIndexMap(),
                  dims.getIndexVectorDim()};
    if (!looksUpSplit(lookup))
      return emitSame({sliceSizes});
    Value whole = widenIndices(operands[1]);
    auto indexType = cast<RankedTensorType>(whole.getType());
    whole =
        hlo::ClampOp::create(builder, loc, indexType, emitSplat(0, indexType),
                             whole, emitLastRows(gather, indexType));
    auto [indices, isMine] = emitLocalIndices(builder, loc, whole, lookup);
    Value rowsTaken =
        emitSame(ValueRange{operands[0], indices}, {sliceSizes})[0];
    SmallVector<int64_t> batchDims;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (!llvm::is_contained(dims.getOffsetDims(), dim))
        batchDims.push_back(dim);
    Value mask = hlo::BroadcastInDimOp::create(
        builder, loc, type.clone(builder.getI1Type()), isMine,
        builder.getDenseI64ArrayAttr(batchDims));
    return SmallVector<Value>{hlo::SelectOp::create(
        builder, loc, mask, rowsTaken, emitSplat(0, type))};
  }

  /// The last position that each component of an index vector may have.
  Value emitLastRows(hlo::GatherOp gather, RankedTensorType indexType) {
    ArrayRef<int64_t> map = gather.getDimensionNumbers().getStartIndexMap();
    int64_t vectorDim = gather.getDimensionNumbers().getIndexVectorDim();
    auto lastOf = [&](int64_t dim) {
      return globalShape(0)[dim] - gather.getSliceSizes()[dim];
    };
    if (map.size() == 1)
      return emitSplat(lastOf(map[0]), indexType);
    // One bound per component, laid out along the index vector.
    SmallVector<Attribute> bounds;
    for (int64_t dim : map)
      bounds.push_back(
          builder.getIntegerAttr(indexType.getElementType(), lastOf(dim)));
    auto vectorType = RankedTensorType::get({int64_t(map.size())},
                                            indexType.getElementType());
    Value vector = hlo::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(vectorType, bounds));
    return hlo::BroadcastInDimOp::create(
        builder, loc, indexType, vector,
        builder.getDenseI64ArrayAttr({vectorDim}));
  }

  /// Updates outside of the shard are put out of bounds, and so are dropped.
  SmallVector<Value> emitScatter(hlo::ScatterOp scatter) {
    hlo::ScatterDimensionNumbersAttr dims =
        scatter.getScatterDimensionNumbers();
    Lookup lookup{globalShape(0),
                  local.operandPlacements[0],
                  local.device,
                  dims.getInsertedWindowDims(),
                  dims.getScatterDimsToOperandDims(),
                  dims.getIndexVectorDim()};
    if (!looksUpSplit(lookup))
      return emitSame({});
    auto [indices, isMine] =
        emitLocalIndices(builder, loc, widenIndices(operands[1]), lookup);
    auto type = cast<RankedTensorType>(indices.getType());
    SmallVector<int64_t> batchDims;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (dim != dims.getIndexVectorDim())
        batchDims.push_back(dim);
    Value mask = hlo::BroadcastInDimOp::create(
        builder, loc, type.clone(builder.getI1Type()), isMine,
        builder.getDenseI64ArrayAttr(batchDims));
    indices =
        hlo::SelectOp::create(builder, loc, mask, indices, emitSplat(-1, type));
    return emitSame(ValueRange{operands[0], indices, operands[2]}, {});
  }

  /// Groups of features and batches that were split over devices, and parts of
  /// images, which are padded where the whole is and by what their windows hold
  /// too much.
  FailureOr<SmallVector<Value>> emitConvolution() {
    auto conv = cast<hlo::ConvolutionOp>(op);
    hlo::ConvDimensionNumbersAttr dims = conv.getDimensionNumbers();
    int64_t features =
        operandType(0).getDimSize(dims.getInputFeatureDimension());
    int64_t perGroup =
        operandType(1).getDimSize(dims.getKernelInputFeatureDimension());
    int64_t batch = operandType(0).getDimSize(dims.getInputBatchDimension());
    auto type = cast<RankedTensorType>(resultTypes[0]);
    int64_t resultBatch = type.getDimSize(dims.getOutputBatchDimension());
    if (llvm::is_contained(operandType(0).getShape(), 0) ||
        llvm::is_contained(operandType(1).getShape(), 0) ||
        llvm::is_contained(type.getShape(), 0))
      return SmallVector<Value>{emitSplat(0, type)};
    SmallVector<NamedAttribute> replaced{
        builder.getNamedAttr("feature_group_count",
                             builder.getI64IntegerAttr(features / perGroup)),
        builder.getNamedAttr("batch_group_count",
                             builder.getI64IntegerAttr(batch / resultBatch))};
    FailureOr<DenseIntElementsAttr> padding = emitPadding(conv);
    if (failed(padding))
      return failure();
    if (*padding)
      replaced.push_back(builder.getNamedAttr("padding", *padding));
    return emitSame(replaced);
  }

  /// The padding of a part of an image; null where nothing is split.
  FailureOr<DenseIntElementsAttr> emitPadding(hlo::ConvolutionOp conv) {
    OpRule rule = *getOpRule(op);
    ArrayRef<int64_t> spatial =
        conv.getDimensionNumbers().getInputSpatialDimensions();
    SmallVector<int64_t> padding(2 * spatial.size(), 0);
    if (conv.getPadding())
      padding = llvm::to_vector(conv.getPadding()->getValues<int64_t>());
    SmallVector<int64_t> own =
        getLocalPadding(op, rule, local.operandPlacements,
                        local.resultPlacements, local.device);
    bool isSplit = false;
    for (auto [index, read] : llvm::enumerate(rule.windows)) {
      Value positions =
          read.isOfResult ? Value() : operands[read.positionOperand];
      Type type = positions ? positions.getType() : resultTypes[0];
      Type global = positions ? op->getOperand(read.positionOperand).getType()
                              : op->getResult(0).getType();
      auto countOf = [&](Type type) {
        return cast<RankedTensorType>(type).getDimSize(read.positionDim);
      };
      if (countOf(type) == countOf(global))
        continue;
      if (own.empty())
        return op->emitError("is split along an image into other parts than "
                             "runs of rows");
      isSplit = true;
      size_t dim = llvm::find(spatial, read.dim) - spatial.begin();
      padding[2 * dim] = own[2 * index];
      padding[2 * dim + 1] = own[2 * index + 1];
    }
    if (!isSplit)
      return DenseIntElementsAttr();
    return stablehlo::makePadding(builder.getContext(), padding);
  }

  OpBuilder &builder;
  const LocalOperation &local;
  Operation *op;
  Location loc;
  SmallVector<Type> resultTypes;
  SmallVector<Value> operands;
  bool isWidened = false;
};

} // namespace

SmallVector<int64_t> getLocalPadding(Operation *op, const OpRule &rule,
                                     ArrayRef<Placement> operandPlacements,
                                     ArrayRef<Placement> resultPlacements,
                                     DeviceId device) {
  SmallVector<int64_t> padding;
  for (const OperandWindow &read : rule.windows) {
    std::optional<RowRange> held =
        getLocalRange(op->getOperand(read.operand),
                      operandPlacements[read.operand], read.dim, device);
    std::optional<RowRange> positions =
        read.isOfResult ? getLocalRange(op->getResult(0), resultPlacements[0],
                                        read.positionDim, device)
                        : getLocalRange(op->getOperand(read.positionOperand),
                                        operandPlacements[read.positionOperand],
                                        read.positionDim, device);
    if (!held || !positions)
      return {};
    padding.push_back(read.window.lowPadding(*positions, *held));
    padding.push_back(read.window.highPadding(*positions, *held));
  }
  return padding;
}

FailureOr<SmallVector<Value>> localize(OpBuilder &builder,
                                       const LocalOperation &local) {
  return Localizer(builder, local).run();
}

} // namespace whale
