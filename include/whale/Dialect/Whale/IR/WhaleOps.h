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

/// The resource that exchanges between ranks read and write. It keeps
/// collectives in order and prevents their removal.
struct CommunicationResource
    : mlir::SideEffects::Resource::Base<CommunicationResource> {
  llvm::StringRef getName() final { return "WhaleCommunication"; }
};

/// Returns the ranks of the schedule that `op` is in; nullopt outside of one.
std::optional<llvm::ArrayRef<int64_t>> getRanks(mlir::Operation *op);

/// Whether merging some runs of adjacent dimensions and splitting some
/// dimensions turns one shape into the other. Always true of shapes without
/// elements.
bool regroups(llvm::ArrayRef<int64_t> first, llvm::ArrayRef<int64_t> second);

/// A result that can use the buffer of an operand.
struct InPlacePair {
  unsigned result, operand;
  /// Whether the result is an update of the operand: if they have different
  /// buffers, the operand must be copied to the result's first.
  bool required;
};

} // namespace whale

#include "whale/Dialect/Whale/IR/WhaleOpInterfaces.h.inc"

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleOps.h.inc"

#endif // WHALE_DIALECT_WHALE_IR_WHALEOPS_H
