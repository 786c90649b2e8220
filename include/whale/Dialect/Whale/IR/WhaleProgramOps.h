//===- WhaleProgramOps.h - Executable operations ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The schedule of a rank class, whale.schedule, and the operations that a rank
// executes, other than collectives: whale.launch, whale.matmul,
// whale.convolution, whale.library_call.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEPROGRAMOPS_H
#define WHALE_DIALECT_WHALE_IR_WHALEPROGRAMOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/ProgramFormat/Products.h"

namespace whale {
/// The name of the nested module that contains the kernels.
inline constexpr llvm::StringLiteral kKernelsModuleName = "kernels";
/// The number of iterations of a kernel's outermost parallel loop.
inline constexpr llvm::StringLiteral kExtentAttrName = "whale.extent";
/// On a kernel for GPUs: the threads that an iteration is shared out to.
/// Without it each iteration is what one thread runs.
inline constexpr llvm::StringLiteral kThreadsAttrName = "whale.threads";
/// Shared memory that a block of each GPU may have, in bytes.
inline constexpr int64_t kMaxSharedBytes = 48 * 1024;
/// Arithmetic operations of one launch.
inline constexpr llvm::StringLiteral kFlopsAttrName = "whale.flops";
/// Of a call on a GPU: the bytes that it takes besides its buffers.
inline constexpr llvm::StringLiteral kWorkspaceAttrName = "whale.workspace";
/// Bytes read and written by one launch.
inline constexpr llvm::StringLiteral kBytesAttrName = "whale.bytes";
/// The class of a launch's operations, as cluster files name it; without it
/// they are elementwise.
inline constexpr llvm::StringLiteral kClassAttrName = "whale.class";
/// The type that a launch computes in, where it is not that of its first
/// result.
inline constexpr llvm::StringLiteral kComputesInAttrName = "whale.computes_in";
/// On a loop: the number of iterations of its body.
inline constexpr llvm::StringLiteral kTripsAttrName = "whale.trips";
/// A unit attribute of a loop in a kernel: each iteration is for a tile, whose
/// elements all threads of a block share.
inline constexpr llvm::StringLiteral kTilesAttrName = "whale.tiles";
/// A unit attribute: iterations of the kernel's innermost loops don't depend on
/// one another through memory.
inline constexpr llvm::StringLiteral kParallelAttrName = "whale.parallel";
/// A unit attribute, in a program for GPUs, of classes of ranks on the
/// processor and of their kernels.
inline constexpr llvm::StringLiteral kForProcessorAttrName =
    "whale.for_processor";
} // namespace whale

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h.inc"

namespace whale {
/// Returns the schedules of the rank classes.
llvm::SmallVector<ScheduleOp> getRankClasses(mlir::ModuleOp module);
} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_WHALEPROGRAMOPS_H
