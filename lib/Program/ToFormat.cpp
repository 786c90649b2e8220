//===- ToFormat.cpp - Parts of a program in its format ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToFormat.h"

#include "whale/Dialect/Whale/IR/ElementType.h"

using namespace mlir;

namespace whale {

format::DType toDType(Type element) {
  std::optional<format::DType> dtype =
      format::parseDType(getDTypeName(element));
  assert(dtype && "buffers are of types that programs hold");
  return *dtype;
}

static format::DType typeOf(Value value) {
  return toDType(cast<RankedTensorType>(value.getType()).getElementType());
}

static format::Shape shapeOf(Value value) {
  return toShape(cast<RankedTensorType>(value.getType()).getShape());
}

format::Convolution toFormat(ConvolutionOp op) {
  format::Convolution product = {};
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
  product.tf32 = op.getTf32();
  return product;
}

std::vector<format::LibraryTensor> describeTensors(ValueRange values) {
  std::vector<format::LibraryTensor> tensors;
  for (Value value : values) {
    auto type = cast<ShapedType>(value.getType());
    tensors.push_back(
        {toDType(type.getElementType()), toShape(type.getShape())});
  }
  return tensors;
}

} // namespace whale
