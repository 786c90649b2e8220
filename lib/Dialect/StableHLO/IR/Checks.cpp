//===- Checks.cpp - Checks that verifiers share -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks that several verifiers share: dimensions, shapes, regions and windows.
//
// In: numbers, types or a region of an operation. Out: success, or an error
// that states the first violated constraint; getWindow also returns the window
// with its defaults, getWindowCounts how many windows fit along each dimension.
// Sizes are computed in 128 bits. Cost: each linear in the dimensions, or in
// the arguments of the region, of which otherwise only the last operation is
// looked at; to find a number that occurs twice takes n log n.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace whale;

//===----------------------------------------------------------------------===//
// Dimensions and shapes
//===----------------------------------------------------------------------===//

LogicalResult Checker::inRange(StringRef what, ArrayRef<int64_t> dims,
                               int64_t rank) const {
  for (int64_t dim : dims)
    if (dim < 0 || dim >= rank)
      return error("expects ", what, " in range [0, ", rank, ") (got ", dim,
                   ")");
  return success();
}

LogicalResult Checker::unique(StringRef what, ArrayRef<int64_t> dims) const {
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t dim : dims)
    if (!seen.insert(dim).second)
      return error("expects ", what, " to be unique (got ", dim, " twice)");
  return success();
}

LogicalResult Checker::sorted(StringRef what, ArrayRef<int64_t> dims) const {
  if (!llvm::is_sorted(dims))
    return error("expects ", what, " to be sorted");
  return success();
}

LogicalResult Checker::rangeAndUnique(StringRef what, ArrayRef<int64_t> dims,
                                      int64_t rank) const {
  return success(succeeded(inRange(what, dims, rank)) &&
                 succeeded(unique(what, dims)));
}

LogicalResult Checker::count(StringRef what, int64_t got,
                             int64_t expected) const {
  if (got != expected)
    return error("expects ", expected, " ", what, " (got ", got, ")");
  return success();
}

LogicalResult Checker::atLeast(StringRef what, ArrayRef<int64_t> values,
                               int64_t minimum) const {
  for (int64_t value : values)
    if (value < minimum)
      return error("expects ", what, " of at least ", minimum, " (got ", value,
                   ")");
  return success();
}

LogicalResult Checker::sameElements(StringRef what, Type lhs, Type rhs) const {
  if (elementType(lhs) != elementType(rhs))
    return error("expects ", what, " of one element type (got ",
                 elementType(lhs), " and ", elementType(rhs), ")");
  return success();
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shape, stream, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      stream << '?';
    else
      stream << size;
  });
  return text + "]";
}

LogicalResult Checker::sameShape(StringRef what, ArrayRef<int64_t> got,
                                 ArrayRef<int64_t> expected) const {
  if (failed(verifyCompatibleShape(got, expected)))
    return error("expects ", what, " of shape ", shapeText(expected), " (got ",
                 shapeText(got), ")");
  return success();
}

std::optional<int64_t> whale::toSize(__int128 value) {
  if (value < 0 || value > std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return static_cast<int64_t>(value);
}

bool whale::isPromotable(Type from, Type to) {
  if (from == to)
    return true;
  auto fromInt = dyn_cast<IntegerType>(from), toInt = dyn_cast<IntegerType>(to);
  if (fromInt && toInt)
    return fromInt.getSignedness() == toInt.getSignedness() &&
           fromInt.getWidth() <= toInt.getWidth();
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat && toFloat)
    return fromFloat.getWidth() <= toFloat.getWidth();
  auto fromComplex = dyn_cast<ComplexType>(from);
  auto toComplex = dyn_cast<ComplexType>(to);
  return fromComplex && toComplex &&
         isPromotable(fromComplex.getElementType(), toComplex.getElementType());
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Returns the types that a region of one block returns; fails if it doesn't
/// end with stablehlo.return.
static FailureOr<TypeRange> getReturnTypes(const Checker &check,
                                           Region &region) {
  if (!region.hasOneBlock() || region.front().empty())
    return check.error("expects a region of one block");
  auto terminator = dyn_cast<stablehlo::ReturnOp>(region.front().back());
  if (!terminator)
    return check.error("expects a region that ends with stablehlo.return");
  return TypeRange(terminator.getOperandTypes());
}

static bool isScalar(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 0;
}

LogicalResult Checker::reducer(Region &region, TypeRange inputs,
                               TypeRange inits) const {
  FailureOr<TypeRange> returned = getReturnTypes(*this, region);
  if (failed(returned))
    return failure();
  TypeRange arguments = region.front().getArgumentTypes();
  size_t size = inputs.size();
  if (failed(count("region arguments", arguments.size(), 2 * size)) ||
      failed(count("values returned by the region", returned->size(), size)))
    return failure();
  for (size_t i = 0; i < size; ++i) {
    Type result = (*returned)[i];
    if (!isScalar(result) || arguments[i] != result ||
        arguments[size + i] != result)
      return error("expects region arguments and returned value ", i,
                   " to be one 0-dimensional tensor type (got ", arguments[i],
                   ", ", arguments[size + i], " and ", result, ")");
    for (Type type : {inputs[i], inits[i]})
      if (!isPromotable(elementType(type), elementType(result)))
        return error("expects a region on elements to which ",
                     elementType(type), " can be promoted (got ",
                     elementType(result), ")");
  }
  return success();
}

LogicalResult Checker::comparator(Region &region, TypeRange elements) const {
  FailureOr<TypeRange> returned = getReturnTypes(*this, region);
  if (failed(returned))
    return failure();
  TypeRange arguments = region.front().getArgumentTypes();
  if (failed(
          count("comparator arguments", arguments.size(), 2 * elements.size())))
    return failure();
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    Type element = elementType(elements[i / 2]);
    if (!isScalar(argument) || elementType(argument) != element)
      return error("expects comparator argument ", i,
                   " to be a 0-dimensional tensor of ", element, " (got ",
                   argument, ")");
  }
  if (returned->size() != 1 || !isScalar(returned->front()) ||
      !elementType(returned->front()).isInteger(1))
    return error("expects a comparator that returns tensor<i1>");
  return success();
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

FailureOr<Window>
whale::getWindow(const Checker &check, ArrayRef<int64_t> sizes,
                 std::optional<ArrayRef<int64_t>> strides,
                 std::optional<DenseIntElementsAttr> padding,
                 std::optional<ArrayRef<int64_t>> baseDilations,
                 std::optional<ArrayRef<int64_t>> windowDilations) {
  int64_t rank = sizes.size();
  Window window;
  window.sizes.assign(sizes.begin(), sizes.end());
  if (failed(check.atLeast("window sizes", sizes, 1)))
    return failure();
  auto take = [&](StringRef what, std::optional<ArrayRef<int64_t>> values,
                  SmallVectorImpl<int64_t> &target) -> LogicalResult {
    target.assign(rank, 1);
    if (!values)
      return success();
    target.assign(values->begin(), values->end());
    return success(succeeded(check.count(what, values->size(), rank)) &&
                   succeeded(check.atLeast(what, *values, 1)));
  };
  if (failed(take("window strides", strides, window.strides)) ||
      failed(take("base dilations", baseDilations, window.baseDilations)) ||
      failed(take("window dilations", windowDilations, window.windowDilations)))
    return failure();
  window.low.assign(rank, 0);
  window.high.assign(rank, 0);
  if (!padding)
    return window;
  // Some programs have an empty attribute for no padding.
  if (padding->getType().getShape() != ArrayRef<int64_t>{rank, 2})
    return check.error("expects padding of shape [", rank, ", 2]");
  for (auto [index, value] : llvm::enumerate(padding->getValues<int64_t>()))
    (index % 2 == 0 ? window.low : window.high)[index / 2] = value;
  return window;
}

FailureOr<SmallVector<int64_t>> whale::getWindowCounts(const Checker &check,
                                                       ArrayRef<int64_t> shape,
                                                       const Window &window) {
  SmallVector<int64_t> counts;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (ShapedType::isDynamic(size)) {
      counts.push_back(ShapedType::kDynamic);
      continue;
    }
    using Wide = __int128;
    Wide dilated =
        size == 0 ? Wide(0) : Wide(size - 1) * window.baseDilations[i] + 1;
    Wide padded = dilated + window.low[i] + window.high[i];
    Wide extent = Wide(window.sizes[i] - 1) * window.windowDilations[i] + 1;
    Wide windows =
        padded < extent ? 0 : (padded - extent) / window.strides[i] + 1;
    std::optional<int64_t> result = toSize(windows);
    if (padded < 0 || !result)
      return check.error("expects padding that leaves dimension ", i,
                         " a size that can be represented");
    counts.push_back(*result);
  }
  return counts;
}
