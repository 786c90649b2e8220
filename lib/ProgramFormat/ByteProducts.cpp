//===- ByteProducts.cpp - Products of 8-bit elements ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/ProgramFormat/Products.h"

#include <algorithm>

namespace whale::format {

static bool isF8(DType type) {
  return type == DType::F8E4M3FN || type == DType::F8E5M2;
}

bool isOfBytes(const Matmul &matmul) {
  return (matmul.lhsType == DType::I8 && matmul.rhsType == DType::I8) ||
         (isF8(matmul.lhsType) && isF8(matmul.rhsType));
}

int64_t stepOfBytes(const Matmul &matmul) {
  return isF8(matmul.lhsType) ? 16 : 4;
}

const char *findLackOfBytes(const Matmul &op, int capability) {
  const GpuArchitecture &arch = findGpuArchitecture(capability);
  // So many products of -128 and -128 do not leave i32: whether the library
  // saturates or wraps round does not matter.
  constexpr int64_t mostTerms = 131071;
  constexpr int64_t resultStep = 16; // In bytes.
  DType type = op.outType;
  if (op.lhsType == DType::I8) {
    if (type != DType::I32)
      return "its result is not i32";
    if (op.k > mostTerms)
      return "its sums may leave i32";
    if (!arch.hasI8Products)
      return "products of i8 are for sm_75 and later";
  } else {
    if (type != DType::F32 && type != DType::BF16 && type != DType::F16)
      return "its result is not f32, bf16 or f16";
    if (op.lhsType == DType::F8E5M2 && op.rhsType == DType::F8E5M2)
      return "both operands are f8E5M2";
    if (!arch.hasF8Products)
      return "products of f8 are for sm_89 and later";
  }
  if (op.m < 2 || op.n < 2 || op.k < 1)
    return "it is empty, or has one row or column";
  int64_t step = stepOfBytes(op), size = byteSize(type);
  if (op.kLhs != 1 || op.mLhs < op.k || op.kRhs != 1 || op.nRhs < op.k)
    return "the contracted elements are no neighbours";
  bool hasRows = op.nOut == 1 && op.mOut >= op.n;
  if (!hasRows && !(op.mOut == 1 && op.nOut >= op.m))
    return "its result has no neighbours";
  if (op.k % step || op.mLhs % step || op.nRhs % step)
    return step == 4 ? "the contracted extent is no multiple of 4"
                     : "the contracted extent is no multiple of 16";
  int64_t extent = hasRows ? op.n : op.m, leading = hasRows ? op.mOut : op.nOut;
  auto isAligned = [&](const Matmul::Batch &dim) {
    return dim.size == 1 || (dim.lhs % step == 0 && dim.rhs % step == 0 &&
                             dim.out * size % resultStep == 0);
  };
  if (extent * size % resultStep || leading * size % resultStep ||
      !std::all_of(op.batch.begin(), op.batch.end(), isAligned))
    return "rows of its result are no multiple of 16 bytes";
  return nullptr;
}

} // namespace whale::format
