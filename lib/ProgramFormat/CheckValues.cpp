//===- CheckValues.cpp - Check reads against writes -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the instructions of each class on symbols. The state maps ranges of
// bytes to the write that produced them; each read must find a write of the
// same range through a matching buffer. Loops are run twice, the states after
// branches are intersected. Cost: a map look-up for each read and write of each
// run of a function.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/CheckValues.h"

#include "Uses.h"

namespace whale::format {
namespace {

/// The bytes that an instruction reads or writes, and the buffer: one of the
/// class, or a local of the function in a run (counted from 1).
struct Access {
  Range range;
  BufferIndex buffer = 0;
  int64_t run = 0;
  /// Whether these are several values side by side, which are read one by one.
  bool isGathered = false;
};

/// The values in memory, each identified by its write. Ranges don't overlap: a
/// value that is partly overwritten is removed, but for gathered ones.
class State {
public:
  /// Returns a value that overlaps the range; null if there is none.
  const Access *find(const Range &range) const;
  /// Whether several values of the class, one after the other, are the range.
  bool isDivided(const Range &range) const;
  void write(const Access &access);
  /// Keeps the values that are in both states, as `isSame` says of values in
  /// the same bytes.
  template <typename IsSame>
  void intersect(const State &other, IsSame isSame);

private:
  /// Space, index, first byte.
  using Key = std::tuple<Space, int64_t, int64_t>;
  static Key keyOf(const Range &range) {
    return {range.space, range.index, range.begin};
  }
  std::map<Key, Access> values;
};

class ValueCheck {
public:
  explicit ValueCheck(const Program &program) : program(program) {}

  std::optional<Fault> check();

private:
  /// `name` is the path of the list within its parent, for messages.
  void walk(const std::vector<Instruction> &list, const std::string &name);
  void step(const Instruction &instruction);
  void runFunction(const Run &run);
  void runLoop(const While &loop);
  void runBranches(const Case &choice);
  /// Checks the reads and writes of one instruction.
  void use(const Instruction &instruction);
  void transfer(const Start &start);
  void read(BufferIndex buffer);
  void write(BufferIndex buffer, const std::vector<BufferIndex> &inputs,
             bool isGathered = false);
  /// Returns the access to a buffer of the class, or of the function being run.
  Access accessOf(BufferIndex buffer) const;
  bool isSameValue(const Access &a, const Access &b) const;
  void fail(BufferIndex buffer, const std::string &what) {
    if (!fault)
      fault = {"", "buffer " + std::to_string(buffer) + " " + what};
  }

  const Program &program;
  const RankClass *rankClass = nullptr;
  State state;
  /// The run of the current function; null in the list of the class.
  const Run *frame = nullptr;
  int64_t runs = 0;
  /// Whether this is the second iteration of a loop.
  bool isAgain = false;
  std::optional<Fault> fault;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values in memory
//===----------------------------------------------------------------------===//

const Access *State::find(const Range &range) const {
  auto next = values.upper_bound(keyOf(range));
  if (next != values.begin())
    if (const Access &value = std::prev(next)->second;
        value.range.overlaps(range))
      return &value;
  if (next != values.end() && next->second.range.overlaps(range))
    return &next->second;
  return nullptr;
}

bool State::isDivided(const Range &range) const {
  int64_t end = range.begin;
  size_t count = 0;
  for (auto it = values.find(keyOf(range)); it != values.end(); ++it) {
    const Access &value = it->second;
    if (end >= range.end || value.range.space != range.space ||
        value.range.index != range.index || value.range.begin != end)
      break;
    if (value.run)
      return false;
    end = value.range.end;
    ++count;
  }
  return count > 1 && end == range.end;
}

void State::write(const Access &access) {
  while (const Access *found = find(access.range)) {
    Access lost = *found;
    values.erase(keyOf(lost.range));
    if (!lost.isGathered)
      continue;
    Access before = lost, after = lost;
    before.range.end = std::max(lost.range.begin, access.range.begin);
    after.range.begin = std::min(lost.range.end, access.range.end);
    for (const Access &rest : {before, after})
      if (rest.range.begin < rest.range.end)
        values[keyOf(rest.range)] = rest;
  }
  if (access.range.begin < access.range.end)
    values[keyOf(access.range)] = access;
}

template <typename IsSame>
void State::intersect(const State &other, IsSame isSame) {
  std::erase_if(values, [&](const auto &entry) {
    auto it = other.values.find(entry.first);
    return it == other.values.end() || it->second.range != entry.second.range ||
           !isSame(it->second, entry.second);
  });
  // One of the branches may write as a whole what another one gathers.
  for (auto &[key, value] : values)
    value.isGathered &= other.values.at(key).isGathered;
}

//===----------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------===//

Access ValueCheck::accessOf(BufferIndex buffer) const {
  Access access = {rangeOf(program, *rankClass, frame, buffer), buffer};
  if (!frame)
    return access;
  const BufferInfo &info = program.functions[frame->function].buffers[buffer];
  if (info.space == Space::Operand)
    access.buffer = frame->operands[info.index];
  else if (info.space == Space::Result)
    access.buffer = frame->results[info.index];
  else if (info.space == Space::Local)
    access = {access.range, static_cast<BufferIndex>(info.index), runs};
  return access;
}

/// Whether two accesses to the same bytes are to the same value. A value that
/// is used as several types, or is an argument and a result, has a buffer for
/// each.
bool ValueCheck::isSameValue(const Access &a, const Access &b) const {
  if (a.run != b.run || a.buffer == b.buffer)
    return a.run == b.run;
  const BufferInfo &first = rankClass->buffers[a.buffer];
  const BufferInfo &second = rankClass->buffers[b.buffer];
  return a.run == 0 && (first.space != second.space ||
                        (first.value && first.value == second.value));
}

void ValueCheck::read(BufferIndex buffer) {
  Access access = accessOf(buffer);
  if (access.range.begin == access.range.end)
    return;
  const Access *value = state.find(access.range);
  Space space = access.range.space;
  if (!value) {
    if (space == Space::Arena || space == Space::Result)
      fail(buffer, "is read where no value is");
  } else if (value->isGathered && access.run == 0 &&
             value->range.begin <= access.range.begin &&
             value->range.end >= access.range.end) {
    return;
  } else if (value->range != access.range || !isSameValue(*value, access)) {
    // What is left of a gathered value is not what is wrong.
    Range rest = access.range;
    if (value->range.begin <= rest.begin)
      rest.begin = value->range.end;
    if (value->isGathered && value->buffer == buffer && rest.begin < rest.end)
      if (const Access *other = state.find(rest))
        value = other;
    fail(buffer, "is read where " +
                     (value->run ? "a local of a function"
                                 : "buffer " + std::to_string(value->buffer) +
                                       " of the class") +
                     " was written last");
  }
}

void ValueCheck::write(BufferIndex buffer,
                       const std::vector<BufferIndex> &inputs,
                       bool isGathered) {
  Access output = accessOf(buffer);
  output.isGathered = isGathered;
  for (BufferIndex other : inputs) {
    Access input = accessOf(other);
    if (input.range.overlaps(output.range) &&
        (input.range != output.range || input.run != output.run))
      fail(buffer, "is written where buffer " + std::to_string(other) +
                       " is read by the same instruction");
  }
  state.write(output);
}

/// A transfer of several values side by side leaves several there. So may a
/// gather, as what was reduced in parts is several values again, and a scatter
/// of several.
void ValueCheck::transfer(const Start &start) {
  std::vector<BufferIndex> sources;
  std::vector<Range> divided;
  for (const Start::Ends &part : start.parts) {
    if (!part.src)
      continue;
    sources.push_back(*part.src);
    if (Range range = accessOf(*part.src).range; state.isDivided(range))
      divided.push_back(range);
    else
      read(*part.src);
  }
  const std::string &kind = program.channels.at(start.channel)->kind;
  for (const Start::Ends &part : start.parts)
    if (part.dst && !std::ranges::count(divided, accessOf(*part.dst).range))
      write(*part.dst, sources,
            kind == "all_gather" || kind == "reduce_scatter");
}

void ValueCheck::use(const Instruction &instruction) {
  if (const auto *start = std::get_if<Start>(&instruction.operation))
    return transfer(*start);
  std::vector<BufferIndex> inputs, outputs;
  forEachUse(program, instruction, [&](BufferIndex buffer, bool isWritten) {
    (isWritten ? outputs : inputs).push_back(buffer);
  });
  for (BufferIndex buffer : inputs)
    read(buffer);
  for (BufferIndex buffer : outputs)
    write(buffer, inputs);
}

//===----------------------------------------------------------------------===//
// Lists of instructions
//===----------------------------------------------------------------------===//

void ValueCheck::runFunction(const Run &run) {
  frame = &run;
  ++runs;
  walk(program.functions[run.function].instructions,
       ": functions[" + std::to_string(run.function) + "].instructions");
  frame = nullptr;
}

/// The second iteration starts from the state after the first. Within it, an
/// inner loop runs its body and its condition once each, so that the time is
/// linear, not exponential, in the nesting depth.
void ValueCheck::runLoop(const While &loop) {
  bool wasAgain = isAgain;
  if (!wasAgain) {
    walk(loop.cond, ".cond");
    walk(loop.body, ".body");
    isAgain = true;
    walk(loop.cond, ".cond");
  }
  walk(loop.body, ".body");
  walk(loop.cond, ".cond");
  isAgain = wasAgain;
}

void ValueCheck::runBranches(const Case &choice) {
  State before = state;
  std::optional<State> after;
  for (size_t i = 0; i < choice.branches.size(); ++i) {
    state = before;
    walk(choice.branches[i], ".branches[" + std::to_string(i) + "]");
    if (after)
      // A branch may update what another one leaves, as another type.
      after->intersect(state, [&](const Access &a, const Access &b) {
        return isSameValue(a, b);
      });
    else
      after = std::move(state);
  }
  state = std::move(*after);
}

void ValueCheck::step(const Instruction &instruction) {
  if (const auto *loop = std::get_if<While>(&instruction.operation))
    runLoop(*loop);
  // The read of a loop instruction itself is that of its predicate.
  use(instruction);
  if (const auto *run = std::get_if<Run>(&instruction.operation))
    runFunction(*run);
  else if (const auto *choice = std::get_if<Case>(&instruction.operation))
    runBranches(*choice);
}

void ValueCheck::walk(const std::vector<Instruction> &list,
                      const std::string &name) {
  for (size_t i = 0; i < list.size() && !fault; ++i) {
    step(list[i]);
    if (fault)
      fault->path = name + "[" + std::to_string(i) + "]" + fault->path;
  }
}

std::optional<Fault> ValueCheck::check() {
  for (size_t i = 0; i < program.classes.size() && !fault; ++i) {
    rankClass = &program.classes[i];
    state = State();
    walk(rankClass->instructions,
         "classes[" + std::to_string(i) + "].instructions");
  }
  return fault;
}

std::optional<Fault> checkValues(const Program &program) {
  return ValueCheck(program).check();
}

} // namespace whale::format
