//===- StageCosts.h - What task graphs cost on their shares -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_STAGECOSTS_H
#define WHALE_LIB_TRANSFORMS_PLACED_STAGECOSTS_H

#include "whale/Cluster/Topology.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Step/CostModel.h"

namespace whale {

/// Time of the first micro-batch, from the placements of its values.
class StageCosts {
public:
  using Selection = llvm::function_ref<bool(TaskGraphOp)>;

  StageCosts(MicroBatchesOp loop, const Cluster &cluster);

  /// Until the slowest of the devices has computed its part.
  double secondsOf(TaskGraphOp graph, llvm::ArrayRef<int64_t> devices);
  /// Until what the selected forward task graphs make has reached the others.
  double sendSeconds(Selection from);

private:
  /// The part of the value that each device holds.
  const std::vector<double> &partsOf(mlir::Value value);
  llvm::SmallVector<double> partsOf(mlir::Operation *op,
                                    llvm::ArrayRef<int64_t> devices);

  MicroBatchesOp loop;
  const Cluster &cluster;
  Topology topology;
  std::unique_ptr<CostModel> model;
  llvm::DenseMap<mlir::Attribute, std::vector<double>> parts;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_STAGECOSTS_H
