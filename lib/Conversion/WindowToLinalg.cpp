//===- WindowToLinalg.cpp - Window operations -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// reduce_window, in linear time where it is a running reduction, and
// select_and_scatter.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "SumOrder.h"
#include "WideReducer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

namespace {

/// One dimension of a window.
struct WindowDim {
  int64_t size = 1, stride = 1, baseDilation = 1, dilation = 1;
  int64_t low = 0, high = 0;

  bool isTrivial() const {
    return size == 1 && stride == 1 && baseDilation == 1 && low == 0 &&
           high == 0;
  }
};

template <typename Op>
SmallVector<WindowDim> getWindow(Op op, ArrayRef<int64_t> sizes) {
  SmallVector<WindowDim> window(sizes.size());
  for (auto [dim, size] : llvm::enumerate(sizes))
    window[dim].size = size;
  if (auto strides = op.getWindowStrides())
    for (auto [dim, stride] : llvm::enumerate(*strides))
      window[dim].stride = stride;
  if (auto padding = op.getPadding())
    for (auto [place, value] :
         llvm::enumerate(padding->template getValues<int64_t>()))
      (place % 2 ? window[place / 2].high : window[place / 2].low) = value;
  return window;
}

/// Where the window that starts at `output` has its element `offset` in the
/// input, and whether that is inside.
struct Place {
  SmallVector<Value> indices;
  Value inside;
};

Place findPlace(KernelBuilder &k, ArrayRef<WindowDim> window,
                ArrayRef<int64_t> shape, ValueRange output, ValueRange offset) {
  Place place;
  auto require = [&](Value condition) {
    place.inside = place.inside ? arith::AndIOp::create(k.b, k.loc,
                                                        place.inside, condition)
                                      .getResult()
                                : condition;
  };
  for (auto [dim, w] : llvm::enumerate(window)) {
    Value index = k.mul(output[dim], k.index(w.stride));
    index = k.add(index, k.mul(offset[dim], k.index(w.dilation)));
    index = k.add(index, k.index(-w.low));
    int64_t span = (shape[dim] - 1) * w.baseDilation + 1;
    if (!w.isTrivial())
      require(k.inside(index, span));
    if (w.baseDilation > 1) {
      Value dilation = k.index(w.baseDilation);
      Value rest = arith::RemUIOp::create(k.b, k.loc, index, dilation);
      require(k.compare(arith::CmpIPredicate::eq, rest, k.index(0)));
      index = arith::DivUIOp::create(k.b, k.loc, index, dilation);
    }
    place.indices.push_back(index);
  }
  if (!place.inside)
    place.inside = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
  return place;
}

/// Runs `body(carried)` for each element of a nest of loops and returns what
/// is carried in the end.
SmallVector<Value>
carryNest(KernelBuilder &k, ArrayRef<int64_t> sizes, ValueRange initial,
          function_ref<SmallVector<Value>(ValueRange, ValueRange)> body,
          SmallVector<Value> counters = {}) {
  if (counters.size() == sizes.size())
    return body(counters, initial);
  auto loop =
      scf::ForOp::create(k.b, k.loc, k.index(0),
                         k.index(sizes[counters.size()]), k.index(1), initial);
  {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    counters.push_back(loop.getInductionVar());
    SmallVector<Value> next =
        carryNest(k, sizes, loop.getRegionIterArgs(), body, counters);
    scf::YieldOp::create(k.b, k.loc, next);
  }
  return SmallVector<Value>(loop.getResults());
}

/// Loops over the elements of `shape`, the first dimension from begin to end.
void overElements(KernelBuilder &k, ArrayRef<int64_t> shape,
                  function_ref<void(ValueRange)> body) {
  if (shape.empty()) {
    body({});
    return;
  }
  k.loop(k.begin, k.end, [&](Value outer) {
    k.nest(shape.drop_front(), [&](ValueRange inner) {
      SmallVector<Value> all{outer};
      llvm::append_range(all, inner);
      body(all);
    });
  });
}

int64_t getExtent(ArrayRef<int64_t> shape) {
  return shape.empty() ? 1 : shape[0];
}

struct ReduceWindowToKernel : OpRewritePattern<stablehlo::ReduceWindowOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ReduceWindowOp op,
                                PatternRewriter &rewriter) const override {
    auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
    if (from.getNumElements() == 0)
      return replaceByInits(rewriter, op);
    SmallVector<WindowDim> window = getWindow(op, op.getWindowDimensions());
    if (auto dilations = op.getBaseDilations())
      for (auto [dim, dilation] : llvm::enumerate(*dilations))
        window[dim].baseDilation = dilation;
    if (auto dilations = op.getWindowDilations())
      for (auto [dim, dilation] : llvm::enumerate(*dilations))
        window[dim].dilation = dilation;

    SmallVector<Value> inputs;
    SmallVector<Type> types, elements;
    for (Value input : op.getInputs())
      inputs.push_back(stored(rewriter, input));
    for (Value init : op.getInitValues())
      inputs.push_back(stored(rewriter, init));
    for (Type type : op.getResultTypes()) {
      types.push_back(getStorageType(cast<RankedTensorType>(type)));
      elements.push_back(getElementTypeOrSelf(type));
      if (!types.back())
        return failure();
    }
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    std::optional<int64_t> axis = findRunningAxis(window, from, to);
    int64_t extent = axis && *axis == 0 ? 1 : getExtent(to.getShape());
    // What has few terms needs no more than f32.
    int64_t taps = 1;
    for (const WindowDim &dim : window)
      taps *= dim.size;
    WideReducer reducer(op.getBody().front(), taps <= kSumBlock
                                                  ? WideReducer::toF32
                                                  : WideReducer::toWider);
    auto kernel =
        makeKernel(rewriter, op.getLoc(), types, inputs, extent,
                   [&](KernelBuilder &k) -> LogicalResult {
                     if (axis)
                       return buildRunning(k, op, reducer, *axis,
                                           window[*axis].low == 0, elements);
                     return buildWindow(k, op, reducer, window, elements);
                   });
    if (failed(kernel))
      return failure();
    // Nothing that is stored is read again.
    (*kernel)->setAttr(kParallelAttrName, rewriter.getUnitAttr());
    replaceWithStored(rewriter, op, kernel->getResults());
    return success();
  }

  /// The only dimension with a window, if the window is the whole axis and one
  /// side is padded so that element i reduces what is before (or after) i.
  static std::optional<int64_t> findRunningAxis(ArrayRef<WindowDim> window,
                                                RankedTensorType from,
                                                RankedTensorType to) {
    std::optional<int64_t> axis;
    for (auto [dim, w] : llvm::enumerate(window)) {
      if (w.isTrivial())
        continue;
      int64_t size = from.getDimSize(dim);
      bool whole = w.size == size && w.stride == 1 && w.baseDilation == 1 &&
                   w.dilation == 1 && to.getDimSize(dim) == size &&
                   ((w.low == size - 1 && w.high == 0) ||
                    (w.low == 0 && w.high == size - 1));
      if (!whole || axis)
        return std::nullopt;
      axis = dim;
    }
    return axis;
  }

  static FailureOr<SmallVector<Value>>
  combine(KernelBuilder &k, WideReducer &reducer, ValueRange carried,
          ValueRange indices, ArrayRef<Type> elements) {
    SmallVector<Value> arguments(carried);
    for (auto [number, element] : llvm::enumerate(elements))
      arguments.push_back(reducer.widen(
          k.b, k.loc, k.loadScalar(number, indices, element), number));
    return reducer.emit(k.b, arguments);
  }

  static SmallVector<Value> loadInits(KernelBuilder &k, WideReducer &reducer,
                                      ArrayRef<Type> elements) {
    SmallVector<Value> inits;
    for (auto [number, element] : llvm::enumerate(elements))
      inits.push_back(reducer.widen(
          k.b, k.loc, k.loadScalar(elements.size() + number, {}, element),
          number));
    return inits;
  }

  static void storeResults(KernelBuilder &k, WideReducer &reducer,
                           ValueRange results, ValueRange indices) {
    for (auto [number, result] : llvm::enumerate(results))
      k.store(reducer.narrow(k.b, k.loc, result, number),
              2 * results.size() + number, indices);
  }

  static LogicalResult buildWindow(KernelBuilder &k,
                                   stablehlo::ReduceWindowOp op,
                                   WideReducer &reducer,
                                   ArrayRef<WindowDim> window,
                                   ArrayRef<Type> elements) {
    auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    bool good = true;
    SmallVector<Value> inits = loadInits(k, reducer, elements);
    overElements(k, to.getShape(), [&](ValueRange output) {
      SmallVector<Value> results = carryNest(
          k, op.getWindowDimensions(), inits,
          [&](ValueRange offset, ValueRange carried) {
            Place place = findPlace(k, window, from.getShape(), output, offset);
            auto branch =
                scf::IfOp::create(k.b, k.loc, carried.getTypes(), place.inside,
                                  /*withElseRegion=*/true);
            OpBuilder::InsertionGuard guard(k.b);
            k.b.setInsertionPointToStart(branch.thenBlock());
            auto next = combine(k, reducer, carried, place.indices, elements);
            good &= succeeded(next);
            scf::YieldOp::create(k.b, k.loc,
                                 good ? ValueRange(*next) : carried);
            k.b.setInsertionPointToStart(branch.elseBlock());
            scf::YieldOp::create(k.b, k.loc, carried);
            return SmallVector<Value>(branch.getResults());
          });
      storeResults(k, reducer, results, output);
    });
    return success(good);
  }

  /// Element by element along the axis. What is carried lies in registers or,
  /// where there are dimensions inside of the axis, in a line of at most
  /// kMaxLine of their elements: the inner loop then goes over neighbours.
  static LogicalResult buildRunning(KernelBuilder &k,
                                    stablehlo::ReduceWindowOp op,
                                    WideReducer &reducer, int64_t axis,
                                    bool reversed, ArrayRef<Type> elements) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t size = type.getDimSize(axis);
    int64_t inside = 1;
    for (int64_t inner : type.getShape().drop_front(axis + 1))
      inside *= inner;
    joinInner(k, type.getShape().take_front(axis + 1), inside, elements.size());
    int64_t width = std::min(inside, kMaxLine);
    SmallVector<Value> inits = loadInits(k, reducer, elements);
    auto makeLine = [&] {
      SmallVector<Value> line;
      for (Value init : inits)
        line.push_back(memref::AllocaOp::create(
            k.b, k.loc, MemRefType::get({width}, init.getType()),
            k.b.getI64IntegerAttr(64)));
      return line;
    };
    bool blocks = size > kSumBlock && reducer.roundsTerms();
    SmallVector<Value> line;
    if (inside > 1 && !blocks)
      line = makeLine();
    SmallVector<RunningLevel> levels;
    for (int64_t unit = 1; blocks && unit < size; unit *= kSumBlock)
      levels.push_back({makeLine(), makeLine(), unit});
    bool good = true;
    auto indicesAt = [&](ValueRange outer, Value position, Value inner) {
      if (reversed)
        position =
            arith::SubIOp::create(k.b, k.loc, k.index(size - 1), position);
      SmallVector<Value> indices(outer);
      indices.append({position, inner});
      return indices;
    };
    auto step = [&](ValueRange outer, Value position, Value inner,
                    ValueRange carried) {
      SmallVector<Value> indices = indicesAt(outer, position, inner);
      auto next = combine(k, reducer, carried, indices, elements);
      good &= succeeded(next);
      if (!good)
        return SmallVector<Value>(carried);
      storeResults(k, reducer, *next, indices);
      return *next;
    };
    auto inRegisters = [&](ValueRange outer) {
      carryNest(k, size, inits, [&](ValueRange at, ValueRange carried) {
        return step(outer, at[0], k.index(0), carried);
      });
    };
    auto inLines = [&](ValueRange outer, Value first, int64_t count) {
      Value columns = k.index(count);
      k.loop(k.index(0), columns, [&](Value column) {
        for (auto [init, sums] : llvm::zip_equal(inits, line))
          memref::StoreOp::create(k.b, k.loc, init, sums, column);
      });
      k.loop(k.index(0), k.index(size), [&](Value position) {
        k.loop(k.index(0), columns, [&](Value column) {
          SmallVector<Value> carried;
          for (Value sums : line)
            carried.push_back(memref::LoadOp::create(k.b, k.loc, sums, column));
          SmallVector<Value> next =
              step(outer, position, k.add(first, column), carried);
          for (auto [value, sums] : llvm::zip_equal(next, line))
            memref::StoreOp::create(k.b, k.loc, value, sums, column);
        });
      });
    };
    auto inBlocks = [&](ValueRange outer, Value first, int64_t count) {
      auto visit = [&](Value position, Value column) {
        return indicesAt(outer, position, k.add(first, column));
      };
      good &= succeeded(
          emitBlocks(k, reducer, levels, size, count, inits, elements, visit));
    };
    auto along = [&](ValueRange outer) {
      if (inside == 1)
        return blocks ? inBlocks(outer, k.index(0), 1) : inRegisters(outer);
      auto columns = [&](Value first, int64_t count) {
        blocks ? inBlocks(outer, first, count) : inLines(outer, first, count);
      };
      k.loop(k.index(0), k.index(inside / width), [&](Value number) {
        columns(k.mul(number, k.index(width)), width);
      });
      if (int64_t rest = inside % width)
        columns(k.index(inside - rest), rest);
    };
    if (axis == 0) {
      along({});
      return success(good);
    }
    k.loop(k.begin, k.end, [&](Value first) {
      k.nest(type.getShape().slice(1, axis - 1), [&](ValueRange others) {
        SmallVector<Value> outer{first};
        llvm::append_range(outer, others);
        along(outer);
      });
    });
    return success(good);
  }

  static constexpr int64_t kMaxLine = 512;

  /// A running reduction in blocks of kSumBlock steps of `unit` elements each,
  /// for a line of columns: what is before the block, and what the steps of it
  /// reduce to so far. A step of level n is a block of level n - 1.
  struct RunningLevel {
    SmallVector<Value> before, within;
    int64_t unit;
  };

  /// Each result reduces what is before its blocks, from the outermost in, and
  /// then its block, so that an error grows with the logarithm of the length.
  /// The initial value is taken once.
  static LogicalResult
  emitBlocks(KernelBuilder &k, WideReducer &reducer,
             ArrayRef<RunningLevel> levels, int64_t size, int64_t count,
             ArrayRef<Value> inits, ArrayRef<Type> elements,
             function_ref<SmallVector<Value>(Value, Value)> indicesAt) {
    bool good = true;
    auto load = [&](ArrayRef<Value> line, Value column) {
      SmallVector<Value> values;
      for (Value memory : line)
        values.push_back(memref::LoadOp::create(k.b, k.loc, memory, column));
      return values;
    };
    auto store = [&](ArrayRef<Value> values, ArrayRef<Value> line,
                     Value column) {
      for (auto [value, memory] : llvm::zip_equal(values, line))
        memref::StoreOp::create(k.b, k.loc, value, memory, column);
    };
    auto join = [&](SmallVector<Value> arguments, ArrayRef<Value> more) {
      SmallVector<Value> before = arguments;
      llvm::append_range(arguments, more);
      auto result = reducer.emit(k.b, arguments);
      good &= succeeded(result);
      return good ? *result : before;
    };
    auto choose = [&](Value condition, ArrayRef<Value> yes,
                      ArrayRef<Value> no) {
      SmallVector<Value> chosen;
      for (auto [a, b] : llvm::zip_equal(yes, no))
        chosen.push_back(arith::SelectOp::create(k.b, k.loc, condition, a, b));
      return chosen;
    };
    auto overColumns = [&](function_ref<void(Value)> body) {
      if (count == 1)
        body(k.index(0));
      else
        k.loop(k.index(0), k.index(count), body);
    };
    auto scan = [&](auto &scan, size_t number, Value begin) -> void {
      const RunningLevel &level = levels[number];
      Value end = k.index(size);
      if (level.unit * kSumBlock < size)
        end = arith::MinUIOp::create(
            k.b, k.loc, end, k.add(begin, k.index(level.unit * kSumBlock)));
      auto loop =
          scf::ForOp::create(k.b, k.loc, begin, end, k.index(level.unit));
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(loop.getBody());
      Value position = loop.getInductionVar();
      Value isFirst = k.compare(arith::CmpIPredicate::eq, position, begin);
      auto accumulate = [&](ArrayRef<Value> term, Value column) {
        SmallVector<Value> sum = join(load(level.within, column), term);
        sum = choose(isFirst, term, sum);
        store(sum, level.within, column);
        return sum;
      };
      if (number == 0) {
        overColumns([&](Value column) {
          SmallVector<Value> indices = indicesAt(position, column), term;
          for (auto [operand, element] : llvm::enumerate(elements))
            term.push_back(reducer.widen(
                k.b, k.loc, k.loadScalar(operand, indices, element), operand));
          SmallVector<Value> sum = accumulate(term, column);
          storeResults(k, reducer, join(load(level.before, column), sum),
                       indices);
        });
        return;
      }
      const RunningLevel &below = levels[number - 1];
      overColumns([&](Value column) {
        SmallVector<Value> before = load(level.before, column);
        store(choose(isFirst, before, join(before, load(level.within, column))),
              below.before, column);
      });
      scan(scan, number - 1, position);
      overColumns([&](Value column) {
        accumulate(load(below.within, column), column);
      });
    };
    overColumns([&](Value column) {
      store(inits, levels.back().before, column);
      for (const RunningLevel &level : levels)
        store(inits, level.within, column);
    });
    scan(scan, levels.size() - 1, k.index(0));
    return success(good);
  }

  /// Lets `count` operands and as many results be seen with dimensions `outer`
  /// and one of `inside`.
  static void joinInner(KernelBuilder &k, ArrayRef<int64_t> outer,
                        int64_t inside, size_t count) {
    SmallVector<int64_t> shape(outer);
    shape.push_back(inside);
    SmallVector<int64_t> strides(shape.size(), 1);
    for (size_t dim = shape.size() - 1; dim-- > 0;)
      strides[dim] = strides[dim + 1] * shape[dim + 1];
    auto join = [&](Value &buffer) {
      Type element = cast<MemRefType>(buffer.getType()).getElementType();
      buffer = memref::ReinterpretCastOp::create(
          k.b, k.loc, MemRefType::get(shape, element), buffer,
          /*offset=*/int64_t(0), shape, strides);
    };
    for (size_t number = 0; number < count; ++number) {
      join(k.buffers[number]);
      join(k.buffers[2 * count + number]);
    }
  }
};

/// Pattern: select_and_scatter fills the result with the initial value, then
/// adds each source element at the place its window selects. Windows of
/// different leading elements are disjoint if the first dimension has none.
struct SelectAndScatterToKernel
    : OpRewritePattern<stablehlo::SelectAndScatterOp> {
  using OpRewritePattern::OpRewritePattern;

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
    bool apart = true;
    for (const WindowDim &dim : window) {
      taps *= dim.size;
      apart &= dim.stride >= dim.size && dim.baseDilation == 1 &&
               dim.dilation == 1 && dim.low == 0 && dim.high == 0;
    }
    if (apart && taps <= kMaxTaps)
      return selectApart(rewriter, op, window, inputs, storage);
    // Windows that overlap add to the same elements.
    WideReducer reducer(op.getScatter().front(), WideReducer::toF32);
    bool wide = reducer.isWide(0);
    auto kernel = makeKernel(
        rewriter, op.getLoc(),
        storage.clone(getStorageType(reducer.getType(0))), inputs,
        split ? type.getDimSize(0) : 1, [&](KernelBuilder &k) -> LogicalResult {
          auto over = [&](ArrayRef<int64_t> shape,
                          function_ref<void(ValueRange)> body) {
            if (split)
              overElements(k, shape, body);
            else
              k.nest(shape, body);
          };
          Value init =
              reducer.widen(k.b, k.loc, k.loadScalar(2, {}, element), 0);
          over(type.getShape(), [&](ValueRange all) { k.store(init, 3, all); });
          bool good = true;
          over(source.getShape(), [&](ValueRange output) {
            good &=
                succeeded(scatterOne(k, op, reducer, window, sizes, output));
          });
          return success(good);
        });
    if (failed(kernel))
      return failure();
    Value result = kernel->getResult(0);
    if (wide) {
      auto narrow = makeParallel(
          rewriter, op.getLoc(), type.getShape(), storage.getElementType(),
          Input{result, rewriter.getMultiDimIdentityMap(type.getRank())},
          [&](OpBuilder &b, Location loc,
              ValueRange values) -> FailureOr<SmallVector<Value>> {
            return SmallVector<Value>{reducer.narrow(b, loc, values[0], 0)};
          });
      result = narrow->getResult(0);
    }
    replaceWithStored(rewriter, op, result);
    return success();
  }

  /// More are a loop.
  static constexpr int64_t kMaxTaps = 32;

  /// Windows that lie inside and do not overlap: each decides alone about its
  /// elements, so that nothing is carried from one to the next.
  static LogicalResult selectApart(PatternRewriter &rewriter,
                                   stablehlo::SelectAndScatterOp op,
                                   ArrayRef<WindowDim> window,
                                   ArrayRef<Value> inputs,
                                   RankedTensorType storage) {
    auto source = cast<RankedTensorType>(op.getSource().getType());
    ArrayRef<int64_t> shape = storage.getShape();
    Type element = cast<ShapedType>(op.getType()).getElementType();
    bool covered = true;
    for (auto [dim, size] : llvm::enumerate(shape))
      covered &= window[dim].stride == window[dim].size &&
                 window[dim].size * source.getDimSize(dim) == size;
    // Ranges of the outermost dimension are then those of the result too.
    bool split = covered || (!window.empty() && window[0].isTrivial());
    int64_t extent = split ? getExtent(source.getShape()) : 1;
    auto kernel = makeKernel(
        rewriter, op.getLoc(), storage, inputs, extent,
        [&](KernelBuilder &k) -> LogicalResult {
          auto over = [&](ArrayRef<int64_t> sizes,
                          function_ref<void(ValueRange)> body) {
            if (split)
              overElements(k, sizes, body);
            else
              k.nest(sizes, body);
          };
          Value init = k.loadScalar(2, {}, element);
          if (!covered)
            over(shape, [&](ValueRange all) { k.store(init, 3, all); });
          bool good = true;
          over(source.getShape(), [&](ValueRange output) {
            good &= succeeded(selectOne(k, op, window, output, init));
          });
          return success(good);
        });
    if (failed(kernel))
      return failure();
    (*kernel)->setAttr(kParallelAttrName, rewriter.getUnitAttr());
    replaceWithStored(rewriter, op, kernel->getResults());
    return success();
  }

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
    auto sum = emitScalarBlock(k.b, op.getScatter().front(), {init, add});
    if (failed(sum))
      return failure();
    for (auto [tap, place] : llvm::enumerate(places)) {
      Value isChosen = k.compare(arith::CmpIPredicate::eq, chosen, number(tap));
      k.store(arith::SelectOp::create(k.b, k.loc, isChosen, (*sum)[0], init), 3,
              place);
    }
    return success();
  }

  static LogicalResult scatterOne(KernelBuilder &k,
                                  stablehlo::SelectAndScatterOp op,
                                  WideReducer &reducer,
                                  ArrayRef<WindowDim> window,
                                  ArrayRef<int64_t> sizes, ValueRange output) {
    auto type = cast<RankedTensorType>(op.getType());
    Type element = type.getElementType();
    // Carried: whether anything is selected, its value, its place.
    SmallVector<Value> carried;
    carried.push_back(
        arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(false)));
    carried.push_back(k.loadScalar(2, {}, element));
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      carried.push_back(k.index(0));
    bool good = true;
    SmallVector<Value> selected =
        carryNest(k, sizes, carried, [&](ValueRange offset, ValueRange now) {
          Place place = findPlace(k, window, type.getShape(), output, offset);
          auto branch =
              scf::IfOp::create(k.b, k.loc, now.getTypes(), place.inside,
                                /*withElseRegion=*/true);
          OpBuilder::InsertionGuard guard(k.b);
          k.b.setInsertionPointToStart(branch.thenBlock());
          Value value = k.loadScalar(0, place.indices, element);
          auto keep =
              emitScalarBlock(k.b, op.getSelect().front(), {now[1], value});
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
    k.when(selected[0], [&] {
      ValueRange place = ArrayRef(selected).drop_front(2);
      Value old = k.loadScalar(3, place, reducer.getType(0));
      Value add =
          reducer.widen(k.b, k.loc, k.loadScalar(1, output, element), 0);
      auto sum = reducer.emit(k.b, {old, add});
      good &= succeeded(sum);
      if (good)
        k.store((*sum)[0], 3, place);
    });
    return success(good);
  }
};

} // namespace

void whale::populateWindowPatterns(RewritePatternSet &patterns) {
  patterns.add<ReduceWindowToKernel, SelectAndScatterToKernel>(
      patterns.getContext());
}
