//===- CheckTransfers.cpp - Proofs about a program's transfers --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/CheckTransfers.h"

#include <deque>
#include <set>

namespace whale::format {
namespace {

std::string at(const std::string &list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

/// Transfers that a rank doesn't exchange with others have no queue.
bool isLocal(const Program &program, const Start &start) {
  return program.channels.at(start.channel)->kind == "local_slice";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Bytes of one block of memory.
struct Range {
  Space space = Space::Arena;
  int64_t index = 0;
  int64_t begin = 0, end = 0;

  bool overlaps(const Range &other) const {
    return space == other.space && index == other.index && begin < other.end &&
           other.begin < end;
  }
};

/// Looks for instructions that use what a transfer is using.
class MemoryCheck {
public:
  MemoryCheck(const Program &program, const RankClass &rankClass)
      : program(program), rankClass(rankClass) {}

  std::optional<TransferFault> check(const std::vector<Instruction> &list,
                                     const std::string &path);

private:
  struct Active {
    int64_t transfer;
    std::optional<Range> src, dst;
  };

  Range rangeOf(BufferIndex index) const;
  void use(BufferIndex index, bool isWritten);
  void useAll(const Instruction &instruction);

  const Program &program;
  const RankClass &rankClass;
  /// Those that go on.
  std::vector<Active> active;
  /// What is wrong with the instruction at hand.
  std::string fault;
};

} // namespace

Range MemoryCheck::rangeOf(BufferIndex number) const {
  const BufferInfo &buffer = rankClass.buffers[number];
  if (buffer.space == Space::Arena || buffer.space == Space::Constant)
    return {buffer.space, 0, buffer.offset, buffer.offset + buffer.bytes};
  if (buffer.space == Space::RankConstant)
    return {buffer.space, number, 0, buffer.bytes};
  // A result may take the memory of an argument.
  if (buffer.space == Space::Result)
    if (auto alias = program.results[buffer.index].alias)
      return {Space::Argument, *alias, 0, buffer.bytes};
  return {buffer.space, buffer.index, 0, buffer.bytes};
}

void MemoryCheck::use(BufferIndex index, bool isWritten) {
  if (active.empty() || !fault.empty())
    return;
  Range range = rangeOf(index);
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
    fault = "buffer " + std::to_string(index) + ": transfer " +
            std::to_string(transfer.transfer) +
            " may still go on, and this instruction " + what;
    return;
  }
}

void MemoryCheck::useAll(const Instruction &instruction) {
  auto reads = [&](BufferIndex index) { use(index, false); };
  auto writes = [&](BufferIndex index) { use(index, true); };
  if (const auto *kernel = std::get_if<Kernel>(&instruction.operation)) {
    size_t inputs = 0;
    if (program.kernelSignatures)
      inputs = program.kernelSignatures->at(kernel->symbol).inputs;
    for (size_t i = 0; i < kernel->buffers.size(); ++i)
      use(kernel->buffers[i], i >= inputs);
  } else if (const auto *copy = std::get_if<Copy>(&instruction.operation)) {
    reads(copy->src);
    writes(copy->dst);
  } else if (const auto *matmul = std::get_if<Matmul>(&instruction.operation)) {
    reads(matmul->lhs);
    reads(matmul->rhs);
    writes(matmul->out);
  } else if (const auto *convolution =
                 std::get_if<Convolution>(&instruction.operation)) {
    reads(convolution->lhs);
    reads(convolution->rhs);
    writes(convolution->out);
  } else if (const auto *call = std::get_if<Call>(&instruction.operation)) {
    for (BufferIndex index : call->inputs)
      reads(index);
    for (BufferIndex index : call->outputs)
      writes(index);
  } else if (const auto *loop = std::get_if<While>(&instruction.operation)) {
    reads(loop->predicate);
  } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
    reads(choice->index);
  }
}

std::optional<TransferFault>
MemoryCheck::check(const std::vector<Instruction> &list,
                   const std::string &path) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Instruction &instruction = list[i];
    std::string here = at(path, i);
    if (const auto *start = std::get_if<Start>(&instruction.operation)) {
      // A rank's transfers go on one after the other, but what is exchanged
      // with nobody is at once.
      if (isLocal(program, *start)) {
        if (start->src)
          use(*start->src, false);
        if (start->dst)
          use(*start->dst, true);
      }
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
      return TransferFault{here, fault};
    std::optional<TransferFault> inner;
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
/// list, so that a class stands for them. Which class comes first makes no
/// difference: a start never blocks, and a transfer that is at the head of all
/// queues stays there until it is over.
class OrderCheck {
public:
  explicit OrderCheck(const Program &program) : program(program) {}

  std::optional<TransferFault> check();

private:
  struct Event {
    std::string path;
    bool isStart;
    int64_t transfer, channel;
  };
  struct Class {
    std::vector<Event> events;
    size_t next = 0;
    /// Of transfers, by their channels.
    std::deque<std::pair<int64_t, int64_t>> queue;
    std::vector<bool> isOver;
  };

  void collect(Class &c, const std::vector<Instruction> &list,
               const std::string &path);
  bool advance(Class &c);
  bool endTransfers();
  TransferFault describe(size_t number) const;

  const Program &program;
  std::vector<Class> classes;
  /// By channel: how many classes take part.
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

/// Goes on to the next wait that isn't over.
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

/// What a class that can't go on waits for.
TransferFault OrderCheck::describe(size_t number) const {
  const Class &blocked = classes[number];
  const Event &event = blocked.events[blocked.next];
  std::string what = "waits for transfer " + std::to_string(event.transfer);
  int64_t channel = blocked.queue.front().first;
  what += ", and channel " + std::to_string(channel) +
          " is next in its queue: not all that take part ever have it next";
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

std::optional<TransferFault> OrderCheck::check() {
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

std::optional<TransferFault> checkTransfers(const Program &program) {
  for (size_t i = 0; i < program.classes.size(); ++i)
    if (auto fault = MemoryCheck(program, program.classes[i])
                         .check(program.classes[i].instructions,
                                at("classes", i) + ".instructions"))
      return fault;
  return OrderCheck(program).check();
}

} // namespace whale::format
