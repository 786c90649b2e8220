//===- LiftCallbacks.cpp - What Python gets after the step ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, into which all is inlined, with custom calls of Python functions.
// Out: those whose results the step uses, as they were; the others are gone,
// and @main has a result for each of their operands. To all passes that follow
// these are results like others: gathered, summed over micro-batches and moved
// between stages as theirs are.
//
// Blocks are walked from the outside in, and what is found in one goes a level
// up at a time: through a loop by stacks that it carries, through a branch by
// zeros that the others give. Cost: a walk, and for each call a few operations
// for each loop and branch around it.
//
//===----------------------------------------------------------------------===//

#include "LoopStacks.h"

#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/CustomCalls.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/SourceLines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace whale {
#define GEN_PASS_DEF_LIFTCALLBACKS
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;
namespace hlo = mlir::stablehlo;

namespace {

/// A call that Python makes after the step. Its values are at first those in
/// the block of the call, in the end results of @main.
struct LiftedCall {
  Location loc;
  int64_t index;
  int64_t order;
  bool hasToken = false;
  SmallVector<Value> operands = {};
  /// A boolean, null where the call is always made.
  Value isMade = {};
  /// From the outermost on, the number of each loop around it and its rounds.
  SmallVector<int64_t> loops = {};

  /// All values, of which the last one may be `isMade`.
  SmallVector<Value *> values() {
    SmallVector<Value *> all;
    for (Value &operand : operands)
      all.push_back(&operand);
    if (isMade)
      all.push_back(&isMade);
    return all;
  }
};

using LiftedCalls = std::vector<LiftedCall>;

bool isToken(Value value) { return isa<hlo::TokenType>(value.getType()); }

bool isCallback(Operation *op) {
  auto call = dyn_cast<hlo::CustomCallOp>(op);
  return call && isPythonCallback(call.getCallTargetName());
}

/// The number of the function that it calls.
std::optional<int64_t> indexOf(hlo::CustomCallOp call) {
  auto index = getConfiguration(call).getAs<IntegerAttr>("index");
  return index ? std::optional(index.getValue().getSExtValue()) : std::nullopt;
}

/// Whether the step goes on without what the call gives.
bool isLifted(Operation *callback) {
  return llvm::all_of(callback->getResults(), [](Value result) {
    return isToken(result) || result.use_empty();
  });
}

/// The first operation below `op`, or itself, that calls Python; `lifted`: of
/// those that are lifted.
Operation *findCallback(Operation *op, bool lifted = false) {
  Operation *found = nullptr;
  op->walk([&](Operation *inner) {
    if (!isCallback(inner) || (lifted && !isLifted(inner)))
      return WalkResult::advance();
    found = inner;
    return WalkResult::interrupt();
  });
  return found;
}

/// Whether some call that led to an operation is in this file.
bool isIn(Location loc, StringRef file) {
  WalkResult result = loc->walk([&](Location part) {
    auto position = dyn_cast<FileLineColLoc>(part);
    return position && position.getFilename().getValue().contains(file)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// The file of equinox's error_if.
constexpr StringLiteral kEquinoxErrors = "/equinox/_errors.py";

bool isErrorIf(Operation *op) { return isIn(op->getLoc(), kEquinoxErrors); }

constexpr StringLiteral kErrorIfRemedy =
    "start Python with EQX_ON_ERROR=nan in its environment, and equinox's "
    "error_if gives NaN where it would raise";

/// What the user has written: "debug_print".
StringRef nameOf(Location loc) {
  if (isIn(loc, kEquinoxErrors))
    return "error_if";
  StringRef name = "callback";
  loc->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named)
      return WalkResult::advance();
    name = named.getName().getValue();
    return WalkResult::interrupt();
  });
  return name.substr(name.rfind('/') + 1).rtrim(':');
}

/// The same, and where: "debug_print at train.py:12".
std::string describe(Location loc) {
  StringRef name = nameOf(loc);
  std::string line = getUserLine(loc);
  bool isUnknown =
      line.empty() || (isIn(loc, kEquinoxErrors) && !findCaller(loc));
  return isUnknown ? name.str() : (name + " at " + line).str();
}

InFlightDiagnostic emitUnsupported(Operation *callback) {
  return callback->emitError("a call of a Python function (jax.debug.print, "
                             "jax.pure_callback, ...) is not supported");
}

/// A tensor of zeros.
Value createZeros(OpBuilder &b, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  if (auto complex = dyn_cast<ComplexType>(element)) {
    Value part = createZeros(b, loc, tensor.clone(complex.getElementType()));
    return hlo::ComplexOp::create(b, loc, part, part);
  }
  return hlo::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(tensor, Attribute(b.getZeroAttr(element))));
}

/// An integer, of a type of no dimensions.
Value createConstant(OpBuilder &b, Location loc, Type type, int64_t value) {
  auto scalar = cast<RankedTensorType>(type);
  Attribute number = b.getIntegerAttr(scalar.getElementType(), value);
  return hlo::ConstantOp::create(b, loc,
                                 DenseElementsAttr::get(scalar, number));
}

Value createTrue(OpBuilder &b, Location loc) {
  auto type = RankedTensorType::get({}, b.getI1Type());
  return hlo::ConstantOp::create(b, loc, DenseElementsAttr::get(type, true));
}

class Lifter {
public:
  explicit Lifter(func::FuncOp main) : main(main) {}

  LogicalResult run() {
    LiftedCalls calls;
    if (failed(liftBlock(main.front(), calls)) || failed(checkOrder()) ||
        failed(dropTokens()))
      return failure();
    for (LiftedCall &call : calls)
      addResults(call);
    return success();
  }

private:
  LogicalResult liftBlock(Block &block, LiftedCalls &calls);
  void liftCall(hlo::CustomCallOp call, LiftedCalls &calls);
  LogicalResult liftLoop(hlo::WhileOp loop, LiftedCalls &calls);
  LogicalResult liftBranches(Operation *op, LiftedCalls &calls);
  bool liftErrorIf(Operation *op, LiftedCalls &calls);
  LiftedCall describeCall(hlo::CustomCallOp call);
  void keepCall(hlo::CustomCallOp call);
  template <typename Holder>
  void keepCalls(Holder &&holder) {
    holder.walk([&](hlo::CustomCallOp call) {
      if (isCallback(call))
        keepCall(call);
    });
  }
  LogicalResult checkOrder();
  LogicalResult dropTokens();
  void addResults(LiftedCall &call);

  func::FuncOp main;
  /// Of the next call or loop.
  int64_t nextOrder = 0;
  /// What ordered calls that are lifted are to the user, and those that stay.
  llvm::StringSet<> lateNames;
  SmallVector<hlo::CustomCallOp> orderedCalls;
};

LogicalResult Lifter::liftBlock(Block &block, LiftedCalls &calls) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    LogicalResult result = success();
    if (isCallback(&op) && isLifted(&op))
      liftCall(cast<hlo::CustomCallOp>(op), calls);
    else if (isCallback(&op))
      keepCall(cast<hlo::CustomCallOp>(op));
    else if (auto loop = dyn_cast<hlo::WhileOp>(op))
      result = liftLoop(loop, calls);
    else if (hlo::isBranch(&op))
      result = liftBranches(&op, calls);
    else if (Operation *inner = findCallback(&op))
      result =
          emitUnsupported(inner)
          << " inside of "
          << (isa<sdy::ManualComputationOp>(op) ? "jax.shard_map"
                                                : op.getName().getStringRef())
          << "; return the value and call the function outside of it";
    if (failed(result))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

LiftedCall Lifter::describeCall(hlo::CustomCallOp call) {
  return {call.getLoc(), *indexOf(call), nextOrder++};
}

void Lifter::liftCall(hlo::CustomCallOp call, LiftedCalls &calls) {
  LiftedCall lifted = describeCall(call);
  for (Value operand : call->getOperands()) {
    if (isToken(operand))
      lifted.hasToken = true;
    else
      lifted.operands.push_back(operand);
  }
  for (Value result : call->getResults())
    if (isToken(result))
      result.replaceAllUsesWith(call->getOperand(0));
  if (lifted.hasToken)
    lateNames.insert(nameOf(call.getLoc()));
  OpBuilder b(call);
  if (lifted.operands.empty())
    lifted.isMade = createTrue(b, call.getLoc());
  calls.push_back(std::move(lifted));
  call.erase();
}

/// Leaves a call in the step.
void Lifter::keepCall(hlo::CustomCallOp call) {
  for (StringRef name : {"operand_layouts", "result_layouts", "sdy.sharding"})
    call->removeAttr(name);
  if (llvm::any_of(call->getOperands(), isToken))
    orderedCalls.push_back(call);
}

/// An ordered call in the step comes before all that wait for its end.
LogicalResult Lifter::checkOrder() {
  for (hlo::CustomCallOp call : orderedCalls)
    if (lateNames.contains(nameOf(call.getLoc())))
      return emitUnsupported(call)
             << " where its result is used beside ordered calls without "
                "results, which are made when the step has ended; give one of "
                "them ordered=False";
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult Lifter::liftLoop(hlo::WhileOp loop, LiftedCalls &calls) {
  int64_t number = nextOrder++;
  if (!findCallback(loop))
    return success();
  std::optional<CountedLoop> counted = countedLoop(loop);
  auto fail = [&](Operation *callback, StringRef what) {
    InFlightDiagnostic error = emitUnsupported(callback);
    error << " in " << what
          << "; return the value and use it outside of the step, or write a "
             "loop of a fixed number of rounds, as jax.lax.scan";
    error.attachNote(loop.getLoc()) << "this is the loop";
    return failure();
  };
  for (Operation &op : loop.getCond().front())
    if (Operation *callback = findCallback(&op, /*lifted=*/true))
      return fail(callback, "the condition of a loop");
  if (!counted) {
    if (Operation *callback = findCallback(loop, /*lifted=*/true))
      return fail(callback, "a loop whose number of rounds depends on what it "
                            "computes");
    keepCalls(loop);
    return success();
  }
  keepCalls(loop.getCond());
  LiftedCalls inside;
  if (failed(liftBlock(loop.getBody().front(), inside)))
    return failure();
  // In no rounds no call is made.
  if (inside.empty() || counted->trips == 0)
    return success();

  Block &body = loop.getBody().front();
  Operation *yield = body.getTerminator();
  Location loc = loop.getLoc();
  OpBuilder outside(loop), b(yield);
  Value position = body.getArgument(counted->counter);
  auto constant = [&](int64_t value) {
    return createConstant(b, loc, position.getType(), value);
  };
  if (counted->start != 0)
    position =
        hlo::SubtractOp::create(b, loc, position, constant(counted->start));
  if (counted->step != 1)
    position = hlo::DivOp::create(b, loc, position, constant(counted->step));

  SmallVector<Value> initial(loop->getOperands()), next(yield->getOperands());
  SmallVector<Value *> lifted;
  for (LiftedCall &call : inside)
    for (Value *value : call.values()) {
      RankedTensorType type = getStackType(counted->trips, value->getType());
      initial.push_back(createZeros(outside, call.loc, type));
      loop.getCond().front().addArgument(type, call.loc);
      Value stack = body.addArgument(type, call.loc);
      next.push_back(storeRow(b, call.loc, loop, *value, stack, position));
      lifted.push_back(value);
    }
  yield->setOperands(next);
  auto replacement = hlo::WhileOp::create(
      outside, loc, TypeRange(ValueRange(initial)), initial);
  replacement->setAttrs(loop->getDiscardableAttrDictionary());
  replacement.getCond().takeBody(loop.getCond());
  replacement.getBody().takeBody(loop.getBody());
  unsigned count = loop->getNumResults();
  loop->replaceAllUsesWith(replacement->getResults().take_front(count));
  for (auto [value, stack] :
       llvm::zip_equal(lifted, replacement->getResults().drop_front(count)))
    *value = stack;
  for (LiftedCall &call : inside) {
    call.loops.insert(call.loops.begin(), {number, counted->trips});
    calls.push_back(std::move(call));
  }
  loop.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

LogicalResult Lifter::liftBranches(Operation *op, LiftedCalls &calls) {
  if (!findCallback(op) || liftErrorIf(op, calls))
    return success();
  SmallVector<LiftedCalls> inside(op->getNumRegions());
  for (auto [region, found] : llvm::zip_equal(op->getRegions(), inside))
    if (failed(liftBlock(region.front(), found)))
      return failure();

  SmallVector<Type> types(op->getResultTypes());
  for (auto [number, found] : llvm::enumerate(inside))
    for (LiftedCall &call : found) {
      if (!call.isMade) {
        OpBuilder b(op->getRegion(number).front().getTerminator());
        call.isMade = createTrue(b, call.loc);
      }
      for (Value *value : call.values()) {
        types.push_back(value->getType());
        for (auto [other, region] : llvm::enumerate(op->getRegions())) {
          Operation *yield = region.front().getTerminator();
          OpBuilder b(yield);
          Value given = other == number
                            ? *value
                            : createZeros(b, call.loc, value->getType());
          yield->insertOperands(yield->getNumOperands(), given);
        }
      }
    }
  OpBuilder b(op);
  OperationState state(op->getLoc(), op->getName(), op->getOperands(), types,
                       op->getAttrs());
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  Operation *replacement = b.create(state);
  unsigned next = op->getNumResults();
  op->replaceAllUsesWith(replacement->getResults().take_front(next));
  for (LiftedCalls &found : inside)
    for (LiftedCall &call : found) {
      for (Value *value : call.values())
        *value = replacement->getResult(next++);
      calls.push_back(std::move(call));
    }
  op->erase();
  return success();
}

/// Pattern: case(%raises, {%x}, {custom_call error_if}) -> %x
///
/// The call always raises, so what its branch gives is never used.
bool Lifter::liftErrorIf(Operation *op, LiftedCalls &calls) {
  auto choice = dyn_cast<hlo::CaseOp>(op);
  if (!choice || choice->getNumRegions() != 2)
    return false;
  hlo::CustomCallOp raising;
  unsigned number = 0;
  // A second call is for TPUs; where it opens a debugger there are three.
  unsigned count = 0;
  choice->walk([&](hlo::CustomCallOp call) {
    // The checks of whale-check-nans are left out.
    if (!isCallback(call) || indexOf(call) < 0)
      return;
    ++count;
    if (!raising && isErrorIf(call)) {
      raising = call;
      number = call->getParentRegion()->getRegionNumber();
    }
  });
  if (!raising || count > 2 || raising->getParentOp() != choice)
    return false;
  Region &other = choice->getRegion(1 - number);
  // What the message is chosen by is computed in front of the branches.
  Block &branch = *raising->getBlock();
  while (&branch.front() != raising && branch.front().getNumRegions() == 0)
    branch.front().moveBefore(choice);
  if (&branch.front() != raising)
    return false;
  OpBuilder b(choice);
  Location loc = raising.getLoc();
  LiftedCall lifted = describeCall(raising);
  lifted.operands.assign(raising->operand_begin(), raising->operand_end());
  Value chosen = choice.getIndex();
  Value own = createConstant(b, loc, chosen.getType(), number);
  lifted.isMade =
      hlo::CompareOp::create(b, loc, chosen, own, hlo::ComparisonDirection::EQ);
  Operation *yield = other.front().getTerminator();
  while (&other.front().front() != yield)
    other.front().front().moveBefore(choice);
  choice->replaceAllUsesWith(yield->getOperands());
  calls.push_back(std::move(lifted));
  choice.erase();
  return true;
}

//===----------------------------------------------------------------------===//
// @main
//===----------------------------------------------------------------------===//

/// Those of @main go; what is handed on, by calls that stay, too, becomes a
/// number, so that ordered calls wait for each other.
LogicalResult Lifter::dropTokens() {
  auto type =
      RankedTensorType::get({}, IntegerType::get(main.getContext(), 32));
  OpBuilder b = OpBuilder::atBlockBegin(&main.front());
  llvm::BitVector arguments(main.getNumArguments()),
      results(main.getNumResults());
  for (BlockArgument argument : main.getArguments())
    if (isToken(argument)) {
      argument.replaceAllUsesWith(createZeros(b, argument.getLoc(), type));
      arguments.set(argument.getArgNumber());
    }
  Operation *end = main.front().getTerminator();
  for (auto [index, kind] : llvm::enumerate(main.getResultTypes()))
    if (isa<hlo::TokenType>(kind))
      results.set(index);
  end->eraseOperands(results);
  // What refers to a result by its number.
  Builder builder(main.getContext());
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    for (StringRef name : {kFedByAttr, kAliasingOutputAttr})
      if (auto number = main.getArgAttrOfType<IntegerAttr>(i, name)) {
        int64_t before = 0;
        for (int result : results.set_bits())
          before += result < number.getInt();
        main.setArgAttr(
            i, name,
            builder.getIntegerAttr(number.getType(), number.getInt() - before));
      }
  if (failed(main.eraseArguments(arguments)) ||
      failed(main.eraseResults(results)))
    return failure();
  main->walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (isToken(result))
        result.setType(type);
    for (Region &region : op->getRegions())
      for (Value argument : region.getArguments())
        if (isToken(argument))
          argument.setType(type);
  });
  return success();
}

void Lifter::addResults(LiftedCall &call) {
  Operation *end = main.front().getTerminator();
  Builder b(main.getContext());
  for (auto [number, value] : llvm::enumerate(call.values())) {
    NamedAttrList callback;
    callback.set("index", b.getI64IntegerAttr(call.index));
    if (number < call.operands.size())
      callback.set("operand", b.getI64IntegerAttr(number));
    if (call.hasToken)
      callback.set("has_token", b.getUnitAttr());
    callback.set("order", b.getI64IntegerAttr(call.order));
    callback.set("loops", b.getDenseI64ArrayAttr(call.loops));
    NamedAttrList attributes;
    attributes.set("jax.result_info", b.getStringAttr(describe(call.loc)));
    attributes.set(kCallbackAttr, callback.getDictionary(b.getContext()));
    if (failed(main.insertResult(main.getNumResults(), value->getType(),
                                 attributes.getDictionary(b.getContext()))))
      llvm_unreachable("any number of results is right");
    end->insertOperands(end->getNumOperands(), *value);
  }
}

class LiftCallbacks : public whale::impl::LiftCallbacksBase<LiftCallbacks> {
  using LiftCallbacksBase::LiftCallbacksBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main)
      return;
    WalkResult result = main.walk([&](hlo::CustomCallOp call) {
      return isCallback(call) && failed(check(call)) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    // A text may have tokens, but no calls.
    if (failed(Lifter(main).run()))
      signalPassFailure();
  }

  LogicalResult check(hlo::CustomCallOp call) {
    std::optional<int64_t> index = indexOf(call);
    if (python && !index)
      return emitUnsupported(call) << " without the index of its function";
    if (python)
      return success();
    if (index && *index < 0)
      return getOperation().emitError(
          "debug_nans: only wh.jit says which operation made a NaN; leave the "
          "key out of whale.config");
    return emitUnsupported(call)
           << ": a program of whale-compile can't call back into Python; "
           << (isErrorIf(call)
                   ? kErrorIfRemedy
                   : "run the step with wh.jit, or return the value and use it "
                     "outside of the step");
  }
};

} // namespace
