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

#include "library/Matrices.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace whale::runtime {

namespace {
enum class Transpose : uint8_t { None, Plain, Adjoint };

struct Triangle {
  int64_t size;
  bool lower, unitDiagonal;
  Transpose transpose;

  /// Element (row, column) of the matrix as it is applied.
  template <typename T>
  T at(const T *a, int64_t row, int64_t column) const {
    if (transpose == Transpose::None)
      return a[row * size + column];
    T value = a[column * size + row];
    if constexpr (isComplexType<T>)
      if (transpose == Transpose::Adjoint)
        value = std::conj(value);
    return value;
  }
  /// Whether the matrix as it is applied is lower triangular.
  bool appliesLower() const { return lower == (transpose == Transpose::None); }
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
    if (triangle.unitDiagonal)
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
      if (!triangle.unitDiagonal)
        row[column] /= triangle.at(a, column, column);
      int64_t begin = forward ? column + 1 : 0;
      int64_t end = forward ? triangle.size : column;
      for (int64_t other = begin; other < end; ++other)
        row[other] -= row[column] * triangle.at(a, column, other);
    }
  }
}

template <typename T>
LibraryFunction prepare(MatrixBatch batch, Triangle triangle, bool left,
                        const Shape &shape) {
  int64_t n = batch.extent(0);
  int64_t others = shape.size() < 2 ? 0 : shape[shape.size() - (left ? 1 : 2)];
  if (n != batch.extent(1))
    throw Error("triangular_solve takes a square matrix");
  triangle.size = n;
  Shape tail = left ? Shape{n, others} : Shape{others, n};
  batch.input<T>({n, n});
  batch.input<T>(tail);
  batch.output<T>(tail);
  return batch.finish([=](const MatrixCall &call) {
    std::copy_n(call.in<T>(1), n * others, call.out<T>(0));
    if (left)
      solveLeft(triangle, call.in<T>(0), call.out<T>(0), others);
    else
      solveRight(triangle, call.in<T>(0), call.out<T>(0), others);
  });
}
} // namespace

static LibraryFunction dispatchSolve(const LibraryRequest &request,
                                     MatrixBatch batch, Triangle triangle,
                                     bool left) {
  const Shape shape =
      request.inputs.size() > 1 ? request.inputs[1].shape : Shape();
  return dispatchNumber(request, "triangular_solve", [&]<typename T>() {
    return prepare<T>(batch, triangle, left, shape);
  });
}

LibraryFunction prepareTriangularSolve(const LibraryRequest &request) {
  MatrixBatch batch(request, "triangular_solve");
  const nlohmann::json transpose =
      request.config.value("transpose_a", nlohmann::json());
  Triangle triangle{0, batch.flag("lower"), batch.flag("unit_diagonal"),
                    Transpose::None};
  if (transpose == "TRANSPOSE")
    triangle.transpose = Transpose::Plain;
  else if (transpose == "ADJOINT")
    triangle.transpose = Transpose::Adjoint;
  else if (transpose != "NO_TRANSPOSE")
    throw Error("triangular_solve: config.transpose_a must be NO_TRANSPOSE, "
                "TRANSPOSE or ADJOINT");
  return dispatchSolve(request, batch, triangle, batch.flag("left_side"));
}

LibraryFunction prepareTrsm(const LibraryRequest &request) {
  MatrixBatch batch(request, "lapack.trsm");
  char transpose = batch.letter("trans_x", "NTC");
  Triangle triangle{0, batch.letter("uplo", "LU") == 'L',
                    batch.letter("diag", "UN") == 'U',
                    transpose == 'N'   ? Transpose::None
                    : transpose == 'T' ? Transpose::Plain
                                       : Transpose::Adjoint};
  return dispatchSolve(request, batch, triangle,
                       batch.letter("side", "LR") == 'L');
}

} // namespace whale::runtime
