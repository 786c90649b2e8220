//===- ForwardChain.h - What a forward makes and who uses it ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The forward operations that some devices compute in a block, one after the
// other, and what the backward of these devices needs of them.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_FORWARDCHAIN_H
#define WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_FORWARDCHAIN_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// The devices that compute a task graph, as groups; null if it names none.
mlir::Attribute groupsOf(TaskGraphOp graph);

class ForwardChain {
public:
  /// How a value is used.
  struct Uses {
    /// The last operation of the chain that uses it.
    std::optional<unsigned> lastForward;
    /// The task graphs of the backward that use it.
    llvm::SmallSetVector<mlir::Operation *, 2> backward;
    /// Somebody else needs it, or the user's `jax.checkpoint` starts from it.
    bool isPinned = false;
  };

  /// The chain of the task graphs on these groups in the block of the step, or
  /// of a micro-batch. Bytes and shares are those of `device`.
  ForwardChain(mlir::Block &block, mlir::Attribute groups, int64_t device);

  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }
  llvm::ArrayRef<TaskGraphOp> getBackwards() const { return backwards; }
  mlir::Block &getBlock() const { return block; }
  mlir::Attribute getGroups() const { return groups; }
  int64_t getDevice() const { return device; }

  /// The number of the operation that makes the value; nothing if it is not of
  /// the chain.
  std::optional<unsigned> find(mlir::Value value) const;
  /// Whether the operation is of the chain.
  bool isForward(mlir::Operation *op) const { return numbers.contains(op); }
  /// Whether the operation is in a task graph of its backward.
  bool isBackward(mlir::Operation *op) const {
    return llvm::is_contained(backwards, op->getParentOfType<TaskGraphOp>());
  }
  const Uses &usesOf(mlir::Value value) const;
  /// Has the value be kept.
  void pin(mlir::Value value) { uses[value].isPinned = true; }
  /// Whether the backward needs the value itself.
  bool isNeeded(mlir::Value value) const {
    return !usesOf(value).backward.empty();
  }
  /// What the device holds of a value.
  int64_t bytesOf(mlir::Value value) const;
  /// The part of an operation that the device computes.
  double partOf(mlir::Operation *op) const;

  /// Whether the operation computes the same when it is run again, alone.
  bool isRecomputable(mlir::Operation *op) const;
  /// Whether the operation gathers a parameter which each backward task graph
  /// gathers, too.
  bool isGatheredAgain(mlir::Operation *op) const;

private:
  void addUser(mlir::Operation *user, Uses &uses);

  mlir::Block &block;
  mlir::Attribute groups;
  int64_t device;
  std::vector<mlir::Operation *> ops;
  std::vector<TaskGraphOp> backwards;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  llvm::DenseMap<mlir::Value, Uses> uses;
  Uses none;
  mutable llvm::DenseMap<mlir::Value, int64_t> bytes;
};

/// In a backward task graph, the gather of a parameter that is the same as one
/// of a forward; null if there is none.
ReshardOp findSameGather(ReshardOp gather, TaskGraphOp backward);

/// Whether an operation costs no more than what a kernel takes in on the way:
/// constants are made anew for each user.
bool isMadeOfNothing(mlir::Operation *op);

/// Whether an operation is computed element by element, or reduces, and so
/// takes the time of its memory and not of its arithmetic.
bool isLight(mlir::Operation *op);

/// Whether an operation is none of these, nor moves a value: a product, a
/// convolution, or what takes as long.
bool isProductLike(mlir::Operation *op);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_RECOMPUTEFORWARD_FORWARDCHAIN_H
