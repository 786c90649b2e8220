//===- SegmentsTest.cpp - What is left of a segment -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Segments.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace whale;

namespace {

constexpr const char *text = R"(
  func.func private @early(%a: tensor<f32>, %b: tensor<f32>)
      -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.exponential %a : tensor<f32>
    %1 = stablehlo.negate %b : tensor<f32>
    return %0, %1 : tensor<f32>, tensor<f32>
  }
  func.func private @late(%a: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.tanh %a : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
    %0:2 = call @early(%x, %y) {whale.moment = 0 : i64}
        : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %1:2 = call @early(%0#0, %y) {whale.moment = 1 : i64}
        : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %2 = call @late(%1#1) : (tensor<f32>) -> tensor<f32>
    return %1#0 : tensor<f32>
  }
)";

// Nothing uses what @late gives, and so nothing the second result of @early.
TEST(Segments, KeepWhatSomeCallUses) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, stablehlo::StablehloDialect>();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context));
  ASSERT_TRUE(module);
  auto main = module->lookupSymbol<func::FuncOp>("main");
  Segment early, late;
  std::vector<CalledSegment> segments;
  for (auto [segment, name] :
       {std::pair(&early, "early"), std::pair(&late, "late")}) {
    auto function = module->lookupSymbol<func::FuncOp>(name);
    function->remove();
    segment->setFunction(function);
    segment->inputs.resize(function.getNumArguments());
    CalledSegment &called = segments.emplace_back(segment);
    for (auto call : main.front().getOps<func::CallOp>())
      if (call.getCallee() == name)
        called.calls.push_back(call);
  }

  pruneSegments(segments);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments.front().segment, &early);
  int64_t moment = 0;
  for (auto call : main.front().getOps<func::CallOp>()) {
    EXPECT_EQ(call.getNumOperands(), 1u);
    EXPECT_EQ(call.getNumResults(), 1u);
    EXPECT_EQ(call->getAttrOfType<IntegerAttr>("whale.moment").getInt(),
              moment++);
  }
  EXPECT_EQ(moment, 2);

  func::FuncOp left = segments.front().getPruned().function.get();
  EXPECT_EQ(left.getNumArguments(), 1u);
  EXPECT_EQ(llvm::range_size(left.front()), 2);
  // What other classes call is as it was.
  EXPECT_EQ(early.getFunction().getNumResults(), 2u);
  EXPECT_EQ(llvm::range_size(early.getFunction().front()), 3);
}

} // namespace
