//===- FuseRows.h - Operations on the same rows -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_FUSION_FUSEROWS_H
#define WHALE_LIB_CONVERSION_FUSION_FUSEROWS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "whale/Conversion/Target.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

namespace whale {

/// The loops of `op` that run over rows of these sizes: its first ones that are
/// not of size one, all parallel. Nothing if it has others.
std::optional<llvm::SmallVector<unsigned>>
findRowDims(mlir::linalg::GenericOp op, llvm::ArrayRef<int64_t> rows);

/// Whether each row of a tensor of `shape` that is seen through `map` is read,
/// or written, for the row of the same place alone: the first dimensions that
/// are not of size one are the row loops, and no other depends on these.
bool isRowAligned(mlir::AffineMap map, llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<unsigned> rowDims);

/// The same of all that `op` reads of a tensor.
bool readsRowAligned(mlir::linalg::GenericOp op, mlir::Value tensor,
                     llvm::ArrayRef<unsigned> rowDims);

/// Pattern: what an operation reads of a reshape of another one's result, whose
/// dimensions of size one alone it changes, it reads of that result.
mlir::linalg::GenericOp readThroughReshapes(mlir::RewriterBase &rewriter,
                                            mlir::linalg::GenericOp op);

/// How many rows there are.
int64_t countRows(llvm::ArrayRef<int64_t> rows);

/// Whether `members` alone read a result of one of them.
bool isLocal(mlir::Value result,
             llvm::ArrayRef<mlir::linalg::GenericOp> members);

/// The bytes of a tensor.
int64_t countBytes(mlir::Type tensor);

/// The bytes of one row, of `rows`, of all that `members` read and write.
int64_t countRowBytes(llvm::ArrayRef<mlir::linalg::GenericOp> members,
                      llvm::ArrayRef<int64_t> rows);

/// What a block of threads with so many rows of the kernel needs of
/// kMaxSharedBytes, at most.
int64_t countSharedBytes(llvm::ArrayRef<mlir::linalg::GenericOp> members,
                         llvm::ArrayRef<int64_t> rows, int64_t blockRows);

/// Whether a tensor has an element for each of a row, which `members` alone
/// make and read.
bool isLocalLine(mlir::Value tensor,
                 llvm::ArrayRef<mlir::linalg::GenericOp> members,
                 llvm::ArrayRef<int64_t> rows);

/// The bytes of one row, of `rows`, of all these tensors.
int64_t countLocalLineBytes(llvm::ArrayRef<mlir::linalg::GenericOp> members,
                            llvm::ArrayRef<int64_t> rows);

/// Whether each member can compute for itself what it reads of these tensors.
bool canRecompute(llvm::ArrayRef<mlir::linalg::GenericOp> members,
                  llvm::ArrayRef<int64_t> rows);

/// Lets them; returns those that are left, in order.
llvm::SmallVector<mlir::linalg::GenericOp>
recomputeLines(mlir::RewriterBase &rewriter,
               llvm::ArrayRef<mlir::linalg::GenericOp> members,
               llvm::ArrayRef<int64_t> rows);

/// Replaces `members`, which are in order and have these rows, by a kernel in
/// the place of the last one. All that they read of each other is aligned, and
/// what they need of others is there before the last one. The kernel is for the
/// processor or for blocks of threads of a GPU.
KernelOp convertRows(mlir::RewriterBase &rewriter,
                     llvm::ArrayRef<mlir::linalg::GenericOp> members,
                     llvm::ArrayRef<int64_t> rows, const Target &target);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_FUSION_FUSEROWS_H
