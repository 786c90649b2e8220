//===- Oracle.h - Verify tables of cells ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Proves that tables of cells are right by symbolic execution: which device
// holds which elements with which pending terms. Elements that are in the same
// boxes everywhere are checked once.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_ORACLE_H
#define WHALE_PLACEMENT_ORACLE_H

#include "whale/Placement/Resolver.h"

namespace whale {

/// Checks that the table turns `step.from` into `step.to`: every element of
/// every receiver is written once, from peers that hold it, with terms that
/// make up its value (if `to` is partial, the terms of all devices together
/// must). Returns nullopt if so, else a message with the first wrong element
/// (in coordinates of a view common to both) and its device.
std::optional<std::string> verifyTable(const Step &step,
                                       const CellTable &table);

/// Checks that the steps lead from `from` to `to`, each with its own table.
std::optional<std::string> verifySteps(llvm::ArrayRef<Step> steps,
                                       const Placement &from,
                                       const Placement &to,
                                       const Topology &topology = {});

} // namespace whale

#endif // WHALE_PLACEMENT_ORACLE_H
