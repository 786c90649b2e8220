//===- OutlineMicroBatches.cpp - whale-outline-micro-batches --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Micro-batches repeat the same operations, and what lowers these takes longer
// than all that was decided before. So what a rank computes of a micro-batch at
// a time becomes a function: one for all micro-batches, stages and rank classes
// where it is the same.
//
//===----------------------------------------------------------------------===//

#include "OutlineMicroBatches/SinkCheapValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"
#include <unordered_map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_OUTLINEMICROBATCHES
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

/// Operations of one micro-batch that a rank computes one after the other.
struct Run {
  SmallVector<Operation *> ops;
  /// What they use that is made before, in the order of their first uses; and
  /// which of it is a sum that they add to, and nothing else uses.
  SmallVector<Value> inputs;
  llvm::BitVector lastUses;
  /// What is used behind them.
  SmallVector<Value> outputs;
  llvm::hash_code hash = llvm::hash_code(0);

  explicit Run(ArrayRef<Operation *> ops);

  bool isEqualTo(const Run &other) const;
};

} // namespace

/// Whether nothing reads the value but a sum, which can take its memory.
static bool isAddedToInPlace(Value value) {
  Operation *producer = value.getDefiningOp();
  return producer && !producer->hasTrait<OpTrait::ConstantLike>() &&
         value.hasOneUse() && isa<hlo::AddOp>(*value.user_begin());
}

Run::Run(ArrayRef<Operation *> ops) : ops(ops) {
  llvm::SmallPtrSet<Operation *, 32> members(ops.begin(), ops.end());
  Block *block = ops.front()->getBlock();
  auto isMember = [&](Operation *op) {
    return members.contains(block->findAncestorOpInBlock(*op));
  };
  auto isUsedHere = [&](Value value) {
    return llvm::all_of(value.getUsers(), isMember);
  };

  // Numbers say which value an operand is, whatever it is called.
  llvm::DenseMap<Value, unsigned> numbers;
  auto number = [&](Value value) {
    numbers.try_emplace(value, numbers.size());
  };
  auto hashOperand = [&](Value value) {
    auto [it, isNew] = numbers.try_emplace(value, numbers.size());
    if (isNew) {
      inputs.push_back(value);
      lastUses.push_back(isAddedToInPlace(value));
    }
    return llvm::hash_value(it->second);
  };
  for (Operation *op : ops) {
    op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      hash = llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                          inner, hashOperand,
                                          OperationEquivalence::ignoreHashValue,
                                          OperationEquivalence::None));
      llvm::for_each(inner->getResults(), number);
      for (Region &region : inner->getRegions())
        for (Block &body : region)
          llvm::for_each(body.getArguments(), number);
    });
    for (Value result : op->getResults())
      if (!isUsedHere(result)) {
        outputs.push_back(result);
        hash = llvm::hash_combine(hash, numbers.at(result));
      }
  }
  for (unsigned input : lastUses.set_bits())
    hash = llvm::hash_combine(hash, input);
}

bool Run::isEqualTo(const Run &other) const {
  if (hash != other.hash || ops.size() != other.ops.size() ||
      lastUses != other.lastUses)
    return false;
  llvm::DenseMap<Value, Value> theirs, ours;
  auto pair = [&](Value our, Value their) {
    return theirs.try_emplace(our, their).first->second == their &&
           ours.try_emplace(their, our).first->second == our;
  };
  for (auto [op, same] : llvm::zip_equal(ops, other.ops))
    if (!OperationEquivalence::isEquivalentTo(
            op, same,
            [&](Value our, Value their) { return success(pair(our, their)); },
            [&](Value our, Value their) { pair(our, their); },
            OperationEquivalence::None))
      return false;
  return outputs.size() == other.outputs.size() &&
         llvm::all_of(llvm::zip(outputs, other.outputs), [&](auto values) {
           return theirs.lookup(std::get<0>(values)) == std::get<1>(values);
         });
}

namespace {

/// The runs of a block, in order. What stands among the operations of one and
/// doesn't need them, such as the slice of an argument that it takes, comes to
/// stand before them.
std::vector<SmallVector<Operation *>> findRuns(Block &block) {
  std::vector<SmallVector<Operation *>> runs;
  Attribute current;
  SmallVector<Operation *> others;
  auto canPrecede = [&](Operation *op) {
    return op->getNumRegions() == 0 && isPure(op) &&
           llvm::none_of(op->getOperands(), [&](Value operand) {
             Operation *producer = operand.getDefiningOp();
             return producer && producer->getBlock() == &block &&
                    !producer->isBeforeInBlock(runs.back().front());
           });
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    Attribute moment = op.removeAttr(kMomentAttr);
    if (!moment) {
      others.push_back(&op);
      continue;
    }
    if (moment != current || !llvm::all_of(others, canPrecede))
      runs.emplace_back();
    else
      for (Operation *other : others)
        other->moveBefore(runs.back().front());
    current = moment;
    others.clear();
    runs.back().push_back(&op);
  }
  return runs;
}

/// The function that a run becomes, of which all but the first run that is like
/// it make no more than a call.
struct Target {
  func::FuncOp function;
  bool isFirst;
};

class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module) {}

  Target getTarget(const Run &run) {
    auto &alike = known[run.hash];
    for (auto [other, function] : alike)
      if (run.isEqualTo(*other))
        return {function, false};
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto function = func::FuncOp::create(
        builder, run.ops.front()->getLoc(),
        ("micro_batch_" + Twine(count++)).str(),
        builder.getFunctionType(TypeRange(run.inputs), TypeRange(run.outputs)));
    function.setPrivate();
    for (unsigned input : run.lastUses.set_bits())
      function.setArgAttr(input, kLastUseAttr, builder.getUnitAttr());
    alike.push_back({&run, function});
    return {function, true};
  }

  /// Later runs of the block must have become calls before.
  static void outline(Run &run, Target target) {
    OpBuilder builder(run.ops.front());
    auto call = func::CallOp::create(builder, run.ops.front()->getLoc(),
                                     target.function, run.inputs);
    if (target.isFirst)
      fill(target.function, run);
    for (auto [value, result] : llvm::zip_equal(run.outputs, call.getResults()))
      value.replaceUsesWithIf(result, [&](OpOperand &use) {
        return !target.function->isProperAncestor(use.getOwner());
      });
    if (!target.isFirst)
      for (Operation *op : llvm::reverse(run.ops)) {
        op->dropAllUses();
        op->erase();
      }
  }

private:
  static void fill(func::FuncOp function, Run &run) {
    Block *body = function.addEntryBlock();
    for (Operation *op : run.ops)
      op->moveBefore(body, body->end());
    for (auto [number, argument] : llvm::enumerate(body->getArguments())) {
      Value input = run.inputs[number];
      argument.setLoc(input.getLoc());
      input.replaceUsesWithIf(argument, [&](OpOperand &use) {
        return function->isProperAncestor(use.getOwner());
      });
    }
    OpBuilder builder = OpBuilder::atBlockEnd(body);
    func::ReturnOp::create(builder, function.getLoc(), run.outputs);
  }

  ModuleOp module;
  /// By hash.
  std::unordered_map<size_t,
                     SmallVector<std::pair<const Run *, func::FuncOp>, 1>>
      known;
  unsigned count = 0;
};

struct OutlineMicroBatches
    : impl::OutlineMicroBatchesBase<OutlineMicroBatches> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> classes = getRankClasses(getOperation());
    std::vector<std::vector<Run>> runs(classes.size());
    parallelFor(&getContext(), 0, classes.size(), [&](size_t number) {
      auto found = findRuns(classes[number].front());
      for (SmallVector<Operation *> &ops : found)
        sinkCheapValues(ops);
      for (SmallVector<Operation *> &ops : llvm::reverse(found))
        eraseDead(ops);
      for (SmallVector<Operation *> &ops : found)
        if (!ops.empty())
          runs[number].emplace_back(ops);
    });
    Outliner outliner(getOperation());
    std::vector<SmallVector<Target>> targets(classes.size());
    for (auto [found, list] : llvm::zip(runs, targets))
      for (const Run &run : found)
        list.push_back(outliner.getTarget(run));
    parallelFor(&getContext(), 0, classes.size(), [&](size_t number) {
      for (auto [run, target] :
           llvm::reverse(llvm::zip(runs[number], targets[number])))
        Outliner::outline(run, target);
    });
  }

  /// What only values used that are computed again by now.
  static void eraseDead(SmallVectorImpl<Operation *> &ops) {
    for (Operation *&op : llvm::reverse(ops))
      if (isOpTriviallyDead(op)) {
        op->erase();
        op = nullptr;
      }
    llvm::erase(ops, nullptr);
  }
};

} // namespace
} // namespace whale
