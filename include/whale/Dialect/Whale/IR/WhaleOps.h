//===- WhaleOps.h - Operations ----------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEOPS_H
#define WHALE_DIALECT_WHALE_IR_WHALEOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/Whale/IR/WhaleAttrs.h"

namespace whale {

struct Cluster;
class YieldOp;

/// On a function of a rank class: its ranks.
inline constexpr llvm::StringLiteral kRanksAttrName = "whale.ranks";

/// What an exchange between ranks reads and writes: keeps collectives in order
/// and alive.
struct CommunicationResource
    : mlir::SideEffects::Resource::Base<CommunicationResource> {
  llvm::StringRef getName() final { return "WhaleCommunication"; }
};

/// The ranks of the rank class that `op` is in (the attribute
/// `whale.ranks` of its function), or none outside of one.
std::optional<llvm::ArrayRef<int64_t>> getRanks(mlir::Operation *op);

/// Whether one shape becomes the other when some runs of adjacent dimensions
/// are merged and some dimensions are split. Shapes without elements all do.
bool regroups(llvm::ArrayRef<int64_t> first, llvm::ArrayRef<int64_t> second);

/// A result that can reuse the buffer of an operand.
struct InPlacePair {
  unsigned result, operand;
  /// It starts from what the operand's buffer holds: where it has another one,
  /// that is copied there before.
  bool required;
};

} // namespace whale

#include "whale/Dialect/Whale/IR/WhaleOpInterfaces.h.inc"

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleOps.h.inc"

#endif // WHALE_DIALECT_WHALE_IR_WHALEOPS_H
