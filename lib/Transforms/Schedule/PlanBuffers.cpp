//===- PlanBuffers.cpp - Give every value a place in memory -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the segments and rank classes of the program, lowered to kernels, library
// calls and collectives. Out: attributes that give each value its buffer.
//
// Translates each function to the planner's structure and writes its answer as
// attributes. Segments come first: rank classes call them. Which arguments give
// their buffers to results is settled for all classes together: the program has
// one list of arguments. Cost: translation is linear; the planner's work is
// done for several functions at a time. Donated arguments that nothing feeds
// search all results for one of their type and placement, in all classes; each
// round of agreement compares each alias with all that a class has granted:
// both are quadratic in the arguments.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/Step/BufferPeak.h"
#include "whale/Step/BufferPlan.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/ScopePath.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace whale {

#define GEN_PASS_DEF_PLANBUFFERS
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

using Alias = BufferPlanner::Alias;

/// The segments by name, each with its plan.
using Segments = llvm::DenseMap<StringAttr, const SegmentPlan *>;

/// A schedule or a segment as the planner sees it.
class FunctionPlanner {
public:
  FunctionPlanner(FunctionOpInterface function, int64_t alignment)
      : function(function), isSegment(function->hasAttr(kSegmentAttr)) {
    buffers.alignment = alignment;
  }

  LogicalResult translate(const Segments &segments);
  void planAsSegment();
  void grant(ArrayRef<Alias> aliases) {
    if (!planner)
      planner.emplace(buffers);
    granted = planner->grant(aliases);
  }
  void plan() {
    result = planner->plan();
    planner.reset();
  }
  LogicalResult annotate();
  void
  writePeak(const llvm::DenseMap<StringAttr, const FunctionPlanner *> &called);

  FunctionOpInterface function;
  SegmentPlan segment;
  SmallVector<Alias> granted;
  BufferPlan result;

private:
  LogicalResult addValue(Value value, bool constant = false);
  LogicalResult translate(Block &block, BufferRegion &region);
  LogicalResult translate(Operation &op, BufferInstr &instr);
  LogicalResult translateCall(func::CallOp op, BufferInstr &instr);
  LogicalResult translateView(ViewOp op, BufferInstr &instr);
  unsigned getGroup(Operation &op);
  DictionaryAttr describe(const PlannedBuffer &buffer);
  void setCopies(Operation *op, ArrayRef<BufferCopy> copies);
  void annotate(Block &block, unsigned &instr, unsigned &region);
  void annotateClass();
  /// The values by their numbers.
  std::vector<Value> listValues() const;
  DenseI64ArrayAttr flat(ArrayRef<BufferCopy> copies);

  bool isSegment;
  BufferFunction buffers;
  std::optional<BufferPlanner> planner;
  llvm::DenseMap<Value, unsigned> numbers;
  /// By type, and whether it is in the memory of the host.
  llvm::DenseMap<std::pair<Type, int>, unsigned> elements;
  const Segments *segments = nullptr;
  /// The segments that are called, with their numbers here.
  llvm::MapVector<StringAttr, unsigned> callees;
  std::map<std::vector<const void *>, unsigned> groups;
};

/// Whether a value is in the memory of the host.
static bool isInHost(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto schedule = dyn_cast<ScheduleOp>(argument.getOwner()->getParentOp());
    return schedule &&
           schedule.getArgAttr(argument.getArgNumber(), kInHostAttr);
  }
  if (auto wait = value.getDefiningOp<WaitOp>())
    return isa<DeviceToHostOp>(wait.getCollective());
  return isa<DeviceToHostOp>(value.getDefiningOp());
}

LogicalResult FunctionPlanner::addValue(Value value, bool constant) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() ||
      (type.getNumElements() && getTensorBytes(type) == 0))
    return emitError(value.getLoc())
           << "a value of type " << value.getType() << " has no buffer";
  numbers[value] = buffers.values.size();
  // What is in the host's memory shares no buffer with what is not.
  unsigned element = elements
                         .try_emplace({type.getElementType(), isInHost(value)},
                                      elements.size())
                         .first->second;
  buffers.values.push_back({getTensorBytes(type), constant, element});
  return success();
}

LogicalResult FunctionPlanner::translate(const Segments &segments) {
  this->segments = &segments;
  if (!function.getFunctionBody().hasOneBlock())
    return function.emitError("is not a single block");
  return translate(function.getFunctionBody().front(), buffers.body);
}

LogicalResult FunctionPlanner::translate(Block &block, BufferRegion &region) {
  for (BlockArgument argument : block.getArguments()) {
    if (failed(addValue(argument)))
      return failure();
    region.args.push_back(numbers[argument]);
  }
  for (Operation &op : block.without_terminator()) {
    region.instrs.emplace_back();
    if (failed(translate(op, region.instrs.back())))
      return failure();
  }
  for (Value value : block.getTerminator()->getOperands())
    region.yields.push_back(numbers[value]);
  return success();
}

LogicalResult FunctionPlanner::translate(Operation &op, BufferInstr &instr) {
  if (isSegment &&
      isa<func::CallOp, ViewOp, PackOp, UnpackOp, ShardOffsetOp, CollectiveOp>(
          op))
    return op.emitError("cannot be in a segment");
  if (isa<stablehlo::ReshapeOp, AfterOp>(op))
    instr.kind = BufferInstr::View;
  else if (auto wait = dyn_cast<WaitOp>(op))
    instr.kind = wait.getReceived() ? BufferInstr::View : BufferInstr::Op;
  else if (isa<PackOp>(op))
    instr.kind = BufferInstr::Pack;
  else if (isa<UnpackOp>(op))
    instr.kind = BufferInstr::Unpack;
  else if (isa<stablehlo::WhileOp>(op))
    instr.kind = BufferInstr::While;
  else if (isa<stablehlo::CaseOp>(op))
    instr.kind = BufferInstr::Case;
  else if (auto call = dyn_cast<func::CallOp>(op)) {
    if (failed(translateCall(call, instr)))
      return failure();
  } else if (auto view = dyn_cast<ViewOp>(op)) {
    if (failed(translateView(view, instr)))
      return failure();
  } else if (!isa<stablehlo::ConstantOp, LaunchOp, MatmulOp, ConvolutionOp,
                  LibraryCallOp, ShardOffsetOp, CollectiveOp>(op))
    return op.emitError("cannot be in a program: it was not lowered to a "
                        "kernel, a library call or a collective");
  for (Value operand : op.getOperands())
    if (!isa<TokenType>(operand.getType()))
      instr.operands.push_back(numbers[operand]);
  for (Region &inner : op.getRegions()) {
    instr.regions.emplace_back();
    if (failed(translate(inner.front(), instr.regions.back())))
      return failure();
  }
  bool constant = isa<stablehlo::ConstantOp, ShardOffsetOp>(op);
  for (Value value : op.getResults()) {
    if (isa<TokenType>(value.getType()))
      continue;
    if (failed(addValue(value, constant)))
      return failure();
    instr.results.push_back(numbers[value]);
  }
  if (instr.kind == BufferInstr::Op)
    instr.group = getGroup(op);
  if (auto inPlace = dyn_cast<InPlaceOp>(op))
    for (const InPlacePair &pair : inPlace.getInPlacePairs())
      instr.inPlace.push_back({pair.result, pair.operand, pair.required});
  return success();
}

LogicalResult FunctionPlanner::translateCall(func::CallOp op,
                                             BufferInstr &instr) {
  StringAttr callee = op.getCalleeAttr().getAttr();
  const SegmentPlan *plan = segments->lookup(callee);
  if (!plan)
    return op.emitError("calls '")
           << op.getCallee() << "', which is no function with '" << kSegmentAttr
           << "'";
  auto [it, isNew] = callees.insert({callee, callees.size()});
  if (isNew)
    buffers.segments.push_back(plan);
  instr.kind = BufferInstr::Call;
  instr.callee = it->second;
  return success();
}

LogicalResult FunctionPlanner::translateView(ViewOp op, BufferInstr &instr) {
  Value whole = op.getInput();
  while (isa_and_present<ViewOp, stablehlo::ReshapeOp, AfterOp>(
      whole.getDefiningOp()))
    whole = whole.getDefiningOp()->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(whole);
  if (!argument || argument.getOwner() != &function.getFunctionBody().front())
    return op.emitError("cannot view what is no argument of the function: let "
                        "a kernel copy it");
  instr.kind = BufferInstr::View;
  instr.offset =
      op.getOffset() *
      getElementBytes(cast<ShapedType>(whole.getType()).getElementType());
  return success();
}

// What is in a function for each micro-batch is distinguished from the rest by
// being there many times.
unsigned FunctionPlanner::getGroup(Operation &op) {
  std::vector<const void *> key{op.getName().getAsOpaquePointer()};
  if (auto launch = dyn_cast<LaunchOp>(op))
    key.push_back(launch.getKernelAttr().getAsOpaquePointer());
  for (Type type : op.getResultTypes())
    key.push_back(type.getAsOpaquePointer());
  return groups.try_emplace(std::move(key), groups.size()).first->second;
}

void FunctionPlanner::planAsSegment() {
  SmallVector<unsigned> mayOverwrite;
  for (unsigned a = 0; a < function.getNumArguments(); ++a)
    if (function.getArgAttr(a, kLastUseAttr))
      mayOverwrite.push_back(a);
  segment = planSegment(buffers, mayOverwrite);
  result = segment.plan;
}

DenseI64ArrayAttr FunctionPlanner::flat(ArrayRef<BufferCopy> copies) {
  SmallVector<int64_t> list;
  for (const BufferCopy &copy : copies)
    list.append({int64_t(copy.src), int64_t(copy.dst)});
  return DenseI64ArrayAttr::get(function.getContext(), list);
}

DictionaryAttr FunctionPlanner::describe(const PlannedBuffer &buffer) {
  Builder builder(function.getContext());
  SmallVector<NamedAttribute> entries;
  auto add = [&](StringRef name, int64_t value) {
    entries.push_back(
        builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
  };
  switch (buffer.space) {
  case BufferSpace::Arena:
    if (isSegment)
      add("local", buffer.index);
    else
      add("arena", buffer.offset);
    break;
  case BufferSpace::Argument:
    add(isSegment ? "operand" : "argument", buffer.index);
    break;
  case BufferSpace::Result:
    add("result", buffer.index);
    if (buffer.whole)
      add("offset", buffer.offset);
    break;
  case BufferSpace::Constant:
    add("constant", 0);
    break;
  case BufferSpace::Part:
    add("argument", buffer.index);
    add("offset", buffer.offset);
    break;
  }
  add("bytes", buffer.bytes);
  return builder.getDictionaryAttr(entries);
}

/// The function may have had another plan before.
void FunctionPlanner::setCopies(Operation *op, ArrayRef<BufferCopy> copies) {
  op->removeAttr(kCopiesAttr);
  if (!copies.empty())
    op->setAttr(kCopiesAttr, flat(copies));
}

void FunctionPlanner::annotate(Block &block, unsigned &instr,
                               unsigned &region) {
  ArrayRef<BufferCopy> atEnd = result.atEnd[region++];
  for (Operation &op : block.without_terminator()) {
    SmallVector<int64_t> out;
    for (Value value : op.getResults())
      if (!isa<TokenType>(value.getType()))
        out.push_back(result.bufferOf[numbers[value]]);
    op.setAttr(kOutAttr, DenseI64ArrayAttr::get(op.getContext(), out));
    setCopies(&op, result.before[instr]);
    op.removeAttr(kLayoutAttr);
    if (unsigned layout = result.layout[instr])
      op.setAttr(kLayoutAttr,
                 Builder(op.getContext()).getI64IntegerAttr(layout));
    ++instr;
    for (Region &inner : op.getRegions())
      annotate(inner.front(), instr, region);
  }
  setCopies(block.getTerminator(), atEnd);
}

// What segments don't have: an arena, and buffers that they reuse.
void FunctionPlanner::annotateClass() {
  Builder builder(function.getContext());
  function->setAttr(kArenaBytesAttr,
                    builder.getI64IntegerAttr(result.arenaBytes));
  SmallVector<NamedAttribute> locals;
  for (auto [callee, number] : callees) {
    SmallVector<Attribute> layouts;
    for (ArrayRef<int64_t> offsets : result.locals[number])
      layouts.push_back(builder.getDenseI64ArrayAttr(offsets));
    locals.push_back(
        builder.getNamedAttr(callee, builder.getArrayAttr(layouts)));
  }
  function->removeAttr(kLocalsAttr);
  if (!locals.empty())
    function->setAttr(kLocalsAttr, builder.getDictionaryAttr(locals));
  // All together: one list has the attributes of all results.
  SmallVector<DictionaryAttr> attributes;
  for (auto [k, argument] : llvm::enumerate(result.alias)) {
    NamedAttrList all(function.getResultAttrDict(k));
    all.erase(kAliasAttr);
    if (argument)
      all.set(kAliasAttr, builder.getI64IntegerAttr(*argument));
    attributes.push_back(all.getDictionary(function.getContext()));
  }
  function.setAllResultAttrs(attributes);
}

LogicalResult FunctionPlanner::annotate() {
  if (std::optional<std::string> error =
          isSegment ? verifySegmentPlan(segment)
                    : verifyBufferPlan(buffers, result))
    return function.emitError("the buffer plan is wrong: ") << *error;
  Builder builder(function.getContext());
  SmallVector<Attribute> list;
  for (const PlannedBuffer &buffer : result.buffers)
    list.push_back(describe(buffer));
  function->setAttr(kBuffersAttr, builder.getArrayAttr(list));
  function->setAttr(
      kResultBuffersAttr,
      builder.getDenseI64ArrayAttr(SmallVector<int64_t>(
          result.resultBuffer.begin(), result.resultBuffer.end())));
  if (!isSegment)
    annotateClass();
  unsigned instr = 0, region = 0;
  annotate(function.getFunctionBody().front(), instr, region);
  return success();
}

std::vector<Value> FunctionPlanner::listValues() const {
  std::vector<Value> values(numbers.size());
  for (auto [value, number] : numbers)
    values[number] = value;
  return values;
}

/// What a value is, for who doesn't know its line: "tensor<8xf32> of a launch".
static std::string describeValue(Value value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << value.getType();
  if (Operation *op = value.getDefiningOp())
    stream << " of a " << op->getName().stripDialect();
  else
    stream << ", carried by a loop or handed to a segment";
  return text;
}

/// Says what is in the arena of a rank class at its peak: values of its own,
/// and of the segments in `called`.
void FunctionPlanner::writePeak(
    const llvm::DenseMap<StringAttr, const FunctionPlanner *> &called) {
  std::vector<std::vector<Value>> inner;
  for (auto [callee, number] : callees)
    inner.push_back(called.lookup(callee)->listValues());
  std::vector<SmallVector<func::CallOp>> calls(callees.size());
  function.walk([&](func::CallOp call) {
    calls[callees.lookup(call.getCalleeAttr().getAttr())].push_back(call);
  });
  std::vector<Value> own = listValues();
  Builder builder(function.getContext());
  SmallVector<Attribute> list;
  for (const HeldValue &held : findPeak(buffers, result)) {
    Value value =
        held.segment ? inner[*held.segment][held.value] : own[held.value];
    func::CallOp call = held.segment ? calls[*held.segment][held.call]
                                     : value.getDefiningOp<func::CallOp>();
    // What a segment gives back is made inside of it.
    if (call && !held.segment) {
      FunctionOpInterface segment =
          called.lookup(call.getCalleeAttr().getAttr())->function;
      value = segment.getFunctionBody().front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
    }
    StringRef graph = findTaskGraph(value.getLoc());
    if (graph.empty() && call)
      graph = findTaskGraph(call.getLoc());
    list.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("bytes", builder.getI64IntegerAttr(held.bytes)),
         builder.getNamedAttr("of", LocationAttr(value.getLoc())),
         builder.getNamedAttr("task_graph", builder.getStringAttr(graph)),
         builder.getNamedAttr("what",
                              builder.getStringAttr(describeValue(value)))}));
  }
  function->setAttr(kPeakAttr, builder.getArrayAttr(list));
}

/// The pairs of donated argument and result of one type and placement: those
/// that the program names, else the next step's value, else any that fits.
SmallVector<Alias> findAliases(ArrayRef<FunctionPlanner> classes) {
  FunctionOpInterface first = classes.front().function;
  SmallVector<Alias> aliases;
  llvm::SmallDenseSet<unsigned> taken;
  auto fits = [&](unsigned argument, unsigned result) {
    return result < first.getNumResults() &&
           llvm::all_of(
               classes,
               [&](const FunctionPlanner &c) {
                 FunctionOpInterface function = c.function;
                 auto same = [&](StringRef name) {
                   return function.getArgAttr(argument, name) ==
                          function.getResultAttr(result, name);
                 };
                 return function.getArgumentTypes()[argument] ==
                            function.getResultTypes()[result] &&
                        same("whale.placement") && same("whale.global_type") &&
                        same(kInHostAttr);
               });
  };
  auto take = [&](unsigned argument, unsigned result) {
    if (!fits(argument, result) || !taken.insert(result).second)
      return false;
    aliases.push_back({argument, result});
    return true;
  };
  SmallVector<unsigned> rest;
  for (unsigned a = 0; a < first.getNumArguments(); ++a) {
    auto named = first.getArgAttrOfType<IntegerAttr>(a, kAliasingOutputAttr);
    if (named && take(a, named.getInt()))
      continue;
    if (isDonated(first, a))
      rest.push_back(a);
  }
  llvm::erase_if(rest, [&](unsigned a) {
    auto fed = first.getArgAttrOfType<IntegerAttr>(a, kFedByAttr);
    return fed && take(a, fed.getInt());
  });
  for (unsigned a : rest)
    for (unsigned r = 0; r < first.getNumResults(); ++r)
      if (take(a, r))
        break;
  return aliases;
}

struct PlanBuffers : impl::PlanBuffersBase<PlanBuffers> {
  using PlanBuffersBase::PlanBuffersBase;

  void runOnOperation() override {
    std::vector<FunctionPlanner> segments, classes;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(kSegmentAttr))
        segments.emplace_back(function, alignment);
    for (ScheduleOp schedule : getRankClasses(getOperation()))
      classes.emplace_back(schedule, alignment);
    Segments plans;
    for (FunctionPlanner &s : segments)
      plans[s.function.getNameAttr()] = &s.segment;
    if (failed(forAll(segments, [&](FunctionPlanner &s) {
          if (failed(s.translate(plans)))
            return failure();
          s.planAsSegment();
          return success();
        })))
      return;
    if (failed(forAll(classes,
                      [&](FunctionPlanner &c) { return c.translate(plans); })))
      return;
    if (!classes.empty())
      planClasses(classes);
    for (auto *functions : {&segments, &classes})
      if (failed(forAll(*functions,
                        [](FunctionPlanner &f) { return f.annotate(); })))
        return;
    if (!peak)
      return;
    llvm::DenseMap<StringAttr, const FunctionPlanner *> called;
    for (const FunctionPlanner &s : segments)
      called[FunctionOpInterface(s.function).getNameAttr()] = &s;
    parallelForEach(&getContext(), classes,
                    [&](FunctionPlanner &c) { c.writePeak(called); });
  }

  /// Several at a time; each changes its own function alone.
  LogicalResult forAll(std::vector<FunctionPlanner> &functions,
                       function_ref<LogicalResult(FunctionPlanner &)> fn) {
    LogicalResult result =
        failableParallelForEach(&getContext(), functions, fn);
    if (failed(result))
      signalPassFailure();
    return result;
  }

  void planClasses(MutableArrayRef<FunctionPlanner> classes) {
    SmallVector<Alias> aliases = findAliases(classes);
    // What one class cannot do in place, none does. Fewer aliases never make
    // another one impossible, so a second round grants all.
    size_t wanted;
    do {
      wanted = aliases.size();
      parallelForEach(&getContext(), classes,
                      [&](FunctionPlanner &c) { c.grant(aliases); });
      for (const FunctionPlanner &c : classes)
        llvm::erase_if(aliases, [&](const Alias &alias) {
          return !llvm::is_contained(c.granted, alias);
        });
    } while (aliases.size() < wanted);
    parallelForEach(&getContext(), classes,
                    [](FunctionPlanner &c) { c.plan(); });
  }
};

} // namespace
} // namespace whale
