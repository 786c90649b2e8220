//===- TriangularSolve.cpp - Triangular systems -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a triangular matrix and right-hand sides, or a batch of these. Out: the
// solutions, by substitution row by row: as many right-hand sides at once as
// fit into registers, which sum what the rows before contribute. Right-hand
// sides that are rows of the result are solved as columns of a copy.
//
// Cost: half of size * size * others multiplications and subtractions, on one
// thread for each system. The triangle is read once for each 128 bytes of a row
// of right-hand sides. Rows as right-hand sides are transposed there and back,
// element by element.
//
//===----------------------------------------------------------------------===//

#include "library/TriangularSystem.h"
#include "library/Vectors.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace whale::runtime {

namespace {
/// A triangular matrix as it is applied.
template <typename T>
struct Triangle {
  const T *a;
  int64_t size, rowStride, columnStride;
  bool isLower, hasUnitDiagonal, isConjugate;

  WHALE_INLINE T at(int64_t row, int64_t column) const {
    T value = a[row * rowStride + column * columnStride];
    if constexpr (isComplexType<T>)
      if (isConjugate)
        value = std::conj(value);
    return value;
  }
};

/// x = a^-1 x for `count` columns of x, whose rows are `stride` apart.
template <int count, typename T>
WHALE_INLINE void solveColumns(const Triangle<T> &triangle, T *x,
                               int64_t stride) {
  int64_t size = triangle.size;
  for (int64_t step = 0; step < size; ++step) {
    int64_t row = triangle.isLower ? step : size - 1 - step;
    int64_t begin = triangle.isLower ? 0 : row + 1;
    int64_t end = triangle.isLower ? row : size;
    T *target = x + row * stride;
    T sums[count];
    std::copy_n(target, count, sums);
    for (int64_t other = begin; other < end; ++other) {
      T factor = triangle.at(row, other);
      const T *source = x + other * stride;
      for (int i = 0; i < count; ++i)
        sums[i] -= factor * source[i];
    }
    T diagonal = triangle.hasUnitDiagonal ? T(1) : triangle.at(row, row);
    for (int i = 0; i < count; ++i)
      target[i] = triangle.hasUnitDiagonal ? sums[i] : sums[i] / diagonal;
  }
}

template <typename T>
WHALE_INLINE void solveBlocks(const Triangle<T> &triangle, T *x,
                              int64_t columns) {
  constexpr int many = 128 / sizeof(T), few = many / 4;
  int64_t i = 0;
  for (; i + many <= columns; i += many)
    solveColumns<many>(triangle, x + i, columns);
  for (; i + few <= columns; i += few)
    solveColumns<few>(triangle, x + i, columns);
  for (; i < columns; ++i)
    solveColumns<1>(triangle, x + i, columns);
}

WHALE_VECTORS void solve(const Triangle<float> &triangle, float *x,
                         int64_t columns) {
  solveBlocks(triangle, x, columns);
}
WHALE_VECTORS void solve(const Triangle<double> &triangle, double *x,
                         int64_t columns) {
  solveBlocks(triangle, x, columns);
}
// Clang leaves out constructors that only clones of a function call.
template <typename T>
void solve(const Triangle<T> &triangle, T *x, int64_t columns) {
  solveBlocks(triangle, x, columns);
}

/// to = from^T, which has so many rows and columns.
template <typename T>
void transpose(const T *from, int64_t rows, int64_t columns, T *to) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      to[column * rows + row] = from[row * columns + column];
}

/// x = op(a)^-1 b, or x = b op(a)^-1, which is (op(a)^T)^-1 b^T transposed.
template <typename T>
void solveSystem(const TriangularSystem &system, const T *a, const T *b, T *x) {
  int64_t size = system.size, others = system.others;
  bool isNone = system.operation == TriangularSystem::None;
  bool byRows = isNone == system.isLeft;
  Triangle<T> triangle{a,
                       size,
                       byRows ? size : 1,
                       byRows ? 1 : size,
                       system.isLower == byRows,
                       system.hasUnitDiagonal,
                       system.operation == TriangularSystem::Adjoint};
  if (system.isLeft || others == 1) {
    std::copy_n(b, size * others, x);
    solve(triangle, x, others);
    return;
  }
  auto columns = std::make_unique_for_overwrite<T[]>(size * others);
  transpose(b, others, size, columns.get());
  solve(triangle, columns.get(), others);
  transpose(columns.get(), size, others, x);
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
  TriangularSystem system = readTriangularSystem(function, request);
  return dispatchNumber(request, function, [&]<typename T>() {
    return prepareSystem<T>(request, system, [=](const MatrixCall &call) {
      solveSystem(system, call.in<T>(0), call.in<T>(1), call.out<T>(0));
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
