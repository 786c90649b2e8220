//===- KernelBuilder.h - Building kernels -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the patterns of whale-stablehlo-to-linalg share. Every pattern takes its
// operands through stored(), so all it builds is free of signs, and replaces
// the operation through replaceWithStored(). Cost: each function is linear in
// rank, operands and the bodies that it copies, except that matchSplat also
// follows the operations that its value is a reshape or broadcast of, and
// eraseDeadOps walks over all of an operation.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_KERNEL_KERNELBUILDER_H
#define WHALE_LIB_CONVERSION_KERNEL_KERNELBUILDER_H

#include "Kernel/ScalarOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

namespace whale {

/// Terms of a reduction that a thread of a GPU combines one after the other, at
/// most.
inline constexpr int64_t kMostThreadTerms = 4096;

/// `value` with elements in stored form; a cast where that is another type.
/// Null if the elements have no stored form.
mlir::Value stored(mlir::OpBuilder &b, mlir::Value value);

/// Replaces `op` by values in stored form, cast back to its result types.
void replaceWithStored(mlir::PatternRewriter &rewriter, mlir::Operation *op,
                       mlir::ValueRange values);

/// The element that all of `value` is known to be, or null.
mlir::Attribute matchSplat(mlir::Value value);

using BodyFn =
    llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
        mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// An input of a parallel generic: a stored tensor and how it is indexed.
struct Input {
  mlir::Value tensor;
  mlir::AffineMap map;
};

/// A linalg.generic with only parallel loops over `shape`, one element of each
/// result (of a stored element type) per iteration. The body gets one element
/// of each input; its failure removes the operation again.
mlir::FailureOr<mlir::linalg::GenericOp>
makeParallel(mlir::PatternRewriter &rewriter, mlir::Location loc,
             llvm::ArrayRef<int64_t> shape, mlir::TypeRange elements,
             llvm::ArrayRef<Input> inputs, BodyFn body);

/// Zeros of a StableHLO type.
mlir::DenseElementsAttr makeZeros(mlir::RankedTensorType type);

/// Erases what has no effect and no users, with all that only it has used.
void eraseDeadOps(mlir::RewriterBase &rewriter, mlir::Operation *root);

/// What `narrow` makes of each element of a tensor, in elements of `storage`.
mlir::Value narrowElements(
    mlir::PatternRewriter &rewriter, mlir::Location loc, mlir::Value wide,
    mlir::Type storage,
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> narrow);

/// The elements of a stored tensor, unchanged.
mlir::linalg::GenericOp makeCopy(mlir::OpBuilder &b, mlir::Location loc,
                                 mlir::Value tensor);

/// An i1 or integer scalar as an index, by the sign of its StableHLO type.
mlir::Value toIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                    mlir::Type type);

/// `value` forced into [low, high].
mlir::Value clampIndex(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value value, int64_t low, int64_t high);

/// A constant of a StableHLO type forced into [0, high], by its sign.
int64_t clampConstant(const llvm::APInt &value, mlir::Type type, int64_t high);

mlir::Value constantIndex(mlir::OpBuilder &b, mlir::Location loc,
                          int64_t value);

/// Builds the loops of a whale.kernel. Buffers are the memrefs of the inputs,
/// then of the outputs; i1 is seen as i1, and kept as i8.
struct KernelBuilder {
  mlir::OpBuilder &b;
  mlir::Location loc;
  /// Whether the kernel is for a GPU.
  bool blocks;
  llvm::SmallVector<mlir::Value> buffers;
  /// The independent iterations of the kernel, and those that a call runs.
  int64_t extent = 1;
  mlir::Value begin, end;

  mlir::Value index(int64_t value) { return constantIndex(b, loc, value); }
  mlir::Value load(unsigned buffer, mlir::ValueRange indices);
  /// Loads an element of a tensor of StableHLO type `type`, i1 as i1.
  mlir::Value loadScalar(unsigned buffer, mlir::ValueRange indices,
                         mlir::Type type);
  void store(mlir::Value value, unsigned buffer, mlir::ValueRange indices);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  /// Runs the body for each element of `shape`, in no order. The threads of a
  /// processor share the first dimension, those of a GPU the elements.
  void parallel(llvm::ArrayRef<int64_t> shape,
                llvm::function_ref<void(mlir::ValueRange)> body);
  /// A loop over those of `count` iterations that a call of the kernel runs;
  /// all such loops of a kernel have as many.
  void share(int64_t count, llvm::function_ref<void(mlir::Value)> body);
  /// A loop from `from` to `to`; the body gets the counter.
  void loop(mlir::Value from, mlir::Value to,
            llvm::function_ref<void(mlir::Value)> body);
  /// A nest of loops from 0 over `sizes`.
  void nest(llvm::ArrayRef<int64_t> sizes,
            llvm::function_ref<void(mlir::ValueRange)> body);
  /// The body runs if `condition`.
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value lhs,
                      mlir::Value rhs);
  /// True if 0 <= value < size.
  mlir::Value inside(mlir::Value value, int64_t size);
  /// The indices of element `number`, one of those of `shape`, the last
  /// dimension of which counts fastest.
  llvm::SmallVector<mlir::Value> unflatten(mlir::Value number,
                                           llvm::ArrayRef<int64_t> shape);
};

/// A buffer seen in one dimension.
mlir::Value flatten(mlir::OpBuilder &b, mlir::Location loc, mlir::Value buffer);

/// A whale.kernel from stored tensors to stored results, with `blocks` for a
/// GPU. The body's failure removes the operation again.
mlir::FailureOr<KernelOp>
makeKernel(mlir::PatternRewriter &rewriter, mlir::Location loc, bool blocks,
           mlir::TypeRange results, mlir::ValueRange inputs,
           llvm::function_ref<mlir::LogicalResult(KernelBuilder &)> body);

/// The extents of a ranked tensor.
inline llvm::ArrayRef<int64_t> getShape(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getShape();
}

/// The type of the buffer of a stored tensor: i1 takes a byte.
mlir::MemRefType getBufferType(mlir::Type tensor);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_KERNELBUILDER_H
