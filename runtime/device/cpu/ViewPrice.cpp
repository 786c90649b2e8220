//===- ViewPrice.cpp - What a convolution costs as views --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a convolution in one of its forms. Out: cycles of one core that it takes
// so, and that oneDNN takes, of which the lower is chosen: a pure function of
// shapes, so that a program computes the same bits on each run. The constants
// are measured on one core with AVX-512 (Sapphire Rapids, oneDNN 2.6), on 174
// convolutions of benchmarks/convolution_shapes.py; with fewer or narrower
// vectors both sides take longer.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Operations.h"
#include "device/cpu/ViewConvolution.h"
#include "device/cpu/ViewKernels.h"

#include <algorithm>
#include <numeric>

namespace whale::runtime {

using views::kLanes;

/// A cycle has two multiply-adds of a vector, or two loads.
static constexpr double kMultiplyAdd = 0.5;

/// Cycles of a tile for each term: multiply-adds, loads of its rows and
/// columns, or until the sums of the term before are there.
static double priceOfTile(int64_t rows, int64_t vectors) {
  constexpr double latency = 4;
  double each = std::max(rows * vectors, rows + vectors) * kMultiplyAdd;
  return std::max(each, latency);
}

/// Multiply-adds of one group, as many as there are terms.
double ViewConvolution::multiplyAdds() const {
  if (kind == Kind::Filter || kind == Kind::FilterChannels)
    return double(positions) * taps * length * columns;
  double count = double(elementCount(op.outShape)) / groups * taps * length;
  for (const Convolution::Window &window : op.windows)
    count /= window.lhsDilation;
  return count;
}

static double priceOfWidening(DType type, const Shape &shape) {
  constexpr double ofElement = 0.5;
  return type == DType::F32 ? 0 : ofElement * elementCount(shape);
}

/// What is copied into another order.
static constexpr double kBytesInCycle = 6;

double ViewConvolution::price(int64_t movedBytes) const {
  return cycles + movedBytes / kBytesInCycle;
}

double ViewConvolution::priceOfRows() const {
  constexpr double ofAddress = 4, ofWeight = 1, bytesInCycle = 16;
  double result = priceOfWidening(op.lhsType, op.lhsShape) +
                  priceOfWidening(op.outType, op.outShape) +
                  ofWeight * elementCount(op.rhsShape);
  double ofTap = ofAddress;
  if (kind == Kind::Channels) {
    constexpr double ofVector = 0.6, ofTapOfChannels = 1;
    ofTap += ofTapOfChannels + ofVector * ((groups + kLanes - 1) / kLanes);
    result += (elementCount(op.lhsShape) + elementCount(op.outShape)) *
              double(sizeof(float)) / bytesInCycle;
  } else {
    for (const Block &block : blocks)
      ofTap += length * priceOfTile(tileRows, block.vectors) / tileRows;
    ofTap *= groups;
  }
  for (const Phase &phase : phases)
    result += double(phase.rows) * phase.taps.size() * ofTap;
  return result;
}

double ViewConvolution::priceOfSpread() const {
  constexpr double ofRun = 20;
  double ofRow = ofRun * taps / op.rhsShape[op.rhsDims.spatial.back()];
  for (const Block &block : blocks)
    ofRow += length * priceOfTile(tileRows, block.vectors) / tileRows;
  return priceOfWidening(op.lhsType, op.lhsShape) +
         priceOfWidening(op.outType, op.outShape) +
         ofRow * elementCount(op.lhsShape) / length;
}

double ViewConvolution::priceOfFilter() const {
  // Loads and stores of tiles, and the ends of runs.
  constexpr double share = 0.8;
  double result = priceOfWidening(op.lhsType, op.lhsShape) +
                  priceOfWidening(op.rhsType, op.rhsShape);
  double ofPosition = 0;
  if (kind == Kind::FilterChannels) {
    constexpr double ofVector = 1.2;
    return result + positions * taps * ofVector * padded / kLanes / share;
  }
  for (const Block &block : blocks)
    for (int64_t row = 0; row < length;) {
      int64_t rows = views::rowsOfTile(length - row, block.vectors, tileRows);
      ofPosition += priceOfTile(rows, block.vectors);
      row += rows;
    }
  return result + double(positions) * taps * groups * ofPosition / share;
}

/// Whether oneDNN multiplies bf16 by tiles (AMX).
static bool hasTiles() {
  makeEngine();
  constexpr int wanted = dnnl_cpu_isa_avx512_core_amx;
  return (dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

double ViewConvolution::priceOfLibrary(std::string_view implementation,
                                       int64_t movedBytes) const {
  // Parts of the rate of multiply-adds of f32 that oneDNN reaches with code
  // that it generates for a convolution, with its GEMM, and in products of
  // unrolled patches.
  constexpr double generated = 0.8, byGemm = 0.45, byPatches = 0.3;
  constexpr double ofBf16 = 0.45, ofTiles = 4;
  auto has = [&](std::string_view text) {
    return implementation.find(text) != std::string_view::npos;
  };
  double moved = movedBytes / kBytesInCycle;
  double work = multiplyAdds() * groups / kLanes * kMultiplyAdd;
  bool isByChannel = kind == Kind::Channels || kind == Kind::FilterChannels;
  if (isByChannel && has("jit_dw"))
    return moved * 1.5 + work * 1.2;
  // It fills vectors with the channels of a group, on both sides but those of
  // the first layer's images, and of several groups.
  constexpr int64_t fewChannels = 4;
  auto filled = [&](int64_t channels) {
    return double((channels + kLanes - 1) / kLanes * kLanes) / channels;
  };
  int64_t channels = length / joinedTaps;
  bool isFull = groups > 1 || channels <= fewChannels;
  work *= filled(columns) * (isFull ? 1 : filled(channels));
  if (implementation.empty()) {
    // Of these it copies each element by itself, the results on one thread.
    constexpr double ofPatch = 2, ofResult = 5;
    double patches =
        double(elementCount(op.outShape)) / op.outShape[op.outDims.second] *
        elementCount(op.rhsShape) / op.rhsShape[op.rhsDims.second] * groups;
    return work / byPatches + patches * ofPatch +
           elementCount(op.outShape) * ofResult;
  }
  if (has("gemm"))
    return moved + work / byGemm;
  if (op.lhsType == DType::BF16)
    return moved + work / (hasTiles() ? ofTiles : ofBf16);
  return moved + work / generated;
}

} // namespace whale::runtime
