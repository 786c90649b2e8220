//===- AttentionTiles.h - Tiles of attention for a GPU ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels of attention are made of: tiles of operands in shared
// memory, their products, scores with mask and bias, sums along rows.
//
// A block has 16 x 16 threads. Thread (y, x) has the elements (y + 16 i,
// x + 16 j) of each product: the 16 threads of a row are in one warp, and
// neighbours have neighbouring columns.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_GPU_ATTENTIONTILES_H
#define WHALE_LIB_CONVERSION_GPU_ATTENTIONTILES_H

#include "Kernel/KernelBuilder.h"
#include "whale/Dialect/Whale/IR/Attention.h"

namespace whale {

/// Where the elements of a tensor of attention are.
struct AttentionBuffer {
  unsigned buffer = 0; // Of the kernel.
  mlir::Type element;
  /// In elements; 0 for what it does not have.
  int64_t row = 0, key = 0, depth = 0, feature = 0;
  llvm::SmallVector<int64_t> heads;
};

/// A matrix in shared memory: element (i, j) is at i * row + j * column.
struct AttentionTile {
  mlir::Value memory;
  int64_t row, column;

  AttentionTile transposed() const { return {memory, column, row}; }
};

/// Rows and keys of the tiles of a kernel, multiples of kAttentionSide.
struct AttentionTileSizes {
  int64_t rows = 0, keys = 0;
};

/// Threads of a block in each direction.
inline constexpr int64_t kAttentionSide = 16;
inline constexpr int64_t kAttentionThreads = kAttentionSide * kAttentionSide;

/// Elements of a tile that the threads of a block read in one step.
inline constexpr int64_t kAttentionReads = 4 * kAttentionThreads;

/// An operation of attention, and the values of one of its kernels.
class AttentionTiles {
public:
  /// A thread's elements of a product: those of a row are neighbours.
  using Values = llvm::SmallVector<mlir::Value>;

  AttentionTiles(KernelBuilder &k, mlir::Operation *op,
                 AttentionTileSizes tiles);

  /// The buffer of a tensor of type `type` with these letters.
  AttentionBuffer describe(unsigned buffer, mlir::Type type,
                           llvm::StringRef letters) const;

  /// Where head number `head` begins.
  mlir::Value findHead(const AttentionBuffer &buffer, mlir::Value head);

  /// Memory for `rows` x `columns` elements.
  AttentionTile allocate(int64_t rows, int64_t columns, mlir::Type element);
  /// Reads `rows` lines of `width` elements from line `first` on, of `lines`
  /// that are `stride` apart; what is beyond is 0.
  void read(const AttentionTile &tile, int64_t rows,
            const AttentionBuffer &buffer, mlir::Value start, mlir::Value first,
            int64_t lines, int64_t stride, int64_t width, int64_t widthStride);
  /// Writes a thread's elements to shared memory.
  void write(const AttentionTile &tile, llvm::ArrayRef<mlir::Value> values,
             int64_t columns);
  /// The same to a result, without what is beyond.
  void store(const AttentionBuffer &buffer, llvm::ArrayRef<mlir::Value> values,
             mlir::Value start, mlir::Value first, int64_t lines,
             int64_t stride, int64_t width, int64_t widthStride);

  /// `sums` + a * b, m x n, of which `length` products are added one after the
  /// other.
  Values multiply(const AttentionTile &a, const AttentionTile &b, int64_t m,
                  int64_t n, int64_t length, llvm::ArrayRef<mlir::Value> sums);
  Values zeros(int64_t m, int64_t n);

  /// What the scores of products are: scaled, with the bias, the fill where
  /// they are masked, minus infinity behind the last key. `isKept`, if given,
  /// gets where nothing is masked.
  Values makeScores(llvm::ArrayRef<mlir::Value> products, mlir::Value head,
                    mlir::Value firstRow, mlir::Value firstKey,
                    Values *isKept = nullptr);

  /// What the 16 threads of a row make of their values.
  mlir::Value
  overRow(mlir::Value value,
          llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

  /// Whether what is masked counts for a row that has the largest score
  /// `largest` without it.
  mlir::Value countsMasked(mlir::Value largest);
  /// Keys that rows before `end` read of those that a causal mask keeps.
  mlir::Value countKeys(mlir::Value end);

  mlir::Value number(double value);
  mlir::Value addFloats(mlir::Value a, mlir::Value b);
  mlir::Value subFloats(mlir::Value a, mlir::Value b);
  mlir::Value mulFloats(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value exponential(mlir::Value value);
  /// `value` + 16 * `number`, where a thread's own row or column begins.
  mlir::Value spread(mlir::Value value, int64_t number);
  void synchronize();

  KernelBuilder &k;
  mlir::Operation *op;
  AttentionSizes sizes;
  AttentionTileSizes tiles;
  /// Depth and features, in whole steps of a product.
  int64_t depth, features;
  double scale;
  /// The score of what is masked; minus infinity if nothing is said.
  double fill;
  std::optional<int64_t> causal;
  mlir::Value x, y;
  llvm::SmallVector<AttentionBuffer> operands;
  std::optional<AttentionBuffer> mask, bias;

private:
  mlir::Value toF32(mlir::Value value);

  llvm::SmallVector<int64_t> heads;
  std::string headLetters;
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_GPU_ATTENTIONTILES_H
