//===- ShardingHints.cpp - Shardings that JAX prints, as layouts ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/ShardingHints.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace whale {

sdy::MeshAttr findMesh(Operation *from, sdy::TensorShardingAttr sharding) {
  Attribute given = sharding.getMeshOrRef();
  if (auto mesh = dyn_cast<sdy::MeshAttr>(given))
    return mesh;
  auto symbol = dyn_cast<FlatSymbolRefAttr>(given);
  auto mesh =
      symbol ? SymbolTable::lookupNearestSymbolFrom<sdy::MeshOp>(from, symbol)
             : sdy::MeshOp();
  return mesh ? mesh.getMesh() : sdy::MeshAttr();
}

int64_t countDevices(sdy::MeshAttr mesh) {
  int64_t count = 1;
  for (sdy::MeshAxisAttr axis : mesh.getAxes())
    count *= axis.getSize();
  return count;
}

/// The pairs of axes of which the first is outside the second in a dimension.
static SmallVector<std::pair<StringRef, StringRef>>
findOrders(func::FuncOp function) {
  SmallVector<std::pair<StringRef, StringRef>> orders;
  auto add = [&](sdy::TensorShardingAttr sharding) {
    for (sdy::DimensionShardingAttr dim : sharding.getDimShardings())
      for (size_t i = 1; i < dim.getAxes().size(); ++i)
        orders.emplace_back(dim.getAxes()[i - 1].getName(),
                            dim.getAxes()[i].getName());
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto sharding = function.getArgAttrOfType<sdy::TensorShardingAttr>(
            i, shardingAttrName))
      add(sharding);
  function.walk([&](sdy::ShardingConstraintOp op) { add(op.getSharding()); });
  return orders;
}

ShardingHints::ShardingHints(sdy::MeshAttr mesh, func::FuncOp function) {
  // The place of each axis in the mesh, those next that none left must be
  // outside of; where shardings contradict each other the mesh decides.
  auto orders = findOrders(function);
  SmallVector<sdy::MeshAxisAttr> left(mesh.getAxes()), axes;
  while (!left.empty()) {
    auto isInside = [&](sdy::MeshAxisAttr axis) {
      return llvm::any_of(orders, [&](auto order) {
        return order.second == axis.getName() && order.first != order.second &&
               llvm::any_of(left, [&](sdy::MeshAxisAttr other) {
                 return other.getName() == order.first;
               });
      });
    };
    auto *next = llvm::find_if_not(left, isInside);
    if (next == left.end())
      next = left.begin();
    axes.push_back(*next);
    left.erase(next);
  }

  ArrayRef<int64_t> ids = mesh.getDeviceIds();
  int64_t count = countDevices(mesh);
  for (int64_t index = 0; index < count; ++index) {
    // Coordinates in the new order, position in the mesh's.
    llvm::StringMap<int64_t> coordinates;
    int64_t rest = index, position = 0;
    for (sdy::MeshAxisAttr axis : llvm::reverse(axes)) {
      coordinates[axis.getName()] = rest % axis.getSize();
      rest /= axis.getSize();
    }
    for (sdy::MeshAxisAttr axis : mesh.getAxes())
      position = position * axis.getSize() + coordinates[axis.getName()];
    devices.push_back(ids.empty() ? position : ids[position]);
  }
  for (sdy::MeshAxisAttr axis : axes)
    if (axis.getSize() > 1) {
      names.push_back(axis.getName());
      sizes.push_back(axis.getSize());
    }
}

SmallVector<AxisState>
ShardingHints::getStates(Value value, sdy::TensorShardingAttr sharding,
                         Factorization &factorization,
                         SmallVectorImpl<StringRef> &dropped) const {
  ArrayRef<sdy::DimensionShardingAttr> dims = sharding.getDimShardings();
  auto isClosed = [](sdy::DimensionShardingAttr dim) {
    return dim.getIsClosed();
  };
  // An axis that no dimension may take is whole.
  bool closed = llvm::all_of(dims, isClosed);
  SmallVector<AxisState> states(names.size(),
                                closed ? AxisState::replicated() : AxisState());
  auto stateOf = [&](sdy::AxisRefAttr axis) -> AxisState * {
    auto *it = llvm::find(names, axis.getName());
    return it == names.end() ? nullptr : &states[it - names.begin()];
  };
  for (sdy::AxisRefAttr axis : sharding.getReplicatedAxes())
    if (AxisState *state = stateOf(axis))
      *state = AxisState::replicated();
  // A sum that may stay unreduced: propagation knows when that pays.
  for (sdy::AxisRefAttr axis : sharding.getUnreducedAxes())
    if (AxisState *state = stateOf(axis))
      *state = AxisState();

  SmallVector<DimPiece> all = factorization.getPieces(value);
  for (auto [dim, dimSharding] : llvm::enumerate(dims)) {
    SmallVector<DimPiece> pieces;
    for (const DimPiece &piece : all)
      if (piece.dim == dim)
        pieces.push_back(piece);
    const DimPiece *piece = pieces.begin();
    int64_t left = piece == pieces.end() ? 1 : piece->extent;
    for (sdy::AxisRefAttr axis : dimSharding.getAxes()) {
      AxisState *state = stateOf(axis);
      if (!state)
        continue; // It has one device.
      int64_t size = sizes[state - states.begin()];
      if (left == 1 && piece != pieces.end() && ++piece != pieces.end())
        left = piece->extent;
      if (axis.getSubAxisInfo() || piece == pieces.end() || size > left) {
        *state = AxisState();
        dropped.push_back(axis.getName());
        continue;
      }
      *state = AxisState::split(*piece);
      left /= size;
    }
  }
  return states;
}

} // namespace whale
