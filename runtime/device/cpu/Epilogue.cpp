//===- Epilogue.cpp - What is done to a product ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Epilogue.h"

#include "device/cpu/Parallel.h"
#include "whale/ProgramFormat/Numeric.h"

#include <cmath>
#include <vector>

namespace whale::runtime {

static constexpr float kScale = 0.7978845608f, kCubic = 0.044715f;

static float geluTanh(float x) {
  return std::tanh(kScale * (x + kCubic * x * x * x));
}
static float gelu(float x) { return 0.5f * x * (1 + geluTanh(x)); }
static float geluDerivative(float x) {
  float tanh = geluTanh(x);
  return 0.5f * (1 + tanh) +
         0.5f * x * (1 - tanh * tanh) * kScale * (1 + 3 * kCubic * x * x);
}

template <typename T>
static void apply(const Matmul &op, format::EpilogueShape shape, T *out,
                  T *bias, T *aux, int64_t threads) {
  using E = format::Element<T>;
  Epilogue epilogue = op.epilogue;
  int64_t columns = shape.columns;
  parallelFor(shape.rows, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * columns; i < end * columns; ++i) {
      float x = E::load(out[i]);
      if (readsBias(epilogue))
        x += E::load(bias[i % columns]);
      if (writesAux(epilogue))
        aux[i] = E::store(x);
      if (readsAux(epilogue))
        x *= geluDerivative(E::load(aux[i]));
      else if (epilogue != Epilogue::Bias)
        x = gelu(x);
      out[i] = E::store(x);
    }
  });
  if (!writesBias(epilogue))
    return;
  std::vector<float> sums(static_cast<size_t>(columns));
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      sums[column] += E::load(out[row * columns + column]);
  for (int64_t column = 0; column < columns; ++column)
    bias[column] = E::store(sums[column]);
}

void applyEpilogue(const Matmul &op, void *out, void *bias, void *aux,
                   int64_t threads) {
  format::EpilogueShape shape = format::shapeForEpilogue(op).value();
  auto run = [&]<typename T>() {
    apply(op, shape, static_cast<T *>(out), static_cast<T *>(bias),
          static_cast<T *>(aux), threads);
  };
  if (op.outType == DType::F32)
    run.operator()<float>();
  else if (op.outType == DType::BF16)
    run.operator()<format::BFloat16>();
  else
    run.operator()<format::Float16>();
}

} // namespace whale::runtime
