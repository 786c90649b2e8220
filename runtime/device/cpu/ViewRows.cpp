//===- ViewRows.cpp - Rows of results as products of views ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a convolution whose image and result have channels last. Out: for a tile
// of a few positions of the result the sum, over the taps of the filter, of
// the rows of the image that they read times the filter's matrix of the tap.
// Rows are read where they lie, by their addresses, so strides, dilations,
// padding (rows of zeros) and images of one to three dimensions are all alike;
// of a spread image, positions with the same taps are in a tile. Filters of
// one channel have a vector of channels instead of the matrix.
//
// Cost: about half a cycle for 16 multiply-adds with AVX-512, and 4 cycles for
// an address of a position's tap. Scratch: the filter in the order in which it
// is read, and the image in f32 if it is of bf16. The sums' order does not
// depend on the threads.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Gemm.h"
#include "device/cpu/Parallel.h"
#include "device/cpu/ViewConvolution.h"
#include "device/cpu/ViewKernels.h"
#include "library/RowMath.h"

#include <algorithm>
#include <numeric>

namespace whale::runtime {

using views::kLanes;
using views::Terms;

/// No offset in a tensor, whatever is added to it.
static constexpr int64_t kOutside = INT64_MIN / 16;

/// Positions `first`, and each `periods` further.
ViewConvolution::Phase
ViewConvolution::makePhase(const std::vector<int64_t> &first,
                           const std::vector<int64_t> &periods) const {
  Phase phase;
  phase.first = first;
  phase.step = periods;
  phase.rows = op.outShape[op.outDims.first];
  phase.taps = {0};
  for (size_t d = 0; d < op.windows.size(); ++d) {
    const Convolution::Window &window = op.windows[d];
    int64_t out = op.outShape[op.outDims.spatial[d]];
    int64_t kernel = op.rhsShape[op.rhsDims.spatial[d]];
    int64_t extent = op.lhsShape[op.lhsDims.spatial[d]];
    int64_t stride = lhsStrides[op.lhsDims.spatial[d]];
    auto placeOf = [&](int64_t position, int64_t step) {
      return position * window.stride + step * window.rhsDilation - window.low;
    };
    std::vector<int64_t> steps;
    for (int64_t step = 0; step < kernel; ++step)
      if (placeOf(first[d], step) % window.lhsDilation == 0)
        steps.push_back(step);
    std::vector<int64_t> &table = phase.offsets.emplace_back();
    for (int64_t at = first[d]; at < out; at += periods[d])
      for (int64_t step : steps) {
        int64_t from = placeOf(at, step) / window.lhsDilation;
        bool isInside = from >= 0 && from < extent;
        table.push_back(isInside ? from * stride : kOutside);
      }
    std::vector<int32_t> taps;
    for (int32_t tap : phase.taps)
      for (int64_t step : steps)
        taps.push_back(static_cast<int32_t>(
            tap * kernel + (window.reversed ? kernel - 1 - step : step)));
    phase.taps = std::move(taps);
    int64_t count = out > first[d] ? (out - first[d] - 1) / periods[d] + 1 : 0;
    phase.count.push_back(count);
    phase.steps.push_back(static_cast<int64_t>(steps.size()));
    phase.rows *= count;
  }
  return phase;
}

void ViewConvolution::makePhases() {
  std::vector<int64_t> periods, first(op.windows.size(), 0);
  for (const Convolution::Window &window : op.windows)
    periods.push_back(window.lhsDilation /
                      std::gcd(window.lhsDilation, window.stride));
  while (true) {
    if (Phase phase = makePhase(first, periods); phase.rows > 0)
      phases.push_back(std::move(phase));
    size_t d = op.windows.size();
    while (d-- > 0) {
      if (++first[d] < periods[d])
        break;
      first[d] = 0;
    }
    if (d == static_cast<size_t>(-1))
      return;
  }
}

/// Work is divided into blocks of positions, and groups; or blocks of columns,
/// too, where these are too few for many threads.
void ViewConvolution::makeItems() {
  constexpr int64_t fewItems = 32;
  auto count = [&] {
    items = 0;
    for (Phase &phase : phases) {
      phase.firstItem = items;
      phase.blocks = (phase.rows + itemRows - 1) / itemRows;
      int64_t parts = 1;
      if (kind == Kind::Rows)
        parts = hasAllColumns ? groups : groups * int64_t(blocks.size());
      items += phase.blocks * parts;
    }
  };
  count();
  hasAllColumns = items >= fewItems || kind != Kind::Rows;
  count();
}

bool ViewConvolution::prepareRows() {
  // Tables are as large as these.
  constexpr int64_t mostPhases = 1024, mostTaps = 4096;
  if (op.batchGroups != 1 || lhsStrides[op.lhsDims.second] != 1 ||
      outStrides[op.outDims.second] != 1)
    return false;
  groups = op.featureGroups;
  length = op.rhsShape[op.rhsDims.first];
  columns = op.rhsShape[op.rhsDims.second] / groups;
  int64_t phaseCount = 1;
  for (size_t d = 0; d < op.windows.size(); ++d) {
    taps *= op.rhsShape[op.rhsDims.spatial[d]];
    phaseCount *= op.windows[d].lhsDilation;
    if (taps > mostTaps || phaseCount > mostPhases)
      return false;
  }
  makePhases();
  if (groups > 1 && length == 1 && columns == 1) {
    if (groups < kLanes)
      return false;
    kind = Kind::Channels;
    tileRows = views::hasWideVectors() ? 8 : 4;
  } else {
    makeBlocks(columns);
  }
  size_t most = 1;
  for (const Phase &phase : phases)
    most = std::max(most, phase.taps.size());
  // Addresses of an item's rows stay in the nearest cache; 24 is a multiple of
  // the rows of each tile.
  constexpr int64_t mostAddresses = 4096, step = 24, mostRows = 96;
  itemRows = mostAddresses / static_cast<int64_t>(most) / step * step;
  itemRows = std::clamp(itemRows, step, mostRows);
  makeItems();
  widenOperands(/*isFilter=*/false);
  bool byChannel = kind == Kind::Channels;
  int64_t weights = groups * taps * (byChannel ? 1 : length * padded);
  int64_t zeros = byChannel ? groups : length;
  scratch[1] = (weights + zeros) * int64_t(sizeof(float));
  cycles = priceOfRows();
  return true;
}

/// The matrix of a tap, block by block of columns; by channels its row.
void ViewConvolution::packTap(float *weights, const void *rhs, int64_t group,
                              int64_t tap) const {
  int64_t rest = tap, offset = 0;
  for (size_t d = op.windows.size(); d-- > 0;) {
    int64_t dim = op.rhsDims.spatial[d];
    offset += rest % op.rhsShape[dim] * rhsStrides[dim];
    rest /= op.rhsShape[dim];
  }
  int64_t columnStride = rhsStrides[op.rhsDims.second];
  int64_t rowStride = rhsStrides[op.rhsDims.first];
  // Rows at a time, so that lines of the cache are read once whichever of the
  // two dimensions they go along.
  constexpr int64_t rowsAtOnce = 16;
  dispatch(op.rhsType, [&]<typename Storage>() {
    if constexpr (!isOpaque<Storage>) {
      auto *from = static_cast<const Storage *>(rhs) + offset;
      if (kind == Kind::Channels) {
        for (int64_t c = 0; c < groups; ++c)
          weights[tap * groups + c] = toProduct<float>(from[c * columnStride]);
        return;
      }
      from += group * columns * columnStride;
      for (const Block &block : blocks) {
        int64_t width = block.vectors * kLanes;
        int64_t known = std::min(width, columns - block.first);
        float *to = weights + group * taps * length * padded +
                    block.first * taps * length + tap * length * width;
        const Storage *source = from + block.first * columnStride;
        for (int64_t i = 0; i < length; i += rowsAtOnce) {
          int64_t end = std::min(i + rowsAtOnce, length);
          if (columnStride == 1) {
            for (int64_t row = i; row < end; ++row)
              for (int64_t o = 0; o < known; ++o)
                to[row * width + o] =
                    toProduct<float>(source[row * rowStride + o]);
          } else {
            for (int64_t o = 0; o < known; ++o)
              for (int64_t row = i; row < end; ++row)
                to[row * width + o] = toProduct<float>(
                    source[row * rowStride + o * columnStride]);
          }
          for (int64_t row = i; row < end; ++row)
            std::fill(to + row * width + known, to + (row + 1) * width, 0.0f);
        }
      }
    }
  });
}

void ViewConvolution::packWeights(float *weights, const void *rhs,
                                  int64_t threads) const {
  constexpr int64_t fewElements = 65536;
  int64_t units = kind == Kind::Channels ? taps : groups * taps;
  int64_t parts = elementCount(op.rhsShape) < fewElements ? 1 : threads;
  parallelFor(units, parts, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
      packTap(weights, rhs, unit / taps, unit % taps);
  });
}

/// Some positions of a phase, a group, and some blocks of its columns.
struct ViewConvolution::Item {
  const Phase *phase;
  int64_t row, rows, group;
  size_t firstBlock, lastBlock;
};

/// The tiles of neighbouring rows, of all channels.
WHALE_VECTORS static void runChannels(Terms terms, int64_t tiles,
                                      int64_t tileRows, int64_t channels,
                                      float *const *out) {
  const float *const *rows = terms.rows;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    terms.rows = rows + tile * terms.count * tileRows;
    float *const *to = out + tile * tileRows;
    for (int64_t channel = 0; channel < channels;) {
      float *moved[8];
      bool isWide = channel + 2 * kLanes <= channels;
      // The last vector overlaps the one before it.
      channel = std::min(channel, channels - kLanes);
      for (int64_t r = 0; r < tileRows; ++r)
        moved[r] = to[r] + channel;
      if (tileRows == 8 && isWide)
        views::addTermsByChannel<8, 2>(terms, channel, moved);
      else if (tileRows == 8)
        views::addTermsByChannel<8, 1>(terms, channel, moved);
      else
        views::addTermsByChannel<4, 1>(terms, channel, moved);
      channel += tileRows == 8 && isWide ? 2 * kLanes : kLanes;
    }
  }
}

/// Addresses of what the rows of an item read, tile by tile and tap by tap, and
/// offsets of their results. Rows beyond the last, and what is outside of the
/// image, read zeros; what no row of a tile reads is left out.
void ViewConvolution::findAddresses(const Item &item, const float *base,
                                    const float *zeros, const float **from,
                                    int64_t *offsets) const {
  const Phase &phase = *item.phase;
  size_t rank = op.windows.size(), last = rank - 1;
  int64_t inner = phase.steps[last];
  int64_t outer = inner ? static_cast<int64_t>(phase.taps.size()) / inner : 0;
  std::vector<int64_t> at(rank, 0), starts(outer);
  int64_t rest = item.row;
  for (size_t d = rank; d-- > 0;) {
    at[d] = rest % phase.count[d];
    rest /= phase.count[d];
  }
  int64_t image = rest;
  // Where a line of the result reads, and where it is.
  int64_t line = 0,
          lineStep = phase.step[last] * outStrides[op.outDims.spatial[last]];
  auto enterLine = [&] {
    line = image * outStrides[op.outDims.first] + item.group * columns;
    for (size_t d = 0; d < rank; ++d)
      line += (phase.first[d] + (d < last ? at[d] * phase.step[d] : 0)) *
              outStrides[op.outDims.spatial[d]];
    for (int64_t t = 0; t < outer; ++t) {
      int64_t number = t;
      starts[t] = image * lhsStrides[op.lhsDims.first];
      for (size_t d = last; d-- > 0;) {
        starts[t] +=
            phase.offsets[d][at[d] * phase.steps[d] + number % phase.steps[d]];
        number /= phase.steps[d];
      }
    }
  };
  auto leaveLine = [&] {
    at[last] = 0;
    size_t d = last;
    while (d-- > 0) {
      if (++at[d] < phase.count[d])
        break;
      at[d] = 0;
    }
    if (d == static_cast<size_t>(-1))
      ++image;
  };
  enterLine();
  for (int64_t row = 0; row < item.rows; row += tileRows) {
    const float **slots = from + row * outer * inner;
    int64_t rows = std::min(tileRows, item.rows - row);
    if (rows == tileRows && at[last] + rows <= phase.count[last]) {
      const int64_t *first = phase.offsets[last].data() + at[last] * inner;
      const int64_t *final = first + (rows - 1) * inner;
      for (int64_t r = 0; r < rows; ++r)
        offsets[row + r] = line + (at[last] + r) * lineStep;
      for (int64_t t = 0; t < outer; ++t)
        for (int64_t k = 0; k < inner; ++k, slots += tileRows) {
          if (starts[t] < 0) {
            slots[0] = nullptr;
          } else if (first[k] >= 0 && final[k] >= 0) {
            const float *begin = base + starts[t] + first[k];
            int64_t step = first[inner + k] - first[k];
            for (int64_t r = 0; r < tileRows; ++r)
              slots[r] = begin + r * step;
          } else {
            bool isRead = false;
            for (int64_t r = 0; r < rows; ++r) {
              int64_t offset = first[r * inner + k];
              isRead |= offset >= 0;
              slots[r] = offset >= 0 ? base + starts[t] + offset : zeros;
            }
            if (!isRead)
              slots[0] = nullptr;
          }
        }
      at[last] += rows;
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        if (at[last] == phase.count[last]) {
          leaveLine();
          enterLine();
        }
        offsets[row + r] = line + at[last] * lineStep;
        const int64_t *own = phase.offsets[last].data() + at[last] * inner;
        const float **slot = slots + r;
        for (int64_t t = 0; t < outer; ++t)
          for (int64_t k = 0; k < inner; ++k, slot += tileRows)
            *slot = starts[t] + own[k] >= 0 ? base + starts[t] + own[k] : zeros;
        ++at[last];
      }
      for (int64_t t = 0; t < outer * inner; ++t, slots += tileRows) {
        std::fill(slots + rows, slots + tileRows, zeros);
        if (std::all_of(slots, slots + tileRows,
                        [&](const float *address) { return address == zeros; }))
          slots[0] = nullptr;
      }
    }
    if (at[last] == phase.count[last] && row + tileRows < item.rows) {
      leaveLine();
      enterLine();
    }
  }
}

void ViewConvolution::runItem(const Item &item, const float *lhs,
                              const float *weights, const float *zeros,
                              void *out, std::vector<char> &memory) const {
  const Phase &phase = *item.phase;
  auto count = static_cast<int64_t>(phase.taps.size());
  int64_t tiles = (item.rows + tileRows - 1) / tileRows;
  int64_t rows = tiles * tileRows;
  int64_t width = kind == Kind::Channels ? groups : 4 * kLanes;
  size_t addressBytes = rows * count * sizeof(float *);
  memory.resize(addressBytes + rows * (sizeof(float *) + sizeof(int64_t)) +
                rows * width * sizeof(float) + 64);
  auto *from = reinterpret_cast<const float **>(memory.data());
  auto *to = reinterpret_cast<float **>(memory.data() + addressBytes);
  auto *offsets = reinterpret_cast<int64_t *>(to + rows);
  auto *results = reinterpret_cast<float *>(offsets + rows);

  const float *base = lhs + item.group * (kind == Kind::Channels ? 0 : length);
  findAddresses(item, base, zeros, from, offsets);

  Terms terms = {from, phase.taps.data(), count, length, weights, 0};
  auto store = [&](int64_t first, int64_t width, int64_t stride) {
    for (int64_t row = 0; row < item.rows; ++row) {
      const float *source = results + row * stride;
      int64_t target = offsets[row] + first;
      if (op.outType == DType::F32)
        std::copy_n(source, width, static_cast<float *>(out) + target);
      else
        convertRow(source, static_cast<BFloat16 *>(out) + target, width);
    }
  };
  bool isDirect = op.outType == DType::F32;
  auto aim = [&](int64_t first, int64_t width, bool isWhole) {
    for (int64_t row = 0; row < rows; ++row)
      to[row] = isDirect && isWhole && row < item.rows
                    ? static_cast<float *>(out) + offsets[row] + first
                    : results + row * width;
  };
  if (kind == Kind::Channels) {
    terms.tapStride = groups;
    aim(0, groups, true);
    runChannels(terms, tiles, tileRows, groups, to);
    if (!isDirect)
      store(0, groups, groups);
    return;
  }
  const float *ofGroup = weights + item.group * taps * length * padded;
  constexpr int64_t termsInCache = 512;
  int64_t chunk = std::max<int64_t>(termsInCache / length, 1);
  for (size_t b = item.firstBlock; b < item.lastBlock; ++b) {
    const Block &block = blocks[b];
    int64_t width = block.vectors * kLanes;
    bool isWhole = block.first + width <= columns;
    terms.weights = ofGroup + block.first * taps * length;
    terms.tapStride = length * width;
    aim(block.first, width, isWhole);
    runTiles(terms, tiles, tileRows, block.vectors, chunk, to);
    if (!isDirect || !isWhole)
      store(block.first, std::min(width, columns - block.first), width);
  }
}

ViewConvolution::Item ViewConvolution::itemOf(int64_t number) const {
  auto phase =
      std::ranges::upper_bound(phases, number, {}, &Phase::firstItem) - 1;
  int64_t rest = number - phase->firstItem;
  Item item = {&*phase, 0, 0, 0, 0, blocks.size()};
  item.row = rest % phase->blocks * itemRows;
  rest /= phase->blocks;
  item.rows = std::min(itemRows, phase->rows - item.row);
  if (kind == Kind::Rows) {
    item.group = rest % groups;
    if (!hasAllColumns) {
      item.firstBlock = static_cast<size_t>(rest / groups);
      item.lastBlock = item.firstBlock + 1;
    }
  }
  return item;
}

void ViewConvolution::runRows(const Scratch &scratch, int64_t threads,
                              const float *lhs, const void *rhs,
                              void *out) const {
  auto *weights = scratch.get<float>(1);
  int64_t zeroCount = kind == Kind::Channels ? groups : length;
  float *zeros =
      weights + this->scratch[1] / int64_t(sizeof(float)) - zeroCount;
  packWeights(weights, rhs, threads);
  std::fill(zeros, zeros + zeroCount, 0.0f);
  // Phases differ in their work: each thread has some items of all of them.
  int64_t parts = std::min(threads, items);
  bool isDealtOut = phases.size() > 1;
  parallelFor(parts, parts, [&](int64_t firstPart, int64_t lastPart) {
    std::vector<char> memory;
    for (int64_t part = firstPart; part < lastPart; ++part) {
      int64_t begin = isDealtOut ? part : part * items / parts;
      int64_t end = isDealtOut ? items : (part + 1) * items / parts;
      for (int64_t number = begin; number < end;
           number += isDealtOut ? parts : 1)
        runItem(itemOf(number), lhs, weights, zeros, out, memory);
    }
  });
}

} // namespace whale::runtime
