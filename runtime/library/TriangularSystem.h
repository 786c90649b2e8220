//===- TriangularSystem.h - Systems of equations ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_TRIANGULARSYSTEM_H
#define WHALE_RUNTIME_LIBRARY_TRIANGULARSYSTEM_H

#include "library/Matrices.h"

namespace whale::runtime {

/// op(a) x = b, or x op(a) = b; matrices are in row-major order.
struct TriangularSystem {
  enum Operation : uint8_t { None, Transpose, Adjoint };

  bool isLeft, isLower, hasUnitDiagonal;
  Operation operation;
  /// Of a, and how many right-hand sides there are.
  int64_t size = 0, others = 0;
};

/// What a call of "triangular_solve" or "lapack.trsm" asks for. Throws Error.
TriangularSystem readTriangularSystem(const std::string &function,
                                      const LibraryRequest &request);

/// Checks the operands, and lets `solve` find x for each element of the batch.
template <typename T>
LibraryFunction prepareSystem(const LibraryRequest &request,
                              const TriangularSystem &system,
                              std::function<void(const MatrixCall &)> solve) {
  MatrixBatch batch(request, "triangular_solve");
  Shape tail = system.isLeft ? Shape{system.size, system.others}
                             : Shape{system.others, system.size};
  batch.input<T>({system.size, system.size});
  batch.input<T>(tail);
  batch.output<T>(tail);
  return batch.finish(std::move(solve));
}

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_TRIANGULARSYSTEM_H
