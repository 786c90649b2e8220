//===- DivideScatters.cpp - whale-divide-scatters -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: scatters. Out: where one has more updates than the GPU's kernels take at
// a time, a counted loop over equal parts of them, and one of what is left. The
// parts are those of the outermost dimension of the indices that is no batch,
// so that updates of an element stay in order; where one place of it has too
// many, there is a loop inside. Cost: a copy of the indices and updates.
//
//===----------------------------------------------------------------------===//

#include "Gpu/GpuKernels.h"
#include "Kernel/ScatterDims.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Conversion/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace whale {
#define GEN_PASS_DEF_DIVIDESCATTERS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

namespace {

class ScatterDivider {
public:
  ScatterDivider(stablehlo::ScatterOp op, int64_t most)
      : b(op), loc(op.getLoc()), op(op), dims(op), most(most) {}

  /// Returns the scatters of parts; none if it stays.
  SmallVector<stablehlo::ScatterOp> run() {
    if (!findParts())
      return {};
    SmallVector<Value> results = makeLoop();
    if (int64_t rest = size % part)
      results = scatter(results, [&](Value value, int64_t dim) -> Value {
        auto type = cast<RankedTensorType>(value.getType());
        SmallVector<int64_t> starts(type.getRank(), 0), ends(type.getShape()),
            strides(type.getRank(), 1);
        starts[dim] = size - rest;
        return stablehlo::SliceOp::create(b, loc, resize(value, dim, rest),
                                          value, starts, ends, strides);
      });
    op->replaceAllUsesWith(results);
    op.erase();
    return parts;
  }

private:
  /// Takes a part along a dimension of the indices or updates.
  using TakePart = function_ref<Value(Value, int64_t)>;

  /// False if there are not too many items, or they are of one window.
  bool findParts() {
    int64_t items = dims.countItems();
    if (items <= most)
      return false;
    for (int64_t dim = 0; dim < dims.indices.getRank(); ++dim) {
      if (dim == dims.numbers.getIndexVectorDim() ||
          dims.indices.getDimSize(dim) == 1 ||
          llvm::is_contained(dims.numbers.getScatterIndicesBatchingDims(), dim))
        continue;
      indicesDim = dim;
      updatesDim = dims.placeDimOf(dim);
      size = dims.indices.getDimSize(dim);
      part = std::max<int64_t>(most / (items / size), 1);
      part = llvm::divideCeil(size, llvm::divideCeil(size, part));
      return true;
    }
    return false;
  }

  static RankedTensorType resize(Value value, int64_t dim, int64_t size) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = size;
    return type.clone(shape);
  }

  SmallVector<Value> scatter(ValueRange inputs, TakePart take) {
    SmallVector<Value> operands(inputs);
    operands.push_back(take(op.getScatterIndices(), indicesDim));
    for (Value update : op.getUpdates())
      operands.push_back(take(update, updatesDim));
    auto one = cast<stablehlo::ScatterOp>(b.clone(*op));
    one->setOperands(operands);
    parts.push_back(one);
    return one->getResults();
  }

  Value makeNumber(int64_t value) {
    return stablehlo::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(RankedTensorType::get({}, b.getI64Type()),
                               b.getI64IntegerAttr(value)));
  }

  SmallVector<Value> makeLoop() {
    Value zero = makeNumber(0);
    SmallVector<Value> carried = {zero};
    llvm::append_range(carried, op.getInputs());
    SmallVector<Type> types(ValueRange(carried).getTypes());
    SmallVector<Location> locations(types.size(), loc);
    auto loop = stablehlo::WhileOp::create(b, loc, types, carried);
    OpBuilder::InsertionGuard guard(b);
    Block *cond = b.createBlock(&loop.getCond(), {}, types, locations);
    stablehlo::ReturnOp::create(
        b, loc,
        ValueRange{stablehlo::CompareOp::create(
            b, loc, RankedTensorType::get({}, b.getI1Type()),
            cond->getArgument(0), makeNumber(size / part),
            stablehlo::ComparisonDirection::LT, nullptr)});
    Block *body = b.createBlock(&loop.getBody(), {}, types, locations);
    Value number = body->getArgument(0);
    Value start = stablehlo::MulOp::create(b, loc, number, makeNumber(part));
    Value next = stablehlo::AddOp::create(b, loc, number, makeNumber(1));
    SmallVector<Value> results =
        scatter(ValueRange(body->getArguments()).drop_front(),
                [&](Value value, int64_t dim) -> Value {
                  RankedTensorType type = resize(value, dim, part);
                  SmallVector<Value> starts(type.getRank(), zero);
                  starts[dim] = start;
                  return stablehlo::DynamicSliceOp::create(
                      b, loc, type, value, starts, type.getShape());
                });
    results.insert(results.begin(), next);
    stablehlo::ReturnOp::create(b, loc, results);
    return SmallVector<Value>(loop.getResults().drop_front());
  }

  OpBuilder b;
  Location loc;
  stablehlo::ScatterOp op;
  ScatterDims dims;
  int64_t most;
  SmallVector<stablehlo::ScatterOp> parts;
  int64_t indicesDim = 0, updatesDim = 0, size = 1, part = 1;
};

struct DivideScatters : whale::impl::DivideScattersBase<DivideScatters> {
  using DivideScattersBase::DivideScattersBase;

  void runOnOperation() override {
    SmallVector<stablehlo::ScatterOp> scatters;
    getOperation().walk(
        [&](stablehlo::ScatterOp op) { scatters.push_back(op); });
    // Those of a part may still be too many, along the next dimension.
    while (!scatters.empty()) {
      stablehlo::ScatterOp op = scatters.pop_back_val();
      ScatterDivider divider(op, most > 0 ? int64_t(most) : getMostItems(op));
      llvm::append_range(scatters, divider.run());
    }
  }
};

} // namespace
