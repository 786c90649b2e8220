//===- LocalShapes.cpp - Shapes of shards --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/LocalShapes.h"

using namespace mlir;

namespace whale {

SmallVector<std::pair<unsigned, unsigned>> getViewRuns(ArrayRef<int64_t> shape,
                                                       ArrayRef<int64_t> view) {
  SmallVector<std::pair<unsigned, unsigned>> runs;
  unsigned next = 0;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    unsigned first = next;
    int64_t product = 1;
    // Extents of 1 go with the dimension before them, except that a dimension
    // of extent 1 takes one of its own where there is one.
    while (next < view.size() && (product != size || first == next)) {
      if (first == next && size == 1 && view[next] != 1)
        break;
      product *= view[next++];
    }
    runs.push_back({first, next});
    assert((product == size || size == 1) && "view must refine the shape");
  }
  if (!runs.empty())
    runs.back().second = view.size();
  return runs;
}

std::optional<RankedTensorType> getLocalType(RankedTensorType type,
                                             const Placement &placement,
                                             DeviceId device) {
  std::optional<Box> box = placement.box(device);
  // A scalar that another device owns, in the view [1], has no empty shape.
  if (!box || (type.getRank() == 0 && box->empty()))
    return std::nullopt;
  SmallVector<int64_t> shape;
  for (auto [first, last] : getViewRuns(type.getShape(), placement.view())) {
    int64_t size = 1;
    for (unsigned i = first; i < last; ++i)
      size *= box->size[i];
    shape.push_back(size);
  }
  return RankedTensorType::get(shape, getLocalElementType(type, placement));
}

Type getWideType(Type element) {
  auto floating = dyn_cast<FloatType>(element);
  if (floating && floating.getWidth() <= 16)
    return Float32Type::get(element.getContext());
  return element;
}

bool hasSmallRange(Type element) {
  auto narrow = dyn_cast<FloatType>(element);
  auto wide = dyn_cast<FloatType>(getWideType(element));
  return narrow &&
         llvm::APFloat::semanticsMaxExponent(narrow.getFloatSemantics()) <
             llvm::APFloat::semanticsMaxExponent(wide.getFloatSemantics());
}

Type getLocalElementType(RankedTensorType type, const Placement &placement) {
  Type element = type.getElementType();
  std::optional<Reduction> reduction = placement.reduction();
  bool isRounded =
      reduction == Reduction::Sum || reduction == Reduction::Product;
  return isRounded ? getWideType(element) : element;
}

RankedTensorType getAbsentType(RankedTensorType type) {
  SmallVector<int64_t> shape(std::max<int64_t>(1, type.getRank()), 0);
  return RankedTensorType::get(shape, type.getElementType());
}

std::optional<RowRange> getLocalRange(Value value, const Placement &placement,
                                      unsigned dim, DeviceId device) {
  std::optional<Box> box = placement.box(device);
  if (!box || box->empty())
    return std::nullopt;
  // Other dimensions may be cut in any way, as the channels of a group norm.
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  ArrayRef<int64_t> view = placement.view();
  auto [first, last] = getViewRuns(shape, view)[dim];
  auto own = [first = first, count = last - first](ArrayRef<int64_t> of) {
    ArrayRef<int64_t> part = of.slice(first, count);
    return Extents(part.begin(), part.end());
  };
  std::optional<Box> rows =
      convertBox({own(box->start), own(box->size)}, own(view), {shape[dim]});
  if (!rows)
    return std::nullopt;
  return RowRange{rows->start[0], rows->start[0] + rows->size[0]};
}

} // namespace whale
