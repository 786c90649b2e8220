//===- FeedbackTest.cpp - Which result is an argument's next value --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Feedback.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace whale;

namespace {

using Match = std::vector<std::optional<unsigned>>;

/// Matches a declaration of @main, given by its arguments and results.
Match match(const std::string &arguments, const std::string &results) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect>();
  context.allowUnregisteredDialects();
  // The returned values don't matter.
  std::string text = "func.func @main(" + arguments + ") -> (" + results +
                     ") { %r:9 = \"x.y\"() : () -> (tensor<f32>, tensor<f32>, "
                     "tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, "
                     "tensor<f32>, tensor<f32>, tensor<f32>)\n"
                     "\"x.return\"() : () -> () }";
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context, false));
  if (!module) {
    ADD_FAILURE() << "doesn't parse";
    return {};
  }
  auto result = findFeedback(*module->getOps<func::FuncOp>().begin());
  return Match(result.begin(), result.end());
}

TEST(Feedback, WrittenByTheFrontend) {
  EXPECT_EQ(match("%a: tensor<2xf32>, %b: tensor<2xf32> {whale.fed_by = 0 : "
                  "i64}",
                  "tensor<2xf32>, tensor<2xf32>"),
            (Match{std::nullopt, 0}));
}

TEST(Feedback, TreesByJaxNames) {
  // Equal types, but the batch is no tree of the results.
  EXPECT_EQ(match("%a: tensor<2xf32> loc(\"params['b']\"), "
                  "%b: tensor<2xf32> loc(\"params['w']\"), "
                  "%c: tensor<2xf32> loc(\"opt[0].mu['b']\"), "
                  "%d: tensor<2xf32> loc(\"opt[0].mu['w']\"), "
                  "%x: tensor<2xf32> loc(\"x\")",
                  "tensor<2xf32> {jax.result_info = \"result[0]['b']\"}, "
                  "tensor<2xf32> {jax.result_info = \"result[0]['w']\"}, "
                  "tensor<2xf32> {jax.result_info = \"result[1][0].mu['b']\"}, "
                  "tensor<2xf32> {jax.result_info = \"result[1][0].mu['w']\"}, "
                  "tensor<f32> {jax.result_info = \"result[2]\"}"),
            (Match{0, 1, 2, 3, std::nullopt}));
}

TEST(Feedback, LossFirst) {
  EXPECT_EQ(match("%a: tensor<f32> loc(\"p['b']\"), "
                  "%b: tensor<f32> loc(\"p['w']\")",
                  "tensor<f32> {jax.result_info = \"result[0]\"}, "
                  "tensor<f32> {jax.result_info = \"result[1]['b']\"}, "
                  "tensor<f32> {jax.result_info = \"result[1]['w']\"}"),
            (Match{1, 2}));
}

TEST(Feedback, TypesWithoutNames) {
  EXPECT_EQ(match("%a: tensor<2xf32>, %x: tensor<4xf32>, %b: tensor<3xf32>",
                  "tensor<f32>, tensor<2xf32>, tensor<3xf32>"),
            (Match{1, std::nullopt, 2}));
  EXPECT_EQ(match("%x: tensor<4xf32>", "tensor<f32>"), (Match{std::nullopt}));
}

} // namespace
