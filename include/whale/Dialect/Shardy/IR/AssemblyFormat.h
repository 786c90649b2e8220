//===- AssemblyFormat.h - Parts of the text form ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_SHARDY_IR_ASSEMBLYFORMAT_H
#define WHALE_DIALECT_SHARDY_IR_ASSEMBLYFORMAT_H

#include "whale/Dialect/Shardy/IR/ShardyOps.h"

namespace mlir::sdy {

/// Prints or parses `<["a"=4], device_ids=[0]>`.
void printMesh(AsmPrinter &printer, MeshAttr mesh);
ParseResult parseMesh(AsmParser &parser, MeshAttr &mesh);

/// Prints or parses `<@mesh, [{"a"}, {}]>`.
void printSharding(AsmPrinter &printer, TensorShardingAttr sharding);
ParseResult parseSharding(AsmParser &parser, TensorShardingAttr &sharding);

/// Prints or parses `[<@mesh, [{}]>, <@mesh, []>]`.
void printShardings(AsmPrinter &printer, TensorShardingPerValueAttr shardings);
ParseResult parseShardings(AsmParser &parser,
                           TensorShardingPerValueAttr &shardings);

/// Prints or parses `{"a", "b"}`.
void printManualAxes(AsmPrinter &printer, ManualAxesAttr axes);
ParseResult parseManualAxes(AsmParser &parser, ManualAxesAttr &axes);

/// Returns the name of a factor: i to z, then z_1, z_2, ...
std::string factorName(int64_t index);

/// Prints or parses sharding rules (ShardingRuleFormat.cpp).
void printShardingRule(AsmPrinter &printer, OpShardingRuleAttr rule);
ParseResult parseShardingRule(AsmParser &parser, OpShardingRuleAttr &rule);

} // namespace mlir::sdy

#endif // WHALE_DIALECT_SHARDY_IR_ASSEMBLYFORMAT_H
