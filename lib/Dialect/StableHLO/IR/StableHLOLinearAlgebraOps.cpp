//===- StableHLOLinearAlgebraOps.cpp - Products, solvers --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers and type inference of products, convolutions, solvers and
// transforms.
//
// In: the operation, or the operands and attributes of a new one. Out: success,
// or an error that states the first violated constraint; of solvers and
// transforms the type of the result. The shape of a product or convolution is
// computed and compared with that of its result. Comments such as
// dot_general_c3 name the constraint of the StableHLO specification that is
// checked. Cost: at most quadratic in the rank.
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
#include "whale/Dialect/StableHLO/IR/StableHLOLinearAlgebraOps.cpp.inc"

int64_t ConvolutionOp::getNumSpatialDimensions() {
  return getDimensionNumbers().getInputSpatialDimensions().size();
}

//===----------------------------------------------------------------------===//
// DotGeneralOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyPrecision(const Checker &check,
                                     std::optional<ArrayAttr> precision) {
  if (precision && !precision->empty() && precision->size() != 2)
    return check.error("expects a precision for each of 2 operands (got ",
                       precision->size(), ")");
  return success();
}

static LogicalResult verifyPairs(const Checker &check, StringRef what,
                                 RankedTensorType lhs,
                                 ArrayRef<int64_t> lhsDims,
                                 RankedTensorType rhs,
                                 ArrayRef<int64_t> rhsDims) {
  if (lhsDims.size() != rhsDims.size())
    return check.error("expects as many lhs as rhs ", what, " (got ",
                       lhsDims.size(), " and ", rhsDims.size(), ")");
  for (auto [lhsDim, rhsDim] : llvm::zip_equal(lhsDims, rhsDims))
    if (!mayBeEqual(lhs.getDimSize(lhsDim), rhs.getDimSize(rhsDim)))
      return check.error("expects ", what, " of equal sizes (got ",
                         lhs.getDimSize(lhsDim), " and ",
                         rhs.getDimSize(rhsDim), ")");
  return success();
}

LogicalResult DotGeneralOp::verify() {
  Checker check(*this);
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  DotDimensionNumbersAttr numbers = getDotDimensionNumbers();
  ArrayRef<int64_t> lhsBatching = numbers.getLhsBatchingDimensions();
  ArrayRef<int64_t> rhsBatching = numbers.getRhsBatchingDimensions();
  ArrayRef<int64_t> lhsContracting = numbers.getLhsContractingDimensions();
  ArrayRef<int64_t> rhsContracting = numbers.getRhsContractingDimensions();
  SmallVector<int64_t> lhsDims(lhsBatching), rhsDims(rhsBatching);
  lhsDims.append(lhsContracting.begin(), lhsContracting.end());
  rhsDims.append(rhsContracting.begin(), rhsContracting.end());
  // dot_general_c3 to c8
  if (failed(check.rangeAndUnique("lhs dimensions", lhsDims, lhs.getRank())) ||
      failed(check.rangeAndUnique("rhs dimensions", rhsDims, rhs.getRank())) ||
      // dot_general_c1, dot_general_c9
      failed(verifyPairs(check, "batching dimensions", lhs, lhsBatching, rhs,
                         rhsBatching)) ||
      // dot_general_c2, dot_general_c10
      failed(verifyPairs(check, "contracting dimensions", lhs, lhsContracting,
                         rhs, rhsContracting)) ||
      // dot_general_c11
      failed(verifyPrecision(check, getPrecisionConfig())))
    return failure();
  // dot_general_c21 to c28
  if (DotAlgorithmAttr algorithm = getAlgorithmAttr())
    for (int64_t count :
         {algorithm.getLhsComponentCount(), algorithm.getRhsComponentCount(),
          algorithm.getNumPrimitiveOperations()})
      if (count < 1)
        return check.error("expects positive counts in the algorithm (got ",
                           count, ")");
  // dot_general_c12
  SmallVector<int64_t> shape;
  for (int64_t dim : lhsBatching)
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t i = 0; i < lhs.getRank(); ++i)
    if (!llvm::is_contained(lhsDims, i))
      shape.push_back(lhs.getDimSize(i));
  for (int64_t i = 0; i < rhs.getRank(); ++i)
    if (!llvm::is_contained(rhsDims, i))
      shape.push_back(rhs.getDimSize(i));
  return check.sameShape("the result", getType().getShape(), shape);
}

//===----------------------------------------------------------------------===//
// DotOp
//===----------------------------------------------------------------------===//

LogicalResult DotOp::verify() {
  Checker check(*this);
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  if (lhs.getRank() < 1 || lhs.getRank() > 2 || rhs.getRank() < 1 ||
      rhs.getRank() > 2)
    return check.error("expects vectors or matrices (got ", lhs, " and ", rhs,
                       ")");
  if (failed(verifyPairs(check, "contracting dimensions", lhs,
                         {lhs.getRank() - 1}, rhs, {0})) ||
      failed(verifyPrecision(check, getPrecisionConfig())))
    return failure();
  SmallVector<int64_t> shape(lhs.getShape().drop_back());
  llvm::append_range(shape, rhs.getShape().drop_front());
  return check.sameShape("the result", getType().getShape(), shape);
}

//===----------------------------------------------------------------------===//
// ConvolutionOp
//===----------------------------------------------------------------------===//

/// Checks convolution_c13, c18, c20: the numbers of each tensor's dimensions
/// are a permutation.
static LogicalResult verifyConvolutionDims(const Checker &check, StringRef what,
                                           int64_t first, int64_t second,
                                           ArrayRef<int64_t> spatial,
                                           int64_t rank) {
  SmallVector<int64_t> dims(spatial);
  dims.append({first, second});
  return success(succeeded(check.count(what, dims.size(), rank)) &&
                 succeeded(check.rangeAndUnique(what, dims, rank)));
}

LogicalResult ConvolutionOp::verify() {
  Checker check(*this);
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  RankedTensorType result = getType();
  ConvDimensionNumbersAttr numbers = getDimensionNumbers();
  ArrayRef<int64_t> inputSpatial = numbers.getInputSpatialDimensions();
  ArrayRef<int64_t> kernelSpatial = numbers.getKernelSpatialDimensions();
  ArrayRef<int64_t> outputSpatial = numbers.getOutputSpatialDimensions();
  // convolution_c1, c12, c13, c17 to c20
  int64_t rank = lhs.getRank();
  if (failed(check.count("dimensions of the kernel", rhs.getRank(), rank)) ||
      failed(check.count("dimensions of the result", result.getRank(), rank)) ||
      failed(verifyConvolutionDims(
          check, "input dimensions", numbers.getInputBatchDimension(),
          numbers.getInputFeatureDimension(), inputSpatial, rank)) ||
      failed(verifyConvolutionDims(
          check, "kernel dimensions", numbers.getKernelInputFeatureDimension(),
          numbers.getKernelOutputFeatureDimension(), kernelSpatial, rank)) ||
      failed(verifyConvolutionDims(
          check, "output dimensions", numbers.getOutputBatchDimension(),
          numbers.getOutputFeatureDimension(), outputSpatial, rank)))
    return failure();

  int64_t featureGroups = getFeatureGroupCount();
  int64_t batchGroups = getBatchGroupCount();
  // convolution_c21, c22, c23
  if (failed(check.atLeast("feature_group_count", featureGroups, 1)) ||
      failed(check.atLeast("batch_group_count", batchGroups, 1)))
    return failure();
  if (featureGroups > 1 && batchGroups > 1)
    return check.error("expects feature_group_count or batch_group_count to be "
                       "1 (got ",
                       featureGroups, " and ", batchGroups, ")");
  int64_t batch = lhs.getDimSize(numbers.getInputBatchDimension());
  int64_t features = lhs.getDimSize(numbers.getInputFeatureDimension());
  int64_t kernelInput =
      rhs.getDimSize(numbers.getKernelInputFeatureDimension());
  int64_t kernelOutput =
      rhs.getDimSize(numbers.getKernelOutputFeatureDimension());
  auto divides = [](int64_t divisor, int64_t size) {
    return ShapedType::isDynamic(size) || size % divisor == 0;
  };
  // convolution_c10, c11, c15, c16
  if (!divides(batchGroups, batch) || !divides(batchGroups, kernelOutput))
    return check.error("expects a batch (", batch, ") and output features (",
                       kernelOutput, ") divisible by batch_group_count (",
                       batchGroups, ")");
  if (!divides(featureGroups, features) ||
      !divides(featureGroups, kernelOutput))
    return check.error("expects input features (", features,
                       ") and output features (", kernelOutput,
                       ") divisible by feature_group_count (", featureGroups,
                       ")");
  // convolution_c14
  if (!ShapedType::isDynamic(features) &&
      !mayBeEqual(kernelInput, features / featureGroups))
    return check.error("expects ", features / featureGroups,
                       " input features of the kernel (got ", kernelInput, ")");
  // convolution_c24
  if (failed(verifyPrecision(check, getPrecisionConfig())))
    return failure();

  // convolution_c2 to c9; a kernel may be empty, a window may not.
  SmallVector<int64_t> inputSizes, kernelSizes;
  bool hasEmptyKernel = false;
  for (auto [input, kernel] : llvm::zip_equal(inputSpatial, kernelSpatial)) {
    inputSizes.push_back(lhs.getDimSize(input));
    int64_t size = rhs.getDimSize(kernel);
    hasEmptyKernel |= size == 0;
    // A kernel of unknown size makes the size of the result unknown.
    if (ShapedType::isDynamic(size))
      inputSizes.back() = ShapedType::kDynamic;
    kernelSizes.push_back(
        ShapedType::isDynamic(size) ? 1 : std::max<int64_t>(size, 1));
  }
  FailureOr<whale::Window> window =
      whale::getWindow(check, kernelSizes, getWindowStrides(), getPadding(),
                       getLhsDilation(), getRhsDilation());
  if (failed(window))
    return failure();
  if (auto reversal = getWindowReversal())
    if (failed(check.count("window_reversal values", reversal->size(),
                           inputSpatial.size())))
      return failure();
  // convolution_c25
  FailureOr<SmallVector<int64_t>> counts =
      whale::getWindowCounts(check, inputSizes, *window);
  if (failed(counts))
    return failure();
  if (hasEmptyKernel)
    return success();
  SmallVector<int64_t> shape(rank);
  shape[numbers.getOutputBatchDimension()] =
      ShapedType::isDynamic(batch) ? batch : batch / batchGroups;
  shape[numbers.getOutputFeatureDimension()] = kernelOutput;
  for (auto [dim, size] : llvm::zip_equal(outputSpatial, *counts))
    shape[dim] = size;
  return check.sameShape("the result", result.getShape(), shape);
}

//===----------------------------------------------------------------------===//
// Solvers and transforms
//===----------------------------------------------------------------------===//

/// Checks that the last two dimensions are those of a square matrix.
static LogicalResult verifySquare(const Checker &check, RankedTensorType type) {
  if (type.getRank() < 2)
    return check.error("expects matrices (got ", type, ")");
  ArrayRef<int64_t> sizes = type.getShape().take_back(2);
  if (!mayBeEqual(sizes[0], sizes[1]))
    return check.error("expects square matrices (got ", type, ")");
  return success();
}

LogicalResult CholeskyOp::verify() {
  // cholesky_c2, cholesky_c3
  return verifySquare(Checker(*this), getA().getType());
}

LogicalResult TriangularSolveOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto a = tensorType(adaptor.getA().getType());
  auto b = tensorType(adaptor.getB().getType());
  // triangular_solve_c1, c2, c3
  if (failed(check.sameElements("operands", a, b)) ||
      failed(verifySquare(check, a)) ||
      failed(check.count("dimensions of b", b.getRank(), a.getRank())) ||
      failed(check.sameShape("the batch of b", b.getShape().drop_back(2),
                             a.getShape().drop_back(2))))
    return failure();
  int64_t rows = b.getDimSize(b.getRank() - (adaptor.getLeftSide() ? 2 : 1));
  if (!mayBeEqual(rows, a.getShape().back()))
    return check.error("expects size ", a.getShape().back(),
                       " of the solved dimension of b (got ", rows, ")");
  // triangular_solve_c4
  if (adaptor.getTransposeA() == Transpose::TRANSPOSE_INVALID)
    return check.error("expects a transpose_a that is valid");
  results.push_back(b);
  return success();
}

LogicalResult FftOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> location,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto operand = tensorType(adaptor.getOperand().getType());
  ArrayRef<int64_t> length = adaptor.getFftLength();
  FftType type = adaptor.getFftType();
  Type element = operand.getElementType();
  auto complex = dyn_cast<ComplexType>(element);
  // fft_c1, fft_c3
  if (length.empty() || length.size() > 3 ||
      static_cast<int64_t>(length.size()) > operand.getRank())
    return check.error("expects 1 to 3 values of fft_length, at most as many "
                       "as dimensions (got ",
                       length.size(), ")");
  if (failed(check.atLeast("fft_length", length, 0)))
    return failure();
  // fft_c2
  if ((type == FftType::RFFT) != !complex)
    return check.error("expects ", type == FftType::RFFT ? "real" : "complex",
                       " elements for ", stringifyFftType(type), " (got ",
                       element, ")");
  // fft_c4, fft_c5
  SmallVector<int64_t> shape(operand.getShape());
  MutableArrayRef<int64_t> last =
      MutableArrayRef(shape).take_back(length.size());
  SmallVector<int64_t> expected(length);
  if (type == FftType::IRFFT && expected.back() != 0)
    expected.back() = expected.back() / 2 + 1;
  if (failed(check.sameShape("the last dimensions", last, expected)))
    return failure();
  if (type == FftType::RFFT)
    last.back() = length.back() == 0 ? 0 : length.back() / 2 + 1;
  if (type == FftType::IRFFT)
    last.back() = length.back();
  if (type == FftType::RFFT)
    element = ComplexType::get(element);
  else if (type == FftType::IRFFT)
    element = complex.getElementType();
  results.push_back(RankedTensorType::get(shape, element));
  return success();
}
