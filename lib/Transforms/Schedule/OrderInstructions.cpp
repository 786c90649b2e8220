//===- OrderInstructions.cpp - whale-order-instructions -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: schedules and segments. Out: their instructions in an order that needs
// little memory.
//
// What is alive at two collectives or calls does not depend on the order of the
// instructions between them, so each such section is ordered by itself. Of
// four orders (as it is, greedy from the front, the same in turn, greedy from
// the back) the one with the lowest peak stays. Cost: functions in parallel;
// for each instruction at most 256 candidates, and its readers once for each
// value that is read. A section also looks at all users of the values that it
// reads, and at all arguments of its block: sections times arguments, and times
// users of values that many sections read.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_ORDERINSTRUCTIONS
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

/// Of more instructions that could come next only the first ones are compared.
constexpr unsigned kMaxCandidates = 256;

/// What adds so many bytes, a few numbers, adds nothing.
constexpr int64_t kFewBytes = 64;

/// Whether the result is in the memory of the first operand.
bool isView(Operation *op) {
  return isa_and_nonnull<stablehlo::ReshapeOp, AfterOp>(op);
}

/// The value whose buffer `value` is a view of.
Value getRoot(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether it is a barrier: nothing moves across it.
bool isFixed(Operation *op) {
  if (isa<func::CallOp, PackOp, UnpackOp>(op))
    return true;
  return op->walk([](CollectiveOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// The instructions of one section with what they depend on.
class Section {
public:
  /// `handOver` names, for a value of the block's arguments, the value that
  /// reuses its buffer in the end.
  Section(ArrayRef<Operation *> ops,
          const llvm::DenseMap<Value, Value> &handOver);

  /// The order with the lowest peak, as indices of the operations given.
  SmallVector<unsigned> chooseOrder() const;

private:
  /// A value that is read or made here.
  struct Root {
    int64_t bytes = 0;
    SmallVector<unsigned> readers;
    std::optional<unsigned> maker;
    /// Stays alive behind the section, or has a buffer outside of the arena.
    bool lasting = false;
  };
  struct Instruction {
    SmallVector<unsigned> reads;
    SmallVector<unsigned> makes;
    /// By position in `makes`: the roots whose buffer it may take.
    SmallVector<SmallVector<unsigned, 1>> takes;
    llvm::SmallSetVector<unsigned, 4> before;
    llvm::SmallSetVector<unsigned, 4> after;
  };
  /// What is alive while instructions run one by one.
  struct Memory {
    int64_t live = 0;
    int64_t peak = 0;
    SmallVector<unsigned> pending;
  };

  unsigned getRootNumber(Value value);
  void read(Value value, unsigned reader);
  void order(unsigned first, unsigned second) {
    instructions[first].after.insert(second);
    instructions[second].before.insert(first);
  }
  int64_t run(unsigned number, Memory &memory, bool commit) const;
  Memory start() const;
  int64_t peakOf(ArrayRef<unsigned> order) const;
  SmallVector<unsigned> fromFront(bool isInTurn) const;
  SmallVector<unsigned> fromBack() const;
  int64_t gainFromBack(unsigned number, const llvm::BitVector &alive) const;

  std::vector<Instruction> instructions;
  std::vector<Root> roots;
  llvm::DenseMap<Value, unsigned> numbers;
  llvm::SmallPtrSet<Operation *, 16> members;
};

unsigned Section::getRootNumber(Value value) {
  auto [it, isNew] = numbers.try_emplace(value, roots.size());
  if (!isNew)
    return it->second;
  Root root;
  if (!value.getDefiningOp<stablehlo::ConstantOp>() &&
      !value.getDefiningOp<ShardOffsetOp>())
    root.bytes = getTensorBytes(value.getType());
  // Buffers of arguments are no part of the arena; a loop's are.
  if (auto argument = dyn_cast<BlockArgument>(value))
    root.lasting = isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  roots.push_back(root);
  return it->second;
}

void Section::read(Value value, unsigned reader) {
  unsigned number = getRootNumber(getRoot(value));
  SmallVector<unsigned> &readers = roots[number].readers;
  if (readers.empty() || readers.back() != reader) {
    readers.push_back(reader);
    instructions[reader].reads.push_back(number);
  }
}

Section::Section(ArrayRef<Operation *> ops,
                 const llvm::DenseMap<Value, Value> &handOver)
    : instructions(ops.size()) {
  members.insert(ops.begin(), ops.end());
  llvm::DenseMap<Operation *, unsigned> positions;
  for (auto [number, op] : llvm::enumerate(ops)) {
    positions[op] = number;
    forEachRead(op, [&](Value value) {
      read(value, number);
      if (auto it = positions.find(value.getDefiningOp());
          it != positions.end())
        order(it->second, number);
    });
    if (isView(op))
      continue;
    for (Value result : op->getResults()) {
      unsigned root = getRootNumber(result);
      instructions[number].makes.push_back(root);
      roots[root].maker = number;
    }
    SmallVector<SmallVector<unsigned, 1>> takes(op->getNumResults());
    if (auto inPlace = dyn_cast<InPlaceOp>(op))
      for (const InPlacePair &pair : inPlace.getInPlacePairs()) {
        unsigned root = getRootNumber(getRoot(op->getOperand(pair.operand)));
        takes[pair.result].push_back(root);
        // Written before its other readers, the operand would be copied.
        if (pair.required)
          for (unsigned reader : roots[root].readers)
            if (reader != number)
              order(reader, number);
      }
    if (isa<stablehlo::WhileOp>(op))
      for (auto [result, operand] : llvm::enumerate(op->getOperands()))
        takes[result].push_back(getRootNumber(getRoot(operand)));
    instructions[number].takes = std::move(takes);
  }
  // What is read elsewhere too, itself or through a view, outlives this.
  for (auto &[value, number] : numbers) {
    SmallVector<Value> views = {value};
    while (!views.empty()) {
      for (Operation *user : views.pop_back_val().getUsers()) {
        Operation *here = value.getParentBlock()->findAncestorOpInBlock(*user);
        if (isView(user) && getRoot(user->getResult(0)) == value)
          views.push_back(user->getResult(0));
        if (!here || members.contains(here))
          continue;
        if (here->isBeforeInBlock(ops.front()))
          continue;
        roots[number].lasting = true;
      }
    }
  }
  // What reuses an argument's buffer comes after its readers.
  for (auto [argument, last] : handOver) {
    auto from = numbers.find(argument), to = numbers.find(last);
    if (from == numbers.end() || to == numbers.end() ||
        !roots[to->second].maker)
      continue;
    unsigned maker = *roots[to->second].maker;
    for (unsigned reader : roots[from->second].readers)
      if (reader < maker)
        order(reader, maker);
  }
}

Section::Memory Section::start() const {
  Memory memory;
  for (const Root &root : roots) {
    memory.pending.push_back(root.readers.size());
    if (!root.maker && !root.lasting)
      memory.live += root.bytes;
  }
  memory.peak = memory.live;
  return memory;
}

/// What an instruction adds to the memory that is alive; changes `memory` only
/// to `commit`.
int64_t Section::run(unsigned number, Memory &memory, bool commit) const {
  const Instruction &instruction = instructions[number];
  SmallVector<unsigned, 4> ending;
  for (unsigned root : instruction.reads)
    if (memory.pending[root] == 1)
      ending.push_back(root);
  int64_t added = 0, freed = 0;
  for (auto [position, root] : llvm::enumerate(instruction.makes)) {
    const auto *taken =
        llvm::find_if(instruction.takes[position], [&](unsigned other) {
          return llvm::is_contained(ending, other) &&
                 roots[other].bytes == roots[root].bytes;
        });
    if (taken != instruction.takes[position].end())
      llvm::erase(ending, *taken);
    else
      added += roots[root].bytes;
    if (roots[root].readers.empty() && !roots[root].lasting)
      freed += roots[root].bytes;
  }
  for (unsigned root : ending)
    if (!roots[root].lasting)
      freed += roots[root].bytes;
  if (commit) {
    memory.peak = std::max(memory.peak, memory.live + added);
    memory.live += added - freed;
    for (unsigned root : instruction.reads)
      --memory.pending[root];
  }
  return added - freed;
}

int64_t Section::peakOf(ArrayRef<unsigned> order) const {
  Memory memory = start();
  for (unsigned number : order)
    run(number, memory, /*commit=*/true);
  return memory.peak;
}

/// Next comes what adds the least, the earlier one of two; or, in turn, the
/// first that adds nothing, such as the update of a parameter, else the first.
SmallVector<unsigned> Section::fromFront(bool isInTurn) const {
  Memory memory = start();
  SmallVector<unsigned> missing, order;
  // What each instruction adds changes when it becomes the last reader of a
  // root.
  SmallVector<int64_t> added;
  llvm::BitVector ready(instructions.size());
  for (auto [number, instruction] : llvm::enumerate(instructions)) {
    missing.push_back(instruction.before.size());
    added.push_back(run(number, memory, /*commit=*/false));
    ready[number] = instruction.before.empty();
  }
  while (ready.any()) {
    unsigned best = ready.find_first(), seen = 0;
    for (unsigned number : ready.set_bits()) {
      if (++seen > kMaxCandidates)
        break;
      bool isBetter =
          isInTurn ? added[number] <= kFewBytes && added[best] > kFewBytes
                   : added[number] < added[best];
      if (isBetter)
        best = number;
    }
    run(best, memory, /*commit=*/true);
    for (unsigned root : instructions[best].reads)
      if (memory.pending[root] == 1)
        for (unsigned reader : roots[root].readers)
          added[reader] = run(reader, memory, /*commit=*/false);
    ready.reset(best);
    order.push_back(best);
    for (unsigned next : instructions[best].after)
      if (--missing[next] == 0)
        ready.set(next);
  }
  return order;
}

/// What would be alive less before the instruction than after it.
int64_t Section::gainFromBack(unsigned number,
                              const llvm::BitVector &alive) const {
  int64_t gain = 0;
  for (unsigned root : instructions[number].makes)
    gain += roots[root].bytes;
  for (unsigned root : instructions[number].reads)
    if (!alive.test(root))
      gain -= roots[root].bytes;
  return gain;
}

/// Last comes what needs the least before it, the later one of two.
SmallVector<unsigned> Section::fromBack() const {
  llvm::BitVector alive(roots.size());
  for (auto [number, root] : llvm::enumerate(roots))
    if (root.lasting)
      alive.set(number);
  SmallVector<unsigned> missing, order;
  SmallVector<int64_t> gains;
  llvm::BitVector ready(instructions.size());
  for (auto [number, instruction] : llvm::enumerate(instructions)) {
    missing.push_back(instruction.after.size());
    gains.push_back(gainFromBack(number, alive));
    ready[number] = instruction.after.empty();
  }
  while (ready.any()) {
    int best = ready.find_last();
    unsigned seen = 0;
    for (int number = best; number >= 0 && seen < kMaxCandidates;
         number = ready.find_prev(number), ++seen)
      if (gains[number] > gains[best])
        best = number;
    for (unsigned root : instructions[best].reads) {
      if (alive.test(root))
        continue;
      alive.set(root);
      for (unsigned reader : roots[root].readers)
        gains[reader] += roots[root].bytes;
    }
    ready.reset(best);
    order.push_back(best);
    for (unsigned next : instructions[best].before)
      if (--missing[next] == 0)
        ready.set(next);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

SmallVector<unsigned> Section::chooseOrder() const {
  SmallVector<unsigned> best =
      llvm::to_vector(llvm::seq<unsigned>(0, instructions.size()));
  int64_t least = peakOf(best);
  for (SmallVector<unsigned> order :
       {fromFront(/*isInTurn=*/false), fromFront(/*isInTurn=*/true),
        fromBack()}) {
    int64_t peak = peakOf(order);
    if (peak < least) {
      best = std::move(order);
      least = peak;
    }
  }
  return best;
}

struct OrderInstructions : impl::OrderInstructionsBase<OrderInstructions> {
  void runOnOperation() override {
    auto functions = llvm::filter_to_vector(
        getOperation().getOps<FunctionOpInterface>(),
        [](FunctionOpInterface function) {
          return isa<ScheduleOp>(function) || function->hasAttr(kSegmentAttr);
        });
    parallelForEach(&getContext(), functions, [](FunctionOpInterface function) {
      function.walk([](Block *block) { orderBlock(*block); });
    });
  }

  static void orderBlock(Block &block) {
    llvm::DenseMap<Value, Value> handOver;
    Operation *end = block.getTerminator();
    Operation *parent = block.getParentOp();
    for (BlockArgument argument : block.getArguments()) {
      unsigned number = argument.getArgNumber();
      if (auto function = dyn_cast<FunctionOpInterface>(parent)) {
        auto fed = function.getArgAttrOfType<IntegerAttr>(number, kFedByAttr);
        if (fed && fed.getInt() < end->getNumOperands())
          handOver[argument] = getRoot(end->getOperand(fed.getInt()));
      } else if (number < end->getNumOperands()) {
        handOver[argument] = getRoot(end->getOperand(number));
      }
    }
    SmallVector<Operation *> section, ordered;
    auto flush = [&](Operation *before) {
      if (section.size() > 2)
        for (unsigned number : Section(section, handOver).chooseOrder())
          ordered.push_back(section[number]);
      else
        llvm::append_range(ordered, section);
      ordered.push_back(before);
      section.clear();
    };
    for (Operation &op : block.without_terminator()) {
      if (isFixed(&op))
        flush(&op);
      else
        section.push_back(&op);
    }
    flush(end);
    // Moved at last: sections ask which of two operations comes first, and a
    // block that changes is numbered again for it.
    for (Operation *op : ordered)
      op->moveBefore(&block, block.end());
  }
};

} // namespace
} // namespace whale
