//===- KernelCache.h - Reuse of equal loop nests ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layers and micro-batches ask for the same loops many times: these are written
// once.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_LOOPNEST_KERNELCACHE_H
#define WHALE_LIB_CONVERSION_LOOPNEST_KERNELCACHE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

#include <deque>
#include <unordered_map>

namespace whale {

class LoopNest;

/// Equal for bodies that differ in where they come from alone.
llvm::hash_code hashBody(mlir::Region &body);

/// The kernels of a function by what they compute.
class KernelCache {
public:
  /// All that the body of a kernel is made from, but for the operations in the
  /// bodies of the nest, of which the hash knows.
  struct Key {
    llvm::SmallVector<const void *, 32> form;
    size_t hash = 0;
  };
  /// Nothing if the body depends on more than that.
  static std::optional<Key> getKey(LoopNest &nest);

  /// Whether there is a kernel of which `kernel`, that the nest has become,
  /// can have the body.
  bool findEqual(const Key &key, LoopNest &nest, KernelOp kernel);

  /// Takes the bodies of the nest's operations, which nothing needs any more.
  void add(Key key, LoopNest &nest, KernelOp kernel);

  /// The kernel with the body of this one.
  KernelOp getFirst(KernelOp kernel) const {
    auto it = equal.find(kernel);
    return it == equal.end() ? kernel : it->second;
  }

private:
  struct Entry {
    Key key;
    std::deque<mlir::Region> bodies;
    KernelOp kernel;
  };

  std::unordered_map<size_t, std::deque<Entry>> entries; // By hash.
  llvm::DenseMap<mlir::Operation *, KernelOp> equal;
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_LOOPNEST_KERNELCACHE_H
