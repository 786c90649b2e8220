//===- CheckTransfers.cpp - Check a program's transfers ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two checks of a program. MemoryCheck walks the instructions of each class and
// compares the buffers of each with those of the transfers in progress: of
// which, for each range that is sent or received, it keeps the number.
// OrderCheck simulates the queues of all classes until all transfers are over
// or none can proceed. Cost: linear in the buffers of all instructions, times
// the ranges of transfers that each of them overlaps, and in the starts and
// waits times the depth of the loops around them. Paths are made for a fault
// only: they would cost more than the checks.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/CheckTransfers.h"

#include "MatchLoops.h"
#include "Uses.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

namespace whale::format {
namespace {

std::string at(const std::string &list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

/// Transfers that a rank doesn't exchange with others are in no queue.
bool isLocal(const Program &program, const Start &start) {
  return program.channels.at(start.channel)->isLocal();
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
    bool isCopy;
    std::vector<Range> sent, received;
  };
  /// Of which transfers in progress an instruction has to keep clear: of all,
  /// or, if it is put on the queue of exchanges, behind the earlier ones, of
  /// the copies between host and device, which have another queue.
  enum class Of : uint8_t { All, Copies };
  struct Counts {
    int64_t sent = 0, received = 0;
  };
  /// A range that some transfers send or receive, and how many of these are in
  /// progress.
  struct Busy {
    Range range;
    Counts all, copies;
  };
  /// Numbers of busy ranges.
  using Numbers = std::vector<size_t>;
  /// A function that the class runs.
  struct Callee {
    /// By local.
    std::vector<Range> locals;
    /// The busy ranges that any of them overlaps.
    Numbers meets;
    /// By operand: whether the function may write it.
    std::vector<bool> written;
  };

  void collectBusy(const std::vector<Instruction> &list);
  Busy &busyOf(const Range &range);
  void meet(const Range &range, Numbers &numbers) const;
  bool isBusy(const Numbers &numbers, bool isWritten, Of of) const;
  void count(const Active &transfer, int64_t change);
  const Callee &calleeOf(const Run &run);
  const Range &rangeOf(BufferIndex index) const { return ranges[index]; }
  void run(const Run &run);
  void use(BufferIndex index, bool isWritten, Of of);
  void use(const Range &range, bool isWritten, Of of, const char *kind,
           int64_t number);
  void useAll(const Instruction &instruction, Of of);
  void start(const Start &start);
  void wait(const Wait &wait);

  const Program &program;
  const RankClass &rankClass;
  /// By buffer of the class.
  std::vector<Range> ranges;
  /// The busy ranges that a buffer overlaps, once it has been used.
  std::vector<std::optional<Numbers>> met;
  /// In ascending order; and by number, the last byte that it or one before it
  /// of the same memory reaches.
  std::vector<Busy> busy;
  std::vector<int64_t> reach;
  /// By function and layout.
  std::map<std::pair<int64_t, int64_t>, Callee> callees;
  /// The transfers in progress, by number, and how many of them are copies.
  std::map<int64_t, Active> active;
  int64_t activeCopies = 0;
  /// The fault of the current instruction.
  std::string fault;
};

} // namespace

/// Collects the operands that instructions of a function may write.
static void findWritten(const Program &program, const Function &function,
                        const std::vector<Instruction> &list,
                        std::vector<bool> &written) {
  for (const Instruction &instruction : list) {
    forEachUse(program, instruction, [&](BufferIndex index, bool isWritten) {
      const BufferInfo &buffer = function.buffers[index];
      if (isWritten && buffer.space == Space::Operand)
        written[buffer.index] = true;
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
  for (size_t i = 0; i < rankClass.buffers.size(); ++i)
    ranges.push_back(
        format::rangeOf(program, rankClass, static_cast<BufferIndex>(i)));
  met.resize(ranges.size());
  collectBusy(rankClass.instructions);
  std::sort(busy.begin(), busy.end(),
            [](const Busy &a, const Busy &b) { return a.range < b.range; });
  auto end =
      std::unique(busy.begin(), busy.end(), [](const Busy &a, const Busy &b) {
        return a.range == b.range;
      });
  busy.erase(end, busy.end());
  for (size_t i = 0; i < busy.size(); ++i) {
    const Range &range = busy[i].range;
    bool isSame = i > 0 && busy[i - 1].range.space == range.space &&
                  busy[i - 1].range.index == range.index;
    reach.push_back(isSame ? std::max(reach.back(), range.end) : range.end);
  }
}

/// Adds what transfers send and receive, in any order and repeatedly.
void MemoryCheck::collectBusy(const std::vector<Instruction> &list) {
  for (const Instruction &instruction : list) {
    if (const auto *start = std::get_if<Start>(&instruction.operation)) {
      for (const Start::Ends &part : start->parts)
        for (std::optional<BufferIndex> index : {part.src, part.dst})
          if (index)
            busy.push_back({rangeOf(*index)});
    } else if (const auto *loop = std::get_if<While>(&instruction.operation)) {
      collectBusy(loop->cond);
      collectBusy(loop->body);
    } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
      for (const std::vector<Instruction> &branch : choice->branches)
        collectBusy(branch);
    }
  }
}

MemoryCheck::Busy &MemoryCheck::busyOf(const Range &range) {
  return *std::lower_bound(
      busy.begin(), busy.end(), range,
      [](const Busy &a, const Range &b) { return a.range < b; });
}

/// Adds the busy ranges that the range overlaps.
void MemoryCheck::meet(const Range &range, Numbers &numbers) const {
  // The first that begins behind it.
  Range behind{range.space, range.index, range.end, range.end};
  size_t i = std::lower_bound(
                 busy.begin(), busy.end(), behind,
                 [](const Busy &a, const Range &b) { return a.range < b; }) -
             busy.begin();
  while (i-- > 0 && busy[i].range.space == range.space &&
         busy[i].range.index == range.index && reach[i] > range.begin)
    if (busy[i].range.overlaps(range))
      numbers.push_back(i);
}

bool MemoryCheck::isBusy(const Numbers &numbers, bool isWritten, Of of) const {
  return std::any_of(numbers.begin(), numbers.end(), [&](size_t number) {
    const Counts &counts =
        of == Of::All ? busy[number].all : busy[number].copies;
    return counts.received || (isWritten && counts.sent);
  });
}

/// `change` is 1 for one more, -1 for one less.
void MemoryCheck::count(const Active &transfer, int64_t change) {
  auto add = [&](const std::vector<Range> &ranges, int64_t Counts::*side) {
    for (const Range &range : ranges) {
      Busy &one = busyOf(range);
      one.all.*side += change;
      if (transfer.isCopy)
        one.copies.*side += change;
    }
  };
  add(transfer.sent, &Counts::sent);
  add(transfer.received, &Counts::received);
  if (transfer.isCopy)
    activeCopies += change;
}

const MemoryCheck::Callee &MemoryCheck::calleeOf(const Run &run) {
  const int64_t number = run.function;
  auto [it, isNew] = callees.try_emplace({number, run.layout});
  Callee &callee = it->second;
  if (!isNew)
    return callee;
  const Function &function = program.functions[number];
  callee.written.resize(function.operands);
  findWritten(program, function, function.instructions, callee.written);
  auto layouts = rankClass.locals.find(number);
  if (layouts == rankClass.locals.end())
    return callee;
  const std::vector<int64_t> &offsets = layouts->second[run.layout];
  std::vector<Extent> extents = extentsOf(function, Space::Local);
  for (size_t i = 0; i < extents.size(); ++i)
    callee.locals.push_back(
        {Space::Arena, 0, offsets[i], offsets[i] + extents[i].bytes});
  for (const Range &range : callee.locals)
    meet(range, callee.meets);
  std::sort(callee.meets.begin(), callee.meets.end());
  callee.meets.erase(std::unique(callee.meets.begin(), callee.meets.end()),
                     callee.meets.end());
  return callee;
}

void MemoryCheck::use(BufferIndex index, bool isWritten, Of of) {
  std::optional<Numbers> &numbers = met[index];
  if (!numbers)
    meet(rangeOf(index), numbers.emplace());
  if (isBusy(*numbers, isWritten, of))
    use(rangeOf(index), isWritten, of, "buffer", index);
}

/// `number` is the number of the buffer or local.
void MemoryCheck::use(const Range &range, bool isWritten, Of of,
                      const char *kind, int64_t number) {
  if (!fault.empty())
    return;
  auto isIn = [&](const std::vector<Range> &ranges) {
    return std::ranges::any_of(
        ranges, [&](const Range &other) { return other.overlaps(range); });
  };
  for (const auto &[started, transfer] : active) {
    if (of == Of::Copies && !transfer.isCopy)
      continue;
    const char *what = nullptr;
    if (isIn(transfer.received))
      what = isWritten ? "writes what it receives into"
                       : "reads what it "
                         "receives into";
    else if (isWritten && isIn(transfer.sent))
      what = "writes what it sends";
    if (!what)
      continue;
    fault = std::string(kind) + " " + std::to_string(number) + ": transfer " +
            std::to_string(transfer.transfer) +
            " may still go on, and this instruction " + what;
    return;
  }
}

void MemoryCheck::useAll(const Instruction &instruction, Of of) {
  if (of == Of::All ? active.empty() : activeCopies == 0)
    return;
  forEachUse(program, instruction, [&](BufferIndex index, bool isWritten) {
    use(index, isWritten, of);
  });
  if (const auto *run = std::get_if<Run>(&instruction.operation))
    this->run(*run);
}

void MemoryCheck::run(const Run &run) {
  const Callee &callee = calleeOf(run);
  for (size_t i = 0; i < run.operands.size(); ++i)
    use(run.operands[i], callee.written[i], Of::All);
  for (BufferIndex index : run.results)
    use(index, true, Of::All);
  if (!isBusy(callee.meets, true, Of::All))
    return;
  for (size_t i = 0; i < callee.locals.size(); ++i)
    use(callee.locals[i], true, Of::All, "local", static_cast<int64_t>(i));
}

void MemoryCheck::start(const Start &start) {
  Active transfer{
      start.transfer, program.channels.at(start.channel)->isHostCopy(), {}, {}};
  for (const Start::Ends &part : start.parts) {
    if (part.src)
      transfer.sent.push_back(rangeOf(*part.src));
    if (part.dst)
      transfer.received.push_back(rangeOf(*part.dst));
  }
  active[transfer.transfer] = transfer;
  count(transfer, 1);
}

void MemoryCheck::wait(const Wait &wait) {
  auto it = active.find(wait.transfer);
  if (it == active.end())
    return;
  count(it->second, -1);
  active.erase(it);
}

std::optional<Fault> MemoryCheck::check(const std::vector<Instruction> &list,
                                        const std::string &path) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Instruction &instruction = list[i];
    if (const auto *start = std::get_if<Start>(&instruction.operation)) {
      // An exchange runs after the earlier ones of its queue, which may use the
      // same buffers. A local one is in none that others are in.
      useAll(instruction, isLocal(program, *start) ? Of::All : Of::Copies);
      this->start(*start);
    } else if (const auto *wait = std::get_if<Wait>(&instruction.operation)) {
      this->wait(*wait);
    } else {
      useAll(instruction, Of::All);
    }
    if (!fault.empty())
      return Fault{at(path, i), fault};
    std::optional<Fault> inner;
    if (const auto *loop = std::get_if<While>(&instruction.operation)) {
      inner = check(loop->cond, at(path, i) + ".cond");
      if (!inner)
        inner = check(loop->body, at(path, i) + ".body");
    } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
      for (size_t b = 0; b < choice->branches.size() && !inner; ++b)
        inner = check(choice->branches[b], at(at(path, i) + ".branches", b));
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
  struct Channel {
    int64_t number;
    bool isLocal;
    /// The classes that take part, and those that have it next in their queue.
    std::vector<size_t> participants, ready;
  };
  struct Event {
    bool isStart;
    int64_t transfer;
    /// Which of all transfers of the class it is, loops counted twice.
    size_t instance;
    Channel *channel;
  };
  struct Class {
    std::vector<Event> events;
    size_t next = 0;
    /// Channels and instances.
    std::deque<std::pair<Channel *, size_t>> queue;
    /// By instance; and by transfer the last instance that is collected.
    std::vector<bool> isOver;
    std::vector<size_t> last;
    /// Whether the head of the queue is counted in its channel.
    bool isReady = false;
  };

  void collect(size_t number, const std::vector<Instruction> &list,
               bool isAgain = false);
  bool findPath(const std::vector<Instruction> &list, std::string path,
                bool isStart, int64_t transfer, std::string &found) const;
  std::string pathOf(size_t number) const;
  void advance(size_t number);
  Fault describe(size_t number) const;

  const Program &program;
  std::vector<Class> classes;
  std::unordered_map<int64_t, Channel> channels;
  /// The classes that may proceed.
  std::vector<size_t> awake;
};

} // namespace

/// A loop runs twice; within its second iteration inner loops run once, so that
/// the time does not double with each level.
void OrderCheck::collect(size_t number, const std::vector<Instruction> &list,
                         bool isAgain) {
  Class &c = classes[number];
  for (const Instruction &instruction : list) {
    const auto &operation = instruction.operation;
    if (const auto *start = std::get_if<Start>(&operation)) {
      auto [it, isNew] = channels.try_emplace(start->channel);
      Channel &channel = it->second;
      if (isNew) {
        channel.number = start->channel;
        channel.isLocal = isLocal(program, *start);
      }
      size_t instance = c.isOver.size();
      c.last.resize(std::max<size_t>(c.last.size(), start->transfer + 1));
      c.last[start->transfer] = instance;
      c.isOver.push_back(channel.isLocal);
      if (channel.isLocal)
        continue;
      if (channel.participants.empty() || channel.participants.back() != number)
        channel.participants.push_back(number);
      c.events.push_back({true, start->transfer, instance, &channel});
    } else if (const auto *wait = std::get_if<Wait>(&operation)) {
      size_t instance = c.last[wait->transfer];
      if (!c.isOver[instance])
        c.events.push_back({false, wait->transfer, instance, nullptr});
    } else if (const auto *loop = std::get_if<While>(&operation)) {
      collect(number, loop->cond, isAgain);
      collect(number, loop->body, isAgain);
      if (!isAgain) {
        collect(number, loop->cond, true);
        collect(number, loop->body, true);
      }
    } else if (const auto *choice = std::get_if<Case>(&operation)) {
      for (const std::vector<Instruction> &branch : choice->branches)
        collect(number, branch, isAgain);
    }
  }
}

/// The path of the start of a transfer, or of its first wait.
bool OrderCheck::findPath(const std::vector<Instruction> &list,
                          std::string path, bool isStart, int64_t transfer,
                          std::string &found) const {
  for (size_t i = 0; i < list.size(); ++i) {
    const auto &operation = list[i].operation;
    const auto *start = std::get_if<Start>(&operation);
    const auto *wait = std::get_if<Wait>(&operation);
    const auto *loop = std::get_if<While>(&operation);
    const auto *choice = std::get_if<Case>(&operation);
    bool isHere = (isStart && start && start->transfer == transfer) ||
                  (!isStart && wait && wait->transfer == transfer);
    if (isHere)
      found = at(path, i);
    if (loop)
      isHere =
          findPath(loop->cond, at(path, i) + ".cond", isStart, transfer,
                   found) ||
          findPath(loop->body, at(path, i) + ".body", isStart, transfer, found);
    for (size_t b = 0; choice && !isHere && b < choice->branches.size(); ++b)
      isHere = findPath(choice->branches[b], at(at(path, i) + ".branches", b),
                        isStart, transfer, found);
    if (isHere)
      return true;
  }
  return false;
}

/// The path of the next event of a class.
std::string OrderCheck::pathOf(size_t number) const {
  const Event &event = classes[number].events[classes[number].next];
  std::string found;
  findPath(program.classes[number].instructions,
           at("classes", number) + ".instructions", event.isStart,
           event.transfer, found);
  return found;
}

/// Proceeds to the next wait for a transfer that isn't over. Ends the transfer
/// at the head of the queue if it was the last participant's.
void OrderCheck::advance(size_t number) {
  Class &c = classes[number];
  for (; c.next < c.events.size(); ++c.next) {
    const Event &event = c.events[c.next];
    if (event.isStart)
      c.queue.emplace_back(event.channel, event.instance);
    else if (!c.isOver[event.instance])
      break;
  }
  if (c.queue.empty() || c.isReady)
    return;
  c.isReady = true;
  Channel &channel = *c.queue.front().first;
  channel.ready.push_back(number);
  if (channel.ready.size() < channel.participants.size())
    return;
  for (size_t other : channel.ready) {
    Class &participant = classes[other];
    participant.isOver[participant.queue.front().second] = true;
    participant.queue.pop_front();
    participant.isReady = false;
    awake.push_back(other);
  }
  channel.ready.clear();
}

/// Describes the wait that blocks a class.
Fault OrderCheck::describe(size_t number) const {
  const Class &blocked = classes[number];
  const Event &event = blocked.events[blocked.next];
  std::string what = "waits for transfer " + std::to_string(event.transfer);
  what += ", and channel " +
          std::to_string(blocked.queue.front().first->number) +
          " is next in its queue: not all participants ever have it next";
  for (size_t other = 0; other < classes.size(); ++other) {
    const Class &c = classes[other];
    if (other == number || c.queue.empty() || c.next == c.events.size())
      continue;
    what += "; " + pathOf(other) + " waits too, where channel " +
            std::to_string(c.queue.front().first->number) + " is next";
    break;
  }
  return {pathOf(number), what};
}

std::optional<Fault> OrderCheck::check() {
  classes.resize(program.classes.size());
  for (size_t i = 0; i < classes.size(); ++i) {
    collect(i, program.classes[i].instructions);
    awake.push_back(i);
  }
  while (!awake.empty()) {
    size_t number = awake.back();
    awake.pop_back();
    advance(number);
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
  if (auto fault = matchLoops(program))
    return fault;
  return OrderCheck(program).check();
}

} // namespace whale::format
