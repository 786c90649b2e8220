//===- CheckTransfers.cpp - Check a program's transfers ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two checks of a program. MemoryCheck walks the instructions of each class and
// compares the buffers of each with those of the transfers in progress.
// OrderCheck simulates the queues of all classes until all transfers are over
// or none can proceed. Cost: instructions times transfers in progress.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/CheckTransfers.h"

#include "Uses.h"

#include <deque>
#include <set>

namespace whale::format {
namespace {

std::string at(const std::string &list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

/// Transfers that a rank doesn't exchange with others are in no queue.
bool isLocal(const Program &program, const Start &start) {
  return program.channels.at(start.channel)->kind == "local_slice";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Finds instructions that use the buffers of a transfer in progress.
class MemoryCheck {
public:
  MemoryCheck(const Program &program, const RankClass &rankClass);

  std::optional<Fault> check(const std::vector<Instruction> &list,
                             const std::string &path);

private:
  struct Active {
    int64_t transfer;
    std::optional<Range> src, dst;
  };

  Range rangeOf(BufferIndex index) const {
    return format::rangeOf(program, rankClass, index);
  }
  void use(BufferIndex index, bool isWritten);
  void use(const Range &range, bool isWritten, const char *kind,
           int64_t number);
  void useAll(const Instruction &instruction);

  const Program &program;
  const RankClass &rankClass;
  /// For each function that the class runs: the ranges of its locals, and the
  /// operands that it writes.
  std::map<int64_t, std::vector<Range>> locals;
  std::map<int64_t, std::set<int64_t>> writtenOperands;
  /// The transfers in progress.
  std::vector<Active> active;
  /// The fault of the current instruction.
  std::string fault;
};

} // namespace

/// Collects the operands that instructions of a function may write.
static void findWritten(const Program &program, const Function &function,
                        const std::vector<Instruction> &list,
                        std::set<int64_t> &written) {
  for (const Instruction &instruction : list) {
    forEachUse(program, instruction, [&](BufferIndex index, bool isWritten) {
      const BufferInfo &buffer = function.buffers[index];
      if (isWritten && buffer.space == Space::Operand)
        written.insert(buffer.index);
    });
    if (const auto *loop = std::get_if<While>(&instruction.operation)) {
      findWritten(program, function, loop->cond, written);
      findWritten(program, function, loop->body, written);
    } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
      for (const std::vector<Instruction> &branch : choice->branches)
        findWritten(program, function, branch, written);
    }
  }
}

MemoryCheck::MemoryCheck(const Program &program, const RankClass &rankClass)
    : program(program), rankClass(rankClass) {
  for (const auto &[number, offsets] : rankClass.locals) {
    const Function &function = program.functions[number];
    findWritten(program, function, function.instructions,
                writtenOperands[number]);
    std::vector<Extent> extents = extentsOf(function, Space::Local);
    for (size_t i = 0; i < offsets.size(); ++i)
      locals[number].push_back(
          {Space::Arena, 0, offsets[i], offsets[i] + extents[i].bytes});
  }
}

void MemoryCheck::use(BufferIndex index, bool isWritten) {
  use(rangeOf(index), isWritten, "buffer", index);
}

/// `number` is the number of the buffer or local.
void MemoryCheck::use(const Range &range, bool isWritten, const char *kind,
                      int64_t number) {
  if (!fault.empty())
    return;
  for (const Active &transfer : active) {
    const char *what = nullptr;
    if (transfer.dst && transfer.dst->overlaps(range))
      what = isWritten ? "writes what it receives into"
                       : "reads what it "
                         "receives into";
    else if (isWritten && transfer.src && transfer.src->overlaps(range))
      what = "writes what it sends";
    if (!what)
      continue;
    fault = std::string(kind) + " " + std::to_string(number) + ": transfer " +
            std::to_string(transfer.transfer) +
            " may still go on, and this instruction " + what;
    return;
  }
}

void MemoryCheck::useAll(const Instruction &instruction) {
  if (active.empty())
    return;
  forEachUse(program, instruction,
             [&](BufferIndex index, bool isWritten) { use(index, isWritten); });
  const auto *run = std::get_if<Run>(&instruction.operation);
  if (!run)
    return;
  const std::set<int64_t> &written = writtenOperands[run->function];
  for (size_t i = 0; i < run->operands.size(); ++i)
    use(run->operands[i], written.contains(static_cast<int64_t>(i)));
  for (BufferIndex index : run->results)
    use(index, true);
  const std::vector<Range> &ranges = locals[run->function];
  for (size_t i = 0; i < ranges.size(); ++i)
    use(ranges[i], true, "local", static_cast<int64_t>(i));
}

std::optional<Fault> MemoryCheck::check(const std::vector<Instruction> &list,
                                        const std::string &path) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Instruction &instruction = list[i];
    std::string here = at(path, i);
    if (const auto *start = std::get_if<Start>(&instruction.operation)) {
      // A transfer in a queue runs after the earlier ones in it, which may use
      // the same buffers. A local one is in no queue and runs at once.
      if (isLocal(program, *start))
        useAll(instruction);
      Active transfer{start->transfer, {}, {}};
      if (start->src)
        transfer.src = rangeOf(*start->src);
      if (start->dst)
        transfer.dst = rangeOf(*start->dst);
      active.push_back(transfer);
    } else if (const auto *wait = std::get_if<Wait>(&instruction.operation)) {
      std::erase_if(active, [&](const Active &transfer) {
        return transfer.transfer == wait->transfer;
      });
    } else {
      useAll(instruction);
    }
    if (!fault.empty())
      return Fault{here, fault};
    std::optional<Fault> inner;
    if (const auto *loop = std::get_if<While>(&instruction.operation)) {
      inner = check(loop->cond, here + ".cond");
      if (!inner)
        inner = check(loop->body, here + ".body");
    } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
      for (size_t b = 0; b < choice->branches.size() && !inner; ++b)
        inner = check(choice->branches[b], at(here + ".branches", b));
    }
    if (inner)
      return inner;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

namespace {

/// Runs the starts and waits of all classes. The ranks of a class have the same
/// list, so each class is simulated as one participant. The order in which
/// classes proceed makes no difference: a start never blocks, and a transfer
/// that is at the head of all queues stays there until it is over.
class OrderCheck {
public:
  explicit OrderCheck(const Program &program) : program(program) {}

  std::optional<Fault> check();

private:
  struct Event {
    std::string path;
    bool isStart;
    int64_t transfer, channel;
  };
  struct Class {
    std::vector<Event> events;
    size_t next = 0;
    /// Channels and transfers.
    std::deque<std::pair<int64_t, int64_t>> queue;
    std::vector<bool> isOver;
  };

  void collect(Class &c, const std::vector<Instruction> &list,
               const std::string &path);
  bool advance(Class &c);
  bool endTransfers();
  Fault describe(size_t number) const;

  const Program &program;
  std::vector<Class> classes;
  /// By channel: the number of classes that take part.
  std::map<int64_t, size_t> participants;
};

} // namespace

void OrderCheck::collect(Class &c, const std::vector<Instruction> &list,
                         const std::string &path) {
  for (size_t i = 0; i < list.size(); ++i) {
    const auto &operation = list[i].operation;
    if (const auto *start = std::get_if<Start>(&operation)) {
      c.isOver.push_back(isLocal(program, *start));
      if (!c.isOver.back())
        c.events.push_back(
            {at(path, i), true, start->transfer, start->channel});
    } else if (const auto *wait = std::get_if<Wait>(&operation)) {
      if (!c.isOver[wait->transfer])
        c.events.push_back({at(path, i), false, wait->transfer, 0});
    } else if (const auto *loop = std::get_if<While>(&operation)) {
      collect(c, loop->cond, at(path, i) + ".cond");
      collect(c, loop->body, at(path, i) + ".body");
    } else if (const auto *choice = std::get_if<Case>(&operation)) {
      for (size_t b = 0; b < choice->branches.size(); ++b)
        collect(c, choice->branches[b], at(at(path, i) + ".branches", b));
    }
  }
}

/// Proceeds to the next wait for a transfer that isn't over.
bool OrderCheck::advance(Class &c) {
  size_t before = c.next;
  for (; c.next < c.events.size(); ++c.next) {
    const Event &event = c.events[c.next];
    if (event.isStart)
      c.queue.emplace_back(event.channel, event.transfer);
    else if (!c.isOver[event.transfer])
      break;
  }
  return c.next != before;
}

bool OrderCheck::endTransfers() {
  std::map<int64_t, std::vector<Class *>> heads;
  for (Class &c : classes)
    if (!c.queue.empty())
      heads[c.queue.front().first].push_back(&c);
  bool moved = false;
  for (auto &[channel, at] : heads) {
    if (at.size() < participants.at(channel))
      continue;
    moved = true;
    for (Class *c : at) {
      c->isOver[c->queue.front().second] = true;
      c->queue.pop_front();
    }
  }
  return moved;
}

/// Describes the wait that blocks a class.
Fault OrderCheck::describe(size_t number) const {
  const Class &blocked = classes[number];
  const Event &event = blocked.events[blocked.next];
  std::string what = "waits for transfer " + std::to_string(event.transfer);
  int64_t channel = blocked.queue.front().first;
  what += ", and channel " + std::to_string(channel) +
          " is next in its queue: not all participants ever have it next";
  for (size_t other = 0; other < classes.size(); ++other) {
    const Class &c = classes[other];
    if (other == number || c.queue.empty() || c.next == c.events.size())
      continue;
    what += "; " + c.events[c.next].path + " waits too, where channel " +
            std::to_string(c.queue.front().first) + " is next";
    break;
  }
  return {event.path, what};
}

std::optional<Fault> OrderCheck::check() {
  classes.resize(program.classes.size());
  for (size_t i = 0; i < classes.size(); ++i) {
    collect(classes[i], program.classes[i].instructions,
            at("classes", i) + ".instructions");
    std::set<int64_t> channels;
    for (const Event &event : classes[i].events)
      if (event.isStart)
        channels.insert(event.channel);
    for (int64_t channel : channels)
      ++participants[channel];
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (Class &c : classes)
      moved |= advance(c);
    moved |= endTransfers();
  }
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i].next < classes[i].events.size())
      return describe(i);
  return std::nullopt;
}

std::optional<Fault> checkTransfers(const Program &program) {
  for (size_t i = 0; i < program.classes.size(); ++i)
    if (auto fault = MemoryCheck(program, program.classes[i])
                         .check(program.classes[i].instructions,
                                at("classes", i) + ".instructions"))
      return fault;
  return OrderCheck(program).check();
}

} // namespace whale::format
