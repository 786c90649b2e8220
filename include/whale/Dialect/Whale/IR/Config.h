//===- Config.h - The configuration of a module -----------------*- C++ -*-===//
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

/// What replicas share out of the state of a step (ZeRO: Rajbhandari et al.,
/// 2020): that of the optimizer, sums of gradients too, parameters too.
enum class ZeroLevel : uint8_t { None, State, Gradients, Parameters };

/// Which values of a forward its backward computes again: none, as many as
/// memory is lacking, or all but those that the step names.
enum class GradientCheckpoint : uint8_t { None, Auto, Collection };

/// What of a step is in the memory of hosts: nothing, the state of the
/// optimizer, or weights too.
enum class OffloadLevel : uint8_t { None, State, Weights };

/// The configuration of a module (`whale.config`): a dictionary with an entry
/// or a section for each key. All keys, with what they accept and what they
/// mean, are in python/whale/config_keys.json, which the frontend and the
/// documentation also take them from.
class Config {
public:
  static constexpr llvm::StringLiteral kAttr = "whale.config";
  static constexpr llvm::StringLiteral kMicroBatches = "num_micro_batch";
  static constexpr llvm::StringLiteral kBatchNorm = "batch_norm";
  static constexpr llvm::StringLiteral kTaskGraphs = "num_task_graph";
  static constexpr llvm::StringLiteral kSchedule = "pipeline.strategy";
  static constexpr llvm::StringLiteral kUnevenReplicas =
      "cluster.uneven_replicas";
  static constexpr llvm::StringLiteral kBucketBytes =
      "communication.bucket_bytes";
  static constexpr llvm::StringLiteral kBF16Wire = "communication.bf16";
  static constexpr llvm::StringLiteral kF16Wire = "communication.fp16";
  static constexpr llvm::StringLiteral kF16Scale = "communication.fp16_scale";
  static constexpr llvm::StringLiteral kTf32 = "gpu.tf32";
  static constexpr llvm::StringLiteral kEpilogues = "gpu.epilogues";
  static constexpr llvm::StringLiteral kApplyGroups =
      "optimizer.num_apply_group";
  static constexpr llvm::StringLiteral kZeroLevel = "zero.level";
  static constexpr llvm::StringLiteral kOffloadLevel = "offload.level";
  static constexpr llvm::StringLiteral kAmpLevel = "amp.level";
  static constexpr llvm::StringLiteral kLossScale = "amp.loss_scale";
  static constexpr llvm::StringLiteral kAmpLog = "amp.debug_log";
  static constexpr llvm::StringLiteral kGradientCheckpoint =
      "gradient_checkpoint.type";
  static constexpr llvm::StringLiteral kDebugNans = "debug_nans";
  static constexpr llvm::StringLiteral kFit = "fit";
  /// At a latency of some 20 us, copying up to this many bytes twice is faster.
  static constexpr int64_t kDefaultBucketBytes = 1 << 18;
  /// That of EPL.
  static constexpr int64_t kDefaultF16Scale = 128;
  /// The maximum of a count: micro-batches are placed like devices.
  static constexpr int64_t kMostCount = kMostDevices;

  explicit Config(mlir::ModuleOp module)
      : entries(module->getAttrOfType<mlir::DictionaryAttr>(kAttr)) {}

  /// Emits an error if there is an unknown key, or a value that is not valid
  /// for its key.
  static mlir::LogicalResult verify(mlir::Operation *op,
                                    mlir::DictionaryAttr entries);

  /// Returns the requested number of micro-batches; nullopt if it is not given.
  std::optional<int64_t> getNumMicroBatches() const {
    return getCount(kMicroBatches);
  }
  /// Whether statistics of the mini-batch between layers may be those of each
  /// micro-batch.
  bool hasOwnStatistics() const { return get(kBatchNorm) != nullptr; }
  /// Returns the number of task graphs to cut the step into, if it is given.
  std::optional<int64_t> getNumTaskGraphs() const {
    return getCount(kTaskGraphs);
  }
  /// Returns the requested schedule of micro-batches, if it is given.
  std::optional<ScheduleKind> getSchedule() const;
  /// Returns the maximum bytes of gradients that are reduced in one exchange.
  int64_t getBucketBytes() const {
    return getCount(kBucketBytes).value_or(kDefaultBucketBytes);
  }
  /// Returns the type that sums of gradients are sent in; null if it is theirs.
  mlir::Type getWireType() const;
  /// Returns what gradients are multiplied by before they are sent in f16.
  int64_t getWireScale() const {
    return getCount(kF16Scale).value_or(kDefaultF16Scale);
  }
  /// Whether replicas may have different numbers of devices.
  bool allowsUnevenReplicas() const { return isSet(kUnevenReplicas); }
  /// Whether GPUs may round operands of f32 products to TF32.
  bool allowsTf32() const { return isSet(kTf32); }
  /// Whether products for GPUs may have epilogues, as they may by default.
  bool allowsEpilogues() const { return !get(kEpilogues) || isSet(kEpilogues); }

  /// Returns in how many groups updates of the state stand, if it is given.
  std::optional<int64_t> getNumApplyGroups() const {
    return getCount(kApplyGroups);
  }

  /// Returns what replicas share out.
  ZeroLevel getZeroLevel() const;

  /// Returns what is in the memory of hosts.
  OffloadLevel getOffloadLevel() const;

  /// Returns what a backward computes again.
  GradientCheckpoint getGradientCheckpoint() const;

  /// Returns the type of halves that products of f32 take; null for f32.
  mlir::FloatType getProductType() const;
  /// Returns what gradients are multiplied by; nullopt if it is found while the
  /// program runs.
  std::optional<int64_t> getLossScale() const { return getCount(kLossScale); }
  /// Whether a remark says of each product which type it takes.
  bool logsProducts() const { return isSet(kAmpLog); }

  /// Whether a step says which operation made a NaN.
  bool debugsNans() const { return isSet(kDebugNans); }

  /// Whether options that are left out are chosen so that the step fits.
  bool choosesOptions() const { return isGiven(kFit); }

  /// Whether there is an entry with this name, in which a dot separates section
  /// and key.
  bool isGiven(llvm::StringRef key) const { return get(key) != nullptr; }

  /// Stores an entry in the module.
  static void set(mlir::ModuleOp module, llvm::StringRef key,
                  mlir::Attribute value);
  /// Stores the number of micro-batches in the module.
  static void setNumMicroBatches(mlir::ModuleOp module, int64_t count);
  static void setTf32(mlir::ModuleOp module);

private:
  /// Returns the entry with this name, in which a dot separates section and
  /// key. Null if there is none.
  mlir::Attribute get(llvm::StringRef key) const;
  std::optional<int64_t> getCount(llvm::StringRef key) const;
  bool isSet(llvm::StringRef key) const;

  mlir::DictionaryAttr entries;
};

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_CONFIG_H
