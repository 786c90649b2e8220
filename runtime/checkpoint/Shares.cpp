//===- Shares.cpp - Which process writes what -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/Shares.h"

#include "whale/ProgramFormat/Pieces.h"

#include <algorithm>

namespace whale::runtime {

std::vector<Share> shareOut(const std::vector<Holding> &leaves,
                            int64_t processes) {
  std::vector<Share> shares;
  std::vector<int64_t> bytes(static_cast<size_t>(processes));
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const auto &[layout, elementBytes, ranks] = leaves[leaf];
    auto writerOf = [&](size_t holder) -> int64_t {
      return ranks ? ranks->processOf[holder]
                   : std::ranges::min_element(bytes) - bytes.begin();
    };
    std::vector<size_t> holders;
    for (size_t i = 0; i < layout.boxes.size(); ++i)
      if (layout.boxes[i])
        holders.push_back(i);
    auto choose = [&](const Box &piece, std::span<const size_t> having) {
      size_t holder = *std::ranges::min_element(
          having, {}, [&](size_t each) { return bytes[writerOf(each)]; });
      int64_t process = writerOf(holder);
      bytes[process] += piece.elements() * elementBytes;
      shares.push_back({leaf, piece, holder, process});
      return holder;
    };
    int64_t held = 0;
    for (const format::Piece &piece :
         format::piecesOf(Box::whole(layout.view), layout, holders, choose))
      held += piece.box.elements();
    if (held != elementCount(layout.view))
      throw Error("no rank holds some elements of leaf " +
                  std::to_string(leaf));
  }
  return shares;
}

} // namespace whale::runtime
