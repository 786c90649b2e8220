//===- SelectAndScatterToKernel.cpp - Gradients of max pools --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: select_and_scatter, as the gradient of a max pool has it. Out: kernels,
// in one of three forms.
//
// - Windows of at most kMaxTaps elements without padding: each writes the
//   elements that it holds, without a branch, so that loops over channels
//   become vectors. On a GPU they must cover the result without overlap. On a
//   processor they may overlap, unless sums have a wider type, and then add to
//   their elements one after the other.
// - Else on a processor each window in turn adds to the element that it
//   selects.
// - Else on a GPU a first kernel says of each window which element it selects;
//   then each element of the result looks through the windows that it is in, so
//   that no two threads write to one element.
//
// Cost: the source's size times the window's; in the last form also the
// result's times the windows that overlap, and a number for each window in
// memory. The first form unrolls the window. On a processor only one thread
// works unless the first dimension has no window, or windows cover the result
// without overlap.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelWork.h"
#include "Kernel/Windows.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

namespace {

/// Pattern: select_and_scatter fills the result with the initial value, then
/// adds each source element to the element its window selects. Windows of
/// different leading elements are disjoint if the first dimension has none.
struct SelectAndScatterToKernel
    : OpRewritePattern<stablehlo::SelectAndScatterOp> {
  SelectAndScatterToKernel(MLIRContext *context, const Target &target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(stablehlo::SelectAndScatterOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    auto source = cast<RankedTensorType>(op.getSource().getType());
    RankedTensorType storage = getStorageType(type);
    if (!storage)
      return failure();
    SmallVector<int64_t> sizes(type.getRank(), 1);
    if (auto dimensions = op.getWindowDimensions())
      sizes.assign(dimensions->begin(), dimensions->end());
    SmallVector<WindowDim> window = getWindow(op, sizes);
    SmallVector<Value> inputs{stored(rewriter, op.getOperand()),
                              stored(rewriter, op.getSource()),
                              stored(rewriter, op.getInitValue())};
    bool split = !window.empty() && window[0].isTrivial();
    Type element = type.getElementType();
    int64_t taps = 1;
    bool inside = true, apart = true, covered = true;
    for (const WindowDim &dim : window) {
      taps *= dim.size;
      apart &= dim.stride >= dim.size;
      inside &= dim.baseDilation == 1 && dim.dilation == 1 && dim.low == 0 &&
                dim.high == 0;
    }
    for (auto [dim, size] : llvm::enumerate(storage.getShape()))
      covered &= window[dim].stride == window[dim].size &&
                 window[dim].size * source.getDimSize(dim) == size;
    WideReducer reducer(op.getScatter().front(), WideReducer::toF32);
    bool wide = reducer.isWide(0);
    if (inside && taps <= kMaxTaps &&
        (covered || (!target.isGpu() && (apart || !wide))))
      return selectInside(rewriter, op, window, inputs, storage, apart, covered,
                          target);
    // Windows that overlap add to the same elements.
    Type number = rewriter.getIntegerType(
        llvm::isInt<32>(type.getNumElements()) ? 32 : 64);
    if (target.isGpu()) {
      FailureOr<KernelOp> chosen =
          choose(rewriter, op, window, sizes, inputs[0], number);
      if (failed(chosen))
        return failure();
      noteWork(*chosen, op);
      inputs[0] = chosen->getResult(0);
    }
    auto kernel = makeKernel(
        rewriter, op.getLoc(), target.isGpu(),
        storage.clone(getStorageType(reducer.getType(0))), inputs,
        [&](KernelBuilder &k) -> LogicalResult {
          if (target.isGpu())
            return collectEach(k, op, reducer, window, number);
          Value init =
              reducer.widen(k.b, k.loc, k.loadScalar(2, {}, element), 0);
          overAll(k, split, type.getShape(),
                  [&](ValueRange all) { k.store(init, 3, all); });
          bool good = true;
          overAll(k, split, source.getShape(), [&](ValueRange output) {
            good &=
                succeeded(scatterOne(k, op, reducer, window, sizes, output));
          });
          return success(good);
        });
    if (failed(kernel))
      return failure();
    noteWork(*kernel, op,
             target.isGpu() ? source.getNumElements() : opFlops(op));
    Value result = kernel->getResult(0);
    if (wide)
      result = narrowElements(rewriter, op.getLoc(), result,
                              storage.getElementType(),
                              [&](OpBuilder &b, Value value) {
                                return reducer.narrow(b, op.getLoc(), value, 0);
                              });
    replaceWithStored(rewriter, op, result);
    return success();
  }

  /// More are a loop.
  static constexpr int64_t kMaxTaps = 32;

  /// Runs the body for each element; those of different leading elements at
  /// once if they are `split`.
  static void overAll(KernelBuilder &k, bool split, ArrayRef<int64_t> shape,
                      function_ref<void(ValueRange)> body) {
    split ? k.parallel(shape, body) : k.nest(shape, body);
  }

  /// Windows that are inside: `apart`, each decides alone about its elements,
  /// so that nothing is carried from one to the next.
  static LogicalResult selectInside(PatternRewriter &rewriter,
                                    stablehlo::SelectAndScatterOp op,
                                    ArrayRef<WindowDim> window,
                                    ArrayRef<Value> inputs,
                                    RankedTensorType storage, bool apart,
                                    bool covered, const Target &target) {
    auto source = cast<RankedTensorType>(op.getSource().getType());
    Type element = cast<ShapedType>(op.getType()).getElementType();
    // Ranges of the outermost dimension are then those of the result too.
    bool split = covered || (!window.empty() && window[0].isTrivial());
    auto kernel = makeKernel(
        rewriter, op.getLoc(), target.isGpu(), storage, inputs,
        [&](KernelBuilder &k) -> LogicalResult {
          Value init = k.loadScalar(2, {}, element);
          if (!covered)
            overAll(k, split, storage.getShape(),
                    [&](ValueRange all) { k.store(init, 3, all); });
          bool good = true;
          overAll(k, split, source.getShape(), [&](ValueRange output) {
            good &= succeeded(
                selectOne(k, op, window, output, apart ? init : Value()));
          });
          return success(good);
        });
    if (failed(kernel))
      return failure();
    noteWork(*kernel, op);
    if (apart)
      (*kernel)->setAttr(kParallelAttrName, rewriter.getUnitAttr());
    replaceWithStored(rewriter, op, kernel->getResults());
    return success();
  }

  /// The elements of a window become what they are without it, `init` or, if
  /// that is null, what they are now; in the selected one something is added.
  static LogicalResult selectOne(KernelBuilder &k,
                                 stablehlo::SelectAndScatterOp op,
                                 ArrayRef<WindowDim> window, ValueRange output,
                                 Value init) {
    Type element = cast<ShapedType>(op.getType()).getElementType();
    // The elements of the window, the last dimension quickest.
    SmallVector<SmallVector<Value>> places(1);
    for (auto [dim, position] : llvm::enumerate(output)) {
      Value first = k.mul(position, k.index(window[dim].stride));
      SmallVector<SmallVector<Value>> longer;
      for (ArrayRef<Value> place : places)
        for (int64_t tap = 0; tap < window[dim].size; ++tap) {
          longer.emplace_back(place);
          longer.back().push_back(tap ? k.add(first, k.index(tap)) : first);
        }
      places = std::move(longer);
    }
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(k.b, k.loc,
                                       k.b.getI32IntegerAttr(value));
    };
    Value best = k.loadScalar(0, places[0], element), chosen = number(0);
    for (size_t tap = 1; tap < places.size(); ++tap) {
      Value value = k.loadScalar(0, places[tap], element);
      auto keep = emitScalarBlock(k.b, op.getSelect().front(), {best, value});
      if (failed(keep))
        return failure();
      best = arith::SelectOp::create(k.b, k.loc, (*keep)[0], best, value);
      chosen =
          arith::SelectOp::create(k.b, k.loc, (*keep)[0], chosen, number(tap));
    }
    Value add = k.loadScalar(1, output, element);
    for (auto [tap, place] : llvm::enumerate(places)) {
      Value old = init ? init : k.loadScalar(3, place, element);
      auto sum = emitScalarBlock(k.b, op.getScatter().front(), {old, add});
      if (failed(sum))
        return failure();
      Value isChosen = k.compare(arith::CmpIPredicate::eq, chosen, number(tap));
      k.store(arith::SelectOp::create(k.b, k.loc, isChosen, (*sum)[0], old), 3,
              place);
    }
    return success();
  }

  static LogicalResult scatterOne(KernelBuilder &k,
                                  stablehlo::SelectAndScatterOp op,
                                  WideReducer &reducer,
                                  ArrayRef<WindowDim> window,
                                  ArrayRef<int64_t> sizes, ValueRange output) {
    bool good = true;
    SmallVector<Value> selected =
        selectPlace(k, op, window, sizes, output, good);
    k.when(selected[0], [&] {
      ValueRange place = ArrayRef(selected).drop_front(2);
      Value old = k.loadScalar(3, place, reducer.getType(0));
      k.store(addTo(k, reducer, getElementTypeOrSelf(op.getType()), old, output,
                    good),
              3, place);
    });
    return success(good);
  }

  /// The number of an element.
  static Value getNumber(KernelBuilder &k, ArrayRef<int64_t> shape,
                         ValueRange place, Type type) {
    Value number = k.index(0);
    for (auto [size, index] : llvm::zip_equal(shape, place))
      number = k.add(k.mul(number, k.index(size)), index);
    return arith::IndexCastOp::create(k.b, k.loc, type, number);
  }

  /// For each window the number of the element that it selects, or -1.
  static FailureOr<KernelOp> choose(PatternRewriter &rewriter,
                                    stablehlo::SelectAndScatterOp op,
                                    ArrayRef<WindowDim> window,
                                    ArrayRef<int64_t> sizes, Value operand,
                                    Type number) {
    auto source = cast<RankedTensorType>(op.getSource().getType());
    return makeKernel(
        rewriter, op.getLoc(), /*blocks=*/true,
        RankedTensorType::get(source.getShape(), number), operand,
        [&](KernelBuilder &k) -> LogicalResult {
          bool good = true;
          k.parallel(source.getShape(), [&](ValueRange output) {
            SmallVector<Value> selected =
                selectPlace(k, op, window, sizes, output, good);
            Value none = arith::ConstantOp::create(
                k.b, k.loc, k.b.getIntegerAttr(number, -1));
            Value one = getNumber(k, cast<ShapedType>(op.getType()).getShape(),
                                  ArrayRef(selected).drop_front(2), number);
            k.store(arith::SelectOp::create(k.b, k.loc, selected[0], one, none),
                    1, output);
          });
          return success(good);
        });
  }

  /// For each element of the result, in order, the windows that it may be in.
  static LogicalResult collectEach(KernelBuilder &k,
                                   stablehlo::SelectAndScatterOp op,
                                   WideReducer &reducer,
                                   ArrayRef<WindowDim> window, Type number) {
    auto type = cast<RankedTensorType>(op.getType());
    auto source = cast<RankedTensorType>(op.getSource().getType());
    bool good = true;
    // Windows that an element can be in.
    SmallVector<int64_t> most;
    for (const WindowDim &dim : window)
      most.push_back(llvm::divideCeil(dim.size, dim.stride));
    k.parallel(type.getShape(), [&](ValueRange place) {
      Value init = reducer.widen(k.b, k.loc,
                                 k.loadScalar(2, {}, type.getElementType()), 0);
      Value own = getNumber(k, type.getShape(), place, number);
      // The first of them by dimension; negative ones are very large numbers.
      SmallVector<Value> first;
      for (auto [dim, w] : llvm::enumerate(window)) {
        Value last = k.add(place[dim], k.index(w.low + w.stride - w.size +
                                               most[dim] * w.stride));
        first.push_back(
            k.add(arith::DivUIOp::create(k.b, k.loc, last, k.index(w.stride)),
                  k.index(-most[dim])));
      }
      auto visit = [&](ValueRange offset, ValueRange now) {
        SmallVector<Value> output;
        Value inside =
            arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
        for (auto [dim, from] : llvm::enumerate(first)) {
          output.push_back(k.add(from, offset[dim]));
          inside = arith::AndIOp::create(
              k.b, k.loc, inside,
              k.inside(output.back(), source.getDimSize(dim)));
        }
        auto branch = scf::IfOp::create(k.b, k.loc, now.getTypes(), inside,
                                        /*withElseRegion=*/true);
        OpBuilder::InsertionGuard guard(k.b);
        k.b.setInsertionPointToStart(branch.elseBlock());
        scf::YieldOp::create(k.b, k.loc, now);
        k.b.setInsertionPointToStart(branch.thenBlock());
        Value isThis = k.compare(arith::CmpIPredicate::eq,
                                 k.loadScalar(0, output, number), own);
        Value sum =
            addTo(k, reducer, type.getElementType(), now[0], output, good);
        scf::YieldOp::create(
            k.b, k.loc,
            arith::SelectOp::create(k.b, k.loc, isThis, sum, now[0])
                .getResult());
        return SmallVector<Value>(branch.getResults());
      };
      k.store(carryNest(k, most, init, visit)[0], 3, place);
    });
    return success(good);
  }

  /// What the element of the source at `output` makes of `old`.
  static Value addTo(KernelBuilder &k, WideReducer &reducer, Type element,
                     Value old, ValueRange output, bool &good) {
    Value add = reducer.widen(k.b, k.loc, k.loadScalar(1, output, element), 0);
    auto sum = reducer.emit(k.b, {old, add});
    good &= succeeded(sum);
    return succeeded(sum) ? (*sum)[0] : old;
  }

  /// Whether the window at `output` selects anything, its value, its indices.
  static SmallVector<Value> selectPlace(KernelBuilder &k,
                                        stablehlo::SelectAndScatterOp op,
                                        ArrayRef<WindowDim> window,
                                        ArrayRef<int64_t> sizes,
                                        ValueRange output, bool &good) {
    auto type = cast<RankedTensorType>(op.getType());
    Type element = type.getElementType();
    SmallVector<Value> carried;
    carried.push_back(
        arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(false)));
    carried.push_back(makeZero(k.b, k.loc, getStorageType(element)));
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      carried.push_back(k.index(0));
    return carryNest(k, sizes, carried, [&](ValueRange offset, ValueRange now) {
      Place place = findPlace(k, window, type.getShape(), output, offset);
      auto branch = scf::IfOp::create(k.b, k.loc, now.getTypes(), place.inside,
                                      /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(branch.thenBlock());
      Value value = k.loadScalar(0, place.indices, element);
      auto keep = emitScalarBlock(k.b, op.getSelect().front(), {now[1], value});
      good &= succeeded(keep);
      Value keepOld = now[0];
      if (good)
        keepOld = arith::AndIOp::create(k.b, k.loc, now[0], (*keep)[0]);
      SmallVector<Value> next;
      next.push_back(
          arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true)));
      next.push_back(
          arith::SelectOp::create(k.b, k.loc, keepOld, now[1], value));
      for (auto [old, index] :
           llvm::zip_equal(now.drop_front(2), place.indices))
        next.push_back(
            arith::SelectOp::create(k.b, k.loc, keepOld, old, index));
      scf::YieldOp::create(k.b, k.loc, next);
      k.b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(k.b, k.loc, now);
      return SmallVector<Value>(branch.getResults());
    });
  }

  Target target;
};

} // namespace

void whale::populateSelectAndScatterPatterns(RewritePatternSet &patterns,
                                             const Target &target) {
  patterns.add<SelectAndScatterToKernel>(patterns.getContext(), target);
}
