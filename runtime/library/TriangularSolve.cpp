//===- TriangularSolve.cpp - Triangular systems -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Substitution row by row, all right-hand sides at once: the inner loop runs
// along a row of the result, in memory.
//
//===----------------------------------------------------------------------===//

#include "library/TriangularSystem.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace whale::runtime {

namespace {
struct Triangle : TriangularSystem {
  /// Element (row, column) of the matrix as it is applied.
  template <typename T>
  T at(const T *a, int64_t row, int64_t column) const {
    if (operation == None)
      return a[row * size + column];
    T value = a[column * size + row];
    if constexpr (isComplexType<T>)
      if (operation == Adjoint)
        value = std::conj(value);
    return value;
  }
  /// Whether the matrix as it is applied is lower triangular.
  bool appliesLower() const { return isLower == (operation == None); }
};

/// x = op(a)^-1 x, with `columns` right-hand sides in the rows of x.
template <typename T>
void solveLeft(const Triangle &triangle, const T *a, T *x, int64_t columns) {
  for (int64_t step = 0; step < triangle.size; ++step) {
    bool forward = triangle.appliesLower();
    int64_t row = forward ? step : triangle.size - 1 - step;
    T *target = x + row * columns;
    int64_t begin = forward ? 0 : row + 1, end = forward ? row : triangle.size;
    for (int64_t other = begin; other < end; ++other) {
      T factor = triangle.at(a, row, other);
      const T *source = x + other * columns;
      for (int64_t i = 0; i < columns; ++i)
        target[i] -= factor * source[i];
    }
    if (triangle.hasUnitDiagonal)
      continue;
    T diagonal = triangle.at(a, row, row);
    for (int64_t i = 0; i < columns; ++i)
      target[i] /= diagonal;
  }
}

/// x = x op(a)^-1: each of the `rows` of x is a right-hand side.
template <typename T>
void solveRight(const Triangle &triangle, const T *a, T *x, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    T *row = x + r * triangle.size;
    for (int64_t step = 0; step < triangle.size; ++step) {
      bool forward = !triangle.appliesLower();
      int64_t column = forward ? step : triangle.size - 1 - step;
      if (!triangle.hasUnitDiagonal)
        row[column] /= triangle.at(a, column, column);
      int64_t begin = forward ? column + 1 : 0;
      int64_t end = forward ? triangle.size : column;
      for (int64_t other = begin; other < end; ++other)
        row[other] -= row[column] * triangle.at(a, column, other);
    }
  }
}
} // namespace

static bool isTrsm(const std::string &function) {
  return function == "lapack.trsm";
}

TriangularSystem readTriangularSystem(const std::string &function,
                                      const LibraryRequest &request) {
  MatrixBatch batch(request, function);
  TriangularSystem system;
  if (isTrsm(function)) {
    system.isLeft = batch.letter("side", "LR") == 'L';
    system.isLower = batch.letter("uplo", "LU") == 'L';
    system.hasUnitDiagonal = batch.letter("diag", "UN") == 'U';
    char letter = batch.letter("trans_x", "NTC");
    system.operation = letter == 'N'   ? TriangularSystem::None
                       : letter == 'T' ? TriangularSystem::Transpose
                                       : TriangularSystem::Adjoint;
  } else {
    system.isLeft = batch.flag("left_side");
    system.isLower = batch.flag("lower");
    system.hasUnitDiagonal = batch.flag("unit_diagonal");
    const nlohmann::json operation =
        request.config.value("transpose_a", nlohmann::json());
    if (operation == "NO_TRANSPOSE")
      system.operation = TriangularSystem::None;
    else if (operation == "TRANSPOSE")
      system.operation = TriangularSystem::Transpose;
    else if (operation == "ADJOINT")
      system.operation = TriangularSystem::Adjoint;
    else
      throw Error("triangular_solve: config.transpose_a must be NO_TRANSPOSE, "
                  "TRANSPOSE or ADJOINT");
  }
  system.size = batch.extent(0);
  if (system.size != batch.extent(1))
    throw Error(function + " takes a square matrix");
  if (request.inputs.size() > 1)
    if (const Shape &shape = request.inputs[1].shape; shape.size() >= 2)
      system.others = shape[shape.size() - (system.isLeft ? 1 : 2)];
  return system;
}

static LibraryFunction prepare(const std::string &function,
                               const LibraryRequest &request) {
  Triangle triangle{readTriangularSystem(function, request)};
  return dispatchNumber(request, function, [&]<typename T>() {
    return prepareSystem<T>(request, triangle, [=](const MatrixCall &call) {
      T *x = call.out<T>(0);
      std::copy_n(call.in<T>(1), triangle.size * triangle.others, x);
      if (triangle.isLeft)
        solveLeft(triangle, call.in<T>(0), x, triangle.others);
      else
        solveRight(triangle, call.in<T>(0), x, triangle.others);
    });
  });
}

LibraryFunction prepareTriangularSolve(const LibraryRequest &request) {
  return prepare("triangular_solve", request);
}

LibraryFunction prepareTrsm(const LibraryRequest &request) {
  return prepare("lapack.trsm", request);
}

} // namespace whale::runtime
