//===- CriticalPath.cpp - What a step's time consists of ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes back from the end of the step. What a rank does follows its last item,
// or a transfer that it waited for; a transfer follows the last of its
// participants to start it, or the transfer before it in the queue of one.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/CriticalPath.h"

#include <algorithm>
#include <map>

namespace whale {
namespace {

class PathFinder {
public:
  explicit PathFinder(const ModelledStep &step);
  std::vector<PathPiece> find();

private:
  /// A rank that is about to do its next item, or a part of it that begins.
  struct Place {
    size_t ranks = 0;
    /// The items before it.
    size_t items = 0;
    std::optional<size_t> part;
  };

  Place before(Place place);
  Place beforePart(Place place);
  void add(PathPiece piece) {
    if (piece.seconds > 0)
      path.push_back(piece);
  }

  const ModelledStep &step;
  /// By transfer: its participants and their parts.
  std::map<size_t, std::vector<std::pair<size_t, size_t>>> participants;
  /// By rank and part: the item that starts it.
  std::vector<std::vector<size_t>> startOf;
  std::vector<PathPiece> path;
};

} // namespace

PathFinder::PathFinder(const ModelledStep &step) : step(step) {
  for (size_t number = 0; number < step.ranks.size(); ++number) {
    const ModelledRanks &ranks = step.ranks[number];
    for (size_t part = 0; part < ranks.parts.size(); ++part)
      participants[ranks.parts[part].transfer].push_back({number, part});
    std::vector<size_t> &starts = startOf.emplace_back(ranks.parts.size());
    for (size_t item = 0; item < ranks.items.size(); ++item)
      if (ranks.items[item].kind == QueueItem::Kind::Start)
        starts[ranks.items[item].part] = item;
  }
}

PathFinder::Place PathFinder::before(Place place) {
  const ModelledRanks &ranks = step.ranks[place.ranks];
  size_t number = place.items - 1;
  const QueueItem &item = ranks.items[number];
  const Period &period = ranks.times.items[number];
  if (item.kind == QueueItem::Kind::Compute)
    add({place.ranks, number, std::nullopt, period.end - period.begin});
  else if (item.kind == QueueItem::Kind::Wait &&
           ranks.times.parts[item.part].end > period.begin)
    return {place.ranks, 0, item.part};
  return {place.ranks, number, std::nullopt};
}

PathFinder::Place PathFinder::beforePart(Place place) {
  const ModelledRanks &ranks = step.ranks[place.ranks];
  const Period &period = ranks.times.parts[*place.part];
  add({place.ranks, std::nullopt, place.part, period.end - period.begin});
  for (auto [other, part] :
       participants.at(ranks.parts[*place.part].transfer)) {
    const ModelledRanks &participant = step.ranks[other];
    size_t start = startOf[other][part];
    if (participant.times.items[start].end == period.begin)
      return {other, start, std::nullopt};
    if (part > 0 && participant.times.parts[part - 1].end == period.begin)
      return {other, 0, part - 1};
  }
  // A transfer that nobody delayed began with the step.
  return {place.ranks, 0, std::nullopt};
}

std::vector<PathPiece> PathFinder::find() {
  auto last =
      std::ranges::max_element(step.ranks, {}, [](const ModelledRanks &ranks) {
        return ranks.times.seconds;
      });
  if (last == step.ranks.end())
    return {};
  Place place = {static_cast<size_t>(last - step.ranks.begin()),
                 last->items.size(), std::nullopt};
  while (place.part || place.items > 0)
    place = place.part ? beforePart(place) : before(place);
  std::ranges::reverse(path);
  return std::move(path);
}

std::vector<PathPiece> findCriticalPath(const ModelledStep &step) {
  return PathFinder(step).find();
}

} // namespace whale
