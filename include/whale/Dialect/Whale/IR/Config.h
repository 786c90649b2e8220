//===- Config.h - What a program is asked to be cut into --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_CONFIG_H
#define WHALE_DIALECT_WHALE_IR_CONFIG_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/ClusterRanges.h"
#include "whale/Planner/Schedule.h"

namespace whale {

/// The configuration of a module, its `whale.config`: a dictionary with an
/// entry or a section for each key.
class Config {
public:
  static constexpr llvm::StringLiteral kAttr = "whale.config";
  static constexpr llvm::StringLiteral kMicroBatches = "num_micro_batch";
  static constexpr llvm::StringLiteral kTaskGraphs = "num_task_graph";
  static constexpr llvm::StringLiteral kSchedule = "pipeline.strategy";
  static constexpr llvm::StringLiteral kUnevenReplicas =
      "cluster.uneven_replicas";
  static constexpr llvm::StringLiteral kBucketBytes =
      "communication.bucket_bytes";
  /// A latency of some 20 us is worth copying that many bytes twice.
  static constexpr int64_t kDefaultBucketBytes = 1 << 18;
  /// What a number of bytes can be at most.
  static constexpr int64_t kMostBytes = int64_t(1) << 40;
  /// What a count can be at most: micro-batches are placed as devices are.
  static constexpr int64_t kMostCount = kMostDevices;

  explicit Config(mlir::ModuleOp module)
      : entries(module->getAttrOfType<mlir::DictionaryAttr>(kAttr)) {}

  /// Emits an error where there is an unknown key, or a value that is none of
  /// its key's.
  static mlir::LogicalResult verify(mlir::Operation *op,
                                    mlir::DictionaryAttr entries);

  /// How many micro-batches are asked for; none if that is left open.
  std::optional<int64_t> getNumMicroBatches() const {
    return getCount(kMicroBatches);
  }
  /// How many task graphs the step is to be cut into, if it is.
  std::optional<int64_t> getNumTaskGraphs() const {
    return getCount(kTaskGraphs);
  }
  /// The schedule of micro-batches that is asked for, if one is.
  std::optional<ScheduleKind> getSchedule() const;
  /// Up to how many bytes reductions of gradients are joined in one exchange.
  int64_t getBucketBytes() const {
    return getCount(kBucketBytes).value_or(kDefaultBucketBytes);
  }
  /// Whether replicas may have different numbers of devices.
  bool allowsUnevenReplicas() const;

  /// Writes the number of micro-batches into the module.
  static void setNumMicroBatches(mlir::ModuleOp module, int64_t count);

private:
  /// The entry with this name; a dot leads into a section. Null if there is
  /// none.
  mlir::Attribute get(llvm::StringRef key) const;
  std::optional<int64_t> getCount(llvm::StringRef key) const;

  mlir::DictionaryAttr entries;
};

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_CONFIG_H
