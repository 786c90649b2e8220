//===- MatchLoops.cpp - Loops in which ranks exchange data ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the instructions of all classes. Out: a start that its peers don't reach
// equally often.
//
// The n-th start of a channel in the text of one class meets the n-th of each
// other one. So the lists that hold them (a body, a condition, a branch) are
// one list, and so are the lists around these. Lists that are one are joined in
// a set, which has at most one of each class; the lists of the classes
// themselves are in one set from the beginning. Cost: nearly linear in the
// instructions.
//
//===----------------------------------------------------------------------===//

#include "MatchLoops.h"

#include <set>
#include <unordered_map>

namespace whale::format {
namespace {

class Matcher {
public:
  explicit Matcher(const Program &program) : program(program) {}

  std::optional<Fault> run();

private:
  /// The list of a class, or one of a loop or a case in another list.
  struct List {
    const Instruction *owner = nullptr;
    std::string path;
    size_t parent = 0;
    /// A list of the same set; itself in the one that stands for the set.
    size_t same;
    /// The classes that have a list in the set, in the one that stands for it.
    std::set<size_t> classes;
  };
  /// The lists that hold the starts of a channel, in their order, and how many
  /// of them the class at hand has reached.
  struct Channel {
    std::vector<size_t> lists;
    size_t rankClass = 0, reached = 0;
  };

  void walk(const std::vector<Instruction> &instructions, size_t list);
  void enter(const std::vector<Instruction> &instructions,
             const Instruction &owner, std::string path, size_t parent);
  bool reach(int64_t number, size_t list);
  size_t find(size_t list);
  bool join(size_t a, size_t b);

  const Program &program;
  size_t rankClass = 0;
  std::vector<List> lists;
  std::unordered_map<int64_t, Channel> channels;
  std::optional<Fault> fault;
};

} // namespace

size_t Matcher::find(size_t list) {
  while (lists[list].same != list)
    list = lists[list].same = lists[lists[list].same].same;
  return list;
}

/// Whether lists of two loops or cases can be one, but for where these are.
static bool isAlike(const Instruction *a, const Instruction *b) {
  if (!a || !b || a->operation.index() != b->operation.index())
    return false;
  const auto *x = std::get_if<While>(&a->operation);
  const auto *y = std::get_if<While>(&b->operation);
  return !x || !x->trips || !y->trips || x->trips == y->trips;
}

/// The part of the path that says which list of its loop or case it is.
static std::string_view nameOf(std::string_view path) {
  return path.substr(path.rfind('.'));
}

bool Matcher::join(size_t a, size_t b) {
  a = find(a);
  b = find(b);
  if (a == b)
    return true;
  if (!isAlike(lists[a].owner, lists[b].owner) ||
      nameOf(lists[a].path) != nameOf(lists[b].path))
    return false;
  for (size_t other : lists[b].classes)
    if (!lists[a].classes.insert(other).second)
      return false;
  lists[b].same = a;
  return join(lists[a].parent, lists[b].parent);
}

/// The next start of a channel in the class is in a list.
bool Matcher::reach(int64_t number, size_t list) {
  Channel &channel = channels[number];
  if (channel.rankClass != rankClass) {
    channel.rankClass = rankClass;
    channel.reached = 0;
  }
  size_t use = channel.reached++;
  if (use < channel.lists.size())
    return join(channel.lists[use], list);
  channel.lists.push_back(list);
  return true;
}

void Matcher::enter(const std::vector<Instruction> &instructions,
                    const Instruction &owner, std::string path, size_t parent) {
  size_t list = lists.size();
  lists.push_back({&owner, std::move(path), parent, list, {rankClass}});
  walk(instructions, list);
}

void Matcher::walk(const std::vector<Instruction> &instructions, size_t list) {
  for (size_t i = 0; i < instructions.size() && !fault; ++i) {
    const Instruction &instruction = instructions[i];
    auto path = [&] {
      return lists[list].path + "[" + std::to_string(i) + "]";
    };
    if (const auto *start = std::get_if<Start>(&instruction.operation)) {
      if (!program.channels.at(start->channel)->isLocal() &&
          !reach(start->channel, list))
        fault = {path(), "channel " + std::to_string(start->channel) +
                             " is used in another loop or branch than by other "
                             "ranks"};
    } else if (const auto *loop = std::get_if<While>(&instruction.operation)) {
      enter(loop->cond, instruction, path() + ".cond", list);
      enter(loop->body, instruction, path() + ".body", list);
    } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
      for (size_t b = 0; b < choice->branches.size(); ++b)
        enter(choice->branches[b], instruction,
              path() + ".branches[" + std::to_string(b) + "]", list);
    }
  }
}

std::optional<Fault> Matcher::run() {
  size_t count = program.classes.size();
  for (size_t i = 0; i < count; ++i)
    lists.push_back(
        {nullptr, "classes[" + std::to_string(i) + "].instructions", 0, 0, {}});
  for (; rankClass < count && !fault; ++rankClass)
    walk(program.classes[rankClass].instructions, rankClass);
  return std::move(fault);
}

std::optional<Fault> matchLoops(const Program &program) {
  return Matcher(program).run();
}

} // namespace whale::format
