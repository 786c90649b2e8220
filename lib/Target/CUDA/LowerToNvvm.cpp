//===- LowerToNvvm.cpp - GPU kernels to LLVM IR ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module of kernels. Out: LLVM IR for NVPTX, or for the emulator, linked
// with what it calls of the device library. whale-kernels-to-gpu makes gpu.func
// of the functions; loops and branches become jumps, then all becomes the LLVM
// and NVVM dialects in one conversion, and these LLVM IR. Nothing here is
// fast-math: a kernel computes what the operations say.
//
// Cost: a few walks over the operations, with MLIR's canonicalizer, CSE and
// conversions. Each square root looks for its function of the device library
// among the functions of the module. The library's file is opened once for each
// module that calls it, and only the functions that it needs are read.
//
//===----------------------------------------------------------------------===//

#include "LowerToNvvm.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"
#include "whale/Target/CPU/BFloat16.h"
#include "whale/Target/CUDA/Passes.h"
#include "llvm/IR/InstrTypes.h"

using namespace mlir;
using namespace whale;

/// Calls a function of the device library in place of `op`.
static void callLibdevice(gpu::GPUModuleOp module, Operation *op,
                          StringRef name) {
  OpBuilder b(op);
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!callee) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    callee = LLVM::LLVMFuncOp::create(
        b, op->getLoc(), name,
        LLVM::LLVMFunctionType::get(op->getResult(0).getType(),
                                    llvm::to_vector(op->getOperandTypes())));
  }
  auto call = LLVM::CallOp::create(b, op->getLoc(), callee, op->getOperands());
  op->replaceAllUsesWith(call->getResults());
  op->erase();
}

/// Replaces what MLIR would lower to an approximation.
static void keepExact(gpu::GPUModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (isa<math::SqrtOp, math::RsqrtOp>(op) &&
        op->getResult(0).getType().isF32())
      found.push_back(op);
  });
  for (Operation *op : found) {
    bool isReciprocal = isa<math::RsqrtOp>(op);
    callLibdevice(module, op,
                  isReciprocal ? "__nv_frsqrt_rn" : "__nv_fsqrt_rn");
  }
}

static LogicalResult convertToLLVM(gpu::GPUModuleOp module,
                                   bool isForProcessor) {
  MLIRContext *context = module.getContext();
  keepExact(module);
  if (isForProcessor)
    expandBFloat16(module);
  {
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<scf::SCFDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return failure();
  }
  LowerToLLVMOptions options(context, DataLayout(module));
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  configureGpuToNVVMTypeConverter(converter);
  if (isForProcessor)
    holdBFloat16AsBits(converter);
  RewritePatternSet patterns(context);
  populateGpuToNVVMConversionPatterns(converter, patterns, /*benefit=*/10);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateComplexToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  configureGpuToNVVMConversionLegality(target);
  return applyPartialConversion(module, target, std::move(patterns));
}

/// The first function of `kernels` that calls the device library in `module`,
/// which was made of them; null if none does.
static Operation *findLibdeviceCaller(llvm::Module &module,
                                      gpu::GPUModuleOp kernels) {
  for (llvm::Function &callee : module)
    if (callee.isDeclaration() && callee.getName().starts_with("__nv_"))
      for (llvm::User *user : callee.users())
        if (auto *call = dyn_cast<llvm::CallBase>(user))
          return kernels.lookupSymbol(call->getFunction()->getName());
  return nullptr;
}

std::unique_ptr<llvm::Module> whale::lowerToNvvm(ModuleOp kernels,
                                                 llvm::LLVMContext &context,
                                                 bool isForProcessor) {
  MLIRContext *mlirContext = kernels.getContext();
  PassManager manager(mlirContext);
  manager.addPass(createKernelsToGpu());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  if (failed(manager.run(kernels)))
    return nullptr;
  gpu::GPUModuleOp module = *kernels.getOps<gpu::GPUModuleOp>().begin();
  if (failed(convertToLLVM(module, isForProcessor))) {
    kernels.emitError("a kernel could not be lowered to NVVM");
    return nullptr;
  }
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(module, context, "kernels");
  if (!result) {
    kernels.emitError("a kernel could not be translated to LLVM IR");
    return nullptr;
  }
  // The linker removes the declarations by which callers of it are found.
  Operation *caller = findLibdeviceCaller(*result, module);
  if (!caller)
    return result;
  if (llvm::Error error = linkLibdevice(*result)) {
    caller->emitError(llvm::toString(std::move(error)));
    return nullptr;
  }
  return result;
}

void whale::loadNvvm(MLIRContext &context) {
  registerBuiltinDialectTranslation(context);
  registerGPUDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  registerNVVMDialectTranslation(context);
  context.loadDialect<LLVM::LLVMDialect, NVVM::NVVMDialect,
                      cf::ControlFlowDialect, gpu::GPUDialect>();
}
