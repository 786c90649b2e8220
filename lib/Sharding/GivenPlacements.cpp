//===- GivenPlacements.cpp - Where the input wants values -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/GivenPlacements.h"

using namespace mlir;

namespace whale {

PlacementAttr getGivenPlacement(BlockArgument argument) {
  auto main = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return main ? main.getArgAttrOfType<PlacementAttr>(argument.getArgNumber(),
                                                     kGivenPlacementAttr)
              : PlacementAttr();
}

PlacementAttr getGivenPlacement(func::FuncOp main, unsigned result) {
  return main.getResultAttrOfType<PlacementAttr>(result, kGivenPlacementAttr);
}

bool hasGivenResults(func::FuncOp main) {
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (getGivenPlacement(main, i))
      return true;
  return false;
}

void dropGivenPlacements(func::FuncOp main) {
  auto without = [&](DictionaryAttr given) {
    NamedAttrList attributes(given);
    attributes.erase(kGivenPlacementAttr);
    return attributes.getDictionary(main.getContext());
  };
  // All at once: one by one, each would copy those of all.
  SmallVector<DictionaryAttr> arguments, results;
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    arguments.push_back(without(main.getArgAttrDict(i)));
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    results.push_back(without(main.getResultAttrDict(i)));
  main.setAllArgAttrs(arguments);
  main.setAllResultAttrs(results);
}

} // namespace whale
