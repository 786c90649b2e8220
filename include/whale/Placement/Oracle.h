//===- Oracle.h - Proves that steps do what they should ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Symbolic execution of tables of cells: which device holds which elements with
// which pending terms. Elements that all boxes treat alike are looked at once.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_ORACLE_H
#define WHALE_PLACEMENT_ORACLE_H

#include "whale/Placement/Resolver.h"

namespace whale {

/// Whether the table turns `step.from` into `step.to`: every element of every
/// receiver is written once, from peers that hold it, with terms that make up
/// its value (or, if `to` is partial, that do so together). nullopt if it does,
/// else a message with the first wrong element (in coordinates of a view common
/// to both) and device.
std::optional<std::string> verifyTable(const Step &step,
                                       const CellTable &table);

/// Whether the steps lead from `from` to `to`, each with its own table.
std::optional<std::string> verifySteps(llvm::ArrayRef<Step> steps,
                                       const Placement &from,
                                       const Placement &to,
                                       const Topology &topology = {});

} // namespace whale

#endif // WHALE_PLACEMENT_ORACLE_H
