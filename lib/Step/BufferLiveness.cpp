//===- BufferLiveness.cpp - When each value is alive ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds when each value is alive. In: a function. Out: for each value its root
// (the value whose content it has) and for each root its live intervals, with
// the pairs of values that may share a buffer. One walk over the function
// forward and one backward; cost linear in uses, times the depth of loops.
//
//===----------------------------------------------------------------------===//

#include "BufferLiveness.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace whale {

//===----------------------------------------------------------------------===//
// Content: which values are equal
//===----------------------------------------------------------------------===//

unsigned BufferLiveness::root(unsigned value) const {
  while (parent[value] != value)
    value = parent[value] = parent[parent[value]];
  return value;
}

// Gives values that are always equal one root. Inner regions are visited first,
// so that a value that passes unchanged through nested loops is found.
void BufferLiveness::unite(const BufferRegion &region,
                           const BufferFunction &function) {
  for (const BufferInstr &instr : region.instrs) {
    for (const BufferRegion &inner : instr.regions)
      unite(inner, function);
    if (instr.kind == BufferInstr::View) {
      unsigned whole = root(instr.operands[0]), result = instr.results[0];
      if (function.values[result].bytes == function.values[whole].bytes) {
        parent[result] = whole;
      } else {
        auto [argument, offset] = part(whole) ? *part(whole) : Part{whole, 0};
        parts[result] = {argument, offset + instr.offset};
      }
    }
    if (instr.kind == BufferInstr::While) {
      const BufferRegion &cond = instr.regions[0], &body = instr.regions[1];
      for (auto [i, result] : llvm::enumerate(instr.results)) {
        if (root(body.yields[i]) != root(body.args[i]))
          continue;
        unsigned init = root(instr.operands[i]);
        for (unsigned value : {cond.args[i], body.args[i], result})
          parent[root(value)] = init;
      }
    }
    if (instr.kind == BufferInstr::Case && instr.regions.size() > 1) {
      for (auto [i, result] : llvm::enumerate(instr.results)) {
        unsigned first = root(instr.regions[0].yields[i]);
        bool agree = llvm::all_of(instr.regions, [&](const BufferRegion &r) {
          return root(r.yields[i]) == first;
        });
        if (agree)
          parent[result] = first;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// One walk backward over a function. `open` maps each value that is alive at
/// the current point to the end of its interval; `point` counts down.
class LivenessWalk {
public:
  LivenessWalk(BufferLiveness &out, const BufferFunction &function)
      : out(out), function(function) {}

  void run();

private:
  struct Ids {
    unsigned instr;
    unsigned region;
  };
  struct Count {
    int64_t points = 0;
    unsigned instrs = 0;
    unsigned regions = 0;
  };

  Count count(const BufferRegion &region) const;
  void walk(const BufferRegion &region, Ids ids, unsigned depth);
  void walkWhile(const BufferInstr &instr, Ids ids, unsigned depth);
  void walkCase(const BufferInstr &instr, Ids ids, unsigned depth);
  void walkCall(const BufferInstr &instr, unsigned depth);
  void permit(const BufferInstr &instr, llvm::ArrayRef<InPlace> pairs,
              unsigned depth);
  void freeUses(const BufferRegion &region, std::set<unsigned> &defined,
                std::set<unsigned> &used) const;

  void use(unsigned value) { use(value, 2 * point + 2); }
  void use(unsigned value, int64_t end);
  void define(unsigned value);
  void alive(unsigned root, int64_t begin, int64_t end) {
    out.live[root].push_back({begin, end, root});
  }

  BufferLiveness &out;
  const BufferFunction &function;
  std::map<unsigned, int64_t> open;
  int64_t point = 0;
};

// A value that is already alive beyond the current point keeps its end, unless
// the same call reads it later.
void LivenessWalk::use(unsigned value, int64_t end) {
  auto keep = [&](unsigned root) {
    int64_t &known = open.try_emplace(root, end).first->second;
    known = std::max(known, end);
  };
  unsigned root = out.root(value);
  keep(root);
  if (const BufferLiveness::Part *part = out.part(root))
    keep(part->argument);
}

// A value is alive from its write on, at least for that point.
void LivenessWalk::define(unsigned value) {
  unsigned root = out.root(value);
  if (root != value)
    return;
  auto it = open.find(root);
  alive(root, 2 * point, it == open.end() ? 2 * point + 2 : it->second);
  if (it != open.end())
    open.erase(it);
}

LivenessWalk::Count LivenessWalk::count(const BufferRegion &region) const {
  Count total;
  for (const BufferInstr &instr : region.instrs) {
    ++total.instrs;
    // Points: the entry and, for structured instructions, the end of each
    // region and the exit.
    if (instr.kind == BufferInstr::Call)
      total.points += function.segments[instr.callee]->duration / 2;
    else
      total.points += instr.regions.empty() ? 1 : 2 + instr.regions.size();
    for (const BufferRegion &inner : instr.regions) {
      Count c = count(inner);
      total.points += c.points;
      total.instrs += c.instrs;
      total.regions += c.regions + 1;
    }
  }
  return total;
}

void LivenessWalk::run() {
  const BufferRegion &body = function.body;
  Count total = count(body);
  out.before.resize(total.instrs);
  out.pointBefore.resize(total.instrs, -1);
  out.atEnd.resize(total.regions + 1);
  out.pointAtEnd.resize(total.regions + 1, -1);
  // Point 0 is the entry, which defines the arguments.
  point = total.points + 1;
  out.end = 2 * point + 2;
  out.calls.resize(function.segments.size());
  out.pointAtEnd[0] = point;
  for (unsigned value : body.yields)
    use(value);
  --point;
  walk(body, {0, 0}, 0);
  assert(point == 0 && "points were miscounted");
  for (unsigned value : body.args)
    define(value);
  // Constants have separate memory, so their intervals don't matter.
  for (auto &[root, end] : open)
    alive(root, 0, end);
  for (std::vector<int64_t> &begins : out.calls)
    std::reverse(begins.begin(), begins.end());
  for (std::vector<LiveInterval> &list : out.live) {
    llvm::sort(list, [](const LiveInterval &a, const LiveInterval &b) {
      return a.begin < b.begin;
    });
    std::vector<LiveInterval> merged;
    for (const LiveInterval &interval : list) {
      // Intervals that only touch aren't merged: between them another value may
      // take the buffer.
      if (!merged.empty() && interval.begin < merged.back().end)
        merged.back().end = std::max(merged.back().end, interval.end);
      else
        merged.push_back(interval);
    }
    list = std::move(merged);
  }
}

void LivenessWalk::walk(const BufferRegion &region, Ids ids, unsigned depth) {
  // Preorder numbers of the instructions, assigned in a forward walk.
  std::vector<Ids> numbers;
  Ids next{ids.instr, ids.region + 1};
  for (const BufferInstr &instr : region.instrs) {
    numbers.push_back(next);
    ++next.instr;
    for (const BufferRegion &inner : instr.regions) {
      Count c = count(inner);
      next.instr += c.instrs;
      next.region += c.regions + 1;
    }
  }
  for (size_t i = region.instrs.size(); i-- > 0;) {
    const BufferInstr &instr = region.instrs[i];
    out.pointBefore[numbers[i].instr] = point;
    if (instr.kind == BufferInstr::While) {
      walkWhile(instr, numbers[i], depth);
    } else if (instr.kind == BufferInstr::Case) {
      walkCase(instr, numbers[i], depth);
    } else if (instr.kind == BufferInstr::Call) {
      walkCall(instr, depth);
      out.pointBefore[numbers[i].instr] = point + 1;
    } else {
      for (unsigned result : instr.results)
        if (!function.values[result].constant)
          define(result);
      for (unsigned operand : instr.operands)
        use(operand);
      if (instr.kind == BufferInstr::Op)
        permit(instr, instr.inPlace, depth);
      // Each part has its own range of the whole's buffer.
      if (instr.kind == BufferInstr::Pack || instr.kind == BufferInstr::Unpack)
        for (unsigned result : instr.results)
          for (unsigned operand : instr.operands)
            out.permits.insert({point, out.root(result), out.root(operand)});
      --point;
    }
  }
}

// Visits the exit, the body with its end, the condition with its end, the
// entry.
void LivenessWalk::walkWhile(const BufferInstr &instr, Ids ids,
                             unsigned depth) {
  const BufferRegion &cond = instr.regions[0], &body = instr.regions[1];
  auto varies = [&](unsigned i) {
    return out.root(body.yields[i]) != out.root(body.args[i]);
  };
  for (auto [i, result] : llvm::enumerate(instr.results))
    if (varies(i))
      define(result);
  // A value from outside stays alive until the last iteration is over.
  std::set<unsigned> defined, used;
  freeUses(cond, defined, used);
  freeUses(body, defined, used);
  for (unsigned root : used)
    if (!defined.count(root))
      use(root);
  --point;

  Count condCount = count(cond);
  Ids condIds{ids.instr + 1, ids.region};
  Ids bodyIds{ids.instr + 1 + condCount.instrs,
              ids.region + condCount.regions + 1};
  int64_t bodyEnd = point;
  out.pointAtEnd[bodyIds.region] = bodyEnd;
  for (auto [i, value] : llvm::enumerate(body.yields)) {
    use(value);
    if (!varies(i))
      continue;
    unsigned carry = out.root(body.args[i]), next = out.root(value);
    out.atEnd[bodyIds.region].push_back({carry, next});
    out.permits.insert({bodyEnd, carry, next});
    out.carries.push_back({carry, next, depth + 1});
    alive(carry, 2 * bodyEnd, 2 * bodyEnd + 2);
  }
  --point;
  walk(body, bodyIds, depth + 1);

  // The carried values must outlive the condition: the next iteration or the
  // results use their buffers.
  for (unsigned yield : cond.yields)
    use(yield);
  std::vector<int64_t> condEnd(body.args.size());
  for (auto [i, arg] : llvm::enumerate(body.args)) {
    if (!varies(i))
      continue;
    use(arg);
    condEnd[i] = open[out.root(arg)];
    open.erase(out.root(arg));
  }
  out.pointAtEnd[condIds.region] = point;
  --point;
  walk(cond, condIds, depth + 1);

  int64_t entry = point;
  out.pointBefore[ids.instr] = entry;
  for (auto [i, arg] : llvm::enumerate(body.args)) {
    if (!varies(i))
      continue;
    unsigned carry = out.root(arg), init = out.root(instr.operands[i]);
    // The condition's argument is alive for as long as the carried value.
    open.erase(out.root(cond.args[i]));
    alive(carry, 2 * entry, condEnd[i]);
    out.fixed.push_back({carry, out.root(cond.args[i])});
    out.fixed.push_back({carry, out.root(instr.results[i])});
    out.before[ids.instr].push_back({carry, init});
    out.permits.insert({entry, carry, init});
    out.inits.push_back({carry, init, depth});
  }
  for (unsigned operand : instr.operands)
    use(operand);
  --point;
}

// Visits the exit, the branches from the last to the first with their ends, the
// entry. A value that only one branch reads is not alive in the others.
void LivenessWalk::walkCase(const BufferInstr &instr, Ids ids, unsigned depth) {
  std::vector<bool> varies(instr.results.size());
  for (auto [i, result] : llvm::enumerate(instr.results)) {
    varies[i] = out.root(result) == result;
    define(result);
  }
  --point;
  std::vector<Ids> numbers;
  Ids next{ids.instr + 1, ids.region};
  for (const BufferRegion &branch : instr.regions) {
    numbers.push_back(next);
    Count c = count(branch);
    next.instr += c.instrs;
    next.region += c.regions + 1;
  }
  std::map<unsigned, int64_t> after = open;
  std::set<unsigned> needed;
  for (size_t b = instr.regions.size(); b-- > 0;) {
    const BufferRegion &branch = instr.regions[b];
    open = after;
    out.pointAtEnd[numbers[b].region] = point;
    for (auto [i, value] : llvm::enumerate(branch.yields)) {
      use(value);
      if (!varies[i])
        continue;
      unsigned result = instr.results[i], source = out.root(value);
      out.atEnd[numbers[b].region].push_back({result, source});
      out.permits.insert({point, result, source});
      out.carries.push_back({result, source, depth});
      alive(result, 2 * point, 2 * point + 2);
    }
    --point;
    walk(branch, numbers[b], depth);
    for (auto &[root, end] : open) {
      if (after.count(root))
        continue;
      alive(root, 2 * point + 2, end);
      needed.insert(root);
    }
  }
  open = after;
  for (unsigned root : needed)
    use(root);
  for (unsigned operand : instr.operands)
    use(operand);
  out.pointBefore[ids.instr] = point;
  --point;
}

// Shifts the segment's own time to the call. An operand that it updates in
// place passes its buffer to the result on entry.
void LivenessWalk::walkCall(const BufferInstr &instr, unsigned depth) {
  const SegmentPlan &segment = *function.segments[instr.callee];
  int64_t last = 2 * point + 2, begin = last - segment.duration;
  for (auto [k, result] : llvm::enumerate(instr.results)) {
    const TimeIntervals &times = segment.resultAlive[k];
    for (auto [from, to] : llvm::ArrayRef(times).drop_back())
      alive(result, begin + from, begin + to);
    auto it = open.find(result);
    alive(result, begin + times.back().first,
          it == open.end() ? last : it->second);
    if (it != open.end())
      open.erase(it);
  }
  for (auto [i, operand] : llvm::enumerate(instr.operands))
    use(operand, begin + segment.operandEnd[i]);
  out.calls[instr.callee].push_back(begin);
  point = begin / 2;
  permit(instr, segment.inPlace, depth);
  --point;
}

void LivenessWalk::freeUses(const BufferRegion &region,
                            std::set<unsigned> &defined,
                            std::set<unsigned> &used) const {
  for (unsigned arg : region.args)
    if (out.root(arg) == arg)
      defined.insert(arg);
  for (const BufferInstr &instr : region.instrs) {
    for (unsigned operand : instr.operands)
      used.insert(out.root(operand));
    for (const BufferRegion &inner : instr.regions)
      freeUses(inner, defined, used);
    for (unsigned result : instr.results)
      if (out.root(result) == result)
        defined.insert(result);
  }
  for (unsigned value : region.yields)
    used.insert(out.root(value));
}

// A result may use an operand's buffer only if every position at which the
// instruction reads that content allows it.
void LivenessWalk::permit(const BufferInstr &instr,
                          llvm::ArrayRef<InPlace> pairs, unsigned depth) {
  for (const InPlace &pair : pairs) {
    unsigned result = out.root(instr.results[pair.result]);
    unsigned operand = out.root(instr.operands[pair.operand]);
    bool everywhere = true;
    for (auto [position, value] : llvm::enumerate(instr.operands)) {
      unsigned root = out.root(value);
      const BufferLiveness::Part *part = out.part(root);
      everywhere &= !part || part->argument != operand;
      if (root == operand)
        everywhere &= llvm::any_of(pairs, [&](const InPlace &other) {
          return other.result == pair.result && other.operand == position;
        });
    }
    if (!everywhere ||
        function.values[result].bytes != function.values[operand].bytes)
      continue;
    out.permits.insert({point, result, operand});
    auto &wishes = pair.required ? out.requiredInPlace : out.optionalInPlace;
    wishes.push_back({result, operand, depth});
  }
}

BufferLiveness::BufferLiveness(const BufferFunction &function)
    : parent(function.values.size()), live(function.values.size()) {
  std::iota(parent.begin(), parent.end(), 0u);
  unite(function.body, function);
  LivenessWalk(*this, function).run();
}

} // namespace whale
