//===- StepLayouts.h - Layouts along the axes of devices --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Propagates layouts along both axes of the devices (repetitions of the group,
// devices inside one) from the strategies of TaskGraphs, and chooses how
// parameters of split TaskGraphs are cut; or along the axes of a mesh that the
// program names, from the shardings that it gives.
//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPLAYOUTS_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPLAYOUTS_H

#include "AxisCosts.h"
#include "StepMeshes.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Planner/Plan.h"
#include "whale/Sharding/Factorization.h"
#include "whale/Sharding/ParameterSplits.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

#include <string>

namespace whale {

class StepLayouts {
public:
  /// Cluster and meshes must outlive this.
  StepLayouts(mlir::func::FuncOp function, const Cluster &cluster,
              const StepMeshes &meshes);

  /// Decides all layouts as the strategies say. Emits an error where the
  /// configuration asks for what the step has nothing of.
  llvm::LogicalResult followStrategies();
  /// Decides them as the program's own shardings say, and removes these.
  void followHints(const ShardingHints &hints);
  /// Lays a loop out like the one that it was made of: each of its regions like
  /// that of the same micro-batch.
  void addCopy(MicroBatchesOp loop, MicroBatchesOp copy);

  /// What was decided along each axis of the meshes.
  llvm::ArrayRef<std::unique_ptr<AxisPropagation>> getAxes() const {
    return axes;
  }
  /// For each result the argument that it feeds, or -1.
  llvm::ArrayRef<int64_t> getFeeds() const { return feeds; }

private:
  AxisPropagation &propagate(AxisPropagation::Options options);
  AxisPolicy policyOf(mlir::Operation *op) const;
  unsigned replicaAxis(mlir::Operation *op) const;
  bool isReplicated(mlir::Operation *op, unsigned axis) const;
  bool sharesState(mlir::Operation *op, unsigned axis) const;
  std::string
  shareOut(mlir::BlockArgument argument, mlir::Value next,
           Factorization &factorization,
           const llvm::DenseMap<mlir::Type, llvm::SmallBitVector> &stackedDims);
  void findState(Factorization &factorization);
  void seedState(AxisPropagation::Options &options, unsigned axis) const;
  llvm::LogicalResult explainState();
  void explainSums();
  std::optional<std::array<AxisState, 2>>
  findStates(const Mesh &mesh, mlir::Value value, const Placement &given,
             Factorization &factorization) const;
  void findGiven(Factorization &factorization);
  void seedGiven(AxisPropagation::Options &options, unsigned axis) const;
  void leaveOutGiven(llvm::SmallVectorImpl<ParameterGroup> &groups) const;
  AxisPropagation::Options commonOptions(unsigned axis, AxisCosts &costs);
  AxisState batchState(mlir::Value value, int64_t dim,
                       Factorization &factorization);
  void seedBatch(Factorization &factorization);
  AxisPropagation::Options batchOptions(Factorization &factorization);
  AxisPropagation::Options innerOptions(const AxisPropagation &batch,
                                        Factorization &factorization,
                                        AxisCosts &costs);
  AxisPropagation::Options seedSplits(AxisPropagation::Options options,
                                      llvm::ArrayRef<ParameterGroup> groups,
                                      llvm::ArrayRef<unsigned> pieces) const;
  /// Returns what was propagated in the trial of the choice, if it is at hand.
  std::unique_ptr<AxisPropagation> chooseParameterSplits(
      llvm::ArrayRef<ParameterGroup> groups, const AxisPropagation &batch,
      const Factorization &factorization, size_t most, SplitChoice &splits);
  /// Returns whether sums of split products are scattered.
  bool decideSums(const std::optional<Plan::Sums> &given,
                  AxisPropagation::Options options);

  mlir::func::FuncOp function;
  const Cluster &cluster;
  const StepMeshes &meshes;
  AxisCosts costs;
  std::shared_ptr<RuleCache> rules;
  llvm::SmallVector<int64_t> feeds;
  /// What replicas share out.
  ZeroLevel zeroLevel;
  /// By axis, what is split for that, and the parameters among it.
  std::array<llvm::DenseMap<mlir::Value, AxisState>, 2> stateSeeds;
  std::array<llvm::SetVector<mlir::Value>, 2> storedParameters;
  /// By axis, the layouts of arguments that the input says something of.
  std::array<llvm::DenseMap<mlir::Value, AxisState>, 2> givenSeeds;
  /// The largest argument that a result feeds and that is not, and why.
  mlir::BlockArgument unshared;
  std::string whyUnshared;
  std::vector<std::unique_ptr<AxisPropagation>> axes;
  llvm::DenseMap<mlir::Value, AxisState> batchSeeds;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_STEPLAYOUTS_H
