//===- Work.cpp - How much an operation does ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Work.h"

#include <cmath>

namespace whale::runtime {

/// What a processor multiplies and adds while it touches a byte: in wide
/// registers where a library has the type, or takes it as f32, else some at a
/// time.
static double flopsPerByte(DType type) {
  switch (type) {
  case DType::F32:
  case DType::BF16:
  case DType::F16:
  case DType::I8:
    return 8;
  default:
    return 2;
  }
}

double workOf(const Matmul &matmul) {
  double products = 1;
  for (const Matmul::Batch &dim : matmul.batch)
    products *= static_cast<double>(dim.size);
  auto m = static_cast<double>(matmul.m), n = static_cast<double>(matmul.n),
       k = static_cast<double>(matmul.k);
  double flops = 2 * m * n * k;
  double bytes = (m * k + k * n + m * n) * byteSize(matmul.lhsType);
  return products * std::max(flops / flopsPerByte(matmul.lhsType), bytes);
}

double workOf(const Convolution &op) {
  auto results = static_cast<double>(elementCount(op.outShape));
  auto terms = static_cast<double>(op.rhsShape[op.rhsDims.first]);
  for (int64_t dim : op.rhsDims.spatial)
    terms *= static_cast<double>(op.rhsShape[dim]);
  auto bytes = static_cast<double>(elementCount(op.lhsShape) +
                                   elementCount(op.rhsShape)) +
               results;
  return std::max(2 * results * terms / flopsPerByte(op.lhsType),
                  bytes * byteSize(op.lhsType));
}

/// Most functions of the library take time linear in their tensors, or a little
/// more; Fourier transforms go through theirs for some powers of two at a time,
/// factorizations of matrices take the power of 1.5.
double workOf(const Call &call) {
  bool isTransform = call.given && call.given->function == "fft";
  constexpr double powersAtOnce = 8;
  double work = 0;
  for (int64_t size : call.bytes) {
    auto bytes = static_cast<double>(size);
    work += isTransform ? bytes * std::log2(bytes + 1) / powersAtOnce
                        : std::pow(bytes, 1.5);
  }
  return work;
}

double workOf(const decltype(Instruction::operation) &operation) {
  if (const auto *launch = std::get_if<KernelLaunch>(&operation))
    return launch->work;
  if (const auto *matmul = std::get_if<const Matmul *>(&operation))
    return workOf(**matmul);
  if (const auto *convolution = std::get_if<const Convolution *>(&operation))
    return workOf(**convolution);
  if (const auto *call = std::get_if<Call>(&operation))
    return workOf(*call);
  if (const auto *copy = std::get_if<Copy>(&operation))
    return static_cast<double>(copy->bytes);
  return 0;
}

} // namespace whale::runtime
