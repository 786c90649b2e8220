//===- KernelsToLLVM.cpp - Kernels to the LLVM dialect --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops to branches, bf16 to integers, math functions to libm, the rest to the
// LLVM dialect in one conversion.
//
//===----------------------------------------------------------------------===//

#include "KernelsToLLVM.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "whale/Target/CPU/BFloat16.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace whale;

/// libm's name for f64; empty for what is an instruction.
static StringRef getLibmName(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("math.acos", "acos")
      .Case("math.acosh", "acosh")
      .Case("math.asin", "asin")
      .Case("math.asinh", "asinh")
      .Case("math.atan", "atan")
      .Case("math.atan2", "atan2")
      .Case("math.atanh", "atanh")
      .Case("math.cbrt", "cbrt")
      .Case("math.cos", "cos")
      .Case("math.cosh", "cosh")
      .Case("math.erf", "erf")
      .Case("math.erfc", "erfc")
      .Case("math.exp", "exp")
      .Case("math.exp2", "exp2")
      .Case("math.expm1", "expm1")
      .Case("math.log", "log")
      .Case("math.log10", "log10")
      .Case("math.log1p", "log1p")
      .Case("math.log2", "log2")
      .Case("math.powf", "pow")
      .Case("math.sin", "sin")
      .Case("math.sinh", "sinh")
      .Case("math.tan", "tan")
      .Case("math.tanh", "tanh")
      .Case("arith.remf", "fmod")
      .Default("");
}

/// Calls are made here, and not by MLIR's own conversion, because the
/// vectorizer knows more functions of libmvec by name than by intrinsic.
static void callLibm(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (op->getNumResults() == 1 && !getLibmName(op).empty())
      found.push_back(op);
  });
  OpBuilder b(module.getContext());
  for (Operation *op : found) {
    Type type = op->getResult(0).getType();
    std::string name = getLibmName(op).str() + (type.isF32() ? "f" : "");
    if (!module.lookupSymbol(name)) {
      b.setInsertionPointToStart(module.getBody());
      auto declaration = func::FuncOp::create(
          b, op->getLoc(), name,
          b.getFunctionType(op->getOperandTypes(), op->getResultTypes()));
      declaration.setPrivate();
    }
    b.setInsertionPoint(op);
    auto call = func::CallOp::create(b, op->getLoc(), name,
                                     op->getResultTypes(), op->getOperands());
    op->replaceAllUsesWith(call);
    op->erase();
  }
}

/// Exponentials of f32 become a polynomial: no call is in the loop, and
/// what underflows (a masked score of attention) costs no more than the rest,
/// where libmvec would compute it apart.
static void expandExponentials(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == math::ExpOp::getOperationName();
  });
  walkAndApplyPatterns(module, std::move(patterns));
}

LogicalResult whale::lowerKernelsToLLVM(ModuleOp module) {
  MLIRContext *context = module.getContext();
  expandExponentials(module);
  callLibm(module);
  expandBFloat16(module, /*makesShortNans=*/true);
  {
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<scf::SCFDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return failure();
  }
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  holdBFloat16AsBits(converter);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateComplexToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}
