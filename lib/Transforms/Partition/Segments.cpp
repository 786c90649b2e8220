//===- Segments.cpp - What a rank computes again and again ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: operations of micro-batches, as they are written. Out: functions that
// schedules call, equal ones once.
//
// While a segment is written, its inputs are what it uses. When it is closed,
// its outputs are the values that an operation outside of it uses; those that
// are inputs or constants are passed around it. pruneSegments drops results of
// calls that nothing uses, from the last segment on, until nothing changes.
// addSegments compares a function to the first one of its hash, in parallel: of
// two that differ and have one hash, which is next to impossible, copies stay.
// Cost: linear in a segment's operations and uses, and for each of its shard
// offsets in its inputs and the other offsets; a round of pruning looks at each
// result of each call; comparing is linear in all functions.
//
//===----------------------------------------------------------------------===//

#include "Segments.h"

#include "FoldEmptyShares.h"
#include "mlir/IR/Threading.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/ScopePath.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

#include <unordered_map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

OpenSegment::OpenSegment(Location loc, MLIRContext *context) {
  OpBuilder builder(context);
  function =
      func::FuncOp::create(loc, "segment", builder.getFunctionType({}, {}));
  function->setPrivate();
  (*function)->setAttr(kSegmentAttr, builder.getUnitAttr());
  function->addEntryBlock();
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
      getBody()->addArgument(type, UnknownLoc::get(type.getContext()));
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

/// Drops arguments that nothing uses; returns the numbers of the others,
/// ascending.
static SmallVector<unsigned> dropUnusedArguments(func::FuncOp function) {
  Block &body = function.front();
  setArguments(function);
  SmallVector<unsigned> used;
  SmallVector<DictionaryAttr> attributes;
  llvm::BitVector erased(body.getNumArguments());
  for (BlockArgument argument : body.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (argument.use_empty()) {
      erased.set(number);
      continue;
    }
    used.push_back(number);
    attributes.push_back(function.getArgAttrDict(number));
  }
  if (erased.none())
    return used;
  body.eraseArguments(erased);
  setArguments(function);
  function.setAllArgAttrs(attributes);
  return used;
}

static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

std::unique_ptr<Segment> OpenSegment::close() {
  auto segment = std::make_unique<Segment>();
  Block *body = getBody();
  SmallVector<Value> returned;
  auto give = [&](const SegmentOutput &output, Value local) {
    segment->outputs.push_back(output);
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
  Operation *end =
      func::ReturnOp::create(builder, function->getLoc(), returned);
  foldEmptyShares(*body);
  SmallVector<ShardOffsetOp> offsets;
  body->walk([&](ShardOffsetOp op) { offsets.push_back(op); });
  for (ShardOffsetOp op : offsets) {
    op->remove();
    segment->owned.emplace_back(op);
    // One input for those that are equal.
    ShardOffsetOp first = *llvm::find_if(offsets, [&](ShardOffsetOp other) {
      return other->getAttrDictionary() == op->getAttrDictionary() &&
             other.getType() == op.getType();
    });
    op.replaceAllUsesWith(addInput({.offset = first}, op.getType()));
  }

  llvm::DenseMap<Value, unsigned> numbers;
  SmallVector<Value> results;
  for (auto [output, local] :
       llvm::zip_equal(segment->outputs, llvm::to_vector(end->getOperands()))) {
    Operation *producer = local.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(local)) {
      output.kind = SegmentOutput::Input;
      output.input = inputs[argument.getArgNumber()];
    } else if (auto constant = dyn_cast<hlo::ConstantOp>(producer)) {
      output.kind = SegmentOutput::Constant;
      output.constant = constant->clone();
      segment->owned.emplace_back(output.constant);
    } else {
      auto [it, isNew] = numbers.try_emplace(local, results.size());
      if (isNew)
        results.push_back(local);
      output.result = it->second;
    }
  }
  end->setOperands(results);
  eraseDead(*body);
  if (body->without_terminator().empty())
    return segment;
  setArguments(*function);
  // One by one, each would copy and hash those of all arguments.
  SmallVector<DictionaryAttr> attrs;
  function->getAllArgAttrs(attrs);
  attrs.resize(inputs.size());
  for (auto [own, input] : llvm::zip(attrs, inputs))
    if (input.reduced) {
      NamedAttrList list(own);
      list.set(kLastUseAttr, builder.getUnitAttr());
      own = list.getDictionary(builder.getContext());
    }
  function->setAllArgAttrs(attrs);
  for (unsigned kept : dropUnusedArguments(*function))
    segment->inputs.push_back(inputs[kept]);
  segment->setFunction(std::move(function));
  return segment;
}

//===----------------------------------------------------------------------===//
// Dead results
//===----------------------------------------------------------------------===//

void Segment::setFunction(OwningOpRef<func::FuncOp> function) {
  whole.inputs = llvm::to_vector(
      llvm::seq<unsigned>(function.get().getFunctionType().getNumInputs()));
  whole.function = std::move(function);
}

PrunedSegment &Segment::prune(ArrayRef<unsigned> results) const {
  if (results.size() == getFunction().getNumResults())
    return whole;
  std::lock_guard lock(mutex);
  auto [it, isNew] = pruned.try_emplace(results.vec());
  if (!isNew)
    return it->second;
  func::FuncOp copy = getFunction().clone();
  Operation *end = copy.front().getTerminator();
  end->setOperands(llvm::map_to_vector(
      results, [&](unsigned result) { return end->getOperand(result); }));
  eraseDead(copy.front());
  it->second.function = copy;
  it->second.inputs = dropUnusedArguments(copy);
  return it->second;
}

CalledSegment::CalledSegment(const Segment *segment)
    : segment(segment), results(llvm::to_vector(llvm::seq<unsigned>(
                            segment->getFunction().getNumResults()))) {}

/// Makes the call one with other operands and results, by number: those that
/// are kept.
static func::CallOp rebuild(func::CallOp call, ArrayRef<unsigned> operands,
                            ArrayRef<unsigned> results) {
  OpBuilder builder(call);
  SmallVector<Type> types;
  for (unsigned result : results)
    types.push_back(call.getResult(result).getType());
  auto fewer =
      func::CallOp::create(builder, call.getLoc(), call.getCallee(), types,
                           llvm::map_to_vector(operands, [&](unsigned number) {
                             return call.getOperand(number);
                           }));
  fewer->setDiscardableAttrs(call->getDiscardableAttrDictionary());
  for (auto [result, old] : llvm::zip_equal(fewer.getResults(), results))
    call.getResult(old).replaceAllUsesWith(result);
  call.erase();
  return fewer;
}

/// Drops results of the segment that nothing uses; returns whether it has.
static bool prune(CalledSegment &called) {
  SmallVector<unsigned> used, results;
  for (auto [position, result] : llvm::enumerate(called.results))
    if (llvm::any_of(called.calls, [&](func::CallOp call) {
          return !call.getResult(position).use_empty();
        })) {
      used.push_back(position);
      results.push_back(result);
    }
  if (called.calls.empty() ||
      (!results.empty() && results.size() == called.results.size()))
    return false;
  if (results.empty()) {
    for (func::CallOp call : called.calls)
      call.erase();
    called.calls.clear();
    called.results.clear();
    return true;
  }
  ArrayRef<unsigned> before = called.getPruned().inputs;
  called.results = results;
  ArrayRef<unsigned> inputs = called.getPruned().inputs;
  SmallVector<unsigned> operands;
  for (auto [position, input] : llvm::enumerate(before))
    if (llvm::is_contained(inputs, input))
      operands.push_back(position);
  for (func::CallOp &call : called.calls)
    call = rebuild(call, operands, used);
  return true;
}

void pruneSegments(std::vector<CalledSegment> &segments) {
  for (bool changed = true; changed;) {
    changed = false;
    // What is called later is needed by less.
    for (CalledSegment &called : llvm::reverse(segments))
      changed |= prune(called);
  }
  llvm::erase_if(segments, [](const CalledSegment &called) {
    return called.calls.empty();
  });
}

//===----------------------------------------------------------------------===//
// Equal segments
//===----------------------------------------------------------------------===//

using Locations = std::vector<Location>;

/// Changes all locations in a segment, in an order that follows from its
/// operations.
static void mapLocations(func::FuncOp segment,
                         llvm::function_ref<Location(Location)> change) {
  segment.walk([&](Operation *op) {
    op->setLoc(change(op->getLoc()));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(change(argument.getLoc()));
  });
}

/// Returns the locations as they were.
static Locations removeScopes(func::FuncOp segment) {
  Locations locations;
  llvm::DenseMap<Location, Location> known;
  mapLocations(segment, [&](Location location) {
    locations.push_back(location);
    auto it = known.find(location);
    if (it == known.end())
      it = known.insert({location, withoutScopes(location)}).first;
    return it->second;
  });
  return locations;
}

static void setLocations(func::FuncOp segment, const Locations &locations) {
  auto next = locations.begin();
  mapLocations(segment, [&](Location) { return *next++; });
}

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

void addSegments(ModuleOp module,
                 ArrayRef<std::vector<CalledSegment>> schedules) {
  MLIRContext *context = module.getContext();
  llvm::MapVector<Operation *, OwningOpRef<func::FuncOp> *> owners;
  for (ArrayRef<CalledSegment> segments : schedules)
    for (const CalledSegment &called : segments) {
      OwningOpRef<func::FuncOp> &function = called.getPruned().function;
      owners.try_emplace(function.get(), &function);
    }
  auto functions = llvm::map_to_vector(owners, [](const auto &entry) {
    return cast<func::FuncOp>(entry.first);
  });
  // Equal TaskGraphs have equal segments, whatever their scopes are called.
  std::vector<size_t> hashes(functions.size());
  std::vector<Locations> locations(functions.size());
  parallelFor(context, 0, functions.size(), [&](size_t i) {
    locations[i] = removeScopes(functions[i]);
    hashes[i] = hashSegment(functions[i]);
  });
  // The first one of a hash stands for those that are equal to it.
  std::unordered_map<size_t, func::FuncOp> firstOf;
  for (auto [hash, function] : llvm::zip_equal(hashes, functions))
    firstOf.try_emplace(hash, function);
  std::vector<func::FuncOp> same(functions.size());
  parallelFor(context, 0, functions.size(), [&](size_t i) {
    func::FuncOp function = functions[i], first = firstOf.at(hashes[i]);
    same[i] = first == function || areEqual(function, first) ? first : function;
  });

  // Of one that several scopes share, its calls say which one they are of.
  llvm::DenseMap<Operation *, const Locations *> locationsOf;
  for (auto [function, first, own] :
       llvm::zip_equal(functions, same, locations))
    if (auto [it, isNew] = locationsOf.try_emplace(first, &own);
        !isNew && it->second && *it->second != own)
      it->second = nullptr;
  for (auto [function, own] : locationsOf)
    if (own)
      setLocations(cast<func::FuncOp>(function), *own);

  llvm::DenseMap<Operation *, FlatSymbolRefAttr> symbols;
  int64_t count = 0;
  for (auto [function, first] : llvm::zip_equal(functions, same)) {
    if (function == first)
      function.setName(("segment_" + Twine(count++)).str());
    symbols[function] = FlatSymbolRefAttr::get(first.getNameAttr());
  }
  parallelFor(context, 0, schedules.size(), [&](size_t i) {
    for (const CalledSegment &called : schedules[i]) {
      FlatSymbolRefAttr symbol = symbols.lookup(*called.getPruned().function);
      for (func::CallOp call : called.calls)
        call.setCalleeAttr(symbol);
    }
  });
  for (auto [function, first] : llvm::zip_equal(functions, same))
    if (function == first)
      module.push_back(owners[function]->release());
}

} // namespace whale
