//===- ClassEmitter.h - A rank class as JSON --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_CLASSEMITTER_H
#define WHALE_LIB_PROGRAM_CLASSEMITTER_H

#include "Json.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <tuple>

namespace whale {

/// A rank class in the manifest, and what it shares with others.
struct EmittedClass {
  Json json;
  /// What buffers of the class hold: their number in its list.
  std::vector<std::pair<int64_t, mlir::DenseElementsAttr>> constants;
  /// By symbol: {"inputs", "bytes", "extent"}.
  std::map<std::string, Json> kernels;
};

/// Emits one rank class function.
class ClassEmitter {
public:
  explicit ClassEmitter(mlir::func::FuncOp function) : function(function) {}

  mlir::FailureOr<EmittedClass> emit();

private:
  mlir::LogicalResult collect();
  mlir::FailureOr<Json> block(mlir::Block &block);
  mlir::LogicalResult instruction(mlir::Operation &op, Json &list);
  mlir::FailureOr<Json> launch(LaunchOp op);
  Json matmul(MatmulOp op);
  Json convolution(ConvolutionOp op);
  mlir::FailureOr<Json> call(LibraryCallOp op);
  mlir::LogicalResult copies(mlir::Operation &op, Json &list);

  /// The number in the class's list of the planned buffer `planned` seen as a
  /// tensor of this type.
  int64_t buffer(int64_t planned, mlir::RankedTensorType type);
  int64_t buffer(mlir::Value value);
  int64_t wholeBuffer(int64_t planned);
  int64_t planned(mlir::Value value);

  mlir::func::FuncOp function;
  EmittedClass result;
  mlir::SymbolTableCollection symbols;
  mlir::ArrayAttr plan;
  llvm::DenseMap<mlir::Value, int64_t> plannedOf;
  /// By planned buffer: the operation that gives a constant its value, and a
  /// type in which the buffer is used.
  llvm::DenseMap<int64_t, mlir::Operation *> constants;
  llvm::DenseMap<int64_t, mlir::RankedTensorType> types;
  llvm::DenseMap<std::pair<int64_t, mlir::Type>, int64_t> numbers;
  Json buffers = Json::array();
};

/// The start of each rank's box along the operation's dimension.
mlir::FailureOr<Json> getRankConstant(ShardOffsetOp op,
                                      llvm::ArrayRef<int64_t> ranks);

/// A short name of where an operation comes from.
std::string getLabel(mlir::Location loc);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_CLASSEMITTER_H
