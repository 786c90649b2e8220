//===- ViewConvolution.cpp - Convolutions as shifted views ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the forms of such convolutions have in common (ViewRows.cpp,
// ViewSpread.cpp, ViewFilter.cpp): which one a convolution has, and the tiles
// of products.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/ViewConvolution.h"

#include "device/cpu/Parallel.h"
#include "device/cpu/ViewKernels.h"
#include "library/RowMath.h"

#include <algorithm>

namespace whale::runtime {

using views::kLanes;
using views::Terms;

std::vector<int64_t> stridesOf(const Shape &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

ViewConvolution::ViewConvolution(const Convolution &op,
                                 const std::vector<int64_t> &rhsStrides)
    : op(op), lhsStrides(stridesOf(op.lhsShape)), rhsStrides(rhsStrides),
      outStrides(stridesOf(op.outShape)) {}

/// A window that moves by its own width along the last dimension cuts patches
/// from an image: what its neighbouring taps read is one row of as many times
/// the channels. `filterStrides`: of the filter, which is the result where
/// `isFilter`.
static Convolution joinTaps(Convolution op, bool isFilter,
                            const std::vector<int64_t> &filterStrides) {
  Convolution::Window &window = op.windows.back();
  Shape &filter = isFilter ? op.outShape : op.rhsShape;
  auto &[rowDim, columnDim, tapDims] = isFilter ? op.outDims : op.rhsDims;
  int64_t tapDim = tapDims.back(), lineDim = op.lhsDims.spatial.back();
  int64_t positions = isFilter ? op.rhsShape[op.rhsDims.spatial.back()]
                               : op.outShape[op.outDims.spatial.back()];
  // The windows of a filter's gradient are the gradients, from tap to tap.
  int64_t &step = isFilter ? window.rhsDilation : window.stride;
  int64_t spread = isFilter ? window.stride : window.rhsDilation;
  int64_t &channels =
      op.lhsShape[isFilter ? op.lhsDims.first : op.lhsDims.second];
  int64_t width = filter[tapDim];
  bool cutsPatches = op.featureGroups == 1 && op.batchGroups == 1 &&
                     !window.reversed && window.lhsDilation == 1 &&
                     window.low == 0 && window.high == 0 && spread == 1 &&
                     step == width && op.lhsShape[lineDim] == positions * width;
  if (!cutsPatches || stridesOf(op.lhsShape)[lineDim] != channels ||
      filterStrides[tapDim] != channels * filterStrides[rowDim])
    return op;
  op.lhsShape[lineDim] = positions;
  channels *= width;
  filter[tapDim] = 1;
  filter[rowDim] *= width;
  step = 1;
  return op;
}

std::optional<ViewConvolution>
ViewConvolution::prepare(const Convolution &op,
                         const std::vector<int64_t> &rhsStrides) {
  auto isKnown = [](DType type) {
    return type == DType::F32 || type == DType::BF16;
  };
  if (!isKnown(op.lhsType) || !isKnown(op.rhsType) || !isKnown(op.outType) ||
      op.windows.empty() || elementCount(op.lhsShape) == 0 ||
      elementCount(op.rhsShape) == 0 || elementCount(op.outShape) == 0)
    return std::nullopt;
  // What a form does not have is another's, from the start.
  auto start = [&](const Convolution &given) {
    ViewConvolution views(given, rhsStrides);
    size_t line = op.lhsDims.spatial.back();
    views.joinedTaps = op.lhsShape[line] / given.lhsShape[line];
    return views;
  };
  if (ViewConvolution filter =
          start(joinTaps(op, /*isFilter=*/true, stridesOf(op.outShape)));
      format::formOf(op) == format::ConvolutionForm::FilterGradient &&
      filter.prepareFilter())
    return filter;
  if (ViewConvolution spread = start(op); spread.prepareSpread())
    return spread;
  if (ViewConvolution rows =
          start(joinTaps(op, /*isFilter=*/false, rhsStrides));
      rows.prepareRows())
    return rows;
  return std::nullopt;
}

/// Tiles of 6 by 4 vectors, or of 8 by 1 to 3, keep the registers of AVX-512
/// busy; with fewer registers, those of 6 by 1.
void ViewConvolution::makeBlocks(int64_t columns) {
  int64_t vectors = (columns + kLanes - 1) / kLanes;
  int64_t most = !views::hasWideVectors() ? 1 : vectors % 4 == 0 ? 4 : 3;
  tileRows = most == 1 || most == 4 ? 6 : 8;
  padded = vectors * kLanes;
  for (int64_t first = 0; first < vectors;) {
    int64_t rest = vectors - first;
    // Rather two and two than three and one.
    int64_t count = most == 3 && rest == 4 ? 2 : std::min(most, rest);
    blocks.push_back({first * kLanes, count});
    first += count;
  }
}

/// Asks for memory for operands in f32.
void ViewConvolution::widenOperands(bool isFilter) {
  if (op.lhsType != DType::F32)
    scratch[0] = elementCount(op.lhsShape) * int64_t(sizeof(float));
  if (isFilter && op.rhsType != DType::F32)
    scratch[1] = elementCount(op.rhsShape) * int64_t(sizeof(float));
}

template <int Rows>
static WHALE_INLINE void runTile(const Terms &terms, int64_t vectors,
                                 float *const *out, bool adds) {
  if constexpr (Rows == 6) {
    if (vectors == 4)
      return views::addTerms<6, 4>(terms, out, adds);
    views::addTerms<6, 1>(terms, out, adds);
  } else {
    if (vectors == 3)
      return views::addTerms<8, 3>(terms, out, adds);
    if (vectors == 2)
      return views::addTerms<8, 2>(terms, out, adds);
    views::addTerms<8, 1>(terms, out, adds);
  }
}

WHALE_VECTORS static void runEachTile(Terms terms, int64_t tiles,
                                      int64_t tileRows, int64_t vectors,
                                      int64_t chunk, float *const *out) {
  int64_t all = terms.count;
  const float *const *rows = terms.rows;
  const int32_t *taps = terms.taps;
  // Without taps, as between those of a spread image, sums are zero.
  int64_t first = 0;
  do {
    terms.count = std::min(chunk, all - first);
    terms.taps = taps + first;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      terms.rows = rows + (tile * all + first) * tileRows;
      if (tileRows == 6)
        runTile<6>(terms, vectors, out + tile * tileRows, first > 0);
      else
        runTile<8>(terms, vectors, out + tile * tileRows, first > 0);
    }
    first += chunk;
  } while (first < all);
}

void views::runTiles(Terms terms, int64_t tiles, int64_t tileRows,
                     int64_t vectors, int64_t chunk, float *const *out) {
  runEachTile(terms, tiles, tileRows, vectors, chunk, out);
}

void ViewConvolution::run(const Scratch &scratch, int64_t threads,
                          const void *lhs, const void *rhs, void *out) const {
  // A thread that is woken for less than some tens of microseconds costs more
  // than it brings.
  constexpr double cyclesOfThread = 60000;
  threads =
      std::min(threads, 1 + static_cast<int64_t>(cycles / cyclesOfThread));
  auto widen = [&](DType type, const Shape &shape, const void *data,
                   size_t slot) -> const float * {
    if (type == DType::F32)
      return static_cast<const float *>(data);
    auto *wide = scratch.get<float>(slot);
    auto *narrow = static_cast<const BFloat16 *>(data);
    parallelFor(elementCount(shape), threads, [&](int64_t begin, int64_t end) {
      convertRow(narrow + begin, wide + begin, end - begin);
    });
    return wide;
  };
  const float *left = widen(op.lhsType, op.lhsShape, lhs, 0);
  switch (kind) {
  case Kind::Rows:
  case Kind::Channels:
    return runRows(scratch, threads, left, rhs, out);
  case Kind::Spread:
    return runSpread(scratch, threads, left, rhs, out);
  case Kind::Filter:
  case Kind::FilterChannels:
    return runFilter(scratch, threads, left,
                     widen(op.rhsType, op.rhsShape, rhs, 1), out);
  }
}

} // namespace whale::runtime
