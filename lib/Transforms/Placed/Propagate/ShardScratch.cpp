//===- ShardScratch.cpp - What products use besides buffers -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the products of a step, with placements. Out: for each device, the bytes
// that libraries use for its products and convolutions, in addition to buffers.
// Which products those are is decided when kernels are made; so the shards of
// one device are put into a module of their own, which is lowered as the
// program will be. Cost: for each set of devices with the same shares, the
// lowering of the products that differ: layers of a model have the same ones.
//
//===----------------------------------------------------------------------===//

#include "ShardScratch.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/Localize.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace whale {

/// Those that differ from each other.
static SmallVector<Operation *> withoutEqual(ArrayRef<Operation *> products) {
  SmallVector<Operation *> different;
  llvm::DenseSet<std::tuple<DictionaryAttr, Type, Type, Type>> known;
  for (Operation *op : products)
    if (known
            .insert({op->getAttrDictionary(), op->getOperand(0).getType(),
                     op->getOperand(1).getType(), op->getResult(0).getType()})
            .second)
      different.push_back(op);
  return different;
}

/// Appends a device's shard of a product to a function whose arguments are its
/// operands; nothing where the device has none.
static void addShard(OpBuilder &builder, Operation *op, DeviceId device,
                     SmallVectorImpl<Value> &results) {
  Placement placement = getPlacement(op->getResult(0)).getValue();
  SmallVector<Placement> wanted;
  SmallVector<Type> types;
  for (OpOperand &operand : op->getOpOperands()) {
    wanted.push_back(getWantedPlacement(operand).getValue());
    auto type = cast<RankedTensorType>(operand.get().getType());
    if (auto local = getLocalType(type, wanted.back(), device))
      types.push_back(*local);
  }
  if (!placement.contains(device) || types.size() != op->getNumOperands())
    return;
  SmallVector<Value> operands;
  for (Type type : types)
    operands.push_back(
        builder.getBlock()->addArgument(type, builder.getUnknownLoc()));
  // What can't be computed in parts is an error of whale-partition.
  auto local = localize(builder, {op, wanted, {placement}, operands, device});
  if (succeeded(local))
    llvm::append_range(results, *local);
}

std::vector<int64_t> findShardScratch(ArrayRef<Operation *> products,
                                      ArrayRef<int64_t> alike,
                                      const Cluster &cluster,
                                      const WhaleDialect::ScratchFinder &find) {
  SmallVector<Operation *> different = withoutEqual(products);
  Location loc = products.front()->getLoc();
  std::vector<int64_t> bytes;
  for (auto [device, first] : llvm::enumerate(alike)) {
    if (first != int64_t(device)) {
      bytes.push_back(bytes[first]);
      continue;
    }
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto shards = func::FuncOp::create(builder, loc, "products",
                                       builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(shards.addEntryBlock());
    SmallVector<Value> results;
    for (Operation *op : different)
      addShard(builder, op, DeviceId(device), results);
    func::ReturnOp::create(builder, loc, results);
    shards.setFunctionType(builder.getFunctionType(
        shards.front().getArgumentTypes(), ValueRange(results).getTypes()));
    bytes.push_back(results.empty() ? 0
                                    : find(*module, cluster, int64_t(device)));
  }
  return bytes;
}

} // namespace whale
