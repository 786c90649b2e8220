//===- RowKernel.h - Several loop nests over the same rows ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_FUSION_ROWKERNEL_H
#define WHALE_LIB_CONVERSION_FUSION_ROWKERNEL_H

#include "Fusion/FuseRows.h"
#include "LoopNest/LoopNest.h"

#include <deque>

namespace whale {

/// One kernel in the making: the nests of its members, as EmitRows.cpp says,
/// or for a GPU, as EmitRowBlocks.cpp and EmitRowRegisters.cpp say.
class RowKernel {
public:
  RowKernel(mlir::RewriterBase &rewriter,
            llvm::ArrayRef<mlir::linalg::GenericOp> members,
            llvm::ArrayRef<int64_t> rows, const Target &target)
      : rewriter(rewriter), members(members), rows(rows), target(target) {}

  /// Finds out how the kernel will be.
  void plan();
  /// Whether a block of threads can keep what it needs of a row.
  bool fits() const {
    return !target.isGpu() || isInRegisters() ||
           countSharedBytes(members, rows, 1) <= kMaxSharedBytes;
  }
  KernelOp build();

private:
  bool isMember(mlir::Operation *op) const {
    auto generic = llvm::dyn_cast_or_null<mlir::linalg::GenericOp>(op);
    return generic && llvm::is_contained(members, generic);
  }
  void findNests();
  llvm::SmallVector<bool> findMerges();
  void findBuffers();
  void findBlockRows();
  void findThreads();
  bool canOverwrite(unsigned member, unsigned number, mlir::Value tensor);
  void findInplace(KernelOp kernel);
  void countCosts(KernelOp kernel);

  void emit(KernelOp kernel);
  void makeLocal(mlir::OpBuilder &b, LoopNest &nest, mlir::Value tensor,
                 Access &access, mlir::Value first, bool isOnlyRow);
  void makeLocals(mlir::OpBuilder &b, LoopNest &nest, mlir::Value first,
                  bool isOnlyRow);
  void emitLoops(mlir::OpBuilder &b, mlir::Value begin, mlir::Value end);
  void emitRows(mlir::OpBuilder &b, mlir::ValueRange outer, mlir::Value from,
                mlir::Value to);
  void emitThreads(mlir::OpBuilder &b, KernelOp kernel, mlir::Value begin,
                   mlir::Value end);
  llvm::SmallVector<mlir::Value> findOverwritten(KernelOp kernel,
                                                 const LoopNest &nest) const;
  /// Whether nest `number` must wait for the nests from `last` on in the other
  /// threads of its row; `overwritten` are operands that it is written over.
  bool needsBarrier(unsigned number, unsigned last,
                    llvm::ArrayRef<mlir::Value> overwritten);
  void emitThread(mlir::OpBuilder &b, LoopNest &nest, mlir::Value row,
                  mlir::Value place, mlir::Value thread);

  /// A row, or a part of it, as a thread has it.
  struct Line {
    mlir::Value tensor;
    llvm::SmallVector<int64_t> strides; // From row to row.
    llvm::SmallVector<mlir::Value> elements;
  };
  bool isInRegisters() const { return width > 0; }
  bool walksRow(const LoopNest &nest) const {
    return nest.loops.size() > numRowLoops;
  }
  bool isLine(const LoopNest &nest, const Access &access) const;
  llvm::SmallVector<int64_t> getStrides(const LoopNest &nest,
                                        const Access &access) const;
  bool isLoadedLine(const LoopNest &nest, const Access &read) const;
  bool readsLinesAlone(mlir::Value tensor) const;
  bool canBeInRegisters(LoopNest &nest);
  void addLines(LoopNest &nest, int64_t &bytes, int64_t &widest);
  bool findRegisters(int64_t points);
  Line *findLine(const LoopNest &nest, const Access &access);
  void setElement(mlir::OpBuilder &b, LoopNest &nest, mlir::Value thread,
                  int64_t element);
  void loadLines(mlir::OpBuilder &b, LoopNest &nest, mlir::Value thread);
  void setRowValue(mlir::OpBuilder &b, LoopNest &nest, unsigned number,
                   mlir::Value value, mlir::Value thread);
  void emitLines(mlir::OpBuilder &b, LoopNest &nest, mlir::Value place,
                 mlir::Value thread);
  void emitRegisters(mlir::OpBuilder &b, mlir::Value row, mlir::Value place,
                     mlir::Value thread);

  mlir::RewriterBase &rewriter;
  llvm::ArrayRef<mlir::linalg::GenericOp> members;
  llvm::ArrayRef<int64_t> rows;
  Target target;
  std::deque<LoopNest> nests;
  unsigned numRowLoops = 0;
  /// Of a block of rows: on a GPU of a block of threads, which has `rowThreads`
  /// for each row.
  int64_t blockRows = 1, rowThreads = 1;
  /// With rows in registers, as EmitRowRegisters.cpp says: how many neighbours
  /// a thread reads at once, and how many elements of a row it has.
  int64_t width = 0, rowElements = 0;
  llvm::SmallVector<Line> lines;
  llvm::DenseMap<mlir::Value, mlir::Value> rowValues;
  llvm::SetVector<mlir::Value> inputs, results; // Of the kernel.
  llvm::SetVector<mlir::Value> locals;          // Needed by members alone.
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_FUSION_ROWKERNEL_H
