//===- Segments.cpp - What a rank computes again and again ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While a segment is written, its inputs are what it uses. When it is closed,
// its outputs are the values that an operation outside of it uses; those that
// are inputs or constants are passed around it. pruneSegments drops dead
// results, from the last segment on, until nothing changes; each change
// collects the calls again. addSegments compares a function to the first one of
// its hash, in parallel: of two that differ and have one hash, which is next to
// impossible, copies stay.
//
//===----------------------------------------------------------------------===//

#include "Segments.h"

#include "FoldEmptyShares.h"
#include "mlir/IR/Threading.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <unordered_map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

OpenSegment::OpenSegment(Location loc, MLIRContext *context) {
  OpBuilder builder(context);
  function =
      func::FuncOp::create(loc, "segment", builder.getFunctionType({}, {}));
  function.setPrivate();
  function->setAttr(kSegmentAttr, builder.getUnitAttr());
  function.addEntryBlock();
}

Value OpenSegment::addInput(const SegmentInput &input, Type type) {
  if (!input.value)
    for (auto [known, argument] :
         llvm::zip_equal(inputs, getBody()->getArguments()))
      if (known == input)
        return argument;
  inputs.push_back(input);
  // Segments of several layers are one only where their locations are equal:
  // what a caller hands over is of one layer.
  Value argument =
      getBody()->addArgument(type, UnknownLoc::get(function.getContext()));
  if (input.value)
    values[input.value] = argument;
  return argument;
}

void OpenSegment::map(Value value, Value local) {
  values[value] = local;
  defined.push_back(value);
}

/// Whether an operation that was not visited here uses the value. What another
/// rank alone uses counts too; pruneSegments finds it.
bool OpenSegment::isUsedOutside(Value value) const {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner(), *parent = user->getParentOp();
    unsigned number = use.getOperandNumber();
    if (isa<YieldOp>(user) && isa<MicroBatchesOp>(parent))
      return llvm::none_of(
          sums, [&](const Sum &sum) { return sum.reduced == number; });
    if (isa<YieldOp>(user) && !ops.contains(parent))
      return isUsedOutside(parent->getResult(number));
    for (; user && !isa<MicroBatchesOp>(user); user = user->getParentOp())
      if (ops.contains(user))
        return false;
    return true;
  });
}

static void setArguments(func::FuncOp function) {
  Block &body = function.front();
  function.setFunctionType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(),
                        body.getTerminator()->getOperandTypes()));
}

/// Drops arguments that nothing uses; returns their numbers, ascending.
static SmallVector<unsigned> dropUnusedArguments(func::FuncOp function) {
  Block &body = function.front();
  SmallVector<unsigned> unused;
  for (BlockArgument argument : body.getArguments())
    if (argument.use_empty())
      unused.push_back(argument.getArgNumber());
  if (unused.empty())
    return unused;
  llvm::BitVector erased(body.getNumArguments());
  for (unsigned number : unused)
    erased.set(number);
  setArguments(function);
  SmallVector<DictionaryAttr> attributes;
  for (unsigned i = 0; i < body.getNumArguments(); ++i)
    if (!erased[i])
      attributes.push_back(function.getArgAttrDict(i));
  body.eraseArguments(erased);
  setArguments(function);
  function.setAllArgAttrs(attributes);
  return unused;
}

static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

Segment OpenSegment::close(llvm::function_ref<Value(Operation *)> getLocal) {
  Segment segment;
  Block *body = getBody();
  SmallVector<Value> returned;
  auto give = [&](const SegmentOutput &output, Value local) {
    segment.outputs.push_back(output);
    returned.push_back(local);
  };
  for (Value value : defined) {
    // Each function that needs a constant makes it.
    Operation *producer = value.getDefiningOp();
    bool isConstant = producer && producer->hasTrait<OpTrait::ConstantLike>();
    if (!isConstant && isUsedOutside(value))
      give({.value = value}, values.lookup(value));
  }
  for (const Sum &sum : sums)
    give({.reduced = sum.reduced}, sum.local);

  OpBuilder builder = OpBuilder::atBlockEnd(body);
  Operation *end = func::ReturnOp::create(builder, function.getLoc(), returned);
  foldEmptyShares(*body);
  SmallVector<Operation *> offsets;
  body->walk([&](ShardOffsetOp op) { offsets.push_back(op); });
  for (Operation *op : offsets) {
    Value local = getLocal(op);
    op->getResult(0).replaceAllUsesWith(
        addInput({.local = local}, local.getType()));
    op->erase();
  }

  llvm::DenseMap<Value, unsigned> numbers;
  SmallVector<Value> results;
  for (auto [output, local] :
       llvm::zip_equal(segment.outputs, llvm::to_vector(end->getOperands()))) {
    Operation *producer = local.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(local)) {
      output.kind = SegmentOutput::Input;
      output.input = inputs[argument.getArgNumber()];
    } else if (auto constant = dyn_cast<hlo::ConstantOp>(producer)) {
      output.kind = SegmentOutput::Constant;
      output.constant = constant->clone();
    } else {
      auto [it, isNew] = numbers.try_emplace(local, results.size());
      if (isNew)
        results.push_back(local);
      output.result = it->second;
    }
  }
  end->setOperands(results);
  eraseDead(*body);
  if (body->without_terminator().empty()) {
    function.erase();
    return segment;
  }
  setArguments(function);
  for (auto [number, input] : llvm::enumerate(inputs))
    if (input.reduced)
      function.setArgAttr(number, kLastUseAttr, builder.getUnitAttr());
  SmallVector<unsigned> dropped = dropUnusedArguments(function);
  for (unsigned number : llvm::reverse(dropped))
    inputs.erase(inputs.begin() + number);
  segment.function = function;
  segment.inputs = std::move(inputs);
  return segment;
}

//===----------------------------------------------------------------------===//
// Dead results
//===----------------------------------------------------------------------===//

/// Makes the call one with other operands and results: those that are kept.
static void rebuild(func::CallOp call, ArrayRef<Value> operands,
                    ArrayRef<unsigned> kept) {
  OpBuilder builder(call);
  SmallVector<Type> types;
  for (unsigned result : kept)
    types.push_back(call.getResult(result).getType());
  auto fewer = func::CallOp::create(builder, call.getLoc(), call.getCallee(),
                                    types, operands);
  for (auto [result, old] : llvm::zip_equal(fewer.getResults(), kept))
    call.getResult(old).replaceAllUsesWith(result);
  call.erase();
}

void pruneSegments(ScheduleOp schedule, std::vector<func::FuncOp> &segments) {
  llvm::StringMap<SmallVector<func::CallOp>> callsOf;
  auto collect = [&] {
    callsOf.clear();
    for (auto call : schedule.front().getOps<func::CallOp>())
      callsOf[call.getCallee()].push_back(call);
  };
  for (bool changed = true; changed;) {
    changed = false;
    collect();
    // What is called later is needed by less.
    for (func::FuncOp segment : llvm::reverse(segments)) {
      ArrayRef<func::CallOp> calls = callsOf[segment.getName()];
      Operation *end = segment.front().getTerminator();
      SmallVector<unsigned> kept;
      SmallVector<Value> results;
      for (unsigned i = 0; i < end->getNumOperands(); ++i)
        if (llvm::any_of(calls, [&](func::CallOp call) {
              return !call.getResult(i).use_empty();
            })) {
          kept.push_back(i);
          results.push_back(end->getOperand(i));
        }
      if (kept.size() == end->getNumOperands() && !calls.empty() &&
          !kept.empty())
        continue;
      if (calls.empty() && segment.front().without_terminator().empty())
        continue;
      changed = true;
      if (kept.empty()) {
        for (func::CallOp call : calls)
          call.erase();
        callsOf[segment.getName()].clear();
        segment.front().getTerminator()->setOperands({});
        eraseDead(segment.front());
        continue;
      }
      end->setOperands(results);
      eraseDead(segment.front());
      SmallVector<unsigned> dropped = dropUnusedArguments(segment);
      setArguments(segment);
      for (func::CallOp call : calls) {
        SmallVector<Value> operands(call.getOperands());
        for (unsigned number : llvm::reverse(dropped))
          operands.erase(operands.begin() + number);
        rebuild(call, operands, kept);
      }
      collect();
    }
  }
  llvm::erase_if(segments, [&](func::FuncOp segment) {
    bool isCalled = !callsOf[segment.getName()].empty();
    if (!isCalled)
      segment.erase();
    return !isCalled;
  });
}

//===----------------------------------------------------------------------===//
// Equal segments
//===----------------------------------------------------------------------===//

/// Of functions that are equal the same; names are left out.
static llvm::hash_code hashSegment(func::FuncOp segment) {
  llvm::hash_code hash =
      llvm::hash_combine(segment.getFunctionType(), segment.getArgAttrsAttr());
  llvm::DenseMap<Value, unsigned> numbers;
  auto number = [&](Value value) {
    numbers.try_emplace(value, numbers.size());
  };
  llvm::for_each(segment.front().getArguments(), number);
  segment.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    hash = llvm::hash_combine(
        hash,
        OperationEquivalence::computeHash(
            op,
            [&](Value value) {
              return llvm::hash_value(numbers.lookup(value));
            },
            OperationEquivalence::ignoreHashValue, OperationEquivalence::None));
    llvm::for_each(op->getResults(), number);
    for (Region &region : op->getRegions())
      for (Block &body : region)
        llvm::for_each(body.getArguments(), number);
  });
  return hash;
}

static bool areEqual(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         a.getArgAttrsAttr() == b.getArgAttrsAttr() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::None);
}

void addSegments(ModuleOp module, ArrayRef<ScheduleOp> schedules,
                 ArrayRef<std::vector<func::FuncOp>> segments) {
  MLIRContext *context = module.getContext();
  std::vector<std::vector<size_t>> hashes(segments.size());
  parallelFor(context, 0, segments.size(), [&](size_t i) {
    for (func::FuncOp segment : segments[i])
      hashes[i].push_back(hashSegment(segment));
  });
  // The first one of a hash stands for those that are equal to it.
  std::unordered_map<size_t, func::FuncOp> firstOf;
  for (size_t i = 0; i < segments.size(); ++i)
    for (auto [hash, segment] : llvm::zip_equal(hashes[i], segments[i]))
      firstOf.try_emplace(hash, segment);
  std::vector<std::vector<func::FuncOp>> same(segments.size());
  parallelFor(context, 0, segments.size(), [&](size_t i) {
    for (auto [hash, segment] : llvm::zip_equal(hashes[i], segments[i])) {
      func::FuncOp first = firstOf.at(hash);
      same[i].push_back(first == segment || areEqual(segment, first) ? first
                                                                     : segment);
    }
  });
  llvm::DenseMap<Operation *, FlatSymbolRefAttr> symbols;
  for (size_t i = 0; i < segments.size(); ++i)
    for (auto [segment, first] : llvm::zip_equal(segments[i], same[i]))
      if (segment == first)
        symbols[first] = FlatSymbolRefAttr::get(
            context, ("segment_" + Twine(symbols.size())).str());
  parallelFor(context, 0, segments.size(), [&](size_t i) {
    llvm::StringMap<FlatSymbolRefAttr> callees;
    for (auto [segment, first] : llvm::zip_equal(segments[i], same[i]))
      callees[func::FuncOp(segment).getName()] = symbols.at(first);
    ScheduleOp schedule = schedules[i];
    for (auto call : schedule.front().getOps<func::CallOp>())
      call.setCalleeAttr(callees.at(call.getCallee()));
    for (auto [segment, first] : llvm::zip_equal(segments[i], same[i]))
      if (segment != first)
        func::FuncOp(segment).erase();
  });
  for (size_t i = 0; i < segments.size(); ++i)
    for (auto [segment, first] : llvm::zip_equal(segments[i], same[i]))
      if (segment == first) {
        first.setName(symbols.at(first).getValue());
        module.push_back(first);
      }
}

} // namespace whale
