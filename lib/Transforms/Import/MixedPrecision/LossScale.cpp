//===- LossScale.cpp - Scaled gradients, and steps without an effect ------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, and the chains of its gradients. Out: the same, with a loss scale:
// what enters chains is multiplied by it, gradients are divided by it where the
// optimizer reads them, and where one is not finite, what is fed back to
// arguments is what it was. A scale that changes is an argument of @main, with
// the number of steps since it changed; both are scalars of one tensor. Cost:
// linear in the chains' beginnings and ends, and for each result that feeds an
// argument, in what it is computed of outside of the backward.
//
//===----------------------------------------------------------------------===//

#include "LossScale.h"
#include "../CarryAttributes.h"
#include "GradientChains.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

namespace {

// Those of EPL, but for the largest scale.
constexpr int64_t kFirstScale = 1 << 15, kLargestScale = 1 << 24;
constexpr float kGoodSteps = 2000;
constexpr StringLiteral kStateName = "amp.loss_scale";

/// Creates operations that have the TaskGraph of another one.
class LikeBuilder {
public:
  LikeBuilder(OpBuilder &builder, Operation *like, Phase phase)
      : b(like->getLoc(), builder), like(like), phase(phase) {}

  template <typename Op, typename... Args>
  Value create(Args &&...args) {
    auto op = Op::create(b, std::forward<Args>(args)...);
    return add(op);
  }

  Value add(Operation *op) {
    op->setAttr(kPhaseAttr, PhaseAttr::get(op->getContext(), phase));
    if (like)
      carryAttributes(like, op);
    return op->getResult(0);
  }

  Value number(double value) {
    auto scalar = RankedTensorType::get({}, b.getF32Type());
    return create<hlo::ConstantOp>(
        DenseElementsAttr::get(scalar, b.getF32FloatAttr(value)));
  }

  /// Element `index` of a tensor of one dimension.
  Value element(Value tensor, int64_t index) {
    Value part = create<hlo::SliceOp>(tensor, ArrayRef<int64_t>{index},
                                      ArrayRef<int64_t>{index + 1},
                                      ArrayRef<int64_t>{1});
    return create<hlo::ReshapeOp>(RankedTensorType::get({}, b.getF32Type()),
                                  part);
  }

  ImplicitLocOpBuilder b;

private:
  Operation *like;
  Phase phase;
};

class Scaler {
public:
  Scaler(func::FuncOp main, const GradientChains &chains,
         std::optional<int64_t> scale)
      : main(main), chains(chains), scale(scale) {}

  LogicalResult run();

private:
  template <typename Op>
  Value scaled(OpBuilder &builder, Operation *like, Value value, Phase phase);
  Value isFinite(OpBuilder &builder, Value gradient);
  void beginChains();
  void endChains();
  bool isState(BlockArgument argument, Value next);
  void keepState();
  LogicalResult addState();
  LogicalResult feedState(Value next);
  Value nextState();

  func::FuncOp main;
  const GradientChains &chains;
  std::optional<int64_t> scale;
  /// The argument that a scale without a number is in.
  BlockArgument state;
  /// Whether all gradients are finite, and an operation with the TaskGraph in
  /// which that is found.
  Value allFinite;
  Operation *whereFinite = nullptr;
};

} // namespace

/// `value` times the scale, or divided by it, in its own type.
template <typename Op>
Value Scaler::scaled(OpBuilder &builder, Operation *like, Value value,
                     Phase phase) {
  LikeBuilder make(builder, like, phase);
  auto type = cast<RankedTensorType>(value.getType());
  // A half may not have the product.
  bool isHalf = type.getElementTypeBitWidth() < 32;
  auto wide = isHalf ? type.clone(make.b.getF32Type()) : type;
  if (isHalf)
    value = make.create<hlo::ConvertOp>(wide, value);
  Value number = state ? make.element(state, 0) : make.number(*scale);
  if (wide.getElementType() != make.b.getF32Type())
    number = make.create<hlo::ConvertOp>(
        RankedTensorType::get({}, wide.getElementType()), number);
  number =
      make.create<hlo::BroadcastInDimOp>(wide, number, ArrayRef<int64_t>());
  value = make.create<Op>(wide, value, number);
  return isHalf ? make.create<hlo::ConvertOp>(type, value) : value;
}

/// Whether all elements of a gradient are finite.
Value Scaler::isFinite(OpBuilder &builder, Value gradient) {
  LikeBuilder make(builder, gradient.getDefiningOp(), Phase::Apply);
  Value each = make.create<hlo::IsFiniteOp>(gradient);
  auto type = cast<RankedTensorType>(each.getType());
  if (type.getRank() == 0)
    return each;
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value yes =
      make.create<hlo::ConstantOp>(DenseElementsAttr::get(scalar, true));
  Location loc = make.b.getLoc();
  auto reduce = hlo::ReduceOp::create(
      make.b, TypeRange{scalar}, ValueRange{each}, ValueRange{yes},
      make.b.getDenseI64ArrayAttr(
          llvm::to_vector(llvm::seq<int64_t>(type.getRank()))));
  Block &body = reduce.getBody().emplaceBlock();
  body.addArguments({scalar, scalar}, {loc, loc});
  auto inside = OpBuilder::atBlockEnd(&body);
  Value both =
      hlo::AndOp::create(inside, loc, body.getArgument(0), body.getArgument(1));
  hlo::ReturnOp::create(inside, loc, both);
  return make.add(reduce);
}

void Scaler::beginChains() {
  for (OpOperand *use : chains.begins) {
    Operation *user = use->getOwner();
    OpBuilder builder(user);
    // What a loop or branch gives has the TaskGraph of the loop or branch.
    Operation *like =
        user->hasTrait<OpTrait::IsTerminator>() ? user->getParentOp() : user;
    use->set(scaled<hlo::MulOp>(builder, like, use->get(), Phase::Backward));
  }
}

void Scaler::endChains() {
  llvm::MapVector<Value, SmallVector<OpOperand *>> gradients;
  for (OpOperand *use : chains.ends)
    gradients[use->get()].push_back(use);
  // By TaskGraph, so that one value of each crosses to another.
  llvm::MapVector<Attribute, std::pair<Operation *, Value>> finite;
  OpBuilder atEnd(main.front().getTerminator());
  // Once for all micro-batches and replicas; but what is sent in f16 has a
  // scale of its own.
  Type wire = Config(main->getParentOfType<ModuleOp>()).getWireType();
  Phase phase = wire && wire.isF16() ? Phase::Backward : Phase::Apply;
  for (auto &[gradient, uses] : gradients) {
    Operation *maker = gradient.getDefiningOp();
    OpBuilder builder(main.getContext());
    builder.setInsertionPointAfter(maker);
    Value divided = scaled<hlo::DivOp>(builder, maker, gradient, phase);
    for (OpOperand *use : uses)
      use->set(divided);
    Value isOwn = isFinite(atEnd, divided);
    auto &[like, known] = finite[maker->getAttr(kStrategyAttr)];
    like = maker;
    known = known ? LikeBuilder(atEnd, maker, Phase::Apply)
                        .create<hlo::AndOp>(known, isOwn)
                  : isOwn;
  }
  whereFinite = finite.front().second.first;
  for (auto &[strategy, each] : finite)
    allFinite = allFinite ? LikeBuilder(atEnd, whereFinite, Phase::Apply)
                                .create<hlo::AndOp>(allFinite, each.second)
                          : each.second;
}

/// Whether a result that feeds an argument is its next value: it is donated, or
/// computed of it outside of the backward. Gradients may have the types of
/// parameters, and are none of their values.
bool Scaler::isState(BlockArgument argument, Value next) {
  if (isDonated(main, argument.getArgNumber()))
    return true;
  llvm::SetVector<Value> values;
  values.insert(next);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == argument)
      return true;
    Operation *op = values[i].getDefiningOp();
    if (op && phaseOf(op) != Phase::Backward)
      forEachRead(op, [&](Value read) { values.insert(read); });
  }
  return false;
}

/// What is fed back is what it was where a gradient is not finite.
void Scaler::keepState() {
  Operation *end = main.front().getTerminator();
  OpBuilder builder(end);
  for (auto [index, result] : llvm::enumerate(findFeedback(main))) {
    BlockArgument old = main.getArgument(index);
    if (!result || old == state)
      continue;
    Value next = end->getOperand(*result);
    if (next == old || !isState(old, next))
      continue;
    // What was another argument is computed by nobody.
    Operation *maker = next.getDefiningOp();
    LikeBuilder make(builder, maker ? maker : whereFinite, Phase::Apply);
    end->setOperand(*result, make.create<hlo::SelectOp>(next.getType(),
                                                        allFinite, next, old));
  }
}

/// Adds the argument that the scale is in, behind the user's.
LogicalResult Scaler::addState() {
  Builder builder(main.getContext());
  // What is not written would not be looked for any more.
  for (auto [index, result] : llvm::enumerate(findFeedback(main)))
    if (result)
      main.setArgAttr(index, kFedByAttr, builder.getI64IntegerAttr(*result));
  unsigned index = main.getNumArguments();
  auto initial = builder.getNamedAttr(
      kInitialAttr, builder.getDenseI64ArrayAttr({kFirstScale, 0}));
  if (failed(main.insertArgument(
          index, RankedTensorType::get({2}, builder.getF32Type()),
          builder.getDictionaryAttr(initial),
          NameLoc::get(builder.getStringAttr(kStateName)))))
    return failure();
  state = main.getArgument(index);
  return success();
}

/// Adds the result that feeds it.
LogicalResult Scaler::feedState(Value next) {
  Builder builder(main.getContext());
  unsigned index = main.getNumResults();
  // What is for callbacks comes last.
  while (index > 0 && main.getResultAttr(index - 1, kCallbackAttr))
    --index;
  auto name = builder.getNamedAttr("jax.result_info",
                                   builder.getStringAttr(kStateName));
  if (failed(main.insertResult(index, state.getType(),
                               builder.getDictionaryAttr(name))))
    return failure();
  main.setArgAttr(state.getArgNumber(), kFedByAttr,
                  builder.getI64IntegerAttr(index));
  main.front().getTerminator()->insertOperands(index, {next});
  return success();
}

/// Half of the scale behind a step with a gradient that is not finite; twice as
/// much after so many steps without.
Value Scaler::nextState() {
  OpBuilder builder(main.front().getTerminator());
  LikeBuilder make(builder, whereFinite, Phase::Apply);
  Value now = make.element(state, 0), good = make.element(state, 1);
  good = make.create<hlo::AddOp>(good, make.number(1));
  Value isDue = make.create<hlo::CompareOp>(good, make.number(kGoodSteps),
                                            hlo::ComparisonDirection::GE);
  Value twice = make.create<hlo::MinOp>(
      make.create<hlo::MulOp>(now, make.number(2)), make.number(kLargestScale));
  Value half = make.create<hlo::MaxOp>(
      make.create<hlo::MulOp>(now, make.number(0.5)), make.number(1));
  auto choose = [&](Value condition, Value yes, Value no) {
    return make.create<hlo::SelectOp>(yes.getType(), condition, yes, no);
  };
  Value zero = make.number(0);
  Value parts[] = {choose(allFinite, choose(isDue, twice, now), half),
                   choose(allFinite, choose(isDue, zero, good), zero)};
  for (Value &part : parts)
    part = make.create<hlo::ReshapeOp>(
        RankedTensorType::get({1}, make.b.getF32Type()), part);
  return make.create<hlo::ConcatenateOp>(TypeRange{state.getType()},
                                         ValueRange(parts),
                                         make.b.getI64IntegerAttr(0));
}

LogicalResult Scaler::run() {
  if (!scale && failed(addState()))
    return failure();
  beginChains();
  endChains();
  keepState();
  // Operands of the end have been looked at before.
  if (state && failed(feedState(nextState())))
    return failure();
  InFlightDiagnostic remark = emitRemark(main.getLoc()) << "amp: a loss scale ";
  if (scale)
    remark << "of " << *scale;
  else
    remark << "that the program finds";
  remark << " multiplies gradients at " << chains.begins.size()
         << " places; a step with one that is not finite keeps the state";
  return success();
}

LogicalResult scaleGradients(func::FuncOp main, std::optional<int64_t> scale) {
  FailureOr<GradientChains> chains = findGradientChains(main);
  if (failed(chains) || chains->ends.empty())
    return failure(failed(chains));
  return Scaler(main, *chains, scale).run();
}

} // namespace whale
