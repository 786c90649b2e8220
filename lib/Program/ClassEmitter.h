//===- ClassEmitter.h - Rank classes and segments ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_CLASSEMITTER_H
#define WHALE_LIB_PROGRAM_CLASSEMITTER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Libraries.h"
#include "whale/ProgramFormat/Program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace whale {

/// What a rank class or a segment runs, and what it shares with others.
struct EmittedBody {
  format::Body body;
  /// What its instructions come from, by the indices that they have so far.
  std::vector<format::Origin> origins;
  /// The names of the TaskGraphs that they belong to, in the same way.
  std::vector<std::string> taskGraphs;
  /// What its buffers hold: their number in its list. Their offsets are not
  /// known yet.
  std::vector<std::pair<int64_t, mlir::DenseElementsAttr>> constants;
  /// By symbol.
  std::map<std::string, format::KernelSignature> kernels;
};

/// The number of each segment in the program.
using SegmentNumbers = llvm::DenseMap<mlir::Operation *, int64_t>;

/// Translates one schedule or segment.
class ClassEmitter {
public:
  ClassEmitter(mlir::FunctionOpInterface function,
               const SegmentNumbers &segments,
               const format::Libraries &libraries)
      : function(function), segments(segments), libraries(libraries) {}

  mlir::FailureOr<EmittedBody> emit();

private:
  mlir::LogicalResult collect();
  using List = std::vector<format::Instruction>;
  mlir::LogicalResult block(mlir::Block &block, List &list);
  mlir::LogicalResult instruction(mlir::Operation &op, List &list);
  mlir::LogicalResult loop(mlir::Operation &op,
                           format::Instruction &instruction);
  mlir::LogicalResult branch(mlir::Operation &op,
                             format::Instruction &instruction);
  mlir::LogicalResult launch(LaunchOp op, format::Instruction &instruction);
  void matmul(MatmulOp op, format::Instruction &instruction);
  void convolution(ConvolutionOp op, format::Instruction &instruction);
  mlir::LogicalResult call(LibraryCallOp op, format::Instruction &instruction);
  mlir::LogicalResult run(mlir::func::CallOp op,
                          format::Instruction &instruction);
  format::Start start(CollectiveOp first, List &list);
  void copies(mlir::Operation &op, List &list);
  void describeWork(mlir::Operation *op, format::Instruction &instruction);
  void addInterface();
  void numberValues();

  /// The number in the list of the planned buffer `planned` seen as a
  /// tensor of this type.
  int64_t buffer(int64_t planned, mlir::RankedTensorType type);
  int64_t buffer(mlir::Value value);
  int64_t wholeBuffer(int64_t planned);
  int64_t planned(mlir::Value value);

  /// Says what an instruction comes from.
  std::optional<int64_t> originOf(mlir::Location loc);
  std::optional<int64_t> originOf(std::string label,
                                  llvm::ArrayRef<std::string> lines);
  std::optional<int64_t> scopeOf(mlir::Location run, mlir::Location segment);

  std::optional<int64_t> taskGraphOf(mlir::Location loc);

  mlir::FunctionOpInterface function;
  const SegmentNumbers &segments;
  const format::Libraries &libraries;
  EmittedBody result;
  mlir::SymbolTableCollection symbols;
  mlir::ArrayAttr plan;
  llvm::DenseMap<mlir::Value, int64_t> plannedOf;
  /// By planned buffer: the operation that gives a constant its value, and a
  /// type in which the buffer is used.
  llvm::DenseMap<int64_t, mlir::Operation *> constants;
  llvm::DenseMap<int64_t, mlir::RankedTensorType> types;
  llvm::DenseMap<std::pair<int64_t, mlir::Type>, int64_t> numbers;
  /// How many transfers were started, and those that go on behind it.
  int64_t starts = 0;
  llvm::DenseMap<mlir::Value, int64_t> transfers;
  /// Indices into the origins.
  llvm::DenseMap<mlir::Location, std::optional<int64_t>> origins;
  llvm::DenseMap<std::pair<mlir::Location, mlir::Location>,
                 std::optional<int64_t>>
      scopes;
  std::map<format::Origin, int64_t> originNumbers;
  llvm::DenseMap<mlir::Location, std::optional<int64_t>> taskGraphs;
};

/// A short name of where an operation comes from.
std::string getLabel(mlir::Location loc);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_CLASSEMITTER_H
