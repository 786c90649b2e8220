//===- WhaleOffloadOps.h - State in hosts' memory ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In its own header, as few files name these operations.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEOFFLOADOPS_H
#define WHALE_DIALECT_WHALE_IR_WHALEOFFLOADOPS_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"

namespace whale {

/// The queue of copies between the memories of host and device.
struct HostCopyResource
    : public mlir::SideEffects::Resource::Base<HostCopyResource> {
  llvm::StringRef getName() final { return "HostCopies"; }
};

/// On an argument or result of @main, or of a schedule: it is in the memory of
/// the hosts.
inline constexpr llvm::StringLiteral kInHostAttr = "whale.in_host";

} // namespace whale

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h.inc"

namespace whale {

inline bool isHostCopy(mlir::Operation *op) {
  return llvm::isa_and_nonnull<HostToDeviceOp, DeviceToHostOp>(op);
}

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_WHALEOFFLOADOPS_H
