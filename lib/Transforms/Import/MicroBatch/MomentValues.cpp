//===- MomentValues.cpp - Cutting values into moments and joining them ----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MomentValues.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/LocalShapes.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

static Value reshape(OpBuilder &builder, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  return hlo::ReshapeOp::create(builder, value.getLoc(), type.clone(shape),
                                value);
}

Value emitPart(OpBuilder &builder, Value value, const Placement &placement,
               DeviceId device) {
  auto type = cast<RankedTensorType>(value.getType());
  std::optional<Box> box = placement.box(device);
  Value view = reshape(builder, value, placement.view());
  SmallVector<int64_t> starts, limits, strides;
  for (auto [start, size] : llvm::zip(box->start, box->size)) {
    starts.push_back(start);
    limits.push_back(start + size);
    strides.push_back(1);
  }
  Value part = hlo::SliceOp::create(builder, value.getLoc(), view, starts,
                                    limits, strides);
  return reshape(builder, part,
                 getLocalType(type, placement, device)->getShape());
}

Value emitOwnPart(OpBuilder &builder, Value value, const Placement &placement,
                  DeviceId device) {
  auto type = cast<RankedTensorType>(value.getType());
  Location loc = value.getLoc();
  Box box = *placement.box(device);
  auto position = RankedTensorType::get({}, builder.getI32Type());
  SmallVector<int64_t> splitDims = placement.splitDims();
  SmallVector<Value> starts;
  for (int64_t dim = 0; dim < int64_t(box.size.size()); ++dim) {
    if (llvm::is_contained(splitDims, dim))
      starts.push_back(ShardOffsetOp::create(
          builder, loc, position, builder.getI64IntegerAttr(dim),
          PlacementAttr::get(builder.getContext(), placement)));
    else
      starts.push_back(hlo::ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(position, builder.getI32IntegerAttr(0))));
  }
  Value view = reshape(builder, value, placement.view());
  Value part = hlo::DynamicSliceOp::create(
      builder, loc, type.clone(box.size), view, starts,
      builder.getDenseI64ArrayAttr(box.size));
  return reshape(builder, part,
                 getLocalType(type, placement, device)->getShape());
}

Value emitJoin(OpBuilder &builder, RankedTensorType type, ValueRange parts,
               const Placement &placement) {
  SmallVector<int64_t> dims = placement.splitDims();
  assert(dims.size() == 1 && "time is one axis");
  SmallVector<Value> views;
  for (auto [device, part] : llvm::enumerate(parts))
    views.push_back(reshape(builder, part, placement.box(device)->size));
  Value joined = hlo::ConcatenateOp::create(builder, parts.front().getLoc(),
                                            views, dims.front());
  return reshape(builder, joined, type.getShape());
}

} // namespace whale
