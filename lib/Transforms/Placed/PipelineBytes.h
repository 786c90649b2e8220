//===- PipelineBytes.h - What devices keep of micro-batches -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PIPELINEBYTES_H
#define WHALE_LIB_TRANSFORMS_PLACED_PIPELINEBYTES_H

#include "whale/Transforms/Placed/Pipeline.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace whale {

/// The bytes that devices are expected to keep for each slot of a pipeline, as
/// `whale.loop_bytes` of its loop has them. Both must outlive this.
class PipelineBytes {
public:
  /// What whale-propagate expects a device to need.
  struct Expected {
    int64_t fixed = 0, outside = 0;
    /// What each slot keeps of a micro-batch, and its sums over them.
    std::vector<double> kept, sums;
  };

  PipelineBytes(MicroBatchesOp loop, const Pipeline &pipeline);

  const std::map<int64_t, Expected> &getDevices() const { return devices; }
  /// What a device keeps for a slot (but what is fixed) of a micro-batch, of
  /// several sizes an average one. Both must be known.
  StageCost costOf(int64_t device, int64_t slot) const {
    return costOf(device, slot, partsOf(device, slot).front());
  }
  /// The most that a device needs which takes these steps of a stage with these
  /// slots.
  int64_t findPeak(int64_t device, llvm::ArrayRef<int64_t> slots,
                   llvm::ArrayRef<ScheduleStep> steps) const;

private:
  void readExpected();
  void findWeightInputs();
  void findSamples();
  void countSumParts();
  std::vector<double> partsOf(int64_t device, int64_t slot) const;
  StageCost costOf(int64_t device, int64_t slot, double firstPart) const;

  MicroBatchesOp loop;
  const Pipeline &pipeline;
  /// By micro-batch: its region of the loop.
  llvm::SmallVector<int64_t> variants;
  std::map<int64_t, Expected> devices;
  /// What the gradients of weights of a slot read, where they are apart: of
  /// what forwards make, and backwards.
  struct WeightInputs {
    llvm::SetVector<mlir::Value> ofForward, ofBackward;
    /// Whether the backward exchanges something.
    bool areExchanged = false;
  };
  std::vector<WeightInputs> weightInputs;
  /// By slot and region of the loop: the largest of the values that forwards
  /// make, of which a device has the more the more samples it takes.
  std::vector<std::vector<mlir::Value>> samples;
  /// By slot: in how many parts its backward makes sums of gradients.
  std::vector<int64_t> sumParts;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PIPELINEBYTES_H
