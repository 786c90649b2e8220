//===- LiveBytes.cpp - What an arena holds at once ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows each byte of the arena from its write to its last read. Instructions
// are points of time: what one reads and writes is in use at once, unless it
// writes the bytes that it reads. Cost: a map look-up for each read and write
// of each run of a function, and sorting them.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/LiveBytes.h"

#include "Uses.h"

#include <algorithm>

namespace whale::format {
namespace {

class LiveBytes {
public:
  LiveBytes(const Program &program, const RankClass &rankClass)
      : program(program), rankClass(rankClass) {}

  int64_t find();
  std::vector<int64_t> findOfEach();

private:
  /// The bytes of a value up to `end`, from their write until they are no
  /// longer used.
  struct Value {
    int64_t end, written, used;
  };

  void walk(const std::vector<Instruction> &list);
  void step(const Instruction &instruction);
  void runLoop(const Instruction &instruction, const While &loop);
  void use(const Instruction &instruction);
  void read(const Range &range);
  void write(const Range &range);
  /// Calls `fn` with the range of a buffer if it is in the arena.
  template <typename Fn>
  void withRange(BufferIndex buffer, Fn fn) const;
  /// Divides the value that both sides of a byte belong to.
  void divide(int64_t byte);
  void end(const std::pair<const int64_t, Value> &value, int64_t time);
  /// Ends all values, and puts the changes in order.
  void finish();

  const Program &program;
  const RankClass &rankClass;
  /// By their first bytes. They don't overlap.
  std::map<int64_t, Value> values;
  /// From when on how many bytes more, or less, are in use.
  std::vector<std::pair<int64_t, int64_t>> changes;
  /// The transfers that are in progress.
  std::map<int64_t, Start> started;
  /// The run of the current function; null in the list of the class.
  const Run *frame = nullptr;
  /// Whether this is the second iteration of a loop.
  bool isAgain = false;
  /// An instruction takes 2.
  int64_t time = 0;
};

} // namespace

void LiveBytes::divide(int64_t byte) {
  auto next = values.upper_bound(byte);
  if (next == values.begin())
    return;
  auto &[begin, value] = *std::prev(next);
  if (begin == byte || value.end <= byte)
    return;
  Value rest = value;
  value.end = byte;
  values[byte] = rest;
}

void LiveBytes::end(const std::pair<const int64_t, Value> &value,
                    int64_t time) {
  int64_t bytes = value.second.end - value.first;
  changes.push_back({value.second.written, bytes});
  changes.push_back({std::min(value.second.used, time), -bytes});
}

void LiveBytes::read(const Range &range) {
  divide(range.begin);
  divide(range.end);
  for (auto it = values.lower_bound(range.begin);
       it != values.end() && it->first < range.end; ++it)
    it->second.used = time + 2;
}

void LiveBytes::write(const Range &range) {
  divide(range.begin);
  divide(range.end);
  auto it = values.lower_bound(range.begin);
  while (it != values.end() && it->first < range.end) {
    end(*it, time);
    it = values.erase(it);
  }
  values[range.begin] = {range.end, time, time + 2};
}

template <typename Fn>
void LiveBytes::withRange(BufferIndex buffer, Fn fn) const {
  Range range = rangeOf(program, rankClass, frame, buffer);
  if (range.space == Space::Arena && range.begin < range.end)
    fn(range);
}

void LiveBytes::use(const Instruction &instruction) {
  std::vector<Range> inputs, outputs;
  forEachUse(program, instruction, [&](BufferIndex buffer, bool isWritten) {
    withRange(buffer, [&](const Range &range) {
      (isWritten ? outputs : inputs).push_back(range);
    });
  });
  for (const Range &range : inputs)
    read(range);
  for (const Range &range : outputs)
    write(range);
}

/// In the second iteration of a loop those in it run once, so that the time
/// is not exponential in the nesting depth.
void LiveBytes::runLoop(const Instruction &instruction, const While &loop) {
  bool wasAgain = isAgain;
  for (int iteration = wasAgain; iteration < 2; ++iteration) {
    isAgain = iteration > 0;
    walk(loop.cond);
    use(instruction);
    walk(loop.body);
  }
  isAgain = wasAgain;
}

void LiveBytes::step(const Instruction &instruction) {
  if (const auto *loop = std::get_if<While>(&instruction.operation))
    return runLoop(instruction, *loop);
  use(instruction);
  if (const auto *start = std::get_if<Start>(&instruction.operation)) {
    started[start->transfer] = *start;
  } else if (const auto *wait = std::get_if<Wait>(&instruction.operation)) {
    const Start &start = started.at(wait->transfer);
    for (const Start::Ends &part : start.parts)
      for (std::optional<BufferIndex> buffer : {part.src, part.dst})
        if (buffer)
          withRange(*buffer, [&](const Range &range) { read(range); });
  } else if (const auto *run = std::get_if<Run>(&instruction.operation)) {
    frame = run;
    walk(program.functions[run->function].instructions);
    frame = nullptr;
  } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
    for (const std::vector<Instruction> &branch : choice->branches)
      walk(branch);
  }
}

void LiveBytes::walk(const std::vector<Instruction> &list) {
  for (const Instruction &instruction : list) {
    step(instruction);
    time += 2;
  }
}

std::vector<int64_t> LiveBytes::findOfEach() {
  std::vector<int64_t> begins;
  for (const Instruction &instruction : rankClass.instructions) {
    begins.push_back(time);
    step(instruction);
    time += 2;
  }
  begins.push_back(time);
  finish();
  std::vector<int64_t> each;
  int64_t bytes = 0;
  auto next = changes.begin();
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    for (; next != changes.end() && next->first <= begins[i]; ++next)
      bytes += next->second;
    int64_t most = bytes;
    for (; next != changes.end() && next->first < begins[i + 1]; ++next)
      most = std::max(most, bytes += next->second);
    each.push_back(most);
  }
  return each;
}

void LiveBytes::finish() {
  for (const auto &value : values)
    end(value, time);
  // What ends makes room for what begins.
  std::sort(changes.begin(), changes.end());
}

int64_t LiveBytes::find() {
  walk(rankClass.instructions);
  finish();
  int64_t bytes = 0, most = 0;
  for (auto [time, change] : changes)
    most = std::max(most, bytes += change);
  return most;
}

int64_t findLiveBytes(const Program &program, const RankClass &rankClass) {
  return LiveBytes(program, rankClass).find();
}

std::vector<int64_t> findLiveBytesOfEach(const Program &program,
                                         const RankClass &rankClass) {
  return LiveBytes(program, rankClass).findOfEach();
}

} // namespace whale::format
