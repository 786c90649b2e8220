//===- Feedback.cpp - Which result is an argument's next value ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/Attributes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace whale {

namespace {

/// Consecutive arguments or results that are leaves of one tree.
struct Tree {
  StringRef name;
  unsigned first = 0;
  /// The path of each leaf inside the tree, and its type.
  SmallVector<std::pair<StringRef, Type>> leaves;
};

StringRef argumentLabel(func::FuncOp main, unsigned index) {
  if (auto name = dyn_cast<NameLoc>(main.getArgument(index).getLoc()))
    return name.getName().getValue();
  return "";
}

StringRef resultLabel(func::FuncOp main, unsigned index) {
  if (auto info =
          main.getResultAttrOfType<StringAttr>(index, "jax.result_info"))
    return info.getValue();
  return "";
}

/// Where the path inside the tree starts: after `params`, or `result[0]`.
size_t endOfTreeName(StringRef label, bool isResult) {
  size_t end = label.find_first_of("[.");
  if (end == StringRef::npos)
    return label.size();
  if (!isResult || label[end] != '[')
    return end;
  size_t close = label.find(']', end);
  return close == StringRef::npos ? label.size() : close + 1;
}

SmallVector<Tree> group(TypeRange types, bool isResult,
                        llvm::function_ref<StringRef(unsigned)> labelOf) {
  SmallVector<Tree> trees;
  for (auto [index, type] : llvm::enumerate(types)) {
    StringRef label = labelOf(index);
    size_t end = endOfTreeName(label, isResult);
    StringRef name = label.take_front(end);
    if (trees.empty() || name.empty() || trees.back().name != name)
      trees.push_back({name, static_cast<unsigned>(index), {}});
    trees.back().leaves.emplace_back(label.substr(end), type);
  }
  return trees;
}

/// A longest common subsequence of `rows` and `columns`, as pairs of indices;
/// each row goes to the first column possible.
template <typename Range, typename Equal>
SmallVector<std::pair<size_t, size_t>>
longestMatch(const Range &rows, const Range &columns, Equal equal) {
  size_t m = rows.size(), n = columns.size();
  // best[i][j]: the length for the rows from i and the columns from j.
  std::vector<std::vector<unsigned>> best(m + 1,
                                          std::vector<unsigned>(n + 1, 0));
  for (size_t i = m; i-- > 0;)
    for (size_t j = n; j-- > 0;)
      best[i][j] = equal(rows[i], columns[j])
                       ? best[i + 1][j + 1] + 1
                       : std::max(best[i + 1][j], best[i][j + 1]);
  SmallVector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0, j = 0; i < m && j < n;) {
    if (equal(rows[i], columns[j]))
      pairs.emplace_back(i++, j++);
    else if (best[i][j + 1] >= best[i + 1][j])
      ++j;
    else
      ++i;
  }
  return pairs;
}

} // namespace

SmallVector<std::optional<unsigned>> findFeedback(func::FuncOp main) {
  FunctionType type = main.getFunctionType();
  SmallVector<std::optional<unsigned>> result(type.getNumInputs());
  bool written = false;
  for (unsigned i = 0; i < type.getNumInputs(); ++i)
    if (auto fedBy = main.getArgAttrOfType<IntegerAttr>(i, kFedByAttr)) {
      result[i] = fedBy.getInt();
      written = true;
    }
  if (written)
    return result;

  SmallVector<Tree> arguments =
      group(type.getInputs(), /*isResult=*/false,
            [&](unsigned i) { return argumentLabel(main, i); });
  SmallVector<Tree> results =
      group(type.getResults(), /*isResult=*/true,
            [&](unsigned i) { return resultLabel(main, i); });
  auto trees =
      longestMatch(arguments, results, [](const Tree &a, const Tree &b) {
        return a.leaves == b.leaves;
      });
  for (auto [argument, output] : trees)
    for (size_t leaf = 0; leaf < arguments[argument].leaves.size(); ++leaf)
      result[arguments[argument].first + leaf] = results[output].first + leaf;
  if (!trees.empty())
    return result;

  auto leaves = longestMatch(type.getInputs(), type.getResults(),
                             [](Type a, Type b) { return a == b; });
  for (auto [argument, output] : leaves)
    result[argument] = output;
  return result;
}

SmallVector<int64_t> findFedArguments(func::FuncOp main) {
  SmallVector<int64_t> arguments(main.getNumResults(), -1);
  for (auto [argument, result] : llvm::enumerate(findFeedback(main)))
    if (result)
      arguments[*result] = argument;
  return arguments;
}

} // namespace whale
