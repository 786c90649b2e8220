//===- KernelCache.cpp - Reuse of equal loop nests ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopNest/KernelCache.h"
#include "LoopNest/LoopNest.h"
#include "whale/Dialect/Whale/IR/Reads.h"

using namespace mlir;
using namespace whale;

llvm::hash_code whale::hashBody(Region &body) {
  llvm::hash_code hash(0);
  body.walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

static SmallVector<Region *> getBodies(linalg::GenericOp op,
                                       ArrayRef<linalg::GenericOp> fills) {
  SmallVector<Region *> bodies = {&op.getRegion()};
  for (linalg::GenericOp fill : fills)
    if (fill)
      bodies.push_back(&fill.getRegion());
  return bodies;
}

std::optional<KernelCache::Key> KernelCache::getKey(LoopNest &nest) {
  Key key;
  auto add = [&](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>)
      key.form.push_back(reinterpret_cast<const void *>(uintptr_t(value)));
    else
      key.form.push_back(value.getAsOpaquePointer());
  };
  // What a body reads beside its operands is not in it.
  for (Region *body : getBodies(nest.op, nest.fills))
    if (!getCaptures(*body).empty())
      return std::nullopt;
  if (llvm::any_of(nest.stores, [](Operation *store) { return store; }))
    return std::nullopt;
  auto addOperation = [&](linalg::GenericOp op) {
    add(op.getIndexingMaps());
    add(op.getIteratorTypes());
    for (Type type : op->getOperandTypes())
      add(type);
  };
  addOperation(nest.op);
  add(nest.blocks.chunks);
  for (const Access &access : nest.reads)
    add(access.buffer);
  for (unsigned number = 0; number < nest.writes.size(); ++number) {
    add(nest.readsInit[number]);
    add(nest.initReads[number].buffer);
    add(bool(nest.fills[number]));
    if (nest.fills[number])
      addOperation(nest.fills[number]);
    for (const Access &access : nest.fillReads[number])
      add(access.buffer);
  }
  llvm::hash_code hash = llvm::hash_combine_range(key.form);
  for (Region *body : getBodies(nest.op, nest.fills))
    hash = llvm::hash_combine(hash, hashBody(*body));
  key.hash = hash;
  return key;
}

bool KernelCache::findEqual(const Key &key, LoopNest &nest, KernelOp kernel) {
  SmallVector<Region *> bodies = getBodies(nest.op, nest.fills);
  for (Entry &entry : entries[key.hash]) {
    bool alike =
        entry.key.form == key.form && entry.bodies.size() == bodies.size();
    for (size_t i = 0; alike && i < bodies.size(); ++i)
      alike = OperationEquivalence::isRegionEquivalentTo(
          &entry.bodies[i], bodies[i], OperationEquivalence::IgnoreLocations);
    if (alike) {
      equal[kernel] = entry.kernel;
      return true;
    }
  }
  return false;
}

void KernelCache::add(Key key, LoopNest &nest, KernelOp kernel) {
  Entry &entry = entries[key.hash].emplace_back();
  entry.key = std::move(key);
  entry.kernel = kernel;
  for (Region *body : getBodies(nest.op, nest.fills))
    entry.bodies.emplace_back().takeBody(*body);
}
