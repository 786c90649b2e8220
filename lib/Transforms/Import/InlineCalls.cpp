//===- InlineCalls.cpp - Inline every function into @main -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First all that @main calls is visited, callees before callers, to measure
// what each function becomes: errors are found before anything is copied. Then
// calls are inlined into @main from the outermost on, so that each operation is
// copied once, with the location of its call before its own. Cost: linear in
// the operations that @main has in the end, which are bounded.
//
//===----------------------------------------------------------------------===//

#include "InlineBody.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/ProgramFormat/Limits.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/ScopePath.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

namespace whale {
#define GEN_PASS_DEF_INLINECALLS
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

namespace {

/// The symbol that `op` calls, or null.
FlatSymbolRefAttr getCallee(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return call.getCalleeAttr();
  if (auto composite = dyn_cast<stablehlo::CompositeOp>(op))
    return composite.getDecompositionAttr();
  return nullptr;
}

/// A program may become this many operations, or this many for each that is
/// written. More are taken for a mistake: functions that each call the next one
/// twice make any number.
constexpr int64_t kMostOperations = 1 << 18;
constexpr int64_t kMostCopies = 32;

/// A function that is called, with what becomes of it.
struct Callee {
  /// Its calls, in the order in which they are walked, and each one's number
  /// among those of the same function.
  SmallVector<Operation *> calls;
  SmallVector<unsigned> numbers;
  /// When all is inlined: how many operations it has, and how deep its loops
  /// and branches are nested.
  int64_t operations = 0;
  int64_t depth = 0;
};

/// A call that is still to be replaced, and the numbers that scopes of what it
/// calls get.
struct PendingCall {
  Operation *op;
  std::string numbers;
};

class InlineCalls : public whale::impl::InlineCallsBase<InlineCalls> {
  using InlineCallsBase::InlineCallsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto func : module.getOps<func::FuncOp>())
      functions[func.getSymNameAttr()] = func;
    func::FuncOp main =
        functions.lookup(StringAttr::get(&getContext(), "main"));
    if (!main || main.isExternal()) {
      module.emitError("expects a function '@main' with a body");
      return signalPassFailure();
    }
    int64_t written = 0;
    module.walk([&](Operation *op) {
      ++written;
      if (FlatSymbolRefAttr callee = getCallee(op))
        numberOfCall[op] = callCounts[callee.getAttr()]++;
    });
    mostOperations = std::max(kMostOperations, kMostCopies * written);
    if (failed(visitCallees(main)))
      return signalPassFailure();
    inlineAll(main);
    removeUnused(main);
  }

  /// Looks at all that `main` calls, each function after those that it calls
  /// itself.
  LogicalResult visitCallees(func::FuncOp main) {
    // The functions on the way from `main`, and the next call of each.
    SmallVector<std::pair<func::FuncOp, unsigned>> path;
    DenseSet<Operation *> onPath;
    auto enter = [&](func::FuncOp function) {
      Callee &callee = callees[function];
      function.walk([&](Operation *op) {
        if (!getCallee(op))
          return;
        callee.calls.push_back(op);
        callee.numbers.push_back(numberOfCall.lookup(op));
      });
      path.push_back({function, 0});
      onPath.insert(function);
    };
    enter(main);
    while (!path.empty()) {
      auto &[function, next] = path.back();
      Callee &caller = callees[function];
      if (next == caller.calls.size()) {
        if (failed(measure(function, caller)))
          return failure();
        onPath.erase(function);
        path.pop_back();
        continue;
      }
      Operation *call = caller.calls[next++];
      FlatSymbolRefAttr symbol = getCallee(call);
      func::FuncOp callee = functions.lookup(symbol.getAttr());
      if (!callee || callee.isExternal())
        return call->emitError("calls ") << symbol << ", which has no body";
      if (onPath.contains(callee))
        return call->emitError("recursive call of ") << symbol;
      if (!callee.getBody().hasOneBlock())
        return call->emitError("calls ")
               << symbol << ", whose body is not a single block";
      if (!callees.contains(callee))
        enter(callee);
    }
    return success();
  }

  /// Counts what a function becomes; those that it calls are counted.
  LogicalResult measure(func::FuncOp function, Callee &callee) {
    // By operation with regions: how many loops and branches it is in.
    DenseMap<Operation *, int64_t> depths;
    Operation *deepest = function;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      int64_t depth = op == function ? 0 : depths.lookup(op->getParentOp());
      depth += stablehlo::isControlFlow(op);
      if (op->getNumRegions() != 0)
        depths[op] = depth;
      // The function and its terminator are not copied.
      int64_t operations =
          op != function && op != function.front().getTerminator();
      if (FlatSymbolRefAttr symbol = getCallee(op)) {
        const Callee &inner = callees[functions.lookup(symbol.getAttr())];
        operations = inner.operations;
        depth += inner.depth;
      }
      callee.operations += operations;
      if (depth > callee.depth) {
        callee.depth = depth;
        deepest = op;
      }
    });
    if (callee.depth > format::mostNested)
      return deepest->emitError("loops and branches are nested ")
             << callee.depth << " deep, functions that are called included, "
             << "and a program can hold " << format::mostNested;
    if (callee.operations > mostOperations)
      return function.emitError("function @")
             << function.getSymName() << " has more than " << mostOperations
             << " operations with those of all the functions that it calls, "
             << "each as often as it is called";
    return success();
  }

  /// Inlines calls into `main`, from the outermost on.
  void inlineAll(func::FuncOp main) {
    SmallVector<PendingCall> pending;
    for (Operation *call : callees[main].calls)
      pending.push_back({call, numberSuffix(call, numberOfCall.lookup(call))});
    while (!pending.empty()) {
      auto [call, numbers] = pending.pop_back_val();
      func::FuncOp function = functions.lookup(getCallee(call).getAttr());
      const Callee &callee = callees[function];
      size_t next = 0;
      // Most locations of a body occur several times.
      DenseMap<Location, Location> composed;
      inlineBody(call, function, [&](Operation *copy) {
        copy->walk([&](Operation *op) {
          auto [it, isNew] = composed.try_emplace(op->getLoc(), op->getLoc());
          if (isNew)
            it->second =
                composeLocations(call->getLoc(), op->getLoc(), numbers);
          op->setLoc(it->second);
          if (getCallee(op))
            pending.push_back(
                {op, numberSuffix(op, callee.numbers[next++]) + numbers});
        });
      });
    }
  }

  /// What the ids of scopes get for a call: nothing where there is one alone.
  std::string numberSuffix(Operation *call, unsigned number) {
    if (callCounts.lookup(getCallee(call).getAttr()) <= 1)
      return "";
    return "." + llvm::utostr(number);
  }

  /// Erases what can't be reached from `main` by symbol references.
  void removeUnused(func::FuncOp main) {
    SetVector<Operation *> used;
    used.insert(main);
    for (size_t i = 0; i < used.size(); ++i)
      if (auto uses = SymbolTable::getSymbolUses(used[i]))
        for (SymbolTable::SymbolUse use : *uses)
          if (func::FuncOp function =
                  functions.lookup(use.getSymbolRef().getRootReference()))
            used.insert(function);
    for (auto [name, function] : functions)
      if (!used.contains(function))
        function.erase();
  }

  llvm::MapVector<StringAttr, func::FuncOp> functions;
  /// How often each function is called, and the number of each call among
  /// those of the same function.
  DenseMap<StringAttr, unsigned> callCounts;
  DenseMap<Operation *, unsigned> numberOfCall;
  DenseMap<Operation *, Callee> callees;
  int64_t mostOperations = 0;
};

} // namespace
