//===- CallPairing.cpp - Pair the calls of a scope ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/CallPairing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace whale {

llvm::StringMap<std::string>
pairCalls(llvm::ArrayRef<ScopeInstance> instances) {
  size_t backward = llvm::count_if(
      instances, [](const ScopeInstance &i) { return i.backward; });
  size_t forward = instances.size() - backward;
  llvm::StringMap<std::string> result;
  if (forward == 0 || backward == 0)
    return result;
  size_t uses = std::max<size_t>(1, backward / forward);

  // Forward instances wait like open parentheses; the last one closes first.
  llvm::SmallVector<std::pair<std::string, size_t>> open;
  for (const ScopeInstance &instance : instances) {
    if (!instance.backward) {
      open.emplace_back(instance.id, uses);
      continue;
    }
    if (open.empty())
      continue;
    auto &[id, left] = open.back();
    result[instance.id] = id;
    if (--left == 0)
      open.pop_back();
  }
  return result;
}

} // namespace whale
