//===- Symbols.h - What memory holds, as symbols ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_MUTATION_SYMBOLS_H
#define WHALE_UNITTESTS_MUTATION_SYMBOLS_H

#include "whale/ProgramFormat/Layout.h"

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace whale::transfers {

/// Stands for the bytes of a value: equal where the same operation made them of
/// equal operands.
using Symbol = uint64_t;

/// Bytes that nothing was written to.
inline constexpr Symbol garbage = 0;

Symbol combine(std::initializer_list<uint64_t> parts);

/// Bytes of a rank's memory, or of what is moved.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t bytes() const { return end - begin; }
  bool overlaps(const Range &other) const {
    return begin < other.end && other.begin < end && bytes() && other.bytes();
  }
  bool operator==(const Range &) const = default;
};

/// Rows of bytes, each a part of a value: the row from `begin` on holds the
/// bytes of `symbol` from `offset` on. The same bytes are always the same rows.
class Contents {
public:
  Contents() = default;
  /// The whole of a value.
  Contents(Symbol symbol, int64_t bytes) { append(symbol, 0, bytes); }

  int64_t bytes() const { return size; }
  Contents read(Range range) const;
  void write(int64_t begin, const Contents &contents);
  void append(const Contents &contents);
  Symbol hash() const;

private:
  struct Row {
    int64_t begin;
    Symbol symbol;
    int64_t offset;
  };
  void append(Symbol symbol, int64_t offset, int64_t bytes);

  std::vector<Row> rows;
  int64_t size = 0;
};

/// What is in a box of a buffer of so many elements of `elementBytes`, which
/// begins at `begin`; and the same put there.
Contents readBox(const Contents &memory, int64_t begin,
                 const format::Shape &shape, const format::Shape &start,
                 const format::Shape &size, int64_t elementBytes);
void writeBox(Contents &memory, int64_t begin, const format::Shape &shape,
              const format::Shape &start, const format::Shape &size,
              int64_t elementBytes, const Contents &contents);

} // namespace whale::transfers

#endif // WHALE_UNITTESTS_MUTATION_SYMBOLS_H
