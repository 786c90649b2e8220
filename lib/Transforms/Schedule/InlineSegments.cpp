//===- InlineSegments.cpp - whale-inline-segments -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Import/InlineBody.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Transforms/Passes.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_INLINESEGMENTS
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

struct InlineSegments : impl::InlineSegmentsBase<InlineSegments> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> classes = getRankClasses(getOperation());
    llvm::SetVector<Operation *> bodies;
    for (func::FuncOp function : classes)
      for (auto call : function.front().getOps<func::CallOp>()) {
        auto body = symbols.lookup<func::FuncOp>(call.getCallee());
        if (!body || body.isExternal()) {
          call.emitError("calls @")
              << call.getCallee() << ", which has no body";
          return signalPassFailure();
        }
        bodies.insert(body);
      }
    parallelForEach(&getContext(), classes, [&](func::FuncOp function) {
      for (auto call :
           llvm::make_early_inc_range(function.front().getOps<func::CallOp>()))
        inlineBody(call, symbols.lookup<func::FuncOp>(call.getCallee()));
    });
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function->hasAttr(kRanksAttrName))
        function.walk([&](func::CallOp call) {
          bodies.remove(symbols.lookup(call.getCallee()));
        });
    for (Operation *body : bodies)
      body->erase();
  }
};

} // namespace
} // namespace whale
