//===- CHLOOps.cpp - Verifiers and inference --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::chlo;

#define GET_OP_CLASSES
#include "whale/Dialect/CHLO/IR/CHLOOps.cpp.inc"

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantLikeOp::verify() {
  if (getValue().getType() != getType().getElementType())
    return emitOpError() << "expects a value of the result's element type "
                         << getType().getElementType() << " (got "
                         << getValue().getType() << ")";
  if (failed(verifyCompatibleShape(getOperand().getType(), getType())))
    return emitOpError() << "expects operand and result of one shape";
  return success();
}

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> location,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &results) {
  auto type = cast<RankedTensorType>(adaptor.getOperand().getType());
  int64_t k = adaptor.getK();
  if (type.getRank() == 0)
    return emitOptionalError(location, "expects an operand of rank 1 or more");
  int64_t last = type.getShape().back();
  if (k < 0 || (!ShapedType::isDynamic(last) && k > last))
    return emitOptionalError(location, "expects k from 0 to the size ", last,
                             " of the last dimension (got ", k, ")");
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = k;
  results.push_back(RankedTensorType::get(shape, type.getElementType()));
  results.push_back(
      RankedTensorType::get(shape, IntegerType::get(context, 32)));
  return success();
}

LogicalResult RaggedDotOp::verify() {
  RaggedDotDimensionNumbersAttr numbers = getRaggedDotDimensionNumbers();
  auto lhs = cast<RankedTensorType>(getLhs().getType());
  auto rhs = cast<RankedTensorType>(getRhs().getType());
  auto checkDims = [&](StringRef name, ArrayRef<int64_t> dims,
                       RankedTensorType type) -> LogicalResult {
    for (int64_t dim : dims)
      if (dim < 0 || dim >= type.getRank())
        return emitOpError()
               << "expects " << name << " inside the rank of its operand (got "
               << dim << ")";
    return success();
  };
  auto checkPairs = [&](StringRef name, ArrayRef<int64_t> lhsDims,
                        ArrayRef<int64_t> rhsDims) -> LogicalResult {
    if (lhsDims.size() != rhsDims.size())
      return emitOpError() << "expects as many lhs as rhs " << name;
    for (auto [l, r] : llvm::zip_equal(lhsDims, rhsDims))
      if (!lhs.isDynamicDim(l) && !rhs.isDynamicDim(r) &&
          lhs.getDimSize(l) != rhs.getDimSize(r))
        return emitOpError()
               << "expects " << name << " of equal sizes (got "
               << lhs.getDimSize(l) << " and " << rhs.getDimSize(r) << ")";
    return success();
  };
  if (failed(checkDims("lhs_batching_dimensions",
                       numbers.getLhsBatchingDimensions(), lhs)) ||
      failed(checkDims("rhs_batching_dimensions",
                       numbers.getRhsBatchingDimensions(), rhs)) ||
      failed(checkDims("lhs_contracting_dimensions",
                       numbers.getLhsContractingDimensions(), lhs)) ||
      failed(checkDims("rhs_contracting_dimensions",
                       numbers.getRhsContractingDimensions(), rhs)) ||
      failed(checkDims("lhs_ragged_dimensions",
                       numbers.getLhsRaggedDimensions(), lhs)) ||
      failed(checkDims("rhs_group_dimensions", numbers.getRhsGroupDimensions(),
                       rhs)) ||
      failed(checkPairs("batching dimensions",
                        numbers.getLhsBatchingDimensions(),
                        numbers.getRhsBatchingDimensions())) ||
      failed(checkPairs("contracting dimensions",
                        numbers.getLhsContractingDimensions(),
                        numbers.getRhsContractingDimensions())))
    return failure();
  if (numbers.getLhsRaggedDimensions().size() != 1)
    return emitOpError() << "expects one ragged dimension (got "
                         << numbers.getLhsRaggedDimensions().size() << ")";
  return success();
}
