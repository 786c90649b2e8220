//===- Steps.cpp - What each rank does, one thing after another -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program and a rank. Out: the rank's instructions in one flat list, with
// places in the rank's memory, which is one row of bytes that symbols stand
// for.
//
// Loops are unrolled to two rounds, calls replaced by their functions, and
// cases by one branch; predicates go into a value of their own, so that a wrong
// one shows. An instruction that writes over what it reads has an undefined
// result, unless it works element by element at the same bytes. Cost: the
// unrolled instructions, which double with each nested loop, times the
// different operations that each is compared with.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include <algorithm>
#include <functional>

namespace whale::transfers {

using namespace format;

namespace {
using List = std::vector<Instruction>;
} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static void forgetBuffers(Operation &operation) {
  auto forget = [](std::vector<BufferIndex> &buffers) {
    std::ranges::fill(buffers, 0);
  };
  if (auto *kernel = std::get_if<Kernel>(&operation)) {
    forget(kernel->buffers);
  } else if (auto *copy = std::get_if<Copy>(&operation)) {
    copy->src = copy->dst = 0;
  } else if (auto *matmul = std::get_if<Matmul>(&operation)) {
    matmul->lhs = matmul->rhs = matmul->out = 0;
    matmul->bias = matmul->aux = 0;
  } else if (auto *convolution = std::get_if<Convolution>(&operation)) {
    convolution->lhs = convolution->rhs = convolution->out = 0;
  } else if (auto *call = std::get_if<Call>(&operation)) {
    forget(call->inputs), forget(call->outputs);
  }
}

uint64_t Names::of(const Operation &operation) {
  Operation name = operation;
  forgetBuffers(name);
  auto it = std::ranges::find(known, name);
  if (it == known.end())
    it = known.insert(it, std::move(name));
  return static_cast<uint64_t>(it - known.begin()) + 1;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// What a rank has of an argument or a result.
static const std::optional<Box> &boxOf(const Parameter &parameter,
                                       int64_t rank) {
  return parameter.layout->boxes[rank];
}

static Symbol nameOf(const Parameter &parameter, const Box &box) {
  Symbol symbol = combine({std::hash<std::string>()(parameter.name)});
  for (const Shape *shape : {&box.start, &box.size})
    for (int64_t extent : *shape)
      symbol = combine({symbol, static_cast<uint64_t>(extent)});
  return symbol;
}

RankMemory::RankMemory(const format::Program &program, int64_t rank)
    : program(program),
      rankClass(program.classes[program.ranks[rank].rankClass]), rank(rank) {
  add(garbage, rankClass.arenaBytes);
  auto addPart = [&](const Parameter &parameter, bool isGiven) {
    const std::optional<Box> &box = boxOf(parameter, rank);
    int64_t bytes = box ? byteCount(parameter.dtype, box->size) : 0;
    return add(isGiven && box ? nameOf(parameter, *box) : garbage, bytes);
  };
  for (const Parameter &argument : program.arguments)
    arguments.push_back(addPart(argument, true));
  for (const Parameter &result : program.results)
    results.push_back(result.alias ? arguments[*result.alias]
                                   : addPart(result, false));
  int64_t constantBytes = 0;
  auto measure = [&](const Body &body) {
    for (const BufferInfo &buffer : body.buffers)
      if (buffer.space == Space::Constant)
        constantBytes = std::max(constantBytes, buffer.offset + buffer.bytes);
  };
  measure(rankClass);
  for (const Function &function : program.functions)
    measure(function);
  constexpr Symbol constant = 1, rankConstant = 2;
  constantsBegin = add(combine({constant}), constantBytes);
  for (size_t i = 0; i < rankClass.buffers.size(); ++i)
    if (rankClass.buffers[i].space == Space::RankConstant)
      rankConstants[static_cast<BufferIndex>(i)] =
          add(combine({rankConstant, i, static_cast<uint64_t>(rank)}),
              rankClass.buffers[i].bytes);
  constexpr Symbol nothing = 4;
  constexpr int64_t bytes = 8;
  decided.begin = add(combine({nothing}), bytes);
  decided.end = decided.begin + bytes;
}

int64_t RankMemory::add(Symbol symbol, int64_t bytes) {
  int64_t begin = initial.bytes();
  initial.append(Contents(symbol, bytes));
  return begin;
}

Range RankMemory::constants(Range bytes) const {
  return {constantsBegin + bytes.begin, constantsBegin + bytes.end};
}

Range RankMemory::rangeOf(BufferIndex index) const {
  const BufferInfo &buffer = rankClass.buffers[index];
  int64_t begin = buffer.offset;
  switch (buffer.space) {
  case Space::Argument:
    begin += arguments[buffer.index];
    break;
  case Space::Result:
    begin += results[buffer.index];
    break;
  case Space::Constant:
    begin += constantsBegin;
    break;
  case Space::RankConstant:
    begin = rankConstants.at(index);
    break;
  default:
    break;
  }
  return {begin, begin + buffer.bytes};
}

std::optional<Range> RankMemory::result(size_t index) const {
  const Parameter &result = program.results[index];
  const std::optional<Box> &box = boxOf(result, rank);
  if (!box)
    return std::nullopt;
  return Range{results[index],
               results[index] + byteCount(result.dtype, box->size)};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {

/// Where the buffers of a list lie.
using Places = std::function<Range(BufferIndex)>;

class Expander {
public:
  Expander(const format::Program &program, const RankClass &rankClass,
           const RankMemory &memory, size_t branch, Names &names)
      : program(program), rankClass(rankClass), memory(memory), branch(branch),
        names(names) {}

  void expand(const List &list, const Places &at);

  std::vector<Step> steps;

private:
  void expand(const Run &run, const Places &at);
  void decide(Range predicate);
  void addOne(const Instruction &instruction, const Places &at);

  const format::Program &program;
  const RankClass &rankClass;
  const RankMemory &memory;
  size_t branch;
  Names &names;
  /// By the number of a transfer, which of the starts was its last one.
  std::map<int64_t, int64_t> transfers;
  int64_t starts = 0;
};

} // namespace

/// What an instruction writes is apart from what it reads, or at the same
/// bytes where `mayShare` says so of the read and the write of these places.
/// Else its result is anything.
static void nameOverlaps(Step &step,
                         const std::function<bool(size_t, size_t)> &mayShare) {
  constexpr uint64_t torn = 3;
  for (size_t i = 0; i < step.writes.size(); ++i) {
    for (size_t j = 0; j < step.reads.size(); ++j) {
      const Range &write = step.writes[i], &read = step.reads[j];
      if (write.overlaps(read) && !(write == read && mayShare(j, i))) {
        step.kind = Step::Compute;
        step.name = combine({torn, step.name, i, j});
      }
    }
    for (size_t j = 0; j < i; ++j)
      if (step.writes[i].overlaps(step.writes[j]))
        step.name = combine({torn, torn, step.name, i, j});
  }
}

/// Elements that no index of the product names keep their value.
static bool isWritten(const Matmul &matmul, Range out) {
  int64_t count = matmul.m * matmul.n;
  for (const Matmul::Batch &batch : matmul.batch)
    count *= batch.size;
  return count * byteSize(matmul.outType) == out.bytes();
}

/// All but starts, waits, runs, loops and cases.
void Expander::addOne(const Instruction &instruction, const Places &at) {
  Step &step = steps.emplace_back();
  const Operation &operation = instruction.operation;
  auto reads = [&](BufferIndex index) { step.reads.push_back(at(index)); };
  auto writes = [&](BufferIndex index) { step.writes.push_back(at(index)); };
  const KernelSignature *signature = nullptr;
  step.name = names.of(operation);
  if (const auto *kernel = std::get_if<Kernel>(&operation)) {
    if (program.kernelSignatures)
      signature = &program.kernelSignatures->at(kernel->symbol);
    size_t inputs = signature ? signature->inputs : 0;
    for (size_t i = 0; i < kernel->buffers.size(); ++i)
      i < inputs ? reads(kernel->buffers[i]) : writes(kernel->buffers[i]);
  } else if (const auto *copy = std::get_if<format::Copy>(&operation)) {
    step.kind = Step::Copy;
    reads(copy->src);
    writes(copy->dst);
  } else if (const auto *matmul = std::get_if<Matmul>(&operation)) {
    reads(matmul->lhs);
    reads(matmul->rhs);
    if (readsBias(matmul->epilogue))
      reads(matmul->bias);
    if (readsAux(matmul->epilogue))
      reads(matmul->aux);
    writes(matmul->out);
    if (writesBias(matmul->epilogue))
      writes(matmul->bias);
    if (writesAux(matmul->epilogue))
      writes(matmul->aux);
  } else if (const auto *convolution = std::get_if<Convolution>(&operation)) {
    reads(convolution->lhs);
    reads(convolution->rhs);
    writes(convolution->out);
  } else if (const auto *call = std::get_if<Call>(&operation)) {
    for (BufferIndex index : call->inputs)
      reads(index);
    for (BufferIndex index : call->outputs)
      writes(index);
  }
  nameOverlaps(step, [&](size_t read, size_t write) {
    return step.kind == Step::Copy ||
           (signature &&
            signature->inplace.contains({read, signature->inputs + write}));
  });
  if (const auto *matmul = std::get_if<Matmul>(&operation))
    if (matmul->accumulate || !isWritten(*matmul, at(matmul->out)))
      reads(matmul->out);
}

void Expander::expand(const Run &run, const Places &at) {
  const Function &function = program.functions[run.function];
  expand(function.instructions, [&](BufferIndex index) -> Range {
    const BufferInfo &buffer = function.buffers[index];
    int64_t begin = 0;
    switch (buffer.space) {
    case Space::Operand:
      return at(run.operands[buffer.index]);
    case Space::Result:
      return at(run.results[buffer.index]);
    case Space::Local:
      begin = rankClass.locals.at(run.function)[run.layout][buffer.index];
      return {begin, begin + buffer.bytes};
    default:
      return memory.constants({buffer.offset, buffer.offset + buffer.bytes});
    }
  });
}

/// What decides where the rank goes on is a part of what it makes.
void Expander::decide(Range predicate) {
  Step &step = steps.emplace_back();
  step.reads = {predicate, memory.decisions()};
  step.writes = {memory.decisions()};
}

void Expander::expand(const List &list, const Places &at) {
  constexpr int trips = 2;
  for (const Instruction &instruction : list) {
    const Operation &operation = instruction.operation;
    if (const auto *run = std::get_if<Run>(&operation)) {
      expand(*run, at);
    } else if (const auto *start = std::get_if<format::Start>(&operation)) {
      transfers[start->transfer] = starts;
      Step &step = steps.emplace_back();
      step.kind = Step::Start;
      step.transfer = starts++;
      step.channel = start->channel;
      for (const format::Start::Ends &part : start->parts) {
        Step::Ends &ends = step.ends.emplace_back();
        if (part.src)
          ends.src = at(*part.src);
        if (part.dst)
          ends.dst = at(*part.dst);
      }
    } else if (const auto *wait = std::get_if<format::Wait>(&operation)) {
      auto it = transfers.find(wait->transfer);
      Step &step = steps.emplace_back();
      step.kind = Step::Wait;
      step.transfer = it == transfers.end() ? Step::unknown : it->second;
    } else if (const auto *loop = std::get_if<While>(&operation)) {
      for (int trip = 0; trip <= trips; ++trip) {
        expand(loop->cond, at);
        decide(at(loop->predicate));
        if (trip < trips)
          expand(loop->body, at);
      }
    } else if (const auto *choice = std::get_if<Case>(&operation)) {
      decide(at(choice->index));
      expand(choice->branches[std::min(branch, choice->branches.size() - 1)],
             at);
    } else {
      addOne(instruction, at);
    }
  }
}

static size_t branchesOf(const List &list) {
  size_t most = 1;
  for (const Instruction &instruction : list) {
    if (const auto *loop = std::get_if<While>(&instruction.operation)) {
      most = std::max({most, branchesOf(loop->cond), branchesOf(loop->body)});
    } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
      most = std::max(most, choice->branches.size());
      for (const List &branch : choice->branches)
        most = std::max(most, branchesOf(branch));
    }
  }
  return most;
}

size_t mostBranches(const format::Program &program) {
  size_t most = 1;
  for (const RankClass &rankClass : program.classes)
    most = std::max(most, branchesOf(rankClass.instructions));
  for (const Function &function : program.functions)
    most = std::max(most, branchesOf(function.instructions));
  return most;
}

std::vector<Step> expand(const format::Program &program, int64_t rank,
                         const RankMemory &memory, size_t branch,
                         Names &names) {
  const RankClass &rankClass = program.classes[program.ranks[rank].rankClass];
  Expander expander(program, rankClass, memory, branch, names);
  expander.expand(rankClass.instructions,
                  [&](BufferIndex index) { return memory.rangeOf(index); });
  return std::move(expander.steps);
}

} // namespace whale::transfers
