//===- Members.cpp - What is known of a job's processes -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Members.h"

#include <algorithm>
#include <set>

namespace whale::runtime::job {

double secondsSince(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - time)
      .count();
}

std::string placeOf(const std::string &host, uint64_t process) {
  return "host " + host + ", pid " + std::to_string(process);
}

std::string Members::nameOf(const Member &member) const {
  return "process " + std::to_string(&member - data()) + " (" + member.place +
         (member.progress.ranks.empty() ? "" : ", " + member.progress.ranks) +
         ")";
}

std::string Members::missing() const {
  std::string list;
  size_t count = 0;
  for (size_t i = 0; i < size(); ++i)
    if (!(*this)[i].connection && ++count <= 8)
      list += (list.empty() ? "" : ", ") + std::to_string(i);
  return (count == 1 ? "process " : "processes ") + list +
         (count > 8 ? " and others" : "") + " of " + std::to_string(size()) +
         (count == 1 ? " has" : " have");
}

std::string Members::whoWait() const {
  std::string text;
  auto waits = [&](const Member &member) {
    return member.connection && !member.progress.waiting.empty();
  };
  auto gives = [](const Member &member) { return member.given.has_value(); };
  if (auto it = std::ranges::find_if(*this, waits); it != end())
    text += "; " + it->progress.waiting + " (" + nameOf(*it) + ")";
  if (auto it = std::ranges::find_if(*this, gives); it != end())
    text += "; " + nameOf(*it) + " exchanges " + it->given->first;
  if (auto it = std::ranges::find_if(*this, &Member::hasLeft); it != end())
    text += "; " + nameOf(*it) + " has ended";
  return text;
}

std::string Members::whoWaitsInVain(double reportSeconds) const {
  constexpr double reports = 6;
  for (const Member &member : *this) {
    if (member.hasLeft || !member.progress.busy.empty() ||
        secondsSince(member.advanced) < reports * reportSeconds)
      continue;
    for (int64_t process : member.progress.awaited)
      if (static_cast<size_t>(process) < size() && (*this)[process].hasLeft &&
          secondsSince((*this)[process].left) >= reports * reportSeconds)
        return nameOf((*this)[process]) + " has ended, where " +
               member.progress.waiting + " (" + nameOf(member) + ")";
  }
  return "";
}

std::string Members::whoLetsWait(double seconds) const {
  auto isLong = [&](std::chrono::steady_clock::time_point since) {
    return secondsSince(since) > seconds;
  };
  for (const Member &member : *this) {
    if (member.hasLeft || !member.isWaiting() || !isLong(member.advanced))
      continue;
    const std::vector<int64_t> &named = member.progress.awaited;
    for (const Member &other : *this) {
      // A relayout is between all of them.
      bool isAwaited = member.given || member.progress.isInRelayout ||
                       std::ranges::find(named, &other - data()) != named.end();
      if (isAwaited && other.connection && !other.hasLeft &&
          !other.isWaiting() && isLong(other.outside))
        return nameOf(other) + " has been outside of steps for more than " +
               std::to_string(static_cast<int64_t>(seconds)) +
               " seconds, where " +
               (member.given
                    ? nameOf(member) + " exchanges " + member.given->first
                    : member.progress.waiting + " (" + nameOf(member) + ")");
    }
  }
  return "";
}

std::string Members::whoRunOtherSteps() const {
  auto doing = [](const Member &member) {
    std::set<std::string> all;
    for (const std::string &step : member.progress.running)
      all.insert("runs " + step);
    if (member.given)
      all.insert("exchanges " + member.given->first);
    return all;
  };
  const Member *first = nullptr;
  for (const Member &member : *this) {
    std::set<std::string> mine = doing(member);
    if (member.hasLeft || mine.empty())
      continue;
    if (!first) {
      first = &member;
      continue;
    }
    std::set<std::string> others = doing(*first);
    if (std::ranges::none_of(
            mine, [&](const auto &each) { return others.contains(each); }))
      return "; " + nameOf(*first) + " " + *others.begin() + ", where " +
             nameOf(member) + " " + *mine.begin() +
             ", and all must call the same steps in one order";
  }
  return "";
}

std::string Members::whoProvedNothing() const {
  auto isSaid = [](const Member &member) {
    return !member.connection && !member.stranger.empty();
  };
  auto it = std::ranges::find_if(*this, isSaid);
  return it == end()
             ? ""
             : "; " + it->stranger + " came as process " +
                   std::to_string(it - begin()) +
                   ", but did not prove that it has the secret: export the "
                   "same WHALE_SECRET for all (mpirun -x WHALE_SECRET)";
}

} // namespace whale::runtime::job
