//===- LowerAttention.cpp - Library calls of attention --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: attention and its gradient. Out: calls of library functions. A call has
// for each tensor a letter for each dimension, as an einsum has, and one more
// result that nothing uses: the memory that its threads need is planned as that
// of any other value. What cuDNN computes on a GPU is a call of another name;
// whether it does, also with the workspace that it takes, is decided here.
//
// Cost: linear in the views (transpositions, slices, reshapes) that operands
// are seen through, and for cuDNN's gradient in the users of its query, among
// which its forward is searched for: without one, the forward is computed
// again. The scratch memory is that of one task, times the tasks that run at
// once: heads, forward also blocks of rows, at most mostAttentionThreads.
//
//===----------------------------------------------------------------------===//

#include "Gpu/AttentionKernels.h"
#include "Kernel/KernelBuilder.h"
#include "Kernel/KernelWork.h"
#include "Library/LowerLinearAlgebra.h"
#include "Library/TensorView.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Attention.h"
#include "whale/ProgramFormat/FusedAttention.h"
#include "whale/ProgramFormat/Limits.h"

using namespace mlir;
using namespace whale;

/// Makes a call of `function` with results of these types, then scratch memory.
/// `tasks` can run at once.
static LibraryCallOp makeCall(PatternRewriter &rewriter, Operation *op,
                              StringRef function, int64_t tasks,
                              int64_t scratch, SmallVector<Type> types,
                              ValueRange operands) {
  int64_t threads = std::clamp<int64_t>(tasks, 1, format::mostAttentionThreads);
  types.push_back(
      RankedTensorType::get({threads * scratch}, rewriter.getF32Type()));
  auto call =
      LibraryCallOp::create(rewriter, op->getLoc(), types, function, operands);
  noteWork(call, op);
  for (NamedAttribute attribute : op->getAttrs()) {
    StringRef name = attribute.getName();
    if (name == "operandSegmentSizes" || name.starts_with("whale."))
      continue;
    name.consume_back("_dims");
    call->setAttr(name, attribute.getValue());
  }
  return call;
}

static format::AttentionSizes getSizes(Operation *op) {
  AttentionSizes sizes = getAttentionSizes(op);
  return {sizes.heads, sizes.rows, sizes.keys, sizes.depth, sizes.features};
}

static LibraryCallOp makeCall(PatternRewriter &rewriter, Operation *op,
                              StringRef prefix, SmallVector<Type> types,
                              ValueRange operands) {
  format::AttentionSizes sizes = getSizes(op);
  if (isa<AttentionOp>(op))
    return makeCall(rewriter, op, (prefix + "attention").str(),
                    sizes.heads * sizes.blocks(), sizes.scratch(),
                    std::move(types), operands);
  return makeCall(rewriter, op, (prefix + "attention_gradient").str(),
                  sizes.heads, sizes.gradientScratch(), std::move(types),
                  operands);
}

static void replaceByCall(PatternRewriter &rewriter, Operation *op,
                          LibraryCallOp call) {
  rewriter.replaceOp(op, call->getResults().take_front(op->getNumResults()));
}

static format::AttentionCall::Tensor describe(Type given, StringRef letters) {
  auto type = cast<RankedTensorType>(given);
  Type element = type.getElementType();
  return {element.isBF16()  ? format::DType::BF16
          : element.isF16() ? format::DType::F16
                            : format::DType::F32,
          letters.str(),
          {type.getShape().begin(), type.getShape().end()}};
}

template <typename Op>
static format::AttentionCall describe(Op op) {
  AttentionLetters letters = getAttentionLetters(op);
  format::AttentionCall call;
  call.isGradient = isa<AttentionGradientOp>(op);
  call.hasMask = op.getMask() != nullptr;
  call.hasBias = op.getBias() != nullptr;
  call.scale = op.getScale().convertToDouble();
  call.causal = op.getCausal();
  if (auto fill = op.getFill())
    call.fill = fill->convertToDouble();
  for (unsigned operand = 0; operand < 3; ++operand)
    call.inputs.push_back(
        describe(op->getOperand(operand).getType(), letters.operands[operand]));
  if (call.isGradient)
    call.inputs.push_back(
        describe(op->getOperands().back().getType(), letters.operands.back()));
  for (auto [result, own] : llvm::zip_equal(op->getResults(), letters.results))
    call.results.push_back(describe(result.getType(), own));
  return call;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Queries, keys and values, which may be parts of larger tensors.
struct OperandViews {
  SmallVector<TensorView> views;
  /// `query_view` and so on, of those that are.
  SmallVector<NamedAttribute> attributes;

  template <typename Op>
  OperandViews(Builder &b, Op op) {
    constexpr StringLiteral names[] = {"query_view", "key_view", "value_view"};
    for (auto [operand, name] : llvm::zip(op->getOperands(), names)) {
      TensorView view = views.emplace_back(findView(operand));
      if (view.base == operand)
        continue;
      auto text = b.getDictionaryAttr(
          {b.getNamedAttr("offset", b.getI64IntegerAttr(view.offset)),
           b.getNamedAttr("shape", b.getDenseI64ArrayAttr(view.shape)),
           b.getNamedAttr("strides", b.getDenseI64ArrayAttr(view.strides))});
      attributes.push_back(b.getNamedAttr(name, text));
    }
    // As those of an operation are.
    llvm::sort(attributes);
  }

  /// Whether all of them have elements, with features that are neighbours.
  bool haveRows(const AttentionLetters &letters) const {
    return llvm::all_of(llvm::zip(views, letters.operands),
                        [](const auto &pair) {
                          const auto &[view, own] = pair;
                          return view.strides[own.find_first_of("de")] == 1 &&
                                 !llvm::is_contained(view.shape, 0);
                        });
  }

  /// What the call reads in place of the operation's.
  void applyTo(format::AttentionCall &call) const {
    for (auto [view, input] : llvm::zip(views, call.inputs)) {
      input.strides.assign(view.strides.begin(), view.strides.end());
      input.offset = view.offset;
    }
  }
  /// The operands of a call, in place of those that are views.
  SmallVector<Value> replace(OperandRange operands) const {
    SmallVector<Value> values(operands);
    for (auto [view, value] : llvm::zip(views, values))
      value = view.base;
    return values;
  }
  void setAttributes(LibraryCallOp call) const {
    for (NamedAttribute view : attributes)
      call->setAttr(view.getName(), view.getValue());
  }
  void clear(OperandRange operands) {
    attributes.clear();
    for (auto [view, operand] : llvm::zip(views, operands))
      view.base = operand;
  }
};

//===----------------------------------------------------------------------===//
// What cuDNN computes
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kFused = "fused_";
/// Of the call forward.
static constexpr StringLiteral kResult = "result", kStatistics = "statistics";

/// What cuDNN may use for it, a part of it after the other.
static void planWorkspace(LibraryCallOp call,
                          const format::FusedAttention &sizes,
                          const format::AttentionLimits &limits) {
  int64_t bytes = format::findWorkspace(
      format::choosePart(sizes, limits.mostWorkspace).value());
  call->setAttr(kWorkspaceAttrName,
                Builder(call.getContext()).getI64IntegerAttr(bytes));
}

/// Calls forward; `sizes` are those of cuDNN.
static LibraryCallOp makeFused(PatternRewriter &rewriter, AttentionOp op,
                               const OperandViews &operands,
                               const format::FusedAttention &sizes,
                               const format::AttentionLimits &limits) {
  std::string letters = sizes.headLetters + kRowLetter;
  SmallVector<int64_t> shape;
  for (char letter : letters)
    shape.push_back(
        op.getQuery().getType().getDimSize(op.getQueryDims().find(letter)));
  LibraryCallOp call = makeCall(
      rewriter, op, kFused,
      {op.getType(), RankedTensorType::get(shape, rewriter.getF32Type())},
      operands.replace(op->getOperands()));
  operands.setAttributes(call);
  call->setAttr(kStatistics, rewriter.getStringAttr(letters));
  planWorkspace(call, sizes, limits);
  return call;
}

/// The call forward before `op` that it is the gradient of; null if there is
/// none.
static LibraryCallOp findForward(AttentionGradientOp op,
                                 const OperandViews &operands) {
  SmallVector<Value> values = operands.replace(op->getOperands().drop_back());
  auto isView = [](NamedAttribute attribute) {
    return attribute.getName().strref().ends_with("_view");
  };
  for (Operation *user : values.front().getUsers()) {
    auto call = dyn_cast<LibraryCallOp>(user);
    if (!call || call.getFunction() != "fused_attention" ||
        call->getBlock() != op->getBlock() || !call->isBeforeInBlock(op) ||
        !llvm::equal(call.getInputs(), values) ||
        !llvm::equal(llvm::make_filter_range(call->getAttrs(), isView),
                     operands.attributes))
      continue;
    auto isSame = [&](StringRef name, Attribute own) {
      return call->getAttr(name) == own;
    };
    if (isSame("query", op.getQueryDimsAttr()) &&
        isSame("key", op.getKeyDimsAttr()) &&
        isSame("value", op.getValueDimsAttr()) &&
        isSame("scale", op.getScaleAttr()) &&
        isSame("causal", op.getCausalAttr()) &&
        isSame("fill", op.getFillAttr()))
      return call;
  }
  return nullptr;
}

/// Gives results in the type that they are converted to, where that is their
/// only use.
static void absorbConverts(PatternRewriter &rewriter, Operation *op) {
  for (Value result : op->getResults()) {
    auto convert = result.hasOneUse()
                       ? dyn_cast<stablehlo::ConvertOp>(*result.user_begin())
                       : stablehlo::ConvertOp();
    if (!convert || !getElementTypeOrSelf(convert.getType()).isBF16())
      continue;
    rewriter.modifyOpInPlace(op, [&] { result.setType(convert.getType()); });
    // As a transposition that is absorbed, it is erased in the end.
    rewriter.replaceAllUsesWith(convert.getResult(), result);
  }
}

namespace {
/// What a call gives in place of a result.
struct FusedResult {
  Value replaced;
  std::string letters;
  RankedTensorType type;
};
} // namespace

/// The sum of a result over its first dimensions, in bf16; null if that is not
/// its only use.
static Value findSum(Value result, int64_t dims) {
  auto reduce = result.hasOneUse()
                    ? dyn_cast<stablehlo::ReduceOp>(*result.user_begin())
                    : stablehlo::ReduceOp();
  if (!reduce || reduce.getInputs().size() != 1 ||
      !llvm::equal(reduce.getDimensions(), llvm::seq<int64_t>(0, dims)))
    return {};
  auto zero = dyn_cast_if_present<FloatAttr>(
      matchSplat(reduce.getInitValues().front()));
  Operation &first = reduce.getBody().front().front();
  Value sum = reduce.getResult(0);
  if (!zero || !zero.getValue().isZero() || !isa<stablehlo::AddOp>(first) ||
      !isa<stablehlo::ReturnOp>(first.getNextNode()) || !sum.hasOneUse())
    return {};
  auto convert = dyn_cast<stablehlo::ConvertOp>(*sum.user_begin());
  return convert && getElementTypeOrSelf(convert.getType()).isBF16()
             ? convert.getResult()
             : Value();
}

/// A cotangent of shared keys or values as the sum over the heads that share
/// them, if that is what is made of it; of what nothing uses, bf16.
static FusedResult findResult(AttentionGradientOp op, Value result,
                              StringRef letters) {
  auto type = cast<RankedTensorType>(result.getType());
  auto isShared = [&](char letter) {
    return !StringRef("qkde1").contains(letter) &&
           !op.getKeyDims().contains(letter);
  };
  int64_t sharing =
      result == op.getQueryResult() ? 0 : llvm::count_if(letters, isShared);
  FusedResult own{result, letters.drop_front(sharing).str(),
                  type.clone(type.getShape().drop_front(sharing),
                             Float32Type::get(op.getContext()))};
  bool areFirst = llvm::all_of(letters.take_front(sharing), isShared);
  if (areFirst && result.use_empty()) {
    own.type = own.type.clone(BFloat16Type::get(op.getContext()));
    return own;
  }
  if (Value sum =
          sharing > 0 && areFirst ? findSum(result, sharing) : Value()) {
    own.replaced = sum;
    own.type = cast<RankedTensorType>(sum.getType());
    return own;
  }
  return {result, letters.str(), type};
}

/// The same, made anew before `op`: there is none where another function
/// computes it.
static LibraryCallOp makeForward(PatternRewriter &rewriter,
                                 AttentionGradientOp op,
                                 const OperandViews &operands,
                                 const format::FusedAttention &sizes,
                                 const format::AttentionLimits &limits) {
  auto forward = AttentionOp::create(
      rewriter, op.getLoc(), op.getCotangent().getType(), op.getQuery(),
      op.getKey(), op.getValue(), op.getMask(), op.getBias(),
      op.getQueryDimsAttr(), op.getKeyDimsAttr(), op.getValueDimsAttr(),
      op.getMaskDimsAttr(), op.getBiasDimsAttr(), op.getCotangentDimsAttr(),
      op.getScaleAttr(), op.getFillAttr(), op.getCausalAttr());
  LibraryCallOp call = makeFused(rewriter, forward, operands, sizes, limits);
  rewriter.eraseOp(forward);
  return call;
}

namespace {

template <typename Op>
struct LowerAttention : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if constexpr (std::is_same_v<Op, AttentionOp>)
      absorbTranspose(rewriter, op, /*keepsFeatures=*/true);
    OperandViews operands(rewriter, op);
    if (!operands.haveRows(getAttentionLetters(op)))
      operands.clear(op->getOperands());
    LibraryCallOp call =
        makeCall(rewriter, op, "", llvm::to_vector(op->getResultTypes()),
                 operands.replace(op->getOperands()));
    operands.setAttributes(call);
    replaceByCall(rewriter, op, call);
    return success();
  }
};

/// Patterns: what cuDNN computes on a GPU.
template <typename Op>
struct LowerFused : OpRewritePattern<Op> {
  LowerFused(MLIRContext *context, const format::AttentionLimits &limits)
      : OpRewritePattern<Op>(context, /*benefit=*/3), limits(limits) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    std::string why;
    if (succeeded(lower(op, rewriter, why)))
      return success();
    op->emitRemark("attention is not cuDNN's: ") << why;
    return failure();
  }

private:
  LogicalResult lower(AttentionOp op, PatternRewriter &rewriter,
                      std::string &why) const {
    absorbConverts(rewriter, op);
    absorbTranspose(rewriter, op, /*keepsFeatures=*/true);
    OperandViews operands(rewriter, op);
    format::AttentionCall call = describe(op);
    auto sizes = describeFused(call, operands, op, why);
    if (!sizes)
      return failure();
    replaceByCall(rewriter, op,
                  makeFused(rewriter, op, operands, *sizes, limits));
    return success();
  }

  /// With the output and the statistics of the call forward.
  LogicalResult lower(AttentionGradientOp op, PatternRewriter &rewriter,
                      std::string &why) const {
    absorbConverts(rewriter, op);
    OperandViews operands(rewriter, op);
    format::AttentionCall call = describe(op);
    SmallVector<FusedResult> results;
    SmallVector<Type> types;
    for (auto [result, own] : llvm::zip_equal(op->getResults(), call.results)) {
      results.push_back(findResult(op, result, own.letters));
      types.push_back(results.back().type);
      own = describe(results.back().type, results.back().letters);
    }
    auto sizes = describeFused(call, operands, op, why);
    if (!sizes)
      return failure();
    LibraryCallOp forward = findForward(op, operands);
    if (forward) {
      auto letters = forward->getAttrOfType<StringAttr>(kResult);
      call.inputs.push_back(
          describe(forward.getOutputs()[0].getType(), letters.getValue()));
      auto together = format::describeFused(call, limits, why);
      if (!together || forward->getAttrOfType<StringAttr>(kStatistics) !=
                           together->headLetters + kRowLetter)
        forward = nullptr;
    }
    if (!forward)
      forward = makeForward(rewriter, op, operands, *sizes, limits);
    SmallVector<Value> values = operands.replace(op->getOperands());
    llvm::append_range(values, forward.getOutputs().take_front(2));
    LibraryCallOp gradient = makeCall(rewriter, op, kFused, types, values);
    constexpr StringLiteral names[] = {"query_result", "key_result",
                                       "value_result"};
    for (auto [result, name] : llvm::zip(results, names))
      gradient->setAttr(name, rewriter.getStringAttr(result.letters));
    operands.setAttributes(gradient);
    planWorkspace(gradient, *sizes, limits);
    gradient->setAttr("output", forward->getAttr(kResult));
    gradient->setAttr(kStatistics, forward->getAttr(kStatistics));
    for (auto [result, now] : llvm::zip(results, gradient.getOutputs()))
      rewriter.replaceAllUsesWith(result.replaced, now);
    return success();
  }

  /// With operands where they are, or else, if that is not possible, copied.
  std::optional<format::FusedAttention>
  describeFused(format::AttentionCall &call, OperandViews &operands, Op op,
                std::string &why) const {
    format::AttentionCall copied = call;
    operands.applyTo(call);
    if (auto sizes = format::describeFused(call, limits, why))
      return sizes;
    call = copied;
    operands.clear(op->getOperands());
    return format::describeFused(call, limits, why);
  }

  format::AttentionLimits limits;
};

} // namespace

void whale::populateAttentionPatterns(RewritePatternSet &patterns) {
  patterns
      .add<LowerAttention<AttentionOp>, LowerAttention<AttentionGradientOp>>(
          patterns.getContext());
}

void whale::populateFusedAttentionPatterns(RewritePatternSet &patterns,
                                           int capability,
                                           int64_t mostWorkspace) {
  patterns.add<LowerFused<AttentionOp>, LowerFused<AttentionGradientOp>>(
      patterns.getContext(),
      format::AttentionLimits{capability, mostWorkspace});
}
