//===- Feedback.cpp - Which result is an argument's next value ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Feedback.h"
#include "LongestMatch.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Transforms/Attributes.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <vector>

using namespace mlir;

namespace whale {

namespace {

/// Consecutive arguments or results that are leaves of one tree.
struct Tree {
  StringRef name;
  unsigned first = 0;
  /// The path of each leaf inside the tree, and its type.
  using Leaves = std::vector<std::pair<StringRef, const void *>>;
  Leaves leaves;
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
    trees.back().leaves.emplace_back(label.substr(end),
                                     type.getAsOpaquePointer());
  }
  return trees;
}

/// A number for each value, the same for equal ones; counted on over several
/// lists.
template <typename Value>
class Numbers {
public:
  template <typename Range, typename Project>
  std::vector<unsigned> of(const Range &range, Project project) {
    std::vector<unsigned> list;
    for (const auto &each : range)
      list.push_back(
          numbers.try_emplace(project(each), numbers.size()).first->second);
    return list;
  }

private:
  std::map<Value, unsigned> numbers;
};

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
  TypeRange returned = type.getResults();
  // What is for callbacks comes last, and is no next value.
  while (!returned.empty() &&
         main.getResultAttr(returned.size() - 1, kCallbackAttr))
    returned = returned.drop_back();
  SmallVector<Tree> results =
      group(returned, /*isResult=*/true,
            [&](unsigned i) { return resultLabel(main, i); });
  Numbers<Tree::Leaves> kinds;
  auto kindOf = [](const Tree &tree) { return tree.leaves; };
  auto trees =
      longestMatch(kinds.of(arguments, kindOf), kinds.of(results, kindOf));
  for (auto [argument, output] : trees)
    for (size_t leaf = 0; leaf < arguments[argument].leaves.size(); ++leaf)
      result[arguments[argument].first + leaf] = results[output].first + leaf;
  if (!trees.empty())
    return result;

  Numbers<const void *> types;
  auto pointer = [](Type type) { return type.getAsOpaquePointer(); };
  auto leaves = longestMatch(types.of(type.getInputs(), pointer),
                             types.of(returned, pointer));
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
