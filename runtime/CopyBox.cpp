//===- CopyBox.cpp - Copy a part of a tensor --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyBox.h"

#include <algorithm>
#include <array>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace whale::runtime {

static constexpr int64_t lineBytes = 64;
/// Lines that are not whole cost more than others save: runs have some.
static constexpr int64_t leastRun = 4 * lineBytes;
/// Longer ones a processor finds itself.
static constexpr int64_t mostFetched = 4096;
/// Of less the next reader may find all in a cache.
static constexpr int64_t leastStreamed = 256 << 10;

/// The loops of a copy, innermost first, put by `add`; the length of a run.
template <typename Add>
static int64_t findLoops(std::span<const int64_t> dstStrides,
                         std::span<const int64_t> srcStrides,
                         std::span<const int64_t> size, int64_t elementBytes,
                         const Add &add) {
  // Trailing dimensions without gaps on both sides make one run of bytes.
  int64_t run = elementBytes;
  bool contiguous = true;
  for (size_t i = size.size(); i-- > 0;) {
    if (size[i] == 0)
      return 0;
    if (size[i] == 1)
      continue;
    int64_t dstStride = dstStrides[i] * elementBytes,
            srcStride = srcStrides[i] * elementBytes;
    contiguous &= dstStride == run && srcStride == run;
    if (contiguous)
      run *= size[i];
    else
      add(CopyLoop{size[i], dstStride, srcStride});
  }
  return run;
}

int64_t addCopyLoops(std::span<const int64_t> dstStrides,
                     std::span<const int64_t> srcStrides,
                     std::span<const int64_t> size, int64_t elementBytes,
                     std::vector<CopyLoop> &loops) {
  return findLoops(dstStrides, srcStrides, size, elementBytes,
                   [&](const CopyLoop &loop) { loops.push_back(loop); });
}

/// Calls of the library cost more than what they copy where runs are short.
template <size_t bytes>
static void copyRuns(char *to, const char *from, const CopyLoop &loop) {
  for (int64_t i = 0; i < loop.count; ++i)
    std::memcpy(to + i * loop.toStride, from + i * loop.fromStride, bytes);
}

/// Asks for a run behind the one that comes. A processor guesses what follows
/// within a page; runs that lie apart it finds too late. They are fetched to
/// the second level of its caches: runs that lie powers of two apart have few
/// places in the first one, and would drive each other out.
static void fetchAhead(const char *from, int64_t bytes, const CopyLoop &loop,
                       int64_t run) {
  constexpr int64_t leastAhead = 8, bytesAhead = 8192;
  if (loop.fromStride == bytes || bytes < leastRun || bytes > mostFetched)
    return;
  int64_t next = run + std::max(leastAhead, bytesAhead / bytes);
  if (next >= loop.count)
    return;
  for (int64_t place = 0; place < bytes; place += lineBytes)
    __builtin_prefetch(from + next * loop.fromStride + place,
                       /*rw=*/0, /*locality=*/2);
}

static void copyRuns(char *to, const char *from, int64_t bytes,
                     const CopyLoop &loop) {
  switch (bytes) {
  case 1:
    return copyRuns<1>(to, from, loop);
  case 2:
    return copyRuns<2>(to, from, loop);
  case 4:
    return copyRuns<4>(to, from, loop);
  case 8:
    return copyRuns<8>(to, from, loop);
  case 16:
    return copyRuns<16>(to, from, loop);
  case 32:
    return copyRuns<32>(to, from, loop);
  case 64:
    return copyRuns<64>(to, from, loop);
  default:
    for (int64_t i = 0; i < loop.count; ++i) {
      fetchAhead(from, bytes, loop, i);
      std::memcpy(to + i * loop.toStride, from + i * loop.fromStride, bytes);
    }
  }
}

#ifdef __SSE2__
/// Writes whole lines past the caches: they need not be read for it. To an
/// address that is a multiple of 16. Other threads may find it after
/// `endStream`.
static void streamLines(char *to, const char *from, int64_t lines) {
  auto *out = reinterpret_cast<__m128i *>(to);
  auto *in = reinterpret_cast<const __m128i *>(from);
  for (int64_t i = 0; i < 4 * lines; i += 4) {
    __m128i a = _mm_loadu_si128(in + i), b = _mm_loadu_si128(in + i + 1),
            c = _mm_loadu_si128(in + i + 2), d = _mm_loadu_si128(in + i + 3);
    _mm_stream_si128(out + i, a);
    _mm_stream_si128(out + i + 1, b);
    _mm_stream_si128(out + i + 2, c);
    _mm_stream_si128(out + i + 3, d);
  }
}

static void streamRuns(char *to, const char *from, int64_t bytes,
                       const CopyLoop &loop) {
  for (int64_t i = 0; i < loop.count; ++i) {
    char *out = to + i * loop.toStride;
    const char *in = from + i * loop.fromStride;
    fetchAhead(from, bytes, loop, i);
    auto address = reinterpret_cast<uintptr_t>(out);
    auto before = static_cast<int64_t>(-address % lineBytes);
    int64_t lines = (bytes - before) / lineBytes,
            end = before + lines * lineBytes;
    std::memcpy(out, in, before);
    streamLines(out + before, in + before, lines);
    std::memcpy(out + end, in + end, bytes - end);
  }
}

static void endStream() { _mm_sfence(); }
#else
static void streamRuns(char *to, const char *from, int64_t bytes,
                       const CopyLoop &loop) {
  copyRuns(to, from, bytes, loop);
}

static void endStream() {}
#endif

/// Small copies are many, and allocate nothing.
static constexpr size_t mostLoops = 16;

/// Calls `copy` with where the innermost loop is to be made.
template <typename Copy>
static void forEachLoop(char *to, const char *from,
                        std::span<const CopyLoop> loops, const Copy &copy) {
  if (loops.size() > mostLoops) {
    const CopyLoop &outer = loops.back();
    for (int64_t i = 0; i < outer.count; ++i)
      forEachLoop(to + i * outer.toStride, from + i * outer.fromStride,
                  loops.first(loops.size() - 1), copy);
    return;
  }
  // loops[0] is the innermost; an odometer runs over the others.
  std::array<int64_t, mostLoops> indices;
  indices.fill(0);
  while (true) {
    copy(to, from, loops[0]);
    size_t d = 1;
    for (; d < loops.size(); ++d) {
      const CopyLoop &loop = loops[d];
      to += loop.toStride;
      from += loop.fromStride;
      if (++indices[d] < loop.count)
        break;
      to -= loop.count * loop.toStride;
      from -= loop.count * loop.fromStride;
      indices[d] = 0;
    }
    if (d >= loops.size())
      return;
  }
}

void copyLoops(void *dst, const void *src, int64_t runBytes,
               std::span<const CopyLoop> loops) {
  auto *to = static_cast<char *>(dst);
  auto *from = static_cast<const char *>(src);
  if (runBytes == 0)
    return;
  if (loops.empty()) {
    std::memcpy(to, from, runBytes);
    return;
  }
  forEachLoop(to, from, loops,
              [=](char *out, const char *in, const CopyLoop &loop) {
                copyRuns(out, in, runBytes, loop);
              });
}

bool streamLoops(void *dst, const void *src, int64_t runBytes,
                 std::span<const CopyLoop> loops) {
  int64_t bytes = runBytes;
  for (const CopyLoop &loop : loops)
    bytes *= loop.count;
  if (runBytes < leastRun || bytes < leastStreamed) {
    copyLoops(dst, src, runBytes, loops);
    return false;
  }
  CopyLoop once{1, 0, 0};
  forEachLoop(static_cast<char *>(dst), static_cast<const char *>(src),
              loops.empty() ? std::span<const CopyLoop>(&once, 1) : loops,
              [=](char *out, const char *in, const CopyLoop &loop) {
                streamRuns(out, in, runBytes, loop);
              });
  endStream();
  return true;
}

void copyStrided(void *dst, std::span<const int64_t> dstStrides,
                 const void *src, std::span<const int64_t> srcStrides,
                 std::span<const int64_t> size, int64_t elementBytes) {
  if (size.size() > mostLoops) {
    for (int64_t i = 0; i < size[0]; ++i)
      copyStrided(static_cast<char *>(dst) + i * dstStrides[0] * elementBytes,
                  dstStrides.subspan(1),
                  static_cast<const char *>(src) +
                      i * srcStrides[0] * elementBytes,
                  srcStrides.subspan(1), size.subspan(1), elementBytes);
    return;
  }
  std::array<CopyLoop, mostLoops> loops;
  size_t count = 0;
  int64_t run = findLoops(dstStrides, srcStrides, size, elementBytes,
                          [&](const CopyLoop &loop) { loops[count++] = loop; });
  copyLoops(dst, src, run, std::span(loops).first(count));
}

void copyBox(void *dst, std::span<const int64_t> dstShape,
             std::span<const int64_t> dstStart, const void *src,
             std::span<const int64_t> srcShape,
             std::span<const int64_t> srcStart, std::span<const int64_t> size,
             int64_t elementBytes) {
  size_t rank = size.size();
  std::vector<int64_t> dstStrides(rank), srcStrides(rank);
  int64_t dstOffset = 0, srcOffset = 0, dstStride = 1, srcStride = 1;
  for (size_t i = rank; i-- > 0;) {
    dstStrides[i] = dstStride;
    srcStrides[i] = srcStride;
    dstOffset += dstStart[i] * dstStride;
    srcOffset += srcStart[i] * srcStride;
    dstStride *= dstShape[i];
    srcStride *= srcShape[i];
  }
  copyStrided(static_cast<char *>(dst) + dstOffset * elementBytes, dstStrides,
              static_cast<const char *>(src) + srcOffset * elementBytes,
              srcStrides, size, elementBytes);
}

} // namespace whale::runtime
