//===- Profile.cpp - Where the time of steps went ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Profile.h"

#include <nlohmann/json.hpp>

namespace whale::runtime {

void Profile::add(const Profile &other) {
  steps += other.steps;
  stepSeconds += other.stepSeconds;
  ranks.resize(other.ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].resize(other.ranks[rank].size());
    for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
      ranks[rank][i].count += other.ranks[rank][i].count;
      ranks[rank][i].seconds += other.ranks[rank][i].seconds;
      ranks[rank][i].waitedSeconds += other.ranks[rank][i].waitedSeconds;
      ranks[rank][i].linkSeconds += other.ranks[rank][i].linkSeconds;
    }
  }
}

std::string Profile::json() const {
  nlohmann::json lists = nlohmann::json::array();
  for (const std::vector<Spent> &rank : ranks) {
    nlohmann::json &list = lists.emplace_back(nlohmann::json::array());
    for (const Spent &spent : rank)
      list.push_back(
          {spent.count, spent.seconds, spent.waitedSeconds, spent.linkSeconds});
  }
  return nlohmann::json{{"ranks", std::move(lists)}}.dump();
}

void Profile::take(const std::string &json,
                   const std::vector<std::size_t> &taken) {
  nlohmann::json lists = nlohmann::json::parse(json).at("ranks");
  for (std::size_t rank : taken) {
    std::vector<Spent> &to = ranks.at(rank);
    to.clear();
    for (const nlohmann::json &spent : lists.at(rank))
      to.push_back({spent.at(0), spent.at(1), spent.at(2), spent.at(3)});
  }
}

} // namespace whale::runtime
