//===- FormEpilogues.cpp - whale-form-epilogues ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: products of a library, and what is done to their results. Out: products
// that do it themselves, before they write: GELU, its gradient, and biases.
//
// GELU and its gradients are replaced together, or not at all: the product has
// then what GELU is taken of as a second result, and of all that is between,
// which a kernel would write for another one, nobody needs anything. What is
// written in a function and read in another one is needed there, so that GELU
// stays as it is where a step is cut in between. A bias alone is only worth it
// where no kernel reads the sum, since that could add it as well.
//
// Cost: that of GeluMatch.cpp for each hyperbolic tangent, and a look at each
// sum.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "Library/GeluMatch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/ProgramFormat/GpuArchitecture.h"

namespace whale {
#define GEN_PASS_DEF_FORMEPILOGUES
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;
using format::Epilogue;

namespace {

/// A product, and a bias that is added to it.
struct Biased {
  MatmulOp product;
  /// Null without a bias.
  Value bias;
  /// What GELU would be taken of.
  Value sum;
};

/// Why a product cannot have an epilogue; empty if it can.
StringRef findLack(MatmulOp op) {
  if (op.getEpilogue())
    return "the product has another epilogue";
  for (Value value : {Value(op.getLhs()), Value(op.getRhs()), op.getOutput()}) {
    Type type = getElementTypeOrSelf(value.getType());
    if (!type.isF16() && !type.isBF16() && !type.isF32())
      return "the product is of another type";
  }
  const char *why = "";
  (void)format::shapeForEpilogue(op.toFormat(), &why);
  return why;
}

/// Whether these dimensions, in order, are the last ones of a tensor, and make
/// up the rows that epilogues of the product have.
bool areColumns(ArrayRef<int64_t> dims, RankedTensorType type, MatmulOp op) {
  int64_t count = 1;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (dim != type.getRank() - int64_t(dims.size()) + int64_t(i))
      return false;
    count *= type.getDimSize(dim);
  }
  return count == format::shapeForEpilogue(op.toFormat())->columns;
}

/// Pattern: add(matmul(a, b), broadcast_in_dim(bias)), or matmul(a, b)
FailureOr<Biased> findProduct(Value sum, StringRef &why) {
  auto check = [&](MatmulOp product, Value bias) -> FailureOr<Biased> {
    why = findLack(product);
    if (!why.empty())
      return failure();
    return Biased{product, bias, sum};
  };
  if (auto product = sum.getDefiningOp<MatmulOp>())
    return check(product, Value());
  why = "it is not taken of a product";
  auto add = sum.getDefiningOp<stablehlo::AddOp>();
  if (!add)
    return failure();
  for (auto [value, vector] :
       {std::pair<Value, Value>{add.getLhs(), add.getRhs()},
        std::pair<Value, Value>{add.getRhs(), add.getLhs()}}) {
    auto product = value.getDefiningOp<MatmulOp>();
    auto broadcast = vector.getDefiningOp<stablehlo::BroadcastInDimOp>();
    if (!product || !broadcast || product->getBlock() != add->getBlock())
      continue;
    FailureOr<Biased> biased = check(product, broadcast.getOperand());
    if (failed(biased))
      return failure();
    auto type = cast<RankedTensorType>(sum.getType());
    ArrayRef<int64_t> dims = broadcast.getBroadcastDimensions();
    auto from = cast<RankedTensorType>(broadcast.getOperand().getType());
    if (!areColumns(dims, type, product) ||
        from.getShape() != type.getShape().take_back(dims.size())) {
      why = "its bias is not of the product's rows";
      return failure();
    }
    if (!product.getOutput().hasOneUse()) {
      why = "the product without its bias is used, too";
      return failure();
    }
    return biased;
  }
  return failure();
}

/// Whether all users read the value from memory, whoever makes it.
bool isReadByCalls(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (auto reshape = dyn_cast<stablehlo::ReshapeOp>(user))
      return isReadByCalls(reshape.getResult());
    return isa<MatmulOp, ConvolutionOp, LibraryCallOp, func::ReturnOp,
               ReturnOp>(user);
  });
}

/// A sum over all rows of a product, if the value has one as a user.
stablehlo::ReduceOp findRowSum(Value value, MatmulOp product) {
  auto type = cast<RankedTensorType>(value.getType());
  for (Operation *user : value.getUsers()) {
    auto reduce = dyn_cast<stablehlo::ReduceOp>(user);
    if (!reduce || reduce.getInputs().size() != 1 ||
        reduce.getBody().front().getOperations().size() != 2 ||
        !isa<stablehlo::AddOp>(reduce.getBody().front().front()) ||
        getElementTypeOrSelf(reduce.getResult(0).getType()) !=
            type.getElementType() ||
        !matchPattern(reduce.getInitValues().front(), m_AnyZeroFloat()))
      continue;
    SmallVector<int64_t> kept;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (!llvm::is_contained(reduce.getDimensions(), dim))
        kept.push_back(dim);
    if (areColumns(kept, type, product))
      return reduce;
  }
  return {};
}

/// The same product with an epilogue, and a second result of a type or null.
MatmulOp addEpilogue(RewriterBase &rewriter, MatmulOp op, Epilogue epilogue,
                     Type second, Value bias, Value aux) {
  SmallVector<Type> types = {op.getOutput().getType()};
  if (second)
    types.push_back(second);
  auto product = MatmulOp::create(
      rewriter, op.getLoc(), types, op.getLhs(), op.getRhs(), op.getBatch(),
      op.getM(), op.getN(), op.getK(), op.getTf32(),
      rewriter.getStringAttr(format::name(epilogue)), /*addend=*/Value(), bias,
      aux);
  product->emitRemark("the library computes '")
      << *product.getEpilogue() << "' with this product";
  return product;
}

struct FormEpilogues : whale::impl::FormEpiloguesBase<FormEpilogues> {
  using FormEpiloguesBase::FormEpiloguesBase;

  void runOnOperation() override {
    auto module = getOperation()->getParentOfType<ModuleOp>();
    if (!target.getValue().getArchitecture().hasEpilogues ||
        (module && !Config(module).allowsEpilogues()))
      return;
    SmallVector<Value> inputs;
    getOperation().walk([&](stablehlo::TanhOp op) {
      Value input = findInputOfTanh(op);
      if (input && !llvm::is_contained(inputs, input))
        inputs.push_back(input);
    });
    IRRewriter rewriter(&getContext());
    for (Value input : inputs)
      if (std::optional<Gelu> gelu = findGelu(input))
        if (StringRef why = lower(rewriter, *gelu); !why.empty())
          emitRemark(gelu->result.getLoc())
              << "GELU is not computed with its product: " << why;
    eraseDeadOps(rewriter, getOperation());
    SmallVector<stablehlo::AddOp> sums;
    getOperation().walk([&](stablehlo::AddOp op) { sums.push_back(op); });
    for (stablehlo::AddOp op : sums)
      addBias(rewriter, op);
    eraseDeadOps(rewriter, getOperation());
  }

private:
  /// Returns why it stays as it is; empty if it does not.
  StringRef lower(RewriterBase &rewriter, const Gelu &gelu);
  void lowerGradient(RewriterBase &rewriter, const GeluGradient &gradient,
                     Value aux);
  void addBias(RewriterBase &rewriter, stablehlo::AddOp op);
};

StringRef FormEpilogues::lower(RewriterBase &rewriter, const Gelu &gelu) {
  StringRef why;
  FailureOr<Biased> biased = findProduct(gelu.input, why);
  if (failed(biased))
    return why;
  llvm::SmallPtrSet<Operation *, 4> results = {gelu.result.getDefiningOp()};
  SmallVector<Operation *> inner = llvm::to_vector(gelu.ops);
  for (const GeluGradient &gradient : gelu.gradients) {
    why = findLack(gradient.product);
    if (!why.empty())
      return why;
    results.insert(gradient.result.getDefiningOp());
    inner.push_back(gradient.product);
  }
  for (Operation *op : inner)
    for (Operation *user : op->getUsers())
      if (!results.contains(op) && !gelu.ops.contains(user))
        return "what is in between, or a gradient, is used elsewhere";
  // With a gradient, a product reads it, or it would be a sum.
  if (gelu.gradients.empty() && !isReadByCalls(gelu.result))
    return "a kernel reads it";
  bool keepsInput = !gelu.gradients.empty() ||
                    llvm::any_of(gelu.input.getUsers(), [&](Operation *user) {
                      return !gelu.ops.contains(user);
                    });
  Epilogue epilogue =
      biased->bias ? keepsInput ? Epilogue::GeluAuxBias : Epilogue::GeluBias
      : keepsInput ? Epilogue::GeluAux
                   : Epilogue::Gelu;
  rewriter.setInsertionPoint(gelu.input.getDefiningOp());
  MatmulOp product = addEpilogue(rewriter, biased->product, epilogue,
                                 keepsInput ? gelu.input.getType() : Type(),
                                 biased->bias, /*aux=*/Value());
  rewriter.replaceAllUsesWith(gelu.result, product.getOutput());
  for (const GeluGradient &gradient : gelu.gradients)
    lowerGradient(rewriter, gradient, product.getSecond());
  if (keepsInput)
    rewriter.replaceAllUsesWith(gelu.input, product.getSecond());
  return "";
}

void FormEpilogues::lowerGradient(RewriterBase &rewriter,
                                  const GeluGradient &gradient, Value aux) {
  stablehlo::ReduceOp sum = findRowSum(gradient.result, gradient.product);
  rewriter.setInsertionPoint(gradient.result.getDefiningOp());
  MatmulOp product = addEpilogue(
      rewriter, gradient.product,
      sum ? Epilogue::GeluGradientBias : Epilogue::GeluGradient,
      sum ? sum.getResult(0).getType() : Type(), /*bias=*/Value(), aux);
  rewriter.replaceAllUsesWith(gradient.result, product.getOutput());
  if (sum)
    rewriter.replaceOp(sum, product.getSecond());
}

/// Pattern: add(matmul(a, b), broadcast_in_dim(bias)), which no kernel reads
void FormEpilogues::addBias(RewriterBase &rewriter, stablehlo::AddOp op) {
  StringRef why;
  FailureOr<Biased> biased = findProduct(op.getResult(), why);
  if (failed(biased) || op->use_empty() || !isReadByCalls(op.getResult()))
    return;
  rewriter.setInsertionPoint(op);
  MatmulOp product = addEpilogue(rewriter, biased->product, Epilogue::Bias,
                                 Type(), biased->bias, /*aux=*/Value());
  rewriter.replaceOp(op, product.getOutput());
}

} // namespace
