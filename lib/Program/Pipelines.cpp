//===- Pipelines.cpp - The order of the passes ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Program/Compile.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"

#include <cstdlib>

using namespace mlir;

namespace whale {

// How products are computed, which begins level 'kernels'. The processor's own
// loops for small products (runtime/device/cpu/SmallProduct.h) are called in
// less time than a kernel's take for a thousand pairs of elements, and take
// complex numbers.
// `%` stands for the target.
#define PRODUCTS                                                               \
  "whale-convolution-gradients,"                                               \
  "whale-lower-library-ops{few-products=1024 complex-products=262144 "         \
  "target=%}"
#define GPU_PRODUCTS                                                           \
  "whale-convolutions-to-products,whale-convolution-gradients,"                \
  "whale-normalize-convolutions,whale-lower-library-ops{target=%}"

// When instructions run, which begins level 'program'.
#define ORDER                                                                  \
  "whale-order-instructions,whale-start-transfers,whale-copy-host-state,"      \
  "whale-start-copies"

// How values get their places, which ends level 'program'.
#define BUFFERS "whale-join-channels,whale-verify-schedule,whale-plan-buffers"
#define GPU_BUFFERS BUFFERS "{alignment=256}"

llvm::StringRef getBufferPipeline(bool isForGpu) {
  return isForGpu ? GPU_BUFFERS : BUFFERS;
}

llvm::StringRef getProductPipeline(bool isForGpu) {
  return isForGpu ? "any(" GPU_PRODUCTS ")" : "any(" PRODUCTS ")";
}

llvm::ArrayRef<Level> getLevels() {
  static constexpr Level levels[] = {
      {"annotated",
       "whale-inline-calls,whale-erase-unused-calls,whale-check-nans,"
       "whale-lift-callbacks,whale-import-scopes,"
       "whale-expand-chlo,whale-normalize,whale-mixed-precision,"
       "whale-form-attention,whale-cut-task-graphs,whale-keep-received,"
       "whale-divide-stacks,whale-sink-conversions,whale-micro-batch"},
      {"task-graphs", "whale-form-task-graphs,whale-verify-task-graphs"},
      {"placed", "whale-place-results,whale-assign-devices,"
                 "whale-offload-state,whale-propagate,"
                 "whale-insert-reshards,whale-narrow-reductions,"
                 "whale-verify-placements"},
      {kPlannedLevel,
       "whale-schedule-micro-batches,"
       "whale-recompute-cheap-values,whale-recompute-forward,whale-partition,"
       "whale-join-stacks,whale-bucket-reductions,whale-join-collectives,"
       "whale-divide-reductions,whale-divide-gathers,"
       "whale-verify-partition,whale-fold-empty-shares",
       /*gpuPipeline=*/"", /*isVerified=*/false},
      {kKernelsLevel,
       "any(" PRODUCTS ",whale-unroll-loops,"
       "whale-stablehlo-to-linalg,whale-fuse-kernels,"
       "whale-fuse-rows{target=%}),"
       "whale-outline-kernels",
       "any(" GPU_PRODUCTS ",whale-divide-windows,"
       "whale-divide-scatters,whale-form-epilogues{target=%},"
       "whale-stablehlo-to-linalg{target=%},whale-fuse-kernels{target=%},"
       "whale-fuse-rows{target=%}),"
       "whale-outline-kernels{target=%},whale-check-threads",
       /*isVerified=*/false},
      {"program", ORDER "," BUFFERS, ORDER "," GPU_BUFFERS},
  };
  return levels;
}

std::string setTarget(StringRef pipeline, const Target &target) {
  std::string text = pipeline.str();
  for (size_t at = 0; (at = text.find('%', at)) != text.npos;)
    text.replace(at, 1, target.str());
  return text;
}

bool isVerifyEachSet() {
  StringRef wish = std::getenv(kVerifyEachVariable.data());
  return !wish.empty() && wish != "0";
}

void configureVerifier(PassManager &manager) {
  manager.enableVerifier(isVerifyEachSet());
}

void registerProgramDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect,
                  cf::ControlFlowDialect, complex::ComplexDialect,
                  func::FuncDialect, LLVM::LLVMDialect, linalg::LinalgDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  tensor::TensorDialect, vector::VectorDialect,
                  stablehlo::StablehloDialect, chlo::ChloDialect,
                  sdy::SdyDialect, WhaleDialect>();
}

void registerPipelines() {
  auto add = [](OpPassManager &manager, StringRef pipeline) {
    // The text is ours, so a failure is a pass without registration.
    if (failed(parsePassPipeline(pipeline, manager)))
      llvm::report_fatal_error("the pipeline names an unknown pass");
  };
  static std::vector<PassPipelineRegistration<>> registrations;
  for (const Level &level : getLevels())
    registrations.emplace_back(
        (Twine("whale-") + level.name).str(),
        (Twine("From the level before to level '") + level.name + "'").str(),
        [add, &level](OpPassManager &manager) {
          add(manager, setTarget(level.pipeline, Target()));
        });
  registrations.emplace_back("whale",
                             "From annotated StableHLO and a whale.cluster to "
                             "a module that a program is written from",
                             [add](OpPassManager &manager) {
                               for (const Level &level : getLevels())
                                 add(manager,
                                     setTarget(level.pipeline, Target()));
                             });
}

} // namespace whale
