//===- LocalIndices.cpp - Positions in a whole tensor, in a shard ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dimension that is looked up may be several dimensions of the placement's
// view. A position in it is taken apart into a coordinate for each of them, by
// division and remainder. Of a split one, the offset of the shard is
// subtracted; the position is in the shard if every coordinate is within the
// shard's size. The coordinates are then put together by these sizes.
//
// Offsets are operations (whale.shard_offset): the code is the same on all
// ranks of a class. Cost: elementwise operations on the indices alone.
//
//===----------------------------------------------------------------------===//

#include "LocalIndices.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/LocalShapes.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
/// Whether some view dimension of the run is split.
static bool isSplit(const Lookup &lookup, std::pair<unsigned, unsigned> run) {
  return llvm::any_of(lookup.placement.splitDims(), [&](int64_t dim) {
    return dim >= run.first && dim < run.second;
  });
}

namespace {

/// A part of a dimension, seen as the row-major product of such parts.
struct Part {
  int64_t extent;
  /// What of it the shard holds: `size` from `unit` times the offset of the
  /// view dimension on; all of it where there is none.
  int64_t size;
  std::optional<unsigned> viewDim;
  int64_t unit = 1;
};

class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, const Lookup &lookup)
      : builder(builder), loc(loc), lookup(lookup) {}

  LocalIndices run(Value indices) {
    auto runs = getViewRuns(lookup.shape, lookup.placement.view());
    LocalIndices result{indices, Value()};
    for (int64_t dim : lookup.rowDims) {
      const auto *it = llvm::find(lookup.indexMap, dim);
      if (it == lookup.indexMap.end() || !isSplit(lookup, runs[dim]))
        continue;
      SmallVector<Part> parts = partsOf(runs[dim]);
      int64_t component = it - lookup.indexMap.begin();
      auto [local, isMine] = locate(take(indices, component), parts);
      result.indices = put(result.indices, component, local);
      result.isMine =
          result.isMine
              ? Value(hlo::AndOp::create(builder, loc, result.isMine, isMine))
              : isMine;
    }
    return result;
  }

private:
  SmallVector<Part> partsOf(std::pair<unsigned, unsigned> run) {
    Box box = *lookup.placement.box(lookup.device);
    SmallVector<Part> parts;
    for (unsigned i = run.first; i < run.second; ++i) {
      int64_t extent = lookup.placement.view()[i];
      if (isSplit(lookup, {i, i + 1})) {
        parts.push_back({extent, box.size[i], i});
      } else if (!parts.empty()) {
        // Whole blocks behind a split part: a longer range of it.
        parts.back().extent *= extent;
        parts.back().size *= extent;
        parts.back().unit *= extent;
      } else {
        parts.push_back({extent, extent, std::nullopt});
      }
    }
    return parts;
  }

  /// Where the positions are in the shard, and which of them it holds.
  std::pair<Value, Value> locate(Value position, ArrayRef<Part> parts) {
    Value rest = position, local, isMine;
    int64_t behind = 1, localBehind = 1;
    for (const Part &part : parts) {
      behind *= part.extent;
      localBehind *= part.size;
    }
    auto require = [&](Value value, hlo::ComparisonDirection direction,
                       int64_t bound) {
      Value holds = hlo::CompareOp::create(builder, loc, value,
                                           like(value, bound), direction);
      isMine = isMine ? Value(hlo::AndOp::create(builder, loc, isMine, holds))
                      : holds;
    };
    // Division rounds to zero, which would take -1 for a position of row 0.
    if (parts.size() > 1)
      require(position, hlo::ComparisonDirection::GE, 0);
    for (const Part &part : parts) {
      behind /= part.extent;
      localBehind /= std::max<int64_t>(1, part.size);
      Value coordinate = rest;
      if (behind != 1) {
        coordinate = hlo::DivOp::create(builder, loc, rest, like(rest, behind));
        rest = hlo::RemOp::create(builder, loc, rest, like(rest, behind));
      }
      if (part.viewDim) {
        Type element = getElementTypeOrSelf(position.getType());
        Value offset = emitShardOffset(builder, loc, lookup.placement,
                                       *part.viewDim, element);
        if (part.unit != 1)
          offset =
              hlo::MulOp::create(builder, loc, offset, like(offset, part.unit));
        offset = hlo::BroadcastInDimOp::create(
            builder, loc, position.getType(), offset,
            builder.getDenseI64ArrayAttr({}));
        coordinate = hlo::SubtractOp::create(builder, loc, coordinate, offset);
        require(coordinate, hlo::ComparisonDirection::LT, part.size);
        require(coordinate, hlo::ComparisonDirection::GE, 0);
      } else {
        require(coordinate, hlo::ComparisonDirection::LT, part.size);
      }
      if (localBehind != 1)
        coordinate = hlo::MulOp::create(builder, loc, coordinate,
                                        like(coordinate, localBehind));
      local = local ? Value(hlo::AddOp::create(builder, loc, local, coordinate))
                    : coordinate;
    }
    return {local, isMine};
  }

  /// One component of each index vector.
  Value take(Value indices, int64_t component) {
    auto type = cast<RankedTensorType>(indices.getType());
    int64_t vectorDim = lookup.indexVectorDim;
    if (vectorDim >= type.getRank())
      return indices;
    SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()),
        strides(type.getRank(), 1), shape(type.getShape());
    starts[vectorDim] = component;
    limits[vectorDim] = component + 1;
    shape.erase(shape.begin() + vectorDim);
    Value slice =
        hlo::SliceOp::create(builder, loc, indices, starts, limits, strides);
    return hlo::ReshapeOp::create(builder, loc, type.clone(shape), slice);
  }

  /// The index vectors with one component replaced.
  Value put(Value indices, int64_t component, Value replacement) {
    auto type = cast<RankedTensorType>(indices.getType());
    int64_t vectorDim = lookup.indexVectorDim;
    if (vectorDim >= type.getRank())
      return replacement;
    if (type.getDimSize(vectorDim) == 1)
      return hlo::ReshapeOp::create(builder, loc, type, replacement);
    SmallVector<int64_t> dims;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (dim != vectorDim)
        dims.push_back(dim);
    replacement = hlo::BroadcastInDimOp::create(
        builder, loc, type, replacement, builder.getDenseI64ArrayAttr(dims));
    Value position = hlo::IotaOp::create(builder, loc, type, vectorDim);
    Value isComponent = hlo::CompareOp::create(builder, loc, position,
                                               like(position, component),
                                               hlo::ComparisonDirection::EQ);
    return hlo::SelectOp::create(builder, loc, isComponent, replacement,
                                 indices);
  }

  Value like(Value value, int64_t constant) {
    auto type = cast<RankedTensorType>(value.getType());
    Attribute attr = builder.getIntegerAttr(type.getElementType(), constant);
    return hlo::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, attr));
  }

  OpBuilder &builder;
  Location loc;
  const Lookup &lookup;
};

} // namespace

Value emitShardOffset(OpBuilder &builder, Location loc,
                      const Placement &placement, unsigned viewDim,
                      Type elementType) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  Value offset = ShardOffsetOp::create(
      builder, loc, type, builder.getI64IntegerAttr(viewDim),
      PlacementAttr::get(builder.getContext(), placement));
  auto wanted = RankedTensorType::get({}, elementType);
  if (wanted == type)
    return offset;
  return hlo::ConvertOp::create(builder, loc, wanted, offset);
}

bool looksUpSplit(const Lookup &lookup) {
  auto runs = getViewRuns(lookup.shape, lookup.placement.view());
  return llvm::any_of(lookup.rowDims, [&](int64_t dim) {
    return llvm::is_contained(lookup.indexMap, dim) &&
           isSplit(lookup, runs[dim]);
  });
}

LocalIndices emitLocalIndices(OpBuilder &builder, Location loc, Value indices,
                              const Lookup &lookup) {
  return Emitter(builder, loc, lookup).run(indices);
}

} // namespace whale
