//===- ScratchNeeds.cpp - Temporary memory of a rank's products -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScratchNeeds.h"

#include "ToFormat.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;

namespace whale {

int64_t ScratchNeeds::find(ArrayRef<FunctionOpInterface> functions,
                           bool isOnProcessor, int64_t rank) {
  return isOnProcessor ? findOnProcessor(functions)
                       : findOnGpu(functions, rank);
}

int64_t ScratchNeeds::findOnProcessor(ArrayRef<FunctionOpInterface> functions) {
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

/// The most that a library of a GPU may use for one of the operations.
int64_t ScratchNeeds::findOnGpu(ArrayRef<FunctionOpInterface> functions,
                                int64_t rank) const {
  int64_t most = 0;
  auto find = [&](Operation *op) -> int64_t {
    if (isa<MatmulOp>(op))
      return gpuWorkspace(rank);
    if (auto convolution = dyn_cast<ConvolutionOp>(op))
      return libraries.gpuWorkspace(toFormat(convolution)).value_or(0);
    auto call = dyn_cast<LibraryCallOp>(op);
    if (!call)
      return 0;
    if (auto bytes = call->getAttrOfType<IntegerAttr>(kWorkspaceAttrName))
      return bytes.getInt();
    return libraries
        .gpuWorkspace(call.getFunction().str(),
                      describeTensors(call.getInputs()),
                      describeTensors(call.getOutputs()))
        .value_or(0);
  };
  for (FunctionOpInterface function : functions)
    function.walk([&](Operation *op) { most = std::max(most, find(op)); });
  return most;
}

} // namespace whale
