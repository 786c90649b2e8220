//===- Attributes.h - Attributes of annotated operations --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The discardable attributes by which annotated text and the passes up to the
// forming of task graphs talk to each other.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_ATTRIBUTES_H
#define WHALE_TRANSFORMS_ATTRIBUTES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "llvm/ADT/StringRef.h"

namespace whale {

/// On an operation: a StrategyAttr.
inline constexpr llvm::StringLiteral kStrategyAttr = "whale.strategy";
/// On an operation: a PhaseAttr.
inline constexpr llvm::StringLiteral kPhaseAttr = "whale.phase";
/// On the module: the StrategyAttr of operations outside every scope.
inline constexpr llvm::StringLiteral kDefaultStrategyAttr =
    "whale.default_strategy";
/// On `whale.micro_batches`: for `devices` the bytes that each is expected to
/// need meanwhile, `fixed` ones and what the TaskGraphs of each name have
/// `kept` of each micro-batch in flight; and those that it needs `outside`.
inline constexpr llvm::StringLiteral kLoopBytesAttr = "whale.loop_bytes";
/// On a function: a segment, which schedules call for each micro-batch.
inline constexpr llvm::StringLiteral kSegmentAttr = "whale.segment";
/// On a call of a segment: the number of its micro-batch.
inline constexpr llvm::StringLiteral kMomentAttr = "whale.moment";
/// On an argument of a segment: a sum that is added to, and that nothing else
/// uses.
inline constexpr llvm::StringLiteral kLastUseAttr = "whale.last_use";
/// What whale-plan-buffers writes (its description says more). On a segment or
/// rank class: the list of its buffers, and those of its results.
inline constexpr llvm::StringLiteral kBuffersAttr = "whale.buffers";
inline constexpr llvm::StringLiteral kResultBuffersAttr =
    "whale.result_buffers";
/// On a rank class: the bytes of its arena, and the places of the locals of
/// each segment that it calls.
inline constexpr llvm::StringLiteral kArenaBytesAttr = "whale.arena_bytes";
inline constexpr llvm::StringLiteral kLocalsAttr = "whale.locals";
/// On a result of a rank class: the donated argument whose buffer it takes.
inline constexpr llvm::StringLiteral kAliasAttr = "whale.alias";
/// On an operation: the buffers of its results, pairs of buffers to copy before
/// it, and which places its locals have, if it is a call.
inline constexpr llvm::StringLiteral kOutAttr = "whale.out";
inline constexpr llvm::StringLiteral kCopiesAttr = "whale.copies";
inline constexpr llvm::StringLiteral kLayoutAttr = "whale.layout";
/// What is in the arena of a rank class at its peak: {bytes, of = LOCATION,
/// task_graph = NAME, what = its type and operation}.
inline constexpr llvm::StringLiteral kPeakAttr = "whale.peak";
/// On an argument: the dimension of the mini-batch's samples.
inline constexpr llvm::StringLiteral kBatchDimAttr = "whale.batch_dim";
/// On the module: the user's own virtual devices, lists of device numbers.
inline constexpr llvm::StringLiteral kVirtualDevicesAttr =
    "whale.virtual_devices";
/// On an argument of @main: the index of the result that is its next value.
inline constexpr llvm::StringLiteral kFedByAttr = "whale.fed_by";
/// On an argument of @main that Whale has added: a tensor of f32 of one
/// dimension, its value in the first step. It has no place in what the user
/// gives, and neither has the result that it is fed by.
inline constexpr llvm::StringLiteral kInitialAttr = "whale.initial";
/// On an argument of @main: its memory may be taken over. Whale's own, without
/// a value, and JAX's, true or false.
inline constexpr llvm::StringLiteral kDonatedAttr = "whale.donated";
inline constexpr llvm::StringLiteral kBufferDonorAttr = "jax.buffer_donor";
/// JAX's, on an argument of @main: the index of the result that takes its
/// memory over.
inline constexpr llvm::StringLiteral kAliasingOutputAttr = "tf.aliasing_output";
/// The phase of an operation: its own, or that of the operation around it that
/// has one; forward if none has.
Phase phaseOf(mlir::Operation *op);

/// Whether any result may reuse the memory of an argument of @main, or of
/// a schedule.
bool isDonated(mlir::FunctionOpInterface function, unsigned argument);

} // namespace whale

#endif // WHALE_TRANSFORMS_ATTRIBUTES_H
