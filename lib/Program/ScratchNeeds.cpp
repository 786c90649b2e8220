//===- ScratchNeeds.cpp - Temporary memory of a rank's products -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScratchNeeds.h"

#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

using namespace mlir;

namespace whale {

static runtime::DType typeOf(Value value) {
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  return runtime::parseDType(getDTypeName(element)).value();
}

static runtime::Shape shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().vec();
}

static runtime::Matmul toProduct(MatmulOp op) {
  runtime::Matmul product = {};
  product.lhsType = typeOf(op.getLhs());
  product.rhsType = typeOf(op.getRhs());
  product.outType = typeOf(op.getOutput());
  ArrayRef<int64_t> batch = op.getBatch();
  for (size_t i = 0; i + 3 < batch.size(); i += 4)
    product.batch.push_back(
        {batch[i], batch[i + 1], batch[i + 2], batch[i + 3]});
  ArrayRef<int64_t> m = op.getM(), n = op.getN(), k = op.getK();
  std::tie(product.m, product.mLhs, product.mOut) = std::tie(m[0], m[1], m[2]);
  std::tie(product.n, product.nRhs, product.nOut) = std::tie(n[0], n[1], n[2]);
  std::tie(product.k, product.kLhs, product.kRhs) = std::tie(k[0], k[1], k[2]);
  product.accumulate = op.getAddend() != nullptr;
  return product;
}

static runtime::Convolution toProduct(ConvolutionOp op) {
  runtime::Convolution product = {};
  product.lhsType = typeOf(op.getLhs());
  product.rhsType = typeOf(op.getRhs());
  product.outType = typeOf(op.getOutput());
  product.lhsShape = shapeOf(op.getLhs());
  product.rhsShape = shapeOf(op.getRhs());
  product.outShape = shapeOf(op.getOutput());
  product.lhsDims = {int64_t(op.getInputBatchDimension()),
                     int64_t(op.getInputFeatureDimension()),
                     op.getInputSpatialDimensions().vec()};
  product.rhsDims = {int64_t(op.getKernelInputFeatureDimension()),
                     int64_t(op.getKernelOutputFeatureDimension()),
                     op.getKernelSpatialDimensions().vec()};
  product.outDims = {int64_t(op.getOutputBatchDimension()),
                     int64_t(op.getOutputFeatureDimension()),
                     op.getOutputSpatialDimensions().vec()};
  for (size_t i = 0; i < op.getWindowStrides().size(); ++i)
    product.windows.push_back({op.getWindowStrides()[i], op.getPadding()[2 * i],
                               op.getPadding()[2 * i + 1],
                               op.getLhsDilation()[i], op.getRhsDilation()[i],
                               op.getWindowReversal()[i]});
  product.featureGroups = op.getFeatureGroupCount();
  product.batchGroups = op.getBatchGroupCount();
  return product;
}

int64_t ScratchNeeds::find(func::FuncOp function) {
  runtime::ScratchSizes most;
  std::vector<Key> keys;
  std::vector<runtime::Product> products;
  function.walk([&](Operation *op) {
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
      products.push_back(toProduct(matmul));
    else
      products.push_back(toProduct(cast<ConvolutionOp>(op)));
  });
  std::vector<runtime::ScratchSizes> sizes =
      runtime::findScratch(products, threads);
  for (auto [key, each] : llvm::zip_equal(keys, sizes)) {
    known[key] = each;
    most.include(each);
  }
  return most.sum();
}

} // namespace whale
