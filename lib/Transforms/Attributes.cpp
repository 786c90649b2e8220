//===- Attributes.cpp - Attributes of annotated operations ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Attributes.h"

using namespace mlir;

namespace whale {

Phase phaseOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto phase = op->getAttrOfType<PhaseAttr>(kPhaseAttr))
      return phase.getValue();
  return Phase::Forward;
}

bool isDonated(FunctionOpInterface function, unsigned argument) {
  auto donor = function.getArgAttrOfType<BoolAttr>(argument, kBufferDonorAttr);
  return function.getArgAttr(argument, kDonatedAttr) ||
         (donor && donor.getValue());
}

} // namespace whale
