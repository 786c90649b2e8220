//===- ReadFunction.cpp - Decode functions, and runs of them ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the JSON of functions, of the places that classes have for their locals,
// and of the runs of functions in classes. Out: functions, and runs of which
// each is known to fit its function.
//
// A function's checks give the sizes of its operands, results and locals and
// the pairs of them that must not overlap; each run is checked against these.
//
// Cost: linear in the size of the text, but that a run also checks all pairs of
// its function: runs times pairs. Pairs are of an input and an output of one
// instruction, each kept once.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"
#include "whale/System/Error.h"

#include <algorithm>

namespace whale::format {

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::string ProgramReader::describe(Slot slot) {
  return std::string(name(slot.space)) + " " + std::to_string(slot.index);
}

/// `count` is the number of buffers of the function.
BufferInfo ProgramReader::readBuffer(const Field &field,
                                     const Function &function, int64_t count) {
  BufferInfo buffer = readTensor(
      field, {Space::Operand, Space::Result, Space::Local, Space::Constant},
      function.buffers);
  Field where = field.at(std::string(name(buffer.space)));
  if (buffer.space == Space::Constant)
    buffer.offset = readOffset(where, buffer);
  else
    buffer.index =
        where.integer(0, (buffer.space == Space::Operand  ? function.operands
                          : buffer.space == Space::Result ? function.results
                                                          : count) -
                             1);
  return buffer;
}

void ProgramReader::readFunction(const Field &field, size_t number) {
  Function &function = program.functions[number];
  Field buffers = field.at("buffers");
  // Every operand, result and local has a buffer, which gives its size.
  auto most = static_cast<int64_t>(buffers.size());
  function.operands = field.at("operands").integer(0, most);
  function.results = field.at("results").integer(0, most);
  std::map<Slot, int64_t> sizes;
  int64_t locals = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    BufferInfo buffer = readBuffer(buffers[i], function, most);
    if (buffer.space == Space::Local)
      locals = std::max(locals, buffer.index + 1);
    if (buffer.space != Space::Constant) {
      Slot slot = {buffer.space, buffer.index};
      int64_t size = sizes.try_emplace(slot, buffer.bytes).first->second;
      if (size != buffer.bytes)
        typeOf(buffers[i])
            .fail("must have " + std::to_string(size) +
                  " bytes, as in an earlier buffer of " + describe(slot));
    }
    function.buffers.push_back(std::move(buffer));
  }
  for (auto [space, count] : {std::pair(Space::Operand, function.operands),
                              std::pair(Space::Result, function.results),
                              std::pair(Space::Local, locals)})
    for (int64_t i = 0; i < count; ++i)
      if (!sizes.contains({space, i}))
        buffers.fail("there is no buffer of " + describe({space, i}));
  needs[number].operands = extentsOf(function, Space::Operand);
  needs[number].results = extentsOf(function, Space::Result);
  needs[number].locals = extentsOf(function, Space::Local);
  function.instructions = InstructionReader(*this, function, number)
                              .readList(field.at("instructions"));
}

void ProgramReader::readFunctions() {
  if (!root.find("functions"))
    return;
  const Table &functions = readTable("functions", &Needed::functions);
  program.functions.resize(functions.size());
  needs.resize(functions.size());
  for (size_t i = 0; i < functions.size(); ++i)
    if (isNeeded(&Needed::functions, static_cast<int64_t>(i)))
      readFunction(functions[i].second, i);
}

//===----------------------------------------------------------------------===//
// Operands, results and locals of runs
//===----------------------------------------------------------------------===//

Range ProgramReader::rangeOf(const RankClass &rankClass, const Run &run,
                             Slot slot) const {
  if (slot.space == Space::Operand)
    return format::rangeOf(program, rankClass, run.operands[slot.index]);
  if (slot.space == Space::Result)
    return format::rangeOf(program, rankClass, run.results[slot.index]);
  int64_t offset = rankClass.locals.at(run.function)[run.layout][slot.index];
  return {Space::Arena, 0, offset,
          offset + needs[run.function].locals[slot.index].bytes};
}

void ProgramReader::readLocals(const Field &field, RankClass &rankClass) {
  for (const auto &[key, list] : field.members()) {
    std::optional<int64_t> number = parseDecimal(key);
    if (!number || *number >= static_cast<int64_t>(needs.size()))
      list.fail("there is no function '" + key + "'");
    if (list.size() == 0)
      list.fail("must have a layout of the function's locals");
    for (size_t i = 0; i < list.size(); ++i)
      readLayout(list[i], *number, rankClass);
  }
}

/// Reads the offsets of a function's locals in one layout.
void ProgramReader::readLayout(const Field &list, int64_t number,
                               RankClass &rankClass) {
  const FunctionNeeds &function = needs[number];
  if (list.size() != function.locals.size())
    list.fail("the function has " + std::to_string(function.locals.size()) +
              " locals");
  std::vector<int64_t> offsets = list.integers(0, rankClass.arenaBytes);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const Extent &extent = function.locals[i];
    if (offsets[i] % extent.alignment)
      list[i].fail("must be a multiple of the element size");
    if (extent.bytes > rankClass.arenaBytes - offsets[i])
      list[i].fail("the local's " + std::to_string(extent.bytes) +
                   " bytes reach out of the arena of " +
                   std::to_string(rankClass.arenaBytes));
  }
  std::vector<std::vector<int64_t>> &layouts = rankClass.locals[number];
  Run run;
  run.function = number;
  run.layout = static_cast<int64_t>(layouts.size());
  layouts.push_back(std::move(offsets));
  for (auto [a, b] : function.localsApart)
    if (rangeOf(rankClass, run, a).overlaps(rangeOf(rankClass, run, b)))
      list.fail(describe(a) + " and " + describe(b) +
                " overlap, and the function writes one where it uses the "
                "other");
}

/// Reads the buffers of a run's operands or results.
void InstructionReader::readGiven(const Field &list, const char *what,
                                  const std::vector<Extent> &extents,
                                  const std::function<bool(int64_t)> &isWritten,
                                  std::vector<BufferIndex> &given) const {
  auto add = [&](const Field &field, BufferIndex index) {
    if (given.size() == extents.size())
      list.fail("the function has " + std::to_string(extents.size()) + " " +
                what);
    const Extent &extent = extents[given.size()];
    const BufferInfo &buffer = info(given.emplace_back(index));
    if (buffer.bytes != extent.bytes)
      field.fail("the function has " + std::to_string(extent.bytes) +
                 " bytes here, the buffer " + std::to_string(buffer.bytes));
    if (buffer.offset % extent.alignment)
      field.fail("must have an offset that is a multiple of " +
                 std::to_string(extent.alignment));
    if (isWritten(static_cast<int64_t>(given.size()) - 1))
      checkWritable(field, index);
  };
  for (size_t i = 0; i < list.size(); ++i) {
    Field item = list[i];
    if (!item.json().is_array()) {
      add(item, readBuffer(item));
      continue;
    }
    // A range of buffers: the number of the first, and how many.
    if (item.size() != 2)
      item.fail("must be [first buffer, number of buffers]");
    BufferIndex first = readBuffer(item[0]);
    auto rest = static_cast<int64_t>(body.buffers.size()) - first;
    int64_t count = item[1].integer(1, rest);
    for (int64_t k = 0; k < count; ++k)
      add(item, first + k);
  }
  if (given.size() != extents.size())
    list.fail("the function has " + std::to_string(extents.size()) + " " +
              what);
}

Run InstructionReader::readRunOf(const Field &field) const {
  Run run;
  Field callee = field.at("function");
  run.function =
      callee.integer(0, static_cast<int64_t>(reader.needs.size()) - 1);
  if (!rankClass->locals.contains(run.function))
    callee.fail("the class has no locals of function " +
                std::to_string(run.function));
  if (auto layout = field.find("layout"))
    run.layout = layout->integer(
        0, static_cast<int64_t>(rankClass->locals.at(run.function).size()) - 1);
  const ProgramReader::FunctionNeeds &needs = reader.needs[run.function];
  Field operands = field.at("operands"), results = field.at("results");
  readGiven(
      operands, "operands", needs.operands,
      [&](int64_t i) { return needs.written.contains(i); }, run.operands);
  readGiven(
      results, "results", needs.results, [](int64_t) { return true; },
      run.results);
  for (auto [a, b] : needs.apart)
    if (reader.rangeOf(*rankClass, run, a)
            .overlaps(reader.rangeOf(*rankClass, run, b)))
      field.fail(ProgramReader::describe(a) + " and " +
                 ProgramReader::describe(b) +
                 " overlap, and the function writes one where it uses the "
                 "other");
  return run;
}

void InstructionReader::readRuns(const Field &list) {
  for (size_t i = 0; i < list.size(); ++i)
    runs.push_back(readRunOf(list[i]));
}

Run InstructionReader::readRun(const Field &field) {
  int64_t number =
      field.at("run").integer(0, static_cast<int64_t>(runs.size()) - 1);
  Run run = runs[number];
  if (!hasMoments)
    return run;
  if (moments.empty())
    field.fail("'moments' of the class has fewer runs");
  run.moment = moments.back().second;
  if (--moments.back().first == 0)
    moments.pop_back();
  return run;
}

void InstructionReader::readMoments(const Field &list) {
  hasMoments = true;
  for (size_t i = 0; i < list.size(); ++i) {
    Field entry = list[i];
    if (entry.size() % 2)
      entry.fail("must have a moment for each number of runs");
    for (size_t k = 0; k < entry.size(); k += 2) {
      Field moment = entry[k + 1];
      moments.emplace_back(entry[k].integer(1), std::nullopt);
      if (!moment.json().is_null())
        moments.back().second = moment.integer();
    }
  }
  std::ranges::reverse(moments);
}

void InstructionReader::finishMoments(const Field &list) const {
  if (!moments.empty())
    list.fail("has more runs than the class");
}

} // namespace whale::format
