//===- Relayout.cpp - Transfers between two layouts -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Relayout.h"

#include "whale/Cluster/OwnerCost.h"
#include "whale/ProgramFormat/Pieces.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace whale::format {

Collective relayoutOf(DType dtype, const Layout &from, const Layout &to,
                      std::span<const int64_t> processOf,
                      const Topology &hosts) {
  assert(from.view == to.view && from.boxes.size() == to.boxes.size() &&
         "views and ranks agree");
  std::vector<size_t> ranks(from.boxes.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int64_t> sent(ranks.size());
  Collective collective;
  collective.kind = "relayout";
  collective.dtype = dtype;
  collective.participants.assign(ranks.begin(), ranks.end());
  collective.groups.insert(collective.participants);
  for (size_t rank : ranks) {
    auto number = static_cast<int64_t>(rank);
    if (from.boxes[rank])
      collective.srcShapes[number] = from.boxes[rank]->size;
    if (!to.boxes[rank])
      continue;
    collective.dstShapes[number] = to.boxes[rank]->size;
    auto costOf = [&](size_t owner) {
      auto id = static_cast<int64_t>(owner);
      return OwnerCost{owner != rank, processOf[owner] != processOf[rank],
                       hosts.nodeOf(id) != hosts.nodeOf(number), sent[owner],
                       id};
    };
    auto choose = [&](const Box &piece, std::span<const size_t> holders) {
      size_t owner = *std::ranges::min_element(holders, {}, costOf);
      if (owner != rank)
        sent[owner] += piece.elements();
      return owner;
    };
    std::vector<Cell> cells;
    for (const auto &[owner, part] :
         piecesOf(*to.boxes[rank], from, ranks, choose))
      cells.push_back(
          {startIn(*to.boxes[rank], part),
           part.size,
           {{static_cast<int64_t>(owner), startIn(*from.boxes[owner], part)}}});
    collective.cells[number] =
        std::make_shared<std::vector<Cell>>(std::move(cells));
  }
  return collective;
}

} // namespace whale::format
