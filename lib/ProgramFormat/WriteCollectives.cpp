//===- WriteCollectives.cpp - Cells as JSON ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Converts the cells of a tensor in a channel to JSON. An all-to-all of n ranks
// has n * n cells, and the lists of two ranks mostly differ in one number, so a
// list may be written as a reference and an offset.
//
//===----------------------------------------------------------------------===//

#include "Writer.h"

#include <algorithm>

namespace whale::format {

static Json toJson(const std::vector<Cell> &cells) {
  Json list = Json::array();
  for (const Cell &cell : cells) {
    Json from = Json::array();
    for (const Cell::Contribution &part : cell.from)
      from.push_back(Json::array({part.peer, part.start}));
    Json json;
    addMember(json, "dst", Json::array({cell.dstStart, cell.size}));
    addMember(json, "from", std::move(from));
    list.push_back(std::move(json));
  }
  return list;
}

/// If the cells of `list` differ from those of `base` only by a common offset
/// of their sources, returns that offset.
static std::optional<Shape> findMove(const std::vector<Cell> &base,
                                     const std::vector<Cell> &list) {
  std::optional<Shape> move;
  if (base.size() != list.size())
    return std::nullopt;
  for (size_t i = 0; i < base.size(); ++i) {
    const Cell &a = base[i], &b = list[i];
    if (a.dstStart != b.dstStart || a.size != b.size ||
        a.from.size() != b.from.size())
      return std::nullopt;
    for (size_t j = 0; j < a.from.size(); ++j) {
      if (a.from[j].peer != b.from[j].peer)
        return std::nullopt;
      Shape difference = b.from[j].start;
      for (size_t dim = 0; dim < difference.size(); ++dim)
        difference[dim] -= a.from[j].start[dim];
      if (move && *move != difference)
        return std::nullopt;
      move = std::move(difference);
    }
  }
  return move;
}

Json cellsToJson(const ChannelPart &part) {
  // Uneven shares lead to a few kinds of lists. Comparing with more of them
  // would cost more time than it saves.
  constexpr size_t mostBases = 4;
  Json cells;
  reserveMembers(cells, part.cells.size());
  std::map<const std::vector<Cell> *, int64_t> firstRanks;
  std::vector<std::pair<int64_t, const std::vector<Cell> *>> bases;
  for (const auto &[rank, list] : part.cells) {
    Json entry;
    auto [it, isNew] = firstRanks.try_emplace(list.get(), rank);
    if (!isNew) {
      entry = it->second;
    } else {
      for (const auto &[other, base] : bases)
        if (std::optional<Shape> move = findMove(*base, *list)) {
          bool isSame = std::all_of(move->begin(), move->end(),
                                    [](int64_t by) { return by == 0; });
          entry =
              isSame ? Json(other) : Json{{"like", other}, {"moved", *move}};
          firstRanks.erase(it);
          break;
        }
      if (entry.is_null()) {
        entry = toJson(*list);
        if (bases.size() < mostBases)
          bases.emplace_back(rank, list.get());
      }
    }
    addMember(cells, std::to_string(rank), std::move(entry));
  }
  return cells;
}

} // namespace whale::format
