//===- Interpreter.h - Runs lowered functions in process ------ -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A few lines of each library operation, so that kernels can be tested against
// other compilers without the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALE_KERNELS_TEST_INTERPRETER_H
#define WHALE_TOOLS_WHALE_KERNELS_TEST_INTERPRETER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace whale {

/// The elements of a tensor, dense, in row-major order.
using Buffer = std::shared_ptr<std::vector<char>>;

class Interpreter {
public:
  /// `library` is what dlopen gave for the compiled kernels. With `share`,
  /// results reuse the buffers of operands where a launch allows it.
  Interpreter(void *library, bool share) : library(library), share(share) {}

  llvm::FailureOr<std::vector<Buffer>> run(mlir::func::FuncOp function,
                                           llvm::ArrayRef<Buffer> arguments);

  /// Bytes of a tensor's buffer: at least one for each element.
  static size_t getBytes(mlir::Type type);

private:
  llvm::FailureOr<std::vector<Buffer>> runBlock(mlir::Block &block,
                                                llvm::ArrayRef<Buffer> values);
  llvm::LogicalResult runOp(mlir::Operation &op);
  llvm::LogicalResult launch(mlir::Operation &op);
  llvm::LogicalResult multiply(mlir::Operation &op);
  llvm::LogicalResult convolve(mlir::Operation &op);

  void *library;
  bool share;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Value, Buffer> values;
};

} // namespace whale

#endif // WHALE_TOOLS_WHALE_KERNELS_TEST_INTERPRETER_H
