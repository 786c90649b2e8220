//===- ViewConvolution.h - Convolutions as shifted views --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution is a sum over the taps of its filter of products of a shifted
// view of the image with a matrix. Where images and results have channels last,
// such products read and write them where they are, while oneDNN copies them
// into an order of its own, and computes some forms (dilated ones along one
// dimension, those of single channels, long filters) at a small part of the
// processor's rate. Other images are copied first (ViewMoves.h).
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_VIEWCONVOLUTION_H
#define WHALE_RUNTIME_DEVICE_CPU_VIEWCONVOLUTION_H

#include "device/cpu/Scratch.h"
#include "program/Format.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace whale::runtime {

/// Elements from one to the next in each dimension of a dense tensor.
std::vector<int64_t> stridesOf(const Shape &shape);

namespace views {
struct Terms;

/// The tiles of neighbouring rows, of all taps: out[row] is the sum of the
/// terms, for `tiles` times `tileRows` rows; `chunk` taps at a time, so that
/// their weights stay in the nearest cache.
void runTiles(Terms terms, int64_t tiles, int64_t tileRows, int64_t vectors,
              int64_t chunk, float *const *out);
} // namespace views

/// A convolution of f32 or bf16, prepared for its shapes. The bits of its
/// results do not depend on the threads.
class ViewConvolution {
public:
  /// Nothing for what has none of the forms. `rhsStrides`: elements from one to
  /// the next in each dimension of rhs, which may have rows of whole vectors.
  static std::optional<ViewConvolution>
  prepare(const Convolution &op, const std::vector<int64_t> &rhsStrides);

  /// `scratch` has what getScratch() says.
  void run(const Scratch &scratch, int64_t threads, const void *lhs,
           const void *rhs, void *out) const;
  const ScratchSizes &getScratch() const { return scratch; }

  /// Cycles of one core that a run takes, after `movedBytes` of tensors have
  /// been copied for it.
  double price(int64_t movedBytes) const;
  /// The same where oneDNN computes it with the implementation of this name
  /// (empty: with matrix products of unrolled patches), after `movedBytes` of
  /// tensors have been brought into its order.
  double priceOfLibrary(std::string_view implementation,
                        int64_t movedBytes) const;

private:
  enum class Kind { Rows, Channels, Spread, Filter, FilterChannels };

  /// Positions of the result in whose sums the same taps of the filter are:
  /// all, or of a spread image those with the same remainder.
  struct Phase {
    /// For each spatial dimension: the first position in the result, the
    /// distance to the next, how many there are, and the number of taps.
    std::vector<int64_t> first, step, count, steps;
    /// For each spatial dimension, position and tap: the offset in lhs.
    std::vector<std::vector<int64_t>> offsets;
    /// The taps of the phase, by their place in the filter.
    std::vector<int32_t> taps;
    /// Positions; items of work, and the number of the first.
    int64_t rows = 0, blocks = 0, firstItem = 0;
  };
  /// Neighbouring vectors of columns.
  struct Block {
    int64_t first, vectors;
  };
  struct Item;
  struct Unit;

  ViewConvolution(const Convolution &op,
                  const std::vector<int64_t> &rhsStrides);
  bool prepareRows();
  bool prepareSpread();
  bool prepareFilter();
  Phase makePhase(const std::vector<int64_t> &first,
                  const std::vector<int64_t> &periods) const;
  void makePhases();
  void makeItems();
  void makeBlocks(int64_t columns);
  void widenOperands(bool isFilter);

  double priceOfRows() const;
  double priceOfSpread() const;
  double priceOfFilter() const;
  double multiplyAdds() const;

  void packTap(float *weights, const void *rhs, int64_t group,
               int64_t tap) const;
  void packWeights(float *weights, const void *rhs, int64_t threads) const;
  Item itemOf(int64_t number) const;
  void findAddresses(const Item &item, const float *base, const float *zeros,
                     const float **from, int64_t *offsets) const;
  void runItem(const Item &item, const float *lhs, const float *weights,
               const float *zeros, void *out, std::vector<char> &memory) const;
  void runRows(const Scratch &scratch, int64_t threads, const float *lhs,
               const void *rhs, void *out) const;

  void packSpread(float *weights, const void *rhs) const;
  void addProducts(int64_t image, int64_t begin, int64_t end,
                   const std::vector<int64_t> &at, const float *products,
                   float *out) const;
  void spreadRows(int64_t image, int64_t begin, int64_t end, const float *lhs,
                  const float *weights, float *out, float *products) const;
  void runSpread(const Scratch &scratch, int64_t threads, const float *lhs,
                 const void *rhs, void *out) const;

  struct Runs;
  Unit unitOf(int64_t number) const;
  void findRuns(int64_t tap, int64_t begin, int64_t end, Runs &runs) const;
  void addUnit(const Unit &unit, const Runs &runs, const float *lhs,
               const float *rhs, float *sums, bool adds) const;
  void storeUnit(const Unit &unit, const float *sums, void *out) const;
  void runFilter(const Scratch &scratch, int64_t threads, const float *lhs,
                 const float *rhs, void *out) const;

  Convolution op;
  ScratchSizes scratch;
  Kind kind = Kind::Rows;
  double cycles = 0;
  std::vector<int64_t> lhsStrides, rhsStrides, outStrides;
  int64_t groups = 1, taps = 1;
  /// So many taps of the filter that was given are one here.
  int64_t joinedTaps = 1;
  /// Of a group: terms of each tap, or rows of a filter, and columns of the
  /// result.
  int64_t length = 0, columns = 0;
  /// Columns that are computed, whole vectors.
  int64_t padded = 0;
  /// Rows of a tile, and of an item of work.
  int64_t tileRows = 0, itemRows = 0;
  /// Whether an item has all columns of a group.
  bool hasAllColumns = true;
  int64_t items = 0;
  std::vector<Block> blocks;
  std::vector<Phase> phases;
  /// Of a filter's gradient: what is summed over, and how much at a time.
  int64_t positions = 0, positionBlock = 0;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_VIEWCONVOLUTION_H
