//===- BlockLocalizer.h - A block of the step on one device's shards ------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies operations, loops and branches included, on the local shapes of one
// device of an axis: a rank (whale-partition), or a moment of the axis of time
// (whale-micro-batch). What an operand is on that device is the derived class's
// to say.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_BLOCKLOCALIZER_H
#define WHALE_SHARDING_BLOCKLOCALIZER_H

#include "mlir/IR/Builders.h"
#include "whale/Placement/Placement.h"

namespace whale {

class BlockLocalizer {
public:
  /// The copies go to the builder's insertion point.
  BlockLocalizer(mlir::OpBuilder &builder, DeviceId device)
      : builder(builder), device(device) {}
  virtual ~BlockLocalizer() = default;

  /// Visits all operations but the terminator.
  llvm::LogicalResult visitBlock(mlir::Block &block);
  virtual llvm::LogicalResult visit(mlir::Operation *op);

protected:
  /// The local value of an operand; null after an error at its owner.
  virtual mlir::Value getOperand(mlir::OpOperand &operand) = 0;
  /// The placement that `getOperand` gives it in.
  virtual Placement getOperandPlacement(mlir::OpOperand &operand) = 0;
  virtual void map(mlir::Value value, mlir::Value local) = 0;

  bool holds(mlir::Value value) const;
  /// The type of the local part, or the one that stands for nothing.
  mlir::Type getLocalTypeOrAbsent(mlir::Value value) const;
  /// A whole zero of half precision may stand for a partial sum, which is kept
  /// in f32.
  mlir::Value adapt(mlir::Value value, mlir::Type type);

  mlir::OpBuilder &builder;
  DeviceId device;

private:
  llvm::LogicalResult visitRegions(mlir::Operation *op,
                                   llvm::SmallVector<mlir::Value> operands);

  /// What the device holds, by placement, and by type and placement: values by
  /// the thousand have the same ones.
  mutable llvm::DenseMap<mlir::Attribute, bool> isHeld;
  mutable llvm::DenseMap<std::pair<mlir::Type, mlir::Attribute>, mlir::Type>
      localTypes;
};

} // namespace whale

#endif // WHALE_SHARDING_BLOCKLOCALIZER_H
