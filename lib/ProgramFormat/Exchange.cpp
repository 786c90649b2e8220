//===- Exchange.cpp - Many arrays go to other layouts -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Exchange.h"

#include "whale/ProgramFormat/CommonView.h"
#include "whale/ProgramFormat/Pieces.h"

#include <algorithm>
#include <compare>
#include <map>

namespace whale::format {

namespace {
/// What it costs a rank to get a piece from one of its owners; the members are
/// compared in their order.
struct Cost {
  bool isAnotherRank, isAnotherProcess, isAnotherHost;
  /// Bytes so far, of the owner's host to others and of its process.
  int64_t sentByHost, sent;
  size_t owner;
  auto operator<=>(const Cost &other) const = default;
};

/// The boxes of all shards of a layout, in a refinement of its view.
struct Parts {
  Parts(const Layout &layout, const Shape &view);

  Layout refined;
  /// By box of `refined`.
  std::vector<RefinedBox> parts;
  std::vector<size_t> ranks, numbers;
};

class ExchangeBuilder {
public:
  ExchangeBuilder(std::span<const Move> moves, std::span<const unsigned> hostOf)
      : moves(moves), hostOf(hostOf) {}
  std::vector<MovedPiece> build();

private:
  void addMove(size_t number);
  void addPart(size_t number, size_t receiver, const RefinedBox &part,
               const Parts &from);

  std::span<const Move> moves;
  std::span<const unsigned> hostOf;
  /// Bytes that processes send to others, and hosts to other hosts.
  std::map<int64_t, int64_t> sent;
  std::map<unsigned, int64_t> sentByHost;
  std::vector<MovedPiece> pieces;
};
} // namespace

/// The parts of a box; itself where the views are the same.
static std::vector<RefinedBox> partsOf(const Box &box, const Shape &view,
                                       const Shape &refined) {
  if (view != refined)
    return refine(box, view, refined);
  if (box.elements() == 0)
    return {};
  return {{box, 0, denseStrides(box.size)}};
}

Parts::Parts(const Layout &layout, const Shape &view) : refined{view, {}} {
  for (size_t rank = 0; rank < layout.boxes.size(); ++rank) {
    if (!layout.boxes[rank])
      continue;
    for (RefinedBox &part : partsOf(*layout.boxes[rank], layout.view, view)) {
      numbers.push_back(parts.size());
      ranks.push_back(rank);
      refined.boxes.push_back(part.box);
      parts.push_back(std::move(part));
    }
  }
}

static int64_t placeIn(const RefinedBox &part, const Box &piece) {
  int64_t place = part.offset;
  for (size_t d = 0; d < piece.start.size(); ++d)
    place += (piece.start[d] - part.box.start[d]) * part.strides[d];
  return place;
}

void ExchangeBuilder::addPart(size_t number, size_t receiver,
                              const RefinedBox &part, const Parts &from) {
  const Move &move = moves[number];
  int64_t taker = move.toProcess[receiver];
  auto senderOf = [&](size_t part) {
    return move.fromProcess.empty() ? taker
                                    : move.fromProcess[from.ranks[part]];
  };
  auto costOf = [&](size_t part) {
    int64_t sender = senderOf(part);
    bool isAnotherHost = hostOf[sender] != hostOf[taker];
    // A rank of another number of ranks may have another process.
    return Cost{from.ranks[part] != receiver || sender != taker,
                sender != taker,
                isAnotherHost,
                isAnotherHost ? sentByHost[hostOf[sender]] : 0,
                sender != taker ? sent[sender] : 0,
                from.ranks[part]};
  };
  auto choose = [&](const Box &piece, std::span<const size_t> owners) {
    size_t owner = owners.size() == 1
                       ? owners.front()
                       : *std::ranges::min_element(owners, {}, costOf);
    int64_t sender = senderOf(owner);
    int64_t bytes = piece.elements() * move.elementBytes;
    if (sender != taker)
      sent[sender] += bytes;
    if (hostOf[sender] != hostOf[taker])
      sentByHost[hostOf[sender]] += bytes;
    return owner;
  };
  for (const auto &[owner, piece] :
       piecesOf(part.box, from.refined, from.numbers, choose))
    pieces.push_back({number, from.ranks[owner], receiver, senderOf(owner),
                      taker, piece.size, placeIn(from.parts[owner], piece),
                      placeIn(part, piece), from.parts[owner].strides,
                      part.strides});
}

void ExchangeBuilder::addMove(size_t number) {
  const Move &move = moves[number];
  Shape view = move.from.view == move.to.view
                   ? move.to.view
                   : commonView(move.from.view, move.to.view);
  Parts from(move.from, view);
  for (size_t rank = 0; rank < move.to.boxes.size(); ++rank)
    if (const std::optional<Box> &box = move.to.boxes[rank])
      for (const RefinedBox &part : partsOf(*box, move.to.view, view))
        addPart(number, rank, part, from);
}

std::vector<MovedPiece> ExchangeBuilder::build() {
  for (size_t number = 0; number < moves.size(); ++number)
    addMove(number);
  return std::move(pieces);
}

int64_t MovedPiece::fromEnd() const {
  int64_t end = fromOffset + 1;
  for (size_t d = 0; d < size.size(); ++d)
    end += (size[d] - 1) * fromStrides[d];
  return end;
}

std::vector<MovedPiece> exchangeOf(std::span<const Move> moves,
                                   std::span<const unsigned> hostOf) {
  return ExchangeBuilder(moves, hostOf).build();
}

} // namespace whale::format
