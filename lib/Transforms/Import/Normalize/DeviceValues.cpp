//===- DeviceValues.cpp - Values on the devices of a mesh -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceValues.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/ShardingHints.h"

using namespace mlir;

namespace whale::normalize {

static bool isManual(sdy::ManualAxesAttr manual, StringRef axis) {
  return llvm::any_of(manual.getValue(),
                      [&](StringAttr name) { return name.getValue() == axis; });
}

int64_t Devices::count() const {
  int64_t count = 1;
  for (sdy::MeshAxisAttr axis : mesh.getAxes())
    count *= axis.getSize();
  return count;
}

int64_t Devices::id(int64_t position) const {
  ArrayRef<int64_t> ids = mesh.getDeviceIds();
  return ids.empty() ? position : ids[position];
}

std::pair<int64_t, int64_t> Devices::along(int64_t position,
                                           sdy::AxisRefAttr ref) const {
  int64_t minor = 1;
  for (sdy::MeshAxisAttr axis : llvm::reverse(mesh.getAxes())) {
    if (axis.getName() != ref.getName()) {
      minor *= axis.getSize();
      continue;
    }
    int64_t coordinate = position / minor % axis.getSize();
    if (sdy::SubAxisInfoAttr part = ref.getSubAxisInfo()) {
      int64_t inner = axis.getSize() / (part.getPreSize() * part.getSize());
      return {coordinate / inner % part.getSize(), part.getSize()};
    }
    return {coordinate, axis.getSize()};
  }
  return {0, 1};
}

std::pair<int64_t, int64_t> Devices::block(int64_t position,
                                           sdy::TensorShardingAttr sharding,
                                           int64_t dim,
                                           sdy::ManualAxesAttr manual) const {
  int64_t index = 0, count = 1;
  if (dim < int64_t(sharding.getDimShardings().size()))
    for (sdy::AxisRefAttr ref : sharding.getDimShardings()[dim].getAxes()) {
      if (!isManual(manual, ref.getName()))
        continue;
      auto [coordinate, size] = along(position, ref);
      index = index * size + coordinate;
      count *= size;
    }
  return {index, count};
}

int64_t Devices::firstPeer(int64_t position, sdy::ManualAxesAttr manual) const {
  int64_t minor = 1, peer = position;
  for (sdy::MeshAxisAttr axis : llvm::reverse(mesh.getAxes())) {
    if (isManual(manual, axis.getName()))
      peer -= position / minor % axis.getSize() * minor;
    minor *= axis.getSize();
  }
  return peer;
}

FailureOr<sdy::MeshAttr> meshOf(sdy::ManualComputationOp op) {
  sdy::MeshAttr found;
  for (sdy::TensorShardingPerValueAttr list :
       {op.getInShardings(), op.getOutShardings()})
    for (sdy::TensorShardingAttr sharding : list.getShardings()) {
      sdy::MeshAttr mesh = findMesh(op, sharding);
      if (!mesh)
        return op.emitOpError("names a mesh that is not there");
      if (found && found != mesh)
        return op.emitOpError("names several meshes");
      found = mesh;
    }
  if (!found)
    return op.emitOpError("names no mesh");
  return found;
}

Value slice(OpBuilder &b, Location loc, Value value, int64_t dim, int64_t index,
            int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getDimSize(dim) == size)
    return value;
  SmallVector<int64_t> starts(type.getRank(), 0), strides(type.getRank(), 1);
  SmallVector<int64_t> limits(type.getShape()), shape(type.getShape());
  starts[dim] = index * size;
  limits[dim] = starts[dim] + size;
  shape[dim] = size;
  return stablehlo::SliceOp::create(b, loc, type.clone(shape), value, starts,
                                    limits, strides);
}

Value concatenate(OpBuilder &b, Location loc, ArrayRef<Value> values,
                  int64_t dim) {
  if (values.size() == 1)
    return values[0];
  auto type = cast<RankedTensorType>(values[0].getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= values.size();
  return stablehlo::ConcatenateOp::create(b, loc, type.clone(shape), values,
                                          dim);
}

} // namespace whale::normalize
