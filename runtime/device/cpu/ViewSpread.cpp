//===- ViewSpread.cpp - Products that are spread over a result --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a convolution with few outputs, without strides, such as the gradient of
// the images of a first layer. Out: the product of each row of the image with
// all taps of the filter beside each other, whose parts are added to the
// positions of the result that read the row. A tile of results would waste most
// of each vector.
//
// Cost: half a cycle for 16 multiply-adds, and about 20 cycles to add the taps
// of the last dimension, which are neighbours. Each thread has a range of the
// result, and computes all rows that reach it: those at a border are computed
// twice. Scratch: the filter, and a result in f32 if it is of bf16. An element
// is summed in the order of the image's rows, however many threads there are.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Gemm.h"
#include "device/cpu/Parallel.h"
#include "device/cpu/ViewConvolution.h"
#include "device/cpu/ViewKernels.h"
#include "library/RowMath.h"

#include <algorithm>

namespace whale::runtime {

using views::kLanes;
using views::Terms;

/// Rows of the image whose products are computed at a time.
static constexpr int64_t kMostRows = 96;

/// Whether the tensor has its dimensions in the order of their numbers, with
/// channels last.
static bool isChannelsLast(const Convolution::Dimensions &dims) {
  for (size_t d = 0; d < dims.spatial.size(); ++d)
    if (dims.spatial[d] != static_cast<int64_t>(d) + 1)
      return false;
  return dims.first == 0;
}

bool ViewConvolution::prepareSpread() {
  constexpr int64_t fewColumns = 8, fewestTerms = 8;
  if (op.batchGroups != 1 || op.featureGroups != 1 ||
      !isChannelsLast(op.lhsDims) || !isChannelsLast(op.outDims))
    return false;
  for (const Convolution::Window &window : op.windows)
    if (window.stride != 1)
      return false;
  length = op.rhsShape[op.rhsDims.first];
  columns = op.rhsShape[op.rhsDims.second];
  int64_t count = 1;
  for (int64_t dim : op.rhsDims.spatial)
    count *= op.rhsShape[dim];
  if (columns > fewColumns || length < fewestTerms ||
      count * columns < kLanes || count > 4096)
    return false;
  kind = Kind::Spread;
  taps = count;
  makeBlocks(taps * columns);
  constexpr int64_t elementsInCache = 32768;
  // 24 is a multiple of the rows of each tile.
  constexpr int64_t step = 24;
  itemRows =
      std::clamp(elementsInCache / padded / step * step, step, kMostRows);
  widenOperands(/*isFilter=*/false);
  scratch[1] = padded * length * int64_t(sizeof(float));
  if (op.outType != DType::F32)
    scratch[2] = elementCount(op.outShape) * int64_t(sizeof(float));
  cycles = priceOfSpread();
  return true;
}

/// For each column of the products, a tap and an output: taps of the last
/// dimension in the order of the positions that they add to.
void ViewConvolution::packSpread(float *weights, const void *rhs) const {
  size_t last = op.windows.size() - 1;
  dispatch(op.rhsType, [&]<typename Storage>() {
    if constexpr (!isOpaque<Storage>)
      for (const Block &block : blocks) {
        int64_t width = block.vectors * kLanes;
        float *base = weights + block.first * length;
        for (int64_t v = 0; v < width; ++v) {
          int64_t column = block.first + v;
          bool isKnown = column < taps * columns;
          int64_t rest = column / columns;
          int64_t offset = column % columns * rhsStrides[op.rhsDims.second];
          for (size_t d = last + 1; isKnown && d-- > 0;) {
            int64_t dim = op.rhsDims.spatial[d], extent = op.rhsShape[dim];
            int64_t step = rest % extent;
            rest /= extent;
            // Steps of the last dimension are in falling order, which reversed
            // windows turn.
            bool isFalling = (d == last) != op.windows[d].reversed;
            offset += (isFalling ? extent - 1 - step : step) * rhsStrides[dim];
          }
          auto *from =
              static_cast<const Storage *>(rhs) + (isKnown ? offset : 0);
          for (int64_t i = 0; i < length; ++i)
            base[i * width + v] =
                isKnown
                    ? toProduct<float>(from[i * rhsStrides[op.rhsDims.first]])
                    : 0.0f;
        }
      }
  });
}

WHALE_VECTORS static void addRow(float *to, const float *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] += from[i];
}

/// Adds the products of the row at `at` of the image with all taps to those
/// positions of the result that are between `begin` and `end` in the first
/// dimension.
void ViewConvolution::addProducts(int64_t image, int64_t begin, int64_t end,
                                  const std::vector<int64_t> &at,
                                  const float *products, float *out) const {
  size_t last = op.windows.size() - 1;
  int64_t run = op.rhsShape[op.rhsDims.spatial[last]];
  int64_t spread = op.windows[last].rhsDilation;
  // The positions that the last dimension's taps add to, by rising ones.
  int64_t low = at[last] * op.windows[last].lhsDilation + op.windows[last].low -
                (run - 1) * spread;
  int64_t least = last == 0 ? begin : 0;
  int64_t most = last == 0 ? end : op.outShape[last + 1];
  for (int64_t tap = 0; tap < taps; tap += run, products += run * columns) {
    int64_t place = image * outStrides[0], rest = tap / run;
    bool isInside = true;
    for (size_t d = last; d-- > 0;) {
      const Convolution::Window &window = op.windows[d];
      int64_t kernel = op.rhsShape[op.rhsDims.spatial[d]];
      int64_t position = at[d] * window.lhsDilation + window.low -
                         rest % kernel * window.rhsDilation;
      rest /= kernel;
      isInside &= d == 0 ? position >= begin && position < end
                         : position >= 0 && position < op.outShape[d + 1];
      place += position * outStrides[d + 1];
    }
    if (!isInside)
      continue;
    if (spread == 1) {
      int64_t skipped = std::max<int64_t>(least - low, 0);
      int64_t kept = std::min(run, most - low) - skipped;
      if (kept > 0)
        addRow(out + place + (low + skipped) * columns,
               products + skipped * columns, kept * columns);
      continue;
    }
    for (int64_t k = 0; k < run; ++k)
      if (int64_t position = low + k * spread;
          position >= least && position < most)
        for (int64_t o = 0; o < columns; ++o)
          out[place + position * columns + o] += products[k * columns + o];
  }
}

/// Adds to the positions `begin` to `end` of the first dimension of a result
/// what the image's rows bring.
void ViewConvolution::spreadRows(int64_t image, int64_t begin, int64_t end,
                                 const float *lhs, const float *weights,
                                 float *out, float *products) const {
  size_t rank = op.windows.size();
  const Convolution::Window &outer = op.windows[0];
  int64_t reach = (op.rhsShape[op.rhsDims.spatial[0]] - 1) * outer.rhsDilation;
  // Rows of the image with a tap in the range.
  auto ceiling = [](int64_t a, int64_t b) {
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
  };
  int64_t first =
      std::max<int64_t>(ceiling(begin - outer.low, outer.lhsDilation), 0);
  int64_t past = std::min(ceiling(end + reach - outer.low, outer.lhsDilation),
                          op.lhsShape[1]);
  int64_t rows = (past - first) * (lhsStrides[1] / length);
  const float *start = lhs + image * lhsStrides[0] + first * lhsStrides[1];
  std::vector<int64_t> at(rank, 0);
  at[0] = first;
  const float *from[kMostRows];
  float *to[kMostRows];
  static constexpr int32_t onlyTap = 0;
  for (int64_t row = 0; row < rows; row += itemRows) {
    int64_t count = std::min(itemRows, rows - row);
    int64_t tiles = (count + tileRows - 1) / tileRows;
    for (int64_t r = 0; r < tiles * tileRows; ++r)
      from[r] = start + (row + std::min(r, count - 1)) * length;
    Terms terms = {from, &onlyTap, 1, length, nullptr, 0};
    for (const Block &block : blocks) {
      for (int64_t r = 0; r < tiles * tileRows; ++r)
        to[r] = products + r * padded + block.first;
      terms.weights = weights + block.first * length;
      views::runTiles(terms, tiles, tileRows, block.vectors, 1, to);
    }
    for (int64_t r = 0; r < count; ++r) {
      addProducts(image, begin, end, at, products + r * padded, out);
      for (size_t d = rank; d-- > 0;) {
        if (++at[d] < op.lhsShape[d + 1])
          break;
        at[d] = 0;
      }
    }
  }
}

void ViewConvolution::runSpread(const Scratch &scratch, int64_t threads,
                                const float *lhs, const void *rhs,
                                void *out) const {
  auto *weights = scratch.get<float>(1);
  packSpread(weights, rhs);
  auto *sums = op.outType == DType::F32 ? static_cast<float *>(out)
                                        : scratch.get<float>(2);
  int64_t extent = op.outShape[1], images = op.outShape[0];
  int64_t lineSize = outStrides[1];
  parallelFor(images * extent, threads, [&](int64_t begin, int64_t end) {
    std::fill(sums + begin * lineSize, sums + end * lineSize, 0.0f);
    std::vector<float> products(itemRows * padded);
    for (int64_t next; begin < end; begin = next) {
      int64_t image = begin / extent;
      next = std::min(end, (image + 1) * extent);
      spreadRows(image, begin - image * extent, next - image * extent, lhs,
                 weights, sums, products.data());
      if (op.outType == DType::BF16)
        convertRow(sums + begin * lineSize,
                   static_cast<BFloat16 *>(out) + begin * lineSize,
                   (next - begin) * lineSize);
    }
  });
}

} // namespace whale::runtime
