//===- CheckNans.cpp - Which operation made a NaN -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, into which all is inlined, of a module that asks for `debug_nans`.
// Out: behind each operation that computes floating-point numbers, a call into
// Python with whether there is a NaN among them; whale-lift-callbacks makes
// results of these. Cost: a pass over each value when the step runs, and three
// operations for each when it is compiled.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace whale {
#define GEN_PASS_DEF_CHECKNANS
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;
namespace hlo = mlir::stablehlo;

namespace {

bool isFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Whether any element is a NaN.
Value createIsNan(OpBuilder &b, Location loc, Value value) {
  Value differs = hlo::CompareOp::create(b, loc, value, value,
                                         hlo::ComparisonDirection::NE);
  auto type = cast<RankedTensorType>(differs.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value none =
      hlo::ConstantOp::create(b, loc, DenseElementsAttr::get(scalar, false));
  auto reduce = hlo::ReduceOp::create(
      b, loc, scalar, differs, none,
      llvm::to_vector(llvm::seq<int64_t>(type.getRank())));
  Block &body = reduce.getBody().emplaceBlock();
  body.addArguments({scalar, scalar}, {loc, loc});
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  Value either =
      hlo::OrOp::create(inside, loc, body.getArgument(0), body.getArgument(1));
  hlo::ReturnOp::create(inside, loc, either);
  return reduce.getResult(0);
}

/// A call into Python, under a number that no function of the user has.
void createCall(OpBuilder &b, Location loc, Value value, int64_t index) {
  NamedAttribute number = b.getNamedAttr("index", b.getI64IntegerAttr(index));
  hlo::CustomCallOp::create(
      b, loc, TypeRange(), createIsNan(b, loc, value),
      {b.getNamedAttr("call_target_name", b.getStringAttr(kPythonCallback)),
       b.getNamedAttr("mhlo.backend_config", b.getDictionaryAttr(number))});
}

void checkBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto loop = dyn_cast<hlo::WhileOp>(op);
    if (hlo::isBranch(&op) || (loop && tripCount(loop))) {
      for (Region &region : op.getRegions())
        if (!loop || &region == &loop.getBody())
          checkBlock(region.front());
      continue;
    }
    if (opFlops(&op) == 0)
      continue;
    OpBuilder b(op.getContext());
    b.setInsertionPointAfter(&op);
    for (Value result : op.getResults())
      if (isFloat(result))
        createCall(b, op.getLoc(), result, kNanMade);
  }
}

class CheckNans : public whale::impl::CheckNansBase<CheckNans> {
  using CheckNansBase::CheckNansBase;

  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || !Config(getOperation()).debugsNans())
      return;
    checkBlock(main.front());
    Operation *end = main.front().getTerminator();
    OpBuilder b(end);
    for (auto [number, value] : llvm::enumerate(end->getOperands())) {
      if (!isFloat(value))
        continue;
      auto label =
          main.getResultAttrOfType<StringAttr>(number, "jax.result_info");
      Location loc = NameLoc::get(
          label ? label : b.getStringAttr("result " + Twine(number)));
      createCall(b, loc, value, kNanReturned);
    }
  }
};

} // namespace
