//===- BufferVerifier.cpp - Runs a buffer plan on symbols -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a function as the planner of buffers gets it, and its plan. Out: the
// first error, or none. Runs the plan on symbols. An instruction reads its
// operands from memory; its results replace all values that they overlap. A
// loop is run once, from a state that holds before every iteration: values that
// no iteration overwrites, and the carried values in their buffers. After a
// branch only values are known that all its regions leave intact.
//
// Cost: a look-up in the map of byte ranges for each value that is read or
// written, and a comparison of each result of an instruction with each operand.
// A loop or branch copies the map; a loop passes over it for each value that it
// carries. Instructions in nested loops are visited again for each loop around
// them. A call runs its segment, unless one before passed the same buffers.
//
//===----------------------------------------------------------------------===//

#include "BufferVerifier.h"

#include "llvm/ADT/STLExtras.h"

namespace whale {

static bool overlap(const PlannedBuffer &a, const PlannedBuffer &b) {
  auto isArgument = [](const PlannedBuffer &buffer) {
    return buffer.space == BufferSpace::Argument ||
           buffer.space == BufferSpace::Part;
  };
  if (a.space != b.space && !(isArgument(a) && isArgument(b)))
    return false;
  if (a.space != BufferSpace::Arena && a.index != b.index)
    return false;
  return a.bytes && b.bytes && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

BufferVerifier::Ids BufferVerifier::skip(const BufferRegion &region, Ids ids) {
  ++ids.region;
  for (const BufferInstr &instr : region.instrs) {
    ++ids.instr;
    for (const BufferRegion &inner : instr.regions)
      ids = skip(inner, ids);
  }
  return ids;
}

bool BufferVerifier::isInside(const PlannedBuffer &buffer) const {
  if (buffer.whole) {
    if (*buffer.whole >= plan.buffers.size())
      return false;
    const PlannedBuffer &whole = plan.buffers[*buffer.whole];
    return !whole.whole && whole.space == buffer.space &&
           whole.index == buffer.index && buffer.offset >= whole.offset &&
           buffer.offset + buffer.bytes <= whole.offset + whole.bytes;
  }
  return buffer.space != BufferSpace::Arena || buffer.bytes == 0 ||
         (buffer.offset >= 0 && buffer.offset % function.alignment == 0 &&
          buffer.offset + buffer.bytes <= plan.arenaBytes);
}

bool BufferVerifier::checkBuffers() {
  if (plan.bufferOf.size() != function.values.size())
    return fail("not every value has a buffer");
  for (auto [i, b] : llvm::enumerate(plan.buffers))
    if (!isInside(b))
      return fail("buffer " + llvm::Twine(i) + " is outside the arena");
  for (auto [v, buffer] : llvm::enumerate(plan.bufferOf))
    if (buffer >= plan.buffers.size() ||
        plan.buffers[buffer].bytes != function.values[v].bytes)
      return fail("the buffer of value " + llvm::Twine(v) +
                  " is not of its size");
  for (unsigned buffer : plan.bufferOf)
    if (plan.buffers[buffer].whole &&
        plan.buffers[buffer].offset % pieceAlignment != 0)
      return fail("buffer " + llvm::Twine(buffer) + " is not aligned");
  if (plan.locals.size() != function.segments.size())
    return fail("not every segment has offsets for its locals");
  for (auto [s, segment] : llvm::enumerate(function.segments))
    for (const std::vector<int64_t> &offsets : plan.locals[s])
      if (offsets.size() != segment->locals.size())
        return fail("not every local of segment " + llvm::Twine(s) +
                    " has an offset");
  unsigned next = 0;
  return checkLayouts(function.body, next);
}

/// `next`: the number of the region's first instruction.
bool BufferVerifier::checkLayouts(const BufferRegion &region, unsigned &next) {
  for (const BufferInstr &instr : region.instrs) {
    if (next >= plan.layout.size())
      return fail("not every instruction has a layout");
    if (instr.kind == BufferInstr::Call &&
        plan.layout[next] >= plan.locals[instr.callee].size())
      return fail("segment " + llvm::Twine(instr.callee) + " has no layout " +
                  llvm::Twine(plan.layout[next]));
    ++next;
    for (const BufferRegion &inner : instr.regions)
      if (!checkLayouts(inner, next))
        return false;
  }
  return true;
}

void BufferVerifier::collectConstants() {
  for (auto [v, value] : llvm::enumerate(function.values))
    if (value.constant)
      constants[plan.bufferOf[v]].insert(v);
}

BufferVerifier::Held *BufferVerifier::find(unsigned buffer, unsigned value) {
  auto it = memory.find(address(buffer));
  if (it == memory.end() || !it->second.values.count(value))
    return nullptr;
  return &it->second;
}

bool BufferVerifier::read(unsigned value, const char *what) {
  if (function.values[value].bytes == 0 || function.values[value].constant)
    return true;
  if (find(plan.bufferOf[value], value))
    return true;
  return fail(llvm::Twine(what) + " value " + llvm::Twine(value) +
              ", which its buffer " + llvm::Twine(plan.bufferOf[value]) +
              " does not hold");
}

// Forgets all values that overlap the written range.
bool BufferVerifier::write(unsigned buffer, std::set<unsigned> values) {
  const PlannedBuffer &b = plan.buffers[buffer];
  if (b.bytes == 0)
    return true;
  if (b.space == BufferSpace::Constant)
    return fail("buffer " + llvm::Twine(buffer) + " is a constant's");
  if (b.space == BufferSpace::Part)
    return fail("buffer " + llvm::Twine(buffer) + " is a part of an argument");
  if (b.space == BufferSpace::Argument &&
      !llvm::is_contained(plan.alias, std::optional<unsigned>(b.index)))
    return fail("argument " + llvm::Twine(b.index) + " is overwritten");
  erase(buffer);
  memory[address(buffer)] = {b.offset + b.bytes, std::move(values)};
  return true;
}

void BufferVerifier::erase(unsigned buffer) {
  auto [space, index, begin] = address(buffer);
  erase(space, index, begin, begin + plan.buffers[buffer].bytes);
  if (space == BufferSpace::Argument)
    erase(BufferSpace::Part, index, 0, plan.buffers.size());
}

void BufferVerifier::erase(BufferSpace space, unsigned index, int64_t begin,
                           int64_t end) {
  auto it = memory.lower_bound({space, index, begin});
  if (it != memory.begin()) {
    auto before = std::prev(it);
    auto [bSpace, bIndex, bBegin] = before->first;
    if (bSpace == space && bIndex == index && before->second.end > begin)
      it = before;
  }
  while (it != memory.end()) {
    auto [oSpace, oIndex, oBegin] = it->first;
    if (oSpace != space || oIndex != index || oBegin >= end)
      break;
    it = memory.erase(it);
  }
}

bool BufferVerifier::copyAll(const std::vector<BufferCopy> &copies) {
  for (const BufferCopy &copy : copies) {
    if (plan.buffers[copy.src].bytes != plan.buffers[copy.dst].bytes)
      return fail("a copy's buffers differ in size");
    std::set<unsigned> held;
    auto it = memory.find(address(copy.src));
    if (it != memory.end())
      held = it->second.values;
    if (plan.buffers[copy.src].space == BufferSpace::Constant)
      for (unsigned v : constants[copy.src]) {
        held.insert(v);
        named[v] = true;
      }
    if (!write(copy.dst, std::move(held)))
      return false;
  }
  return true;
}

// Records that the memory of from[i] now holds to[i], in the buffer of to[i];
// older copies of to[i] belong to an earlier iteration.
bool BufferVerifier::rename(llvm::ArrayRef<unsigned> from,
                            llvm::ArrayRef<unsigned> to) {
  std::vector<Held *> holders;
  for (auto [f, t] : llvm::zip_equal(from, to)) {
    const BufferValue &value = function.values[f];
    const PlannedBuffer &buffer = plan.buffers[plan.bufferOf[t]];
    if (value.bytes == 0) {
      holders.push_back(nullptr);
    } else if (buffer.space == BufferSpace::Constant &&
               plan.bufferOf[f] == plan.bufferOf[t]) {
      holders.push_back(&memory[address(plan.bufferOf[t])]);
      holders.back()->end = value.bytes;
    } else {
      holders.push_back(find(plan.bufferOf[t], f));
      if (holders.back())
        continue;
      return fail("value " + llvm::Twine(f) + " is not in the buffer of " +
                  llvm::Twine(t) + ", which continues it");
    }
  }
  if (llvm::any_of(to, [&](unsigned t) { return named[t]; }))
    for (auto &[where, held] : memory)
      for (unsigned t : to)
        held.values.erase(t);
  for (auto [holder, t] : llvm::zip_equal(holders, to))
    if (holder) {
      named[t] = true;
      holder->values.insert(t);
    }
  return true;
}

// Values that a region defines are valid in one run of it only.
void BufferVerifier::forget(const BufferRegion &region) {
  std::set<unsigned> defined;
  for (const BufferInstr &instr : region.instrs)
    defined.insert(instr.results.begin(), instr.results.end());
  for (auto &[where, held] : memory)
    for (unsigned value : defined)
      held.values.erase(value);
}

bool BufferVerifier::region(const BufferRegion &region, Ids ids) {
  ++ids.region;
  for (const BufferInstr &instr : region.instrs) {
    if (!instruction(instr, ids))
      return false;
    ++ids.instr;
    for (const BufferRegion &inner : instr.regions)
      ids = skip(inner, ids);
  }
  return true;
}

bool BufferVerifier::instruction(const BufferInstr &instr, Ids ids) {
  for (unsigned operand : instr.operands)
    if (!read(operand, "an instruction reads"))
      return false;
  if (instr.kind == BufferInstr::View) {
    if (function.values[instr.results[0]].bytes !=
        function.values[instr.operands[0]].bytes)
      return part(instr);
    return rename(llvm::ArrayRef(instr.operands).take_front(), instr.results);
  }
  if (instr.kind == BufferInstr::Case)
    return branch(instr, ids);
  if (instr.kind == BufferInstr::Pack)
    return pack(instr, plan.before[ids.instr]);
  if (instr.kind == BufferInstr::Unpack)
    return unpack(instr, plan.before[ids.instr]);
  if (!copyAll(plan.before[ids.instr]))
    return false;
  if (instr.kind == BufferInstr::While)
    return loop(instr, ids);
  if (instr.kind == BufferInstr::Call)
    return call(instr, ids);
  // Results may only use operands' buffers that the instruction permits.
  for (auto [r, result] : llvm::enumerate(instr.results)) {
    if (function.values[result].constant)
      continue;
    for (auto [o, operand] : llvm::enumerate(instr.operands)) {
      bool allowed = llvm::any_of(instr.inPlace, [&](const InPlace &pair) {
        return pair.result == r && pair.operand == o;
      });
      if (!allowed && overlap(plan.buffers[plan.bufferOf[result]],
                              plan.buffers[plan.bufferOf[operand]]))
        return fail("value " + llvm::Twine(result) + " overwrites value " +
                    llvm::Twine(operand) + " while it is read");
    }
  }
  return updates(instr, instr.inPlace) && results(instr);
}

bool BufferVerifier::updates(const BufferInstr &instr,
                             llvm::ArrayRef<InPlace> pairs) {
  for (const InPlace &pair : pairs) {
    unsigned result = instr.results[pair.result];
    unsigned operand = instr.operands[pair.operand];
    if (pair.required && !function.values[result].constant &&
        function.values[result].bytes && !find(plan.bufferOf[result], operand))
      return fail("value " + llvm::Twine(result) +
                  " updates what its buffer does not hold");
  }
  return true;
}

bool BufferVerifier::results(const BufferInstr &instr) {
  for (unsigned result : instr.results)
    if (!function.values[result].constant &&
        !write(plan.bufferOf[result], {result}))
      return false;
  // Two results must not share a buffer either.
  for (unsigned result : instr.results)
    if (!read(result, "another result overwrites"))
      return false;
  return true;
}

// A part's memory is known as long as the argument's is.
bool BufferVerifier::part(const BufferInstr &instr) {
  unsigned value = instr.results[0];
  const PlannedBuffer &whole = plan.buffers[plan.bufferOf[instr.operands[0]]];
  const PlannedBuffer &b = plan.buffers[plan.bufferOf[value]];
  bool ofArgument =
      whole.space == BufferSpace::Argument || whole.space == BufferSpace::Part;
  if (!ofArgument || b.space != BufferSpace::Part || b.index != whole.index ||
      instr.offset < 0 || b.offset != whole.offset + instr.offset ||
      instr.offset + b.bytes > whole.bytes)
    return fail("value " + llvm::Twine(value) + " is another part of value " +
                llvm::Twine(instr.operands[0]));
  memory[address(plan.bufferOf[value])] = {plan.bufferOf[value] + 1, {value}};
  return true;
}

// After the copies, each operand is in its range of the result's buffer.
bool BufferVerifier::pack(const BufferInstr &instr,
                          const std::vector<BufferCopy> &copies) {
  if (!copyAll(copies))
    return false;
  auto [space, index, begin] = address(plan.bufferOf[instr.results[0]]);
  for (unsigned operand : instr.operands) {
    int64_t bytes = function.values[operand].bytes;
    auto it = memory.find({space, index, begin});
    if (bytes && (it == memory.end() || !it->second.values.count(operand)))
      return fail("value " + llvm::Twine(operand) +
                  " is not in its range of value " +
                  llvm::Twine(instr.results[0]));
    begin += bytes;
  }
  return results(instr);
}

// Before the copies, each result is in its range of the operand's buffer.
bool BufferVerifier::unpack(const BufferInstr &instr,
                            const std::vector<BufferCopy> &copies) {
  unsigned whole = plan.bufferOf[instr.operands[0]];
  auto [space, index, begin] = address(whole);
  erase(whole);
  for (unsigned result : instr.results) {
    int64_t end = begin + function.values[result].bytes;
    if (begin < end)
      memory[{space, index, begin}] = {end, {result}};
    begin = end;
  }
  if (!copyAll(copies))
    return false;
  for (unsigned result : instr.results)
    if (!read(result, "an unpack does not leave"))
      return false;
  return true;
}

/// Forgets what the copies and instructions of a region overwrite.
void BufferVerifier::lose(const BufferRegion &region, Ids ids) {
  auto loseCopies = [&](const std::vector<BufferCopy> &copies) {
    for (const BufferCopy &copy : copies)
      erase(copy.dst);
  };
  loseCopies(plan.atEnd[ids.region]);
  ++ids.region;
  for (const BufferInstr &instr : region.instrs) {
    loseCopies(plan.before[ids.instr]);
    if (instr.kind == BufferInstr::Call)
      eraseLocals(instr.callee, plan.layout[ids.instr]);
    if (instr.kind == BufferInstr::Op || instr.kind == BufferInstr::Call ||
        instr.kind == BufferInstr::Pack)
      for (unsigned result : instr.results)
        if (!function.values[result].constant)
          erase(plan.bufferOf[result]);
    ++ids.instr;
    for (const BufferRegion &inner : instr.regions) {
      lose(inner, ids);
      ids = skip(inner, ids);
    }
  }
}

bool BufferVerifier::loop(const BufferInstr &instr, Ids ids) {
  const BufferRegion &cond = instr.regions[0], &body = instr.regions[1];
  Ids condIds{ids.instr + 1, ids.region};
  Ids bodyIds = skip(cond, condIds);
  if (!rename(instr.operands, body.args))
    return false;
  // Forget everything from before the loop that an iteration overwrites.
  lose(cond, condIds);
  lose(body, bodyIds);
  for (unsigned arg : body.args)
    if (!find(plan.bufferOf[arg], arg) && !write(plan.bufferOf[arg], {arg}))
      return false;
  if (!rename(body.args, cond.args) || !region(cond, condIds))
    return false;
  for (unsigned yield : cond.yields)
    if (!read(yield, "the condition yields"))
      return false;
  if (!rename(cond.args, body.args))
    return false;
  Memory atExit = memory;
  if (!region(body, bodyIds))
    return false;
  for (unsigned yield : body.yields)
    if (!read(yield, "a loop carries on"))
      return false;
  if (!copyAll(plan.atEnd[bodyIds.region]) || !rename(body.yields, body.args))
    return false;
  memory = std::move(atExit);
  forget(cond);
  return rename(body.args, instr.results);
}

bool BufferVerifier::branch(const BufferInstr &instr, Ids ids) {
  Memory entry = memory;
  std::optional<Memory> joined;
  Ids next{ids.instr + 1, ids.region};
  for (const BufferRegion &way : instr.regions) {
    memory = entry;
    if (!region(way, next))
      return false;
    for (unsigned yield : way.yields)
      if (!read(yield, "a branch yields"))
        return false;
    if (!copyAll(plan.atEnd[next.region]) || !rename(way.yields, instr.results))
      return false;
    next = skip(way, next);
    if (!joined) {
      joined = memory;
      continue;
    }
    for (auto &[where, held] : *joined) {
      auto other = memory.find(where);
      if (other == memory.end() || other->second.end != held.end) {
        held.values.clear();
        continue;
      }
      std::set<unsigned> both;
      for (unsigned value : held.values)
        if (other->second.values.count(value))
          both.insert(value);
      held.values = std::move(both);
    }
  }
  if (joined)
    memory = std::move(*joined);
  return true;
}

std::optional<std::string> BufferVerifier::run() {
  if (!checkBuffers())
    return error;
  collectConstants();
  collectLocals();
  for (auto [i, arg] : llvm::enumerate(function.body.args)) {
    const PlannedBuffer &b = plan.buffers[plan.bufferOf[arg]];
    if (b.space != BufferSpace::Argument || b.index != i)
      return "argument " + std::to_string(i) + " is not in its own buffer";
    memory[address(plan.bufferOf[arg])] = {b.bytes, {arg}};
  }
  if (!region(function.body, {0, 0}) || !copyAll(plan.atEnd[0]))
    return error;
  for (auto [k, value] : llvm::enumerate(function.body.yields)) {
    const PlannedBuffer &b = plan.buffers[plan.resultBuffer[k]];
    bool own = plan.alias[k] ? b.space == BufferSpace::Argument &&
                                   b.index == *plan.alias[k]
                             : b.space == BufferSpace::Result && b.index == k;
    if (!own || (b.bytes && !find(plan.resultBuffer[k], value)))
      return "result " + std::to_string(k) + " is not in its buffer";
  }
  return std::nullopt;
}

std::optional<std::string> verifyBufferPlan(const BufferFunction &function,
                                            const BufferPlan &plan) {
  return BufferVerifier(function, plan).run();
}

} // namespace whale
