//===- ViewFilter.cpp - Gradients of filters --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the gradient of a filter: images and gradients with channels last. Out:
// for each tap the sum, over all positions, of a row of the image times a row
// of the gradient: a tile of channels by outputs stays in registers while the
// positions of a block, which stay in the cache, are gone through. Positions
// without the tap, in padding, are left out. Filters of one channel have a
// vector of channels instead of the tile.
//
// Cost: about half a cycle for 16 multiply-adds with AVX-512; a block of
// positions reads and writes the filter once. Each thread has taps and channels
// of its own and reads all images. Scratch: the filter in f32, and the operands
// if they are of bf16. Sums are over blocks of at most 1024 positions, then
// over the blocks in their order, however many threads there are.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Gemm.h"
#include "device/cpu/Parallel.h"
#include "device/cpu/ViewConvolution.h"
#include "device/cpu/ViewKernels.h"

#include <algorithm>

namespace whale::runtime {

using views::kLanes;
using views::Stretch;

/// Positions of a block for operands of so many channels: what they read stays
/// in the second cache.
static int64_t positionsOfBlock(int64_t channels) {
  constexpr int64_t elementsInCache = 65536, fewest = 256, most = 1024;
  return std::clamp(elementsInCache / channels, fewest, most);
}

bool ViewConvolution::prepareFilter() {
  if (op.featureGroups != 1 || lhsStrides[op.lhsDims.first] != 1 ||
      rhsStrides[op.rhsDims.second] != 1)
    return false;
  for (const Convolution::Window &window : op.windows)
    if (window.lhsDilation != 1 || window.reversed)
      return false;
  groups = op.batchGroups;
  length = op.outShape[op.outDims.first];
  columns = op.rhsShape[op.rhsDims.second] / groups;
  for (int64_t dim : op.outDims.spatial)
    taps *= op.outShape[dim];
  positions = op.rhsShape[op.rhsDims.first];
  for (int64_t dim : op.rhsDims.spatial)
    positions *= op.rhsShape[dim];
  if (groups > 1 && length == 1 && columns == 1) {
    if (groups < kLanes)
      return false;
    kind = Kind::FilterChannels;
    padded = (groups + kLanes - 1) / kLanes * kLanes;
    positionBlock = positionsOfBlock(2 * groups);
  } else {
    kind = Kind::Filter;
    makeBlocks(columns);
    // The last vector ends with the row, or with what is between rows.
    if (padded != columns &&
        (groups > 1 || rhsStrides[op.rhsDims.spatial.back()] < padded))
      return false;
    padded *= groups;
    positionBlock = positionsOfBlock(groups * (length + columns));
  }
  widenOperands(/*isFilter=*/true);
  scratch[2] = taps * length * padded * int64_t(sizeof(float));
  cycles = priceOfFilter();
  return true;
}

template <int Vectors>
static WHALE_INLINE void
addRows(int64_t rows, int64_t most, const Stretch *runs, int64_t count,
        const float *image, int64_t imageStep, const float *gradient,
        int64_t gradientStep, float *sums, int64_t stride, bool adds) {
  constexpr int large = Vectors == 4 ? 6 : Vectors == 3 ? 8 : 12;
  while (rows > 0) {
    int64_t now = views::rowsOfTile(rows, Vectors, most);
#define ADD(Rows)                                                              \
  views::addRuns<Rows, Vectors>(runs, count, image, imageStep, gradient,       \
                                gradientStep, sums, stride, adds)
    if (now == large)
      ADD(large);
    else if (now == 6)
      ADD(6);
    else if (now == 4)
      ADD(4);
    else if (now == 2)
      ADD(2);
    else
      ADD(1);
#undef ADD
    rows -= now;
    image += now;
    sums += now * stride;
  }
}

WHALE_VECTORS static void addRowsOf(int64_t vectors, int64_t rows, int64_t most,
                                    const Stretch *runs, int64_t count,
                                    const float *image, int64_t imageStep,
                                    const float *gradient, int64_t gradientStep,
                                    float *sums, int64_t stride, bool adds) {
  if (vectors == 4)
    addRows<4>(rows, most, runs, count, image, imageStep, gradient,
               gradientStep, sums, stride, adds);
  else if (vectors == 3)
    addRows<3>(rows, most, runs, count, image, imageStep, gradient,
               gradientStep, sums, stride, adds);
  else if (vectors == 2)
    addRows<2>(rows, most, runs, count, image, imageStep, gradient,
               gradientStep, sums, stride, adds);
  else
    addRows<1>(rows, most, runs, count, image, imageStep, gradient,
               gradientStep, sums, stride, adds);
}

WHALE_VECTORS static void addChannels(int64_t channels, const Stretch *runs,
                                      int64_t count, const float *image,
                                      int64_t imageStep, const float *gradient,
                                      int64_t gradientStep, float *sums,
                                      bool adds) {
  int64_t c = 0;
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes)
    views::addRunsByChannel<4>(runs, count, image + c, imageStep, gradient + c,
                               gradientStep, sums + c, adds);
  for (; c < channels; c += kLanes) {
    // The last vector overlaps the one before it, and has a place of its own.
    int64_t from = std::min(c, channels - kLanes);
    views::addRunsByChannel<1>(runs, count, image + from, imageStep,
                               gradient + from, gradientStep, sums + c, adds);
  }
}

/// Positions with a tap, and the distances from one to the next.
struct ViewConvolution::Runs {
  std::vector<Stretch> all;
  int64_t imageStep, gradientStep;
};

/// Rows of the filter that are computed together.
struct ViewConvolution::Unit {
  int64_t tap, group, row, rows;
};

/// The most rows of a unit; a multiple of the rows of each tile but the
/// smallest.
static constexpr int64_t kRowsOfUnit = 24;

ViewConvolution::Unit ViewConvolution::unitOf(int64_t number) const {
  if (kind == Kind::FilterChannels)
    return {number, 0, 0, 1};
  int64_t parts = (length + kRowsOfUnit - 1) / kRowsOfUnit;
  int64_t row = number % parts * kRowsOfUnit;
  return {number / parts / groups, number / parts % groups, row,
          std::min(kRowsOfUnit, length - row)};
}

/// Those among the positions from `begin` to `end`.
void ViewConvolution::findRuns(int64_t tap, int64_t begin, int64_t end,
                               Runs &runs) const {
  size_t last = op.windows.size() - 1;
  std::vector<int64_t> steps(last + 1);
  for (size_t d = last + 1; d-- > 0;) {
    int64_t extent = op.outShape[op.outDims.spatial[d]];
    steps[d] = tap % extent;
    tap /= extent;
  }
  const Convolution::Window &inner = op.windows[last];
  int64_t dim = op.lhsDims.spatial[last], extent = op.lhsShape[dim];
  int64_t line = op.rhsShape[op.rhsDims.spatial[last]];
  int64_t start = steps[last] * inner.stride - inner.low;
  // start + at * dilation is in [0, extent) from `least` to `past`.
  int64_t spread = inner.rhsDilation;
  int64_t least = start >= 0 ? 0 : (-start + spread - 1) / spread;
  int64_t past = start >= extent ? 0 : (extent - 1 - start) / spread + 1;
  runs.imageStep = spread * lhsStrides[dim];
  runs.gradientStep = rhsStrides[op.rhsDims.spatial[last]];
  runs.all.clear();
  for (int64_t row = begin / line; row * line < end; ++row) {
    int64_t rest = row, image = start * lhsStrides[dim], gradient = 0;
    bool isInside = true;
    for (size_t d = last; d-- > 0;) {
      int64_t rhsDim = op.rhsDims.spatial[d], lhsDim = op.lhsDims.spatial[d];
      int64_t at = rest % op.rhsShape[rhsDim];
      rest /= op.rhsShape[rhsDim];
      const Convolution::Window &window = op.windows[d];
      int64_t from =
          steps[d] * window.stride + at * window.rhsDilation - window.low;
      isInside &= from >= 0 && from < op.lhsShape[lhsDim];
      image += from * lhsStrides[lhsDim];
      gradient += at * rhsStrides[rhsDim];
    }
    image += rest * lhsStrides[op.lhsDims.second];
    gradient += rest * rhsStrides[op.rhsDims.first];
    int64_t low = std::max(least, begin - row * line);
    int64_t high = std::min({past, line, end - row * line});
    if (isInside && low < high)
      runs.all.push_back({image + low * runs.imageStep,
                          gradient + low * runs.gradientStep, high - low});
  }
}

void ViewConvolution::addUnit(const Unit &unit, const Runs &runs,
                              const float *lhs, const float *rhs, float *sums,
                              bool adds) const {
  auto count = static_cast<int64_t>(runs.all.size());
  if (kind == Kind::FilterChannels)
    return addChannels(groups, runs.all.data(), count, lhs, runs.imageStep, rhs,
                       runs.gradientStep, sums + unit.tap * padded, adds);
  for (const Block &block : blocks) {
    int64_t column = unit.group * columns + block.first;
    addRowsOf(block.vectors, unit.rows, tileRows, runs.all.data(), count,
              lhs + unit.group * length + unit.row, runs.imageStep,
              rhs + column, runs.gradientStep,
              sums + (unit.tap * length + unit.row) * padded + column, padded,
              adds);
  }
}

/// What has been summed goes where it belongs.
void ViewConvolution::storeUnit(const Unit &unit, const float *sums,
                                void *out) const {
  int64_t offset = 0, rest = unit.tap;
  for (size_t d = op.windows.size(); d-- > 0;) {
    int64_t dim = op.outDims.spatial[d];
    offset += rest % op.outShape[dim] * outStrides[dim];
    rest /= op.outShape[dim];
  }
  int64_t stride = outStrides[op.outDims.second];
  dispatch(op.outType, [&]<typename Storage>() {
    if constexpr (!isOpaque<Storage>) {
      auto *target = static_cast<Storage *>(out) + offset;
      if (kind == Kind::FilterChannels) {
        for (int64_t c = 0; c < groups; ++c) {
          int64_t vector = c / kLanes * kLanes;
          int64_t from = std::min(vector, groups - kLanes);
          target[c * stride] =
              fromProduct<Storage>(sums[unit.tap * padded + vector + c - from]);
        }
        return;
      }
      int64_t column = unit.group * columns;
      for (int64_t row = unit.row; row < unit.row + unit.rows; ++row) {
        const float *source =
            sums + (unit.tap * length + row) * padded + column;
        Storage *to = target + row * outStrides[op.outDims.first];
        for (int64_t o = 0; o < columns; ++o)
          to[(column + o) * stride] = fromProduct<Storage>(source[o]);
      }
    }
  });
}

void ViewConvolution::runFilter(const Scratch &scratch, int64_t threads,
                                const float *lhs, const float *rhs,
                                void *out) const {
  auto *sums = scratch.get<float>(2);
  int64_t parts = (length + kRowsOfUnit - 1) / kRowsOfUnit;
  int64_t units = taps;
  if (kind == Kind::Filter)
    units *= groups * parts;
  parallelFor(units, threads, [&](int64_t first, int64_t last) {
    Runs runs;
    for (int64_t begin = 0; begin < positions; begin += positionBlock) {
      int64_t end = std::min(begin + positionBlock, positions), known = -1;
      for (int64_t number = first; number < last; ++number) {
        Unit unit = unitOf(number);
        if (unit.tap != known)
          findRuns(unit.tap, begin, end, runs);
        known = unit.tap;
        addUnit(unit, runs, lhs, rhs, sums, begin > 0);
      }
    }
    for (int64_t number = first; number < last; ++number)
      storeUnit(unitOf(number), sums, out);
  });
}

} // namespace whale::runtime
