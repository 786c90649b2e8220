//===- LoadCluster.cpp - Reads the cluster into the module ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Support/ReadFile.h"
#include "whale/Transforms/Passes.h"

namespace whale {
#define GEN_PASS_DEF_LOADCLUSTER
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

namespace {
struct LoadCluster : whale::impl::LoadClusterBase<LoadCluster> {
  using LoadClusterBase::LoadClusterBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (file.empty() == (ranks == 0)) {
      module.emitError("whale-load-cluster needs either a file or a number of "
                       "ranks");
      return signalPassFailure();
    }
    for (auto cluster : module.getOps<ClusterOp>()) {
      cluster.emitError("the module has a cluster already");
      return signalPassFailure();
    }
    std::optional<Cluster> cluster = load();
    if (!cluster)
      return signalPassFailure();
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    ClusterOp::create(builder, module.getLoc(), "cluster", *cluster);
  }

private:
  /// Reads what the options say, or emits an error.
  std::optional<Cluster> load() {
    std::string text = std::to_string(ranks);
    if (!file.empty()) {
      auto buffer = readTextFile(file, kMostClusterBytes);
      if (!buffer) {
        emitError(UnknownLoc::get(&getContext()))
            << "cannot read the cluster file '" << file
            << "': " << llvm::toString(buffer.takeError());
        return std::nullopt;
      }
      text = (*buffer)->getBuffer().str();
    }
    try {
      return Cluster::parse(text);
    } catch (const ClusterError &error) {
      if (file.empty())
        emitError(UnknownLoc::get(&getContext()))
            << "number of ranks: " << error.what();
      else
        emitError(FileLineColLoc::get(&getContext(), file, error.getLine(),
                                      error.getColumn()))
            << error.what();
      return std::nullopt;
    }
  }
};
} // namespace
