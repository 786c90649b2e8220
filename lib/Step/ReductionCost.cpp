//===- ReductionCost.cpp - Whether to divide an all-reduce ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/ReductionCost.h"

#include "whale/Step/StepCost.h"
#include "llvm/Support/MathExtras.h"

using namespace whale;

ReductionSeconds whale::reductionSeconds(const GroupReduction &reduction,
                                         int64_t elementBytes,
                                         const Cluster &cluster) {
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  Topology topology = Topology::of(cluster);
  ReductionSeconds seconds;
  seconds.whole =
      stepSeconds(*model, reduction.asStep(), elementBytes, topology);
  std::optional<int64_t> count = reduction.membersByNode(topology);
  if (!count)
    return seconds;
  GroupReduction even = reduction;
  for (int64_t &elements : even.elements)
    elements = llvm::alignTo(elements, *count);
  seconds.divided = 2 * kCollectiveStart;
  for (const Step &step : even.divideByNode(topology))
    seconds.divided += stepSeconds(*model, step, elementBytes, topology);
  return seconds;
}
