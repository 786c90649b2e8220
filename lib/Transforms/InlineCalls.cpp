//===- InlineCalls.cpp - Inline every function into @main -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InlineBody.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/ScopePath.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace whale {
#define GEN_PASS_DEF_INLINECALLS
#include "whale/Transforms/Passes.h.inc"
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
    module.walk([&](Operation *op) {
      if (FlatSymbolRefAttr callee = getCallee(op))
        numberOfCall[op] = callCounts[callee.getAttr()]++;
    });
    if (failed(flatten(main)))
      return signalPassFailure();
    removeUnused(main);
  }

  /// Inlines everything into `function`, whose callees are flattened first;
  /// each body is thus copied with all that it calls.
  LogicalResult flatten(func::FuncOp function) {
    stack.insert(function);
    SmallVector<Operation *> calls;
    function.walk([&](Operation *op) {
      if (getCallee(op))
        calls.push_back(op);
    });
    for (Operation *call : calls) {
      FlatSymbolRefAttr symbol = getCallee(call);
      func::FuncOp callee = functions.lookup(symbol.getAttr());
      if (!callee || callee.isExternal())
        return call->emitError("calls ") << symbol << ", which has no body";
      if (stack.contains(callee))
        return call->emitError("recursive call of ") << symbol;
      if (!callee.getBody().hasOneBlock())
        return call->emitError("calls ")
               << symbol << ", whose body is not a single block";
      if (!flattened.contains(callee)) {
        if (failed(flatten(callee)))
          return failure();
        flattened.insert(callee);
      }
      inlineCall(call, callee);
    }
    stack.remove(function);
    return success();
  }

  void inlineCall(Operation *call, func::FuncOp callee) {
    std::optional<unsigned> number;
    if (callCounts.lookup(callee.getSymNameAttr()) > 1)
      number = numberOfCall.lookup(call);
    // Most locations of a body occur several times.
    DenseMap<Location, Location> composed;
    auto compose = [&](Operation *op) {
      auto [it, isNew] = composed.try_emplace(op->getLoc(), op->getLoc());
      if (isNew)
        it->second = composeLocations(call->getLoc(), op->getLoc(), number);
      op->setLoc(it->second);
    };
    inlineBody(call, callee, [&](Operation *op) { op->walk(compose); });
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
  SetVector<Operation *> stack;
  DenseSet<Operation *> flattened;
};

} // namespace
