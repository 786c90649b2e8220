//===- DivideWindows.cpp - whale-divide-windows ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: reduce_window and select_and_scatter. Out: where a window has more terms
// than a thread of a GPU should reduce in turn, several windows that have few.
//
// A window of several dimensions is reduced along the last one first, then
// along the one before it. Along a dimension, s terms are a * b + r of them:
// the reduction of each a neighbours, of b such results that are a apart, and
// of the r terms behind these. No two terms change places.
//
// select_and_scatter has the number of the element that each window selects
// reduced along with the elements, and scatters the source there.
//
// Cost: for each dimension two to three reads of a tensor as large as the
// padded operand, of some 2 * sqrt(s) terms for each element.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "Kernel/Windows.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "whale/Conversion/Passes.h"
#include "whale/Step/Costs.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace whale {
#define GEN_PASS_DEF_DIVIDEWINDOWS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// Terms that a thread reduces one after the other: of a window, and of those
/// along one dimension that others follow.
static constexpr int64_t kMostTerms = 1024, kMostAlong = 64;

static int64_t countTerms(ArrayRef<WindowDim> window) {
  int64_t terms = 1;
  for (const WindowDim &dim : window)
    terms = multiplyCosts(terms, dim.size);
  return terms;
}

namespace {

class WindowDivider {
public:
  using Values = SmallVector<Value>;

  WindowDivider(OpBuilder &b, Location loc, Region &body, ValueRange inits)
      : b(b), loc(loc), body(body), inits(inits) {}

  /// The initial values are taken as often as it happens.
  Values reduce(ValueRange inputs, ArrayRef<WindowDim> window) {
    Values values(inputs);
    for (unsigned dim = window.size(); dim-- > 0;)
      if (!window[dim].isTrivial())
        values = reduceAlong(values, dim, window[dim]);
    return values;
  }

  /// The elements of both, element by element.
  Values combine(ValueRange lhs, ValueRange rhs) {
    Values operands(lhs), results;
    llvm::append_range(operands, rhs);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(getShape(lhs[0]).size()));
    // A map has one result: of several, each is computed by one of its own.
    for (auto [number, value] : llvm::enumerate(lhs)) {
      auto op =
          stablehlo::MapOp::create(b, loc, value.getType(), operands, dims);
      IRMapping mapping;
      body.cloneInto(&op.getComputation(), mapping);
      Operation *end = op.getComputation().front().getTerminator();
      end->setOperands(end->getOperand(number));
      results.push_back(op.getResult());
    }
    return results;
  }

private:
  /// The elements of a padded dimension.
  static int64_t countPadded(int64_t size, const WindowDim &w) {
    return (size - 1) * w.baseDilation + 1 + w.low + w.high;
  }

  Values reduceAlong(ValueRange inputs, unsigned dim, WindowDim w) {
    if (w.size <= kMostAlong)
      return makeWindow(inputs, dim, w);
    int64_t along = std::min<int64_t>(
        static_cast<int64_t>(std::ceil(std::sqrt(double(w.size)))), kMostAlong);
    int64_t parts = w.size / along, rest = w.size % along;
    int64_t padded = countPadded(getShape(inputs[0])[dim], w);
    int64_t outputs = (padded - 1 - (w.size - 1) * w.dilation) / w.stride + 1;
    // Those of any place, of which the last ones may be of no window.
    WindowDim near = w;
    near.size = along;
    near.stride = 1;
    Values partial = makeWindow(inputs, dim, near);
    WindowDim far;
    far.size = parts;
    far.stride = w.stride;
    far.dilation = along * w.dilation;
    far.high = (outputs - 1) * far.stride + (parts - 1) * far.dilation + 1 -
               getShape(partial[0])[dim];
    Values whole = reduceAlong(partial, dim, far);
    if (rest == 0)
      return whole;
    WindowDim behind = w;
    behind.size = rest;
    behind.low -= parts * along * w.dilation;
    return combine(whole, makeWindow(inputs, dim, behind));
  }

  Values makeWindow(ValueRange inputs, unsigned dim, const WindowDim &w) {
    SmallVector<int64_t> shape(getShape(inputs[0]));
    auto along = [&](int64_t value) {
      SmallVector<int64_t> values(shape.size(), 1);
      values[dim] = value;
      return b.getDenseI64ArrayAttr(values);
    };
    SmallVector<int64_t> padding(2 * shape.size(), 0);
    padding[2 * dim] = w.low;
    padding[2 * dim + 1] = w.high;
    shape[dim] = (countPadded(shape[dim], w) - 1 - (w.size - 1) * w.dilation) /
                     w.stride +
                 1;
    auto op = stablehlo::ReduceWindowOp::create(
        b, loc, cloneTypes(inputs, shape), inputs, inits, along(w.size),
        along(w.stride), along(w.baseDilation), along(w.dilation),
        stablehlo::makePadding(b.getContext(), padding));
    IRMapping mapping;
    body.cloneInto(&op.getBody(), mapping);
    return op.getResults();
  }

  static SmallVector<Type> cloneTypes(ValueRange values,
                                      ArrayRef<int64_t> shape) {
    return llvm::map_to_vector(values, [&](Value value) -> Type {
      return cast<RankedTensorType>(value.getType()).clone(shape);
    });
  }

  OpBuilder &b;
  Location loc;
  Region &body;
  Values inits;
};

Value convert(OpBuilder &b, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return stablehlo::ConvertOp::create(b, loc, type.clone(element), value);
}

Value makeSplat(OpBuilder &b, Location loc, Type element,
                ArrayRef<int64_t> shape, int64_t value) {
  return stablehlo::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(RankedTensorType::get(shape, element),
                             b.getIntegerAttr(element, value)));
}

/// Whether an element, which is a number from zero on, is one.
Value isThere(OpBuilder &b, Location loc, Value number) {
  auto type = cast<RankedTensorType>(number.getType());
  Value zero = makeSplat(b, loc, type.getElementType(), type.getShape(), 0);
  return stablehlo::CompareOp::create(b, loc, type.clone(b.getI1Type()), number,
                                      zero, stablehlo::ComparisonDirection::NE,
                                      nullptr);
}

Value choose(OpBuilder &b, Location loc, Value condition, Value yes, Value no) {
  return stablehlo::SelectOp::create(b, loc, yes.getType(), condition, yes, no);
}

/// `body` for values that may be absent: the last one of each side says whether
/// they are there. What is absent changes nothing.
void buildPartial(OpBuilder &b, Location loc, Block &body, Region &partial) {
  OpBuilder::InsertionGuard guard(b);
  unsigned count = body.getNumArguments() / 2;
  SmallVector<Type> types(
      ValueRange(body.getArguments().take_front(count)).getTypes());
  types.push_back(RankedTensorType::get({}, b.getI32Type()));
  types.append(SmallVector<Type>(types));
  Block *block = b.createBlock(&partial, {}, types,
                               SmallVector<Location>(types.size(), loc));
  auto side = [&](unsigned first) {
    return ValueRange(block->getArguments()).slice(first, count);
  };
  Value left = block->getArgument(count), right = block->getArguments().back();
  IRMapping mapping;
  mapping.map(body.getArguments().take_front(count), side(0));
  mapping.map(body.getArguments().take_back(count), side(count + 1));
  for (Operation &op : body.without_terminator())
    b.clone(op, mapping);
  Value hasLeft = isThere(b, loc, left), hasRight = isThere(b, loc, right);
  SmallVector<Value> results;
  for (auto [value, before, behind] : llvm::zip_equal(
           body.getTerminator()->getOperands(), side(0), side(count + 1)))
    results.push_back(
        choose(b, loc, hasRight,
               choose(b, loc, hasLeft, mapping.lookupOrDefault(value), behind),
               before));
  results.push_back(stablehlo::OrOp::create(b, loc, left, right));
  stablehlo::ReturnOp::create(b, loc, results);
}

/// The results of windows without an initial value, and whether they are there:
/// whether any element is in the window.
SmallVector<Value> reducePartial(OpBuilder &b, Location loc, Region &body,
                                 ValueRange inputs, ValueRange inits,
                                 ArrayRef<WindowDim> window) {
  Region partial;
  buildPartial(b, loc, body.front(), partial);
  SmallVector<Value> all(inputs), none(inits);
  Type i32 = b.getI32Type();
  all.push_back(makeSplat(b, loc, i32, getShape(inputs[0]), 1));
  none.push_back(makeSplat(b, loc, i32, {}, 0));
  return WindowDivider(b, loc, partial, none).reduce(all, window);
}

/// Whether it is the same how often the initial value is taken.
bool isNeutral(Region &body, Value init) {
  Block &block = body.front();
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block, 2) ||
      !isCombined(block.front().getResult(0), block.getArgument(0),
                  block.getArgument(1)))
    return false;
  Operation *op = &block.front();
  if (isa<stablehlo::MaxOp, stablehlo::MinOp, stablehlo::AndOp,
          stablehlo::OrOp>(op))
    return true;
  return (isa<stablehlo::AddOp, stablehlo::XorOp>(op) &&
          (matchPattern(init, m_Zero()) ||
           matchPattern(init, m_AnyZeroFloat()))) ||
         (isa<stablehlo::MulOp>(op) &&
          (matchPattern(init, m_One()) || matchPattern(init, m_OneFloat())));
}

/// Sums of 16 bits and less are formed in f32.
void divide(OpBuilder &b, stablehlo::ReduceWindowOp op,
            ArrayRef<WindowDim> window) {
  Location loc = op.getLoc();
  Block &own = op.getBody().front();
  bool isChoice = WideReducer::isChoice(own);
  WideReducer reducer(own, [&](Type element) {
    return isChoice ? element : WideReducer::toF32(element);
  });
  Region &body = reducer.getBody();
  bool repeats =
      op.getInitValues().size() == 1 && isNeutral(body, op.getInitValues()[0]);
  SmallVector<Value> inputs, inits, results;
  for (auto [number, input, init] :
       llvm::enumerate(op.getInputs(), op.getInitValues())) {
    inputs.push_back(convert(b, loc, input, reducer.getType(number)));
    inits.push_back(convert(b, loc, init, reducer.getType(number)));
  }
  WindowDivider divider(b, loc, body, inits);
  if (repeats) {
    results = divider.reduce(inputs, window);
  } else {
    results = reducePartial(b, loc, body, inputs, inits, window);
    Value there = isThere(b, loc, results.pop_back_val());
    SmallVector<Value> before;
    for (auto [init, result] : llvm::zip_equal(inits, results))
      before.push_back(stablehlo::BroadcastInDimOp::create(
          b, loc, result.getType(), init, ArrayRef<int64_t>()));
    SmallVector<Value> whole = divider.combine(before, results);
    for (auto [result, all, init] : llvm::zip_equal(results, whole, before))
      result = choose(b, loc, there, all, init);
  }
  for (auto [result, old] : llvm::zip_equal(results, op->getResults()))
    old.replaceAllUsesWith(
        convert(b, loc, result, getElementTypeOrSelf(old.getType())));
  op.erase();
}

/// (a, i), (b, j) -> what `select` keeps of a and b, and its number.
void buildSelect(OpBuilder &b, Location loc, Region &body, Block &select,
                 Type number) {
  OpBuilder::InsertionGuard guard(b);
  auto scalar = RankedTensorType::get({}, number);
  Type element = select.getArgument(0).getType();
  Block *block = b.createBlock(&body, {}, {element, scalar, element, scalar},
                               SmallVector<Location>(4, loc));
  auto argument = [&](unsigned place) { return block->getArgument(place); };
  IRMapping mapping;
  mapping.map(select.getArguments(), ValueRange{argument(0), argument(2)});
  for (Operation &op : select.without_terminator())
    b.clone(op, mapping);
  Value keep = mapping.lookupOrDefault(select.getTerminator()->getOperand(0));
  stablehlo::ReturnOp::create(
      b, loc,
      ValueRange{choose(b, loc, keep, argument(0), argument(2)),
                 choose(b, loc, keep, argument(1), argument(3))});
}

/// A window without elements selects number -1, which is no place.
void divide(OpBuilder &b, stablehlo::SelectAndScatterOp op,
            ArrayRef<WindowDim> window) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  int64_t count = type.getNumElements();
  int64_t updates =
      cast<RankedTensorType>(op.getSource().getType()).getNumElements();
  Type number = b.getIntegerType(llvm::isInt<32>(count) ? 32 : 64);
  auto reshape = [&](Value value, ArrayRef<int64_t> shape) -> Value {
    auto from = cast<RankedTensorType>(value.getType());
    return stablehlo::ReshapeOp::create(b, loc, from.clone(shape), value);
  };
  Value numbers =
      reshape(stablehlo::IotaOp::create(
                  b, loc, RankedTensorType::get({count}, number), 0),
              type.getShape());
  Region body;
  buildSelect(b, loc, body, op.getSelect().front(), number);
  SmallVector<Value> selected = reducePartial(
      b, loc, body, {op.getOperand(), numbers},
      {op.getInitValue(), makeSplat(b, loc, number, {}, -1)}, window);
  Value none = makeSplat(b, loc, number, getShape(op.getSource()), -1);
  Value chosen =
      reshape(choose(b, loc, isThere(b, loc, selected[2]), selected[1], none),
              {updates, 1});
  WideReducer reducer(op.getScatter().front(), WideReducer::toF32);
  Type wide = reducer.getType(0);
  Value base = stablehlo::BroadcastInDimOp::create(
      b, loc, RankedTensorType::get({count}, wide),
      convert(b, loc, op.getInitValue(), wide), ArrayRef<int64_t>());
  Value source = convert(b, loc, reshape(op.getSource(), {updates}), wide);
  auto scatter =
      stablehlo::ScatterOp::create(b, loc, base.getType(), base, chosen, source,
                                   stablehlo::ScatterDimensionNumbersAttr::get(
                                       b.getContext(), {}, {0}, {}, {}, {0}, 1),
                                   false, false);
  IRMapping mapping;
  reducer.getBody().cloneInto(&scatter.getUpdateComputation(), mapping);
  op.replaceAllUsesWith(convert(b, loc,
                                reshape(scatter.getResult(0), type.getShape()),
                                type.getElementType()));
  op.erase();
}

bool hasNoElements(Operation *op) {
  return llvm::is_contained(getShape(op->getOperand(0)), 0) ||
         llvm::is_contained(getShape(op->getResult(0)), 0);
}

struct DivideWindows : whale::impl::DivideWindowsBase<DivideWindows> {
  void runOnOperation() override {
    SmallVector<Operation *> operations;
    getOperation().walk([&](Operation *op) {
      if (isa<stablehlo::ReduceWindowOp, stablehlo::SelectAndScatterOp>(op))
        operations.push_back(op);
    });
    for (Operation *op : operations) {
      if (hasNoElements(op))
        continue;
      OpBuilder b(op);
      if (auto reduction = dyn_cast<stablehlo::ReduceWindowOp>(op)) {
        SmallVector<WindowDim> window = getReducedWindow(reduction);
        if (countTerms(window) > kMostTerms && isReducedInTurn(reduction))
          divide(b, reduction, window);
        continue;
      }
      auto selection = cast<stablehlo::SelectAndScatterOp>(op);
      SmallVector<int64_t> sizes(getShape(selection.getOperand()).size(), 1);
      if (auto dimensions = selection.getWindowDimensions())
        sizes.assign(dimensions->begin(), dimensions->end());
      SmallVector<WindowDim> window = getWindow(selection, sizes);
      if (countTerms(window) > kMostTerms)
        divide(b, selection, window);
    }
  }
};

} // namespace
