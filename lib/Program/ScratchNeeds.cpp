//===- ScratchNeeds.cpp - Temporary memory of a rank's products -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScratchNeeds.h"

#include "ToFormat.h"

using namespace mlir;

namespace whale {

int64_t ScratchNeeds::find(ArrayRef<FunctionOpInterface> functions) {
  format::ScratchSizes most;
  std::vector<Key> keys;
  std::vector<format::Product> products;
  auto add = [&](Operation *op) {
    if (!isa<MatmulOp, ConvolutionOp>(op))
      return;
    Key key{op->getAttrDictionary().getAsOpaquePointer(), {}};
    key.second.push_back(op->getName().getAsOpaquePointer());
    for (Value operand : op->getOperands())
      key.second.push_back(operand.getType().getAsOpaquePointer());
    key.second.push_back(op->getResult(0).getType().getAsOpaquePointer());
    auto [it, isNew] = known.try_emplace(key);
    most.include(it->second);
    if (!isNew)
      return;
    keys.push_back(std::move(key));
    if (auto matmul = dyn_cast<MatmulOp>(op))
      products.push_back(matmul.toFormat());
    else
      products.push_back(toFormat(cast<ConvolutionOp>(op)));
  };
  for (FunctionOpInterface function : functions)
    function.walk(add);
  std::vector<format::ScratchSizes> sizes =
      libraries.findScratch(products, ranks);
  for (auto [key, each] : llvm::zip_equal(keys, sizes)) {
    known[key] = each;
    most.include(each);
  }
  return most.sum();
}

} // namespace whale
