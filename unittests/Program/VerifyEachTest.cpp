//===- VerifyEachTest.cpp - Tests of when the verifier runs -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Program/Compile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;

namespace {

/// Leaves the function without what it returns, or gives it that.
struct ChangeResults : PassWrapper<ChangeResults, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChangeResults)
  explicit ChangeResults(bool isValid) : isValid(isValid) {}

  void runOnOperation() override {
    auto function = *getOperation().getOps<func::FuncOp>().begin();
    Operation *end = function.front().getTerminator();
    end->setOperands(isValid ? function.getArguments() : ValueRange());
  }

  bool isValid;
};

/// Whether two passes run, of which the first leaves invalid IR to the second.
bool runs() {
  MLIRContext context;
  context.loadDialect<func::FuncDialect>();
  context.getDiagEngine().registerHandler([](Diagnostic &) {});
  OpBuilder b(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(b.getUnknownLoc());
  b.setInsertionPointToEnd(module->getBody());
  Type type = b.getI32Type();
  auto function = func::FuncOp::create(b, b.getUnknownLoc(), "f",
                                       b.getFunctionType(type, type));
  b.setInsertionPointToEnd(function.addEntryBlock());
  func::ReturnOp::create(b, b.getUnknownLoc(), function.getArguments());

  PassManager manager(&context);
  whale::configureVerifier(manager);
  manager.addPass(std::make_unique<ChangeResults>(/*isValid=*/false));
  manager.addPass(std::make_unique<ChangeResults>(/*isValid=*/true));
  return succeeded(manager.run(*module));
}

TEST(VerifyEach, FollowsTheVariable) {
  setenv(whale::kVerifyEachVariable.data(), "1", 1);
  EXPECT_FALSE(runs());
  setenv(whale::kVerifyEachVariable.data(), "0", 1);
  EXPECT_TRUE(runs());
  unsetenv(whale::kVerifyEachVariable.data());
  EXPECT_TRUE(runs());
}

} // namespace
