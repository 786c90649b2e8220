//===- PlanBuffers.cpp - Give every value a place in memory -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translates each rank class function to the planner's structure and writes
// its answer as attributes. Which arguments give their buffers to results is
// settled for all classes together: the program has one list of arguments.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/BufferPlan.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace whale {

#define GEN_PASS_DEF_PLANBUFFERS
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

using Alias = std::pair<unsigned, unsigned>;

/// One rank class function as the planner sees it.
class ClassPlanner {
public:
  explicit ClassPlanner(func::FuncOp function) : function(function) {}

  LogicalResult translate();
  void plan(ArrayRef<Alias> aliases) { result = planBuffers(buffers, aliases); }
  LogicalResult annotate();

  func::FuncOp function;
  BufferPlan result;

private:
  LogicalResult addValue(Value value, bool constant = false);
  LogicalResult translate(Block &block, BufferRegion &region);
  LogicalResult translate(Operation &op, BufferInstr &instr);
  void annotate(Block &block, unsigned &instr, unsigned &region);
  DenseI64ArrayAttr flat(ArrayRef<BufferCopy> copies);

  BufferFunction buffers;
  llvm::DenseMap<Value, unsigned> numbers;
  llvm::DenseMap<Type, unsigned> elements;
};

LogicalResult ClassPlanner::addValue(Value value, bool constant) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() ||
      (type.getNumElements() && getTensorBytes(type) == 0))
    return emitError(value.getLoc())
           << "a value of type " << value.getType() << " has no buffer";
  numbers[value] = buffers.values.size();
  unsigned element =
      elements.try_emplace(type.getElementType(), elements.size())
          .first->second;
  buffers.values.push_back({getTensorBytes(type), constant, element});
  return success();
}

LogicalResult ClassPlanner::translate() {
  if (!function.getBody().hasOneBlock())
    return function.emitError("is not a single block");
  return translate(function.getBody().front(), buffers.body);
}

LogicalResult ClassPlanner::translate(Block &block, BufferRegion &region) {
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

LogicalResult ClassPlanner::translate(Operation &op, BufferInstr &instr) {
  if (isa<stablehlo::ReshapeOp>(op))
    instr.kind = BufferInstr::View;
  else if (auto wait = dyn_cast<WaitOp>(op))
    instr.kind = wait.getReceived() ? BufferInstr::View : BufferInstr::Op;
  else if (isa<stablehlo::WhileOp>(op))
    instr.kind = BufferInstr::While;
  else if (isa<stablehlo::CaseOp>(op))
    instr.kind = BufferInstr::Case;
  else if (!isa<stablehlo::ConstantOp, LaunchOp, MatmulOp, ConvolutionOp,
                LibraryCallOp, ShardOffsetOp, CollectiveOp>(op))
    return op.emitError("cannot stand in a program: it was not lowered to a "
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
  if (auto inPlace = dyn_cast<InPlaceOp>(op))
    for (const InPlacePair &pair : inPlace.getInPlacePairs())
      instr.inPlace.push_back({pair.result, pair.operand, pair.required});
  return success();
}

DenseI64ArrayAttr ClassPlanner::flat(ArrayRef<BufferCopy> copies) {
  SmallVector<int64_t> list;
  for (const BufferCopy &copy : copies)
    list.append({int64_t(copy.src), int64_t(copy.dst)});
  return DenseI64ArrayAttr::get(function.getContext(), list);
}

void ClassPlanner::annotate(Block &block, unsigned &instr, unsigned &region) {
  ArrayRef<BufferCopy> atEnd = result.atEnd[region++];
  for (Operation &op : block.without_terminator()) {
    SmallVector<int64_t> out;
    for (Value value : op.getResults())
      if (!isa<TokenType>(value.getType()))
        out.push_back(result.bufferOf[numbers[value]]);
    op.setAttr("whale.out", DenseI64ArrayAttr::get(op.getContext(), out));
    if (!result.before[instr].empty())
      op.setAttr("whale.copies", flat(result.before[instr]));
    ++instr;
    for (Region &inner : op.getRegions())
      annotate(inner.front(), instr, region);
  }
  if (!atEnd.empty())
    block.getTerminator()->setAttr("whale.copies", flat(atEnd));
}

LogicalResult ClassPlanner::annotate() {
  if (std::optional<std::string> error = verifyBufferPlan(buffers, result))
    return function.emitError("the buffer plan is wrong: ") << *error;
  Builder builder(function.getContext());
  SmallVector<Attribute> list;
  for (const PlannedBuffer &buffer : result.buffers) {
    static constexpr StringLiteral names[] = {"arena", "argument", "result",
                                              "constant"};
    bool arena = buffer.space == BufferSpace::Arena;
    int64_t where = arena ? buffer.offset : buffer.index;
    if (buffer.space == BufferSpace::Constant)
      where = 0;
    list.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(names[unsigned(buffer.space)],
                              builder.getI64IntegerAttr(where)),
         builder.getNamedAttr("bytes",
                              builder.getI64IntegerAttr(buffer.bytes))}));
  }
  function->setAttr("whale.buffers", builder.getArrayAttr(list));
  function->setAttr("whale.arena_bytes",
                    builder.getI64IntegerAttr(result.arenaBytes));
  function->setAttr(
      "whale.result_buffers",
      builder.getDenseI64ArrayAttr(SmallVector<int64_t>(
          result.resultBuffer.begin(), result.resultBuffer.end())));
  for (auto [k, argument] : llvm::enumerate(result.alias)) {
    function.removeResultAttr(k, builder.getStringAttr("whale.alias"));
    if (argument)
      function.setResultAttr(k, "whale.alias",
                             builder.getI64IntegerAttr(*argument));
  }
  unsigned instr = 0, region = 0;
  annotate(function.getBody().front(), instr, region);
  return success();
}

/// The pairs of donated argument and result of one type and placement: those
/// that the program names, else the next step's value, else any that fits.
SmallVector<Alias> findAliases(ArrayRef<ClassPlanner> classes) {
  func::FuncOp first = classes.front().function;
  SmallVector<Alias> aliases;
  llvm::SmallDenseSet<unsigned> taken;
  auto fits = [&](unsigned argument, unsigned result) {
    return result < first.getNumResults() &&
           llvm::all_of(
               classes,
               [&](const ClassPlanner &c) {
                 func::FuncOp function = c.function;
                 auto same = [&](StringRef name) {
                   return function.getArgAttr(argument, name) ==
                          function.getResultAttr(result, name);
                 };
                 return function.getArgumentTypes()[argument] ==
                            function.getResultTypes()[result] &&
                        same("whale.placement") && same("whale.global_type");
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
  void runOnOperation() override {
    std::vector<ClassPlanner> classes;
    for (func::FuncOp function : getRankClasses(getOperation()))
      classes.emplace_back(function);
    for (ClassPlanner &c : classes)
      if (failed(c.translate()))
        return signalPassFailure();
    if (classes.empty())
      return;
    SmallVector<Alias> aliases = findAliases(classes);
    // What one class cannot do in place, none does. Fewer aliases never make
    // another one impossible, so a second round grants all.
    size_t wanted;
    do {
      wanted = aliases.size();
      parallelForEach(&getContext(), classes,
                      [&](ClassPlanner &c) { c.plan(aliases); });
      llvm::erase_if(aliases, [&](const Alias &alias) {
        return llvm::any_of(classes, [&](const ClassPlanner &c) {
          return c.result.alias[alias.second] != alias.first;
        });
      });
    } while (aliases.size() < wanted);
    for (ClassPlanner &c : classes)
      if (failed(c.annotate()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace whale
