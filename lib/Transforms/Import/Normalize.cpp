//===- Normalize.cpp - Rewrites that make partitioning simple -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CarryAttributes.h"
#include "Normalize/Patterns.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace whale {
#define GEN_PASS_DEF_NORMALIZE
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

namespace {

class Normalize : public whale::impl::NormalizeBase<Normalize> {
  using NormalizeBase::NormalizeBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(normalize::promoteReducers(module)) ||
        failed(normalize::expandManualComputations(module)))
      return signalPassFailure();
    normalize::dropLoneCollectives(module);
    normalize::selectShardings(module);
    if (failed(normalize::verifySupported(module)))
      return signalPassFailure();

    RewritePatternSet patterns(&getContext());
    normalize::populateBatchNormPatterns(patterns);
    normalize::populateBatchedIndexPatterns(patterns);
    normalize::populateControlFlowPatterns(patterns);
    normalize::populateDynamicPatterns(patterns);
    normalize::populateReductionPatterns(patterns);
    normalize::populateReluPatterns(patterns);
    normalize::populateShapePatterns(patterns);
    CarryAttributes carry;
    GreedyRewriteConfig config;
    // Equal constants stay apart: each belongs to its users' task graph.
    config.enableConstantCSE(false);
    config.setListener(&carry);
    if (failed(applyPatternsGreedily(module, std::move(patterns), config))) {
      module.emitError("normalization does not come to an end");
      return signalPassFailure();
    }
    if (failed(normalize::verifyCallsAreUsed(module)) ||
        failed(normalize::closeRegions(module)))
      return signalPassFailure();
  }
};

} // namespace
