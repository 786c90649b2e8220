//===- StableHLOShapeOps.cpp - Shapes and data movement ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text form, folds, verifiers and type inference of constants, reshapes,
// broadcasts and other data movement.
//
// In: the operation, its text, or the operands and attributes of a new one.
// Out: its text, the operation, the types of results, or an error that states
// the first violated constraint; a fold returns the operand of what changes
// nothing, and the value of a constant. Comments such as iota_c1 name the
// constraint of the StableHLO specification that is checked. Cost: linear in
// the rank (n log n where dimensions must be unique), of a concatenation inputs
// times rank; the text of a constant is linear in its elements.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using whale::Checker;
using whale::elementType;
using whale::mayBeEqual;
using whale::tensorType;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOShapeOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ConstantOp
//===----------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder &builder, OperationState &state,
                       Attribute value) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements) {
    // A number or a complex pair of numbers: a scalar.
    auto scalar = cast<TypedAttr>(value);
    elements = DenseElementsAttr::get(
        RankedTensorType::get({}, scalar.getType()), value);
  }
  build(builder, state, elements.getType(), elements);
}

void ConstantOp::print(OpAsmPrinter &printer) {
  printer.printOptionalAttrDict((*this)->getAttrs(), {"value"});
  printer << ' ';
  printConstantValue(printer, getValue());
  // A value whose type differs from the result's is invalid but must be
  // printable.
  if (getValue().getType() != getType())
    printer << " : " << getType();
}

ParseResult ConstantOp::parse(OpAsmParser &parser, OperationState &result) {
  ElementsAttr value;
  SMLoc loc;
  if (parser.parseOptionalAttrDict(result.attributes) ||
      parser.getCurrentLocation(&loc) || parseConstantValue(parser, value))
    return failure();
  if (result.attributes.get("value"))
    return parser.emitError(loc, "expects 'value' only once");
  result.addAttribute("value", value);
  result.addTypes(value.getType());
  return success();
}

void ConstantOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  bool isInteger = getType().getElementType().isInteger();
  setName(getResult(), isInteger ? "c" : "cst");
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

OpFoldResult BroadcastInDimOp::fold(FoldAdaptor) {
  bool isIdentity = getOperand().getType() == getType() &&
                    llvm::equal(getBroadcastDimensions(),
                                llvm::seq<int64_t>(0, getType().getRank()));
  return isIdentity ? getOperand() : OpFoldResult();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() ? getOperand() : OpFoldResult();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  bool isIdentity =
      getOperand().getType() == getType() &&
      llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getType().getRank()));
  return isIdentity ? getOperand() : OpFoldResult();
}

OpFoldResult ConcatenateOp::fold(FoldAdaptor) {
  bool isIdentity =
      getInputs().size() == 1 && getInputs().front().getType() == getType();
  return isIdentity ? getInputs().front() : OpFoldResult();
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  auto isZero = [](int64_t value) { return value == 0; };
  bool isIdentity = getOperand().getType() == getType() &&
                    llvm::all_of(getEdgePaddingLow(), isZero) &&
                    llvm::all_of(getEdgePaddingHigh(), isZero) &&
                    llvm::all_of(getInteriorPadding(), isZero);
  return isIdentity ? getOperand() : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Verifiers and inference
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> location,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &results) {
  // constant_c1
  results.push_back(adaptor.getValue().getType());
  return success();
}

LogicalResult IotaOp::verify() {
  // iota_c1
  return Checker(*this).inRange("iota_dimension",
                                static_cast<int64_t>(getIotaDimension()),
                                getType().getRank());
}

/// The checks that both forms of broadcast_in_dim share.
static LogicalResult verifyBroadcast(const Checker &check,
                                     RankedTensorType operand,
                                     RankedTensorType result,
                                     ArrayRef<int64_t> dimensions) {
  // broadcast_in_dim_c1, c2, c3, c4
  if (failed(check.sameElements("operand and result", operand, result)) ||
      failed(check.count("broadcast_dimensions", dimensions.size(),
                         operand.getRank())) ||
      failed(check.rangeAndUnique("broadcast_dimensions", dimensions,
                                  result.getRank())))
    return failure();
  // broadcast_in_dim_c5
  for (auto [i, dimension] : llvm::enumerate(dimensions)) {
    int64_t size = operand.getDimSize(i);
    if (size != 1 && !mayBeEqual(size, result.getDimSize(dimension)))
      return check.error("expects size 1 or ", result.getDimSize(dimension),
                         " of operand dimension ", i, " (got ", size, ")");
  }
  return success();
}

LogicalResult BroadcastInDimOp::verify() {
  return verifyBroadcast(Checker(*this), getOperand().getType(), getType(),
                         getBroadcastDimensions());
}

/// Returns the product of the sizes, std::nullopt if it can't be represented.
static std::optional<int64_t> countElements(ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t product = 1;
  for (int64_t size : shape)
    if (llvm::MulOverflow(product, size, product))
      return std::nullopt;
  return product;
}

LogicalResult ReshapeOp::verify() {
  Checker check(*this);
  RankedTensorType from = getOperand().getType(), to = getType();
  if (failed(check.sameElements("operand and result", from, to)))
    return failure();
  if (!from.hasStaticShape() || !to.hasStaticShape())
    return success();
  // reshape_c2
  std::optional<int64_t> fromCount = countElements(from.getShape());
  std::optional<int64_t> toCount = countElements(to.getShape());
  if (!fromCount || fromCount != toCount)
    return check.error("expects as many elements in the result as in the "
                       "operand (got ",
                       to, " of ", from, ")");
  return success();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto operand = tensorType(adaptor.getOperand().getType());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  // transpose_c2
  if (failed(check.count("dimensions in permutation", permutation.size(),
                         operand.getRank())) ||
      failed(
          check.rangeAndUnique("permutation", permutation, operand.getRank())))
    return failure();
  // transpose_c3
  SmallVector<int64_t> shape;
  for (int64_t dimension : permutation)
    shape.push_back(operand.getDimSize(dimension));
  results.push_back(RankedTensorType::get(shape, operand.getElementType()));
  return success();
}

LogicalResult ReverseOp::verify() {
  // reverse_c2, reverse_c3
  return Checker(*this).rangeAndUnique("dimensions", getDimensions(),
                                       getType().getRank());
}

LogicalResult ConcatenateOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location> location,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  // concatenate_c3
  if (adaptor.getInputs().empty())
    return check.error("expects at least one input");
  auto first = tensorType(adaptor.getInputs().front().getType());
  int64_t dimension = adaptor.getDimension();
  // concatenate_c4
  if (failed(check.inRange("dimension", dimension, first.getRank())))
    return failure();
  SmallVector<int64_t> shape(first.getShape());
  __int128 total = 0;
  bool isDynamic = false;
  for (Type input : adaptor.getInputs().getTypes()) {
    auto type = tensorType(input);
    // concatenate_c1
    if (failed(check.sameElements("inputs", first, type)))
      return failure();
    // concatenate_c2
    SmallVector<int64_t> others(type.getShape());
    if (type.getRank() == first.getRank())
      others[dimension] = first.getDimSize(dimension);
    if (failed(check.sameShape("each input, but for the dimension,", others,
                               first.getShape())))
      return failure();
    for (auto [i, size] : llvm::enumerate(others))
      if (ShapedType::isDynamic(shape[i]))
        shape[i] = size;
    isDynamic |= type.isDynamicDim(dimension);
    total += isDynamic ? 0 : type.getDimSize(dimension);
  }
  // concatenate_c5, concatenate_c6
  std::optional<int64_t> size = whale::toSize(total);
  if (!size)
    return check.error("expects a result whose size can be represented");
  shape[dimension] = isDynamic ? ShapedType::kDynamic : *size;
  results.push_back(RankedTensorType::get(shape, first.getElementType()));
  return success();
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> location,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto operand = tensorType(adaptor.getOperand().getType());
  int64_t rank = operand.getRank();
  ArrayRef<int64_t> low = adaptor.getEdgePaddingLow();
  ArrayRef<int64_t> high = adaptor.getEdgePaddingHigh();
  ArrayRef<int64_t> interior = adaptor.getInteriorPadding();
  // pad_c1, pad_c2, pad_c3
  if (failed(check.sameElements("operand and padding value", operand,
                                adaptor.getPaddingValue().getType())) ||
      failed(check.count("edge_padding_low values", low.size(), rank)) ||
      failed(check.count("edge_padding_high values", high.size(), rank)) ||
      failed(check.count("interior_padding values", interior.size(), rank)) ||
      failed(check.atLeast("interior_padding", interior, 0)))
    return failure();
  // pad_c4
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < rank; ++i) {
    if (operand.isDynamicDim(i)) {
      shape.push_back(ShapedType::kDynamic);
      continue;
    }
    __int128 size = operand.getDimSize(i);
    std::optional<int64_t> padded = whale::toSize(
        size + low[i] + high[i] + (size == 0 ? 0 : (size - 1) * interior[i]));
    if (!padded)
      return check.error("expects padding that leaves dimension ", i,
                         " a size that can be represented");
    shape.push_back(*padded);
  }
  results.push_back(RankedTensorType::get(shape, operand.getElementType()));
  return success();
}

LogicalResult GetDimensionSizeOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  // get_dimension_size_c1
  auto operand = tensorType(adaptor.getOperand().getType());
  if (failed(
          Checker(location, getOperationName())
              .inRange("dimension", adaptor.getDimension(), operand.getRank())))
    return failure();
  results.push_back(RankedTensorType::get({}, IntegerType::get(context, 32)));
  return success();
}

//===----------------------------------------------------------------------===//
// Forms whose shape is an operand
//===----------------------------------------------------------------------===//

/// Checks that the shape operand has an element for each dimension of the
/// result.
static LogicalResult verifyShapeOperand(const Checker &check, StringRef name,
                                        RankedTensorType shape, int64_t rank) {
  if (!mayBeEqual(shape.getDimSize(0), rank))
    return check.error("expects ", rank, " elements of ", name, " (got ",
                       shape.getDimSize(0), ")");
  return success();
}

LogicalResult DynamicBroadcastInDimOp::verify() {
  Checker check(*this);
  int64_t rank = getOperand().getType().getRank();
  // dynamic_broadcast_in_dim_c7
  if (failed(verifyBroadcast(check, getOperand().getType(), getType(),
                             getBroadcastDimensions())) ||
      failed(verifyShapeOperand(check, "output_dimensions",
                                getOutputDimensions().getType(),
                                getType().getRank())))
    return failure();
  // dynamic_broadcast_in_dim_c8, c9, c10
  SmallVector<int64_t> known;
  for (auto dimensions :
       {getKnownExpandingDimensions(), getKnownNonexpandingDimensions()})
    if (dimensions)
      known.append(dimensions->begin(), dimensions->end());
  return check.rangeAndUnique("known dimensions", known, rank);
}

LogicalResult DynamicIotaOp::verify() {
  Checker check(*this);
  // dynamic_iota_c1, dynamic_iota_c2
  return success(succeeded(check.inRange(
                     "iota_dimension", static_cast<int64_t>(getIotaDimension()),
                     getType().getRank())) &&
                 succeeded(verifyShapeOperand(check, "output_shape",
                                              getOutputShape().getType(),
                                              getType().getRank())));
}

LogicalResult DynamicPadOp::verify() {
  Checker check(*this);
  RankedTensorType operand = getOperand().getType();
  // dynamic_pad_c1, dynamic_pad_c2
  if (failed(check.sameElements("operand and padding value", operand,
                                getPaddingValue().getType())) ||
      failed(check.sameElements("operand and result", operand, getType())) ||
      failed(check.count("dimensions of the result", getType().getRank(),
                         operand.getRank())))
    return failure();
  for (Value amount :
       {getEdgePaddingLow(), getEdgePaddingHigh(), getInteriorPadding()})
    if (failed(verifyShapeOperand(
            check, "padding", tensorType(amount.getType()), operand.getRank())))
      return failure();
  return success();
}

LogicalResult DynamicReshapeOp::verify() {
  Checker check(*this);
  // dynamic_reshape_c1, dynamic_reshape_c4
  return success(
      succeeded(check.sameElements("operand and result", getOperand().getType(),
                                   getType())) &&
      succeeded(verifyShapeOperand(check, "output_shape",
                                   getOutputShape().getType(),
                                   getType().getRank())));
}
