//===- FeedbackTest.cpp - Which result is an argument's next value --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Feedback.h"
#include "LongestMatch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <random>

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

/// By a table of all rows and columns.
SmallVector<std::pair<size_t, size_t>>
matchByTable(ArrayRef<unsigned> rows, ArrayRef<unsigned> columns) {
  std::vector<std::vector<unsigned>> best(
      rows.size() + 1, std::vector<unsigned>(columns.size() + 1));
  for (size_t i = rows.size(); i-- > 0;)
    for (size_t j = columns.size(); j-- > 0;)
      best[i][j] = rows[i] == columns[j]
                       ? best[i + 1][j + 1] + 1
                       : std::max(best[i + 1][j], best[i][j + 1]);
  SmallVector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0, j = 0; i < rows.size() && j < columns.size();) {
    if (rows[i] == columns[j])
      pairs.emplace_back(i++, j++);
    else if (best[i][j + 1] >= best[i + 1][j])
      ++j;
    else
      ++i;
  }
  return pairs;
}

TEST(LongestMatch, IsThatOfTheWholeTable) {
  std::mt19937 random(0);
  for (int i = 0; i < 2000; ++i) {
    std::vector<unsigned> rows(random() % 12), columns(random() % 12);
    unsigned values = 1 + random() % 5;
    for (unsigned &row : rows)
      row = random() % values;
    for (unsigned &column : columns)
      column = random() % values;
    EXPECT_EQ(longestMatch(rows, columns), matchByTable(rows, columns));
  }
}

TEST(LongestMatch, IsLinearInListsThatAreMuchAlike) {
  // A state of tensors of a few types between a loss, which arguments have,
  // too, and a batch.
  auto cellsOf = [](unsigned count, unsigned types) {
    std::vector<unsigned> arguments, results = {1};
    for (unsigned i = 0; i < count; ++i)
      arguments.push_back(i % types);
    results.insert(results.end(), arguments.begin(), arguments.end());
    arguments.insert(arguments.end(), {0, 99});
    uint64_t cells = 0;
    EXPECT_GE(longestMatch(arguments, results, &cells).size(), count);
    return cells;
  };
  for (unsigned types : {1, 3, 1000})
    EXPECT_LE(cellsOf(16000, types), 17 * cellsOf(1000, types));
}

} // namespace
