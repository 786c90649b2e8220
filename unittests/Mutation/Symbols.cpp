//===- Symbols.cpp - What memory holds, as symbols ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Symbols.h"

#include <algorithm>

namespace whale::transfers {

Symbol combine(std::initializer_list<uint64_t> parts) {
  uint64_t hash = parts.size();
  for (uint64_t part : parts) {
    // SplitMix64.
    hash = (hash ^ part) + 0x9E3779B97F4A7C15;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
    hash ^= hash >> 31;
  }
  return hash;
}

void Contents::append(Symbol symbol, int64_t offset, int64_t bytes) {
  if (bytes == 0)
    return;
  if (symbol == garbage)
    offset = 0;
  bool goesOn = false;
  if (!rows.empty() && rows.back().symbol == symbol)
    goesOn = symbol == garbage ||
             rows.back().offset + size - rows.back().begin == offset;
  if (!goesOn)
    rows.push_back({size, symbol, offset});
  size += bytes;
}

void Contents::append(const Contents &contents) {
  for (size_t i = 0; i < contents.rows.size(); ++i) {
    const Row &row = contents.rows[i];
    int64_t end = i + 1 < contents.rows.size() ? contents.rows[i + 1].begin
                                               : contents.size;
    append(row.symbol, row.offset, end - row.begin);
  }
}

Contents Contents::read(Range range) const {
  Contents result;
  auto next = std::upper_bound(
      rows.begin(), rows.end(), range.begin,
      [](int64_t begin, const Row &row) { return begin < row.begin; });
  if (next != rows.begin())
    --next;
  for (; next != rows.end() && next->begin < range.end; ++next) {
    int64_t rowEnd = next + 1 == rows.end() ? size : next[1].begin;
    int64_t begin = std::max(next->begin, range.begin);
    int64_t end = std::min(rowEnd, range.end);
    if (begin < end)
      result.append(next->symbol, next->offset + begin - next->begin,
                    end - begin);
  }
  return result;
}

void Contents::write(int64_t begin, const Contents &contents) {
  int64_t end = begin + contents.size;
  Contents result = read({0, begin});
  result.append(contents);
  result.append(read({end, size}));
  *this = std::move(result);
}

Symbol Contents::hash() const {
  Symbol hash = combine({static_cast<uint64_t>(size)});
  for (const Row &row : rows)
    hash = combine({hash, static_cast<uint64_t>(row.begin), row.symbol,
                    static_cast<uint64_t>(row.offset)});
  return hash;
}

/// Calls `use` with the rows of bytes of a box.
template <typename Use>
static void forEachRow(const format::Shape &shape, const format::Shape &start,
                       const format::Shape &size, int64_t elementBytes,
                       Use use) {
  if (format::elementCount(size) == 0)
    return;
  size_t rank = shape.size();
  format::Shape index(rank, 0);
  int64_t rowBytes = elementBytes * (rank ? size[rank - 1] : 1);
  while (true) {
    int64_t place = 0;
    for (size_t i = 0; i < rank; ++i)
      place = place * shape[i] + start[i] + index[i];
    use(Range{place * elementBytes, place * elementBytes + rowBytes});
    size_t i = rank ? rank - 1 : 0;
    for (; i > 0; --i) {
      if (++index[i - 1] < size[i - 1])
        break;
      index[i - 1] = 0;
    }
    if (i == 0)
      return;
  }
}

Contents readBox(const Contents &memory, int64_t begin,
                 const format::Shape &shape, const format::Shape &start,
                 const format::Shape &size, int64_t elementBytes) {
  Contents contents;
  forEachRow(shape, start, size, elementBytes, [&](Range row) {
    contents.append(memory.read({begin + row.begin, begin + row.end}));
  });
  return contents;
}

void writeBox(Contents &memory, int64_t begin, const format::Shape &shape,
              const format::Shape &start, const format::Shape &size,
              int64_t elementBytes, const Contents &contents) {
  int64_t done = 0;
  forEachRow(shape, start, size, elementBytes, [&](Range row) {
    memory.write(begin + row.begin, contents.read({done, done + row.bytes()}));
    done += row.bytes();
  });
}

} // namespace whale::transfers
