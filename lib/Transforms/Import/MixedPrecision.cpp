//===- MixedPrecision.cpp - whale-mixed-precision -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, with a phase on each operation. Out: the same, whose products of
// f32 take halves.
//
// Three sets of values decide, each found in one walk: products that may take
// halves; values that nothing else reads, which are moved as halves; and values
// that the step's results are sums of, which stay in f32. Then products are
// rewritten in program order, so that a product finds what those before it give
// in halves. Each value is rounded once, where it is made. Cost: linear in
// operations and uses.
//
//===----------------------------------------------------------------------===//

#include "CarryAttributes.h"
#include "MixedPrecision/LossScale.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_MIXEDPRECISION
#include "whale/Transforms/Import/Passes.h.inc"

namespace {

bool isOfF32(Value value) { return getElementTypeOrSelf(value).isF32(); }

RankedTensorType ofElement(Value value, Type element) {
  return cast<RankedTensorType>(value.getType()).clone(element);
}

/// Whether the result has elements of operand 0 and no others.
bool movesHalves(Operation *op) {
  return isa<hlo::BroadcastInDimOp, hlo::ReshapeOp, hlo::ReverseOp,
             hlo::SliceOp, hlo::TransposeOp>(op);
}

/// Operands whose elements the result has, or is a sum of.
SmallVector<Value> termsOf(Operation *op) {
  if (movesHalves(op) ||
      isa<hlo::ConvertOp, hlo::DynamicSliceOp, hlo::NegOp>(op))
    return {op->getOperand(0)};
  if (isa<hlo::AddOp, hlo::SubtractOp, hlo::DynamicUpdateSliceOp, hlo::PadOp>(
          op))
    return {op->getOperand(0), op->getOperand(1)};
  if (isa<hlo::ConcatenateOp>(op))
    return op->getOperands();
  if (isa<hlo::MulOp, hlo::DivOp>(op)) {
    SmallVector<Value> factors(op->getOperands());
    llvm::erase_if(factors, [](Value value) {
      while (Operation *move = value.getDefiningOp())
        if (movesHalves(move))
          value = move->getOperand(0);
        else
          break;
      return value.getDefiningOp<hlo::ConstantOp>() != nullptr;
    });
    return factors.size() == 1 ? factors : SmallVector<Value>();
  }
  return {};
}

class Narrower {
public:
  Narrower(func::FuncOp main, FloatType half, bool explainsEach)
      : main(main), half(half), explainsEach(explainsEach) {}

  void run() {
    main.walk([&](Operation *op) { operations.push_back(op); });
    for (Operation *op : operations)
      if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op))
        choose(op);
    findMovedHalves();
    findSums();
    for (Operation *product : products)
      narrowProduct(product);
    for (Operation *op : llvm::reverse(passed))
      if (op->use_empty())
        op->erase();
    explain();
  }

private:
  void choose(Operation *op);
  void findMovedHalves();
  void findSums();
  void findSources(Value value, SetVector<Value> &values);
  Value narrow(Value value, Operation *user);
  Value round(Value value, Operation *user);
  void narrowProduct(Operation *product);
  void explain();
  StringRef typeName() const { return half.isBF16() ? "bf16" : "f16"; }

  func::FuncOp main;
  FloatType half;
  bool explainsEach;
  SmallVector<Operation *> operations;
  SetVector<Operation *> products;
  /// Moves that only products read.
  DenseSet<Operation *> movedHalves;
  /// Values that results of the step, or what its optimizer reads, are sums of.
  SetVector<Value> sums;
  /// What is rounded: arguments for each strategy that reads them.
  DenseMap<std::pair<Value, Attribute>, Value> halves;
  /// What products have read until they took halves, each behind its operands.
  SetVector<Operation *> passed;
  /// Why products are left alone, and how many of them.
  llvm::MapVector<StringRef, int64_t> kept;
};

} // namespace

static bool asksForPrecision(Operation *op) {
  if (auto dot = dyn_cast<hlo::DotGeneralOp>(op); dot && dot.getAlgorithm())
    return true;
  auto precision = op->getAttrOfType<ArrayAttr>("precision_config");
  return precision && llvm::any_of(precision, [](Attribute each) {
           return cast<hlo::PrecisionAttr>(each).getValue() !=
                  hlo::Precision::DEFAULT;
         });
}

void Narrower::choose(Operation *op) {
  if (!isOfF32(op->getResult(0)) || !llvm::all_of(op->getOperands(), isOfF32))
    return;
  StringRef reason;
  if (asksForPrecision(op))
    reason = "asked for precision";
  else if (phaseOf(op) == Phase::Apply)
    reason = "of the optimizer";
  if (reason.empty()) {
    products.insert(op);
    return;
  }
  ++kept[reason];
  if (explainsEach)
    emitRemark(op->getLoc()) << "amp: this product stays in f32: " << reason;
}

void Narrower::findMovedHalves() {
  for (Operation *op : llvm::reverse(operations))
    if (movesHalves(op) && isOfF32(op->getResult(0)) && !op->use_empty() &&
        llvm::all_of(op->getUsers(), [&](Operation *user) {
          return products.contains(user) || movedHalves.contains(user);
        }))
      movedHalves.insert(op);
}

/// What a value that is summed up is made of.
void Narrower::findSources(Value value, SetVector<Value> &values) {
  Operation *op = value.getDefiningOp();
  if (auto loop = dyn_cast<hlo::WhileOp>(
          op ? op : value.getParentBlock()->getParentOp())) {
    auto index = op ? cast<OpResult>(value).getResultNumber()
                    : cast<BlockArgument>(value).getArgNumber();
    values.insert(loop->getOperand(index));
    values.insert(loop.getBody().front().getTerminator()->getOperand(index));
    return;
  }
  if (!op)
    return;
  if (hlo::isControlFlow(op)) {
    for (Region &region : op->getRegions())
      values.insert(region.front().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
    return;
  }
  for (Value operand : termsOf(op))
    values.insert(operand);
}

void Narrower::findSums() {
  sums.insert_range(main.front().getTerminator()->getOperands());
  for (Operation &op : main.front())
    if (phaseOf(&op) == Phase::Apply)
      op.walk(
          [&](Operation *nested) { sums.insert_range(nested->getOperands()); });
  for (size_t i = 0; i < sums.size(); ++i)
    findSources(sums[i], sums);
}

/// Rounds a value behind what makes it; an argument before its first use, once
/// for each TaskGraph, so that none sends it to another.
Value Narrower::round(Value value, Operation *user) {
  Operation *maker = value.getDefiningOp();
  Attribute strategy = maker ? Attribute() : user->getAttr(kStrategyAttr);
  Value &known = halves[{value, strategy}];
  if (known)
    return known;
  OpBuilder builder(user);
  if (maker)
    builder.setInsertionPointAfter(maker);
  else
    builder.setInsertionPoint(
        value.getParentBlock()->findAncestorOpInBlock(*user));
  auto convert =
      hlo::ConvertOp::create(builder, maker ? value.getLoc() : user->getLoc(),
                             ofElement(value, half), value);
  bool isOwn = maker && phaseOf(maker) != Phase::Apply;
  carryAttributes(isOwn ? maker : user, convert);
  return known = convert;
}

Value Narrower::narrow(Value value, Operation *user) {
  // How far the way back is one of halves: to the maker of some, or through
  // moves that only products read.
  SmallVector<Operation *> moves;
  Value source = value;
  size_t count = 0;
  for (Operation *op; (op = source.getDefiningOp()) && movesHalves(op);) {
    moves.push_back(op);
    source = op->getOperand(0);
    if (count + 1 == moves.size() && movedHalves.contains(op))
      count = moves.size();
  }
  auto widened = source.getDefiningOp<hlo::ConvertOp>();
  if (widened && getElementTypeOrSelf(widened.getOperand()) == half) {
    source = widened.getOperand();
    passed.insert(widened);
  } else {
    moves.truncate(count);
    source = round(moves.empty() ? value : moves.back()->getOperand(0), user);
  }
  for (Operation *move : llvm::reverse(moves)) {
    Value &known = halves[{move->getResult(0), Attribute()}];
    if (!known) {
      OpBuilder builder(move->getContext());
      builder.setInsertionPoint(move->getBlock()->findAncestorOpInBlock(*user));
      Operation *copy = builder.clone(*move);
      copy->setOperand(0, source);
      copy->getResult(0).setType(ofElement(move->getResult(0), half));
      passed.insert(move);
      known = copy->getResult(0);
    }
    source = known;
  }
  return source;
}

void Narrower::narrowProduct(Operation *product) {
  for (OpOperand &operand : product->getOpOperands())
    operand.set(narrow(operand.get(), product));
  Value result = product->getResult(0);
  bool isSum = sums.contains(result);
  if (explainsEach)
    emitRemark(product->getLoc())
        << "amp: this product takes " << typeName() << " and gives "
        << (isSum ? "f32, as it is summed up" : typeName());
  if (isSum)
    return;
  result.setType(ofElement(result, half));
  OpBuilder builder(product->getContext());
  builder.setInsertionPointAfter(product);
  auto wide = hlo::ConvertOp::create(
      builder, product->getLoc(),
      ofElement(result, Float32Type::get(product->getContext())), result);
  carryAttributes(product, wide);
  result.replaceAllUsesExcept(wide, wide);
}

void Narrower::explain() {
  int64_t count = products.size(), wide = 0;
  for (auto [reason, each] : kept)
    wide += each;
  InFlightDiagnostic remark = mlir::emitRemark(main.getLoc());
  remark << "amp: " << count << " of " << count + wide
         << " products of f32 take " << typeName();
  if (!kept.empty())
    remark << ", and stay in f32 "
           << llvm::join(llvm::map_range(kept,
                                         [](const auto &entry) {
                                           return std::to_string(entry.second) +
                                                  " " + entry.first.str();
                                         }),
                         ", ");
}

namespace {

struct MixedPrecisionPass : impl::MixedPrecisionBase<MixedPrecisionPass> {
  using MixedPrecisionBase::MixedPrecisionBase;

  void runOnOperation() final {
    Config config(getOperation());
    FloatType half = config.getProductType();
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!half || !main || main.isExternal())
      return;
    // Of the gradients as they are, before what is rounded.
    if (half.isF16() && failed(scaleGradients(main, config.getLossScale())))
      return signalPassFailure();
    Narrower(main, half, config.logsProducts()).run();
  }
};

} // namespace
} // namespace whale
