//===- Matmul.cpp - Batched matrix products on a CPU ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Gemm.h"
#include "device/cpu/Operations.h"

#include <algorithm>
#include <cstring>

namespace whale::runtime {

/// oneDNN's name of a type that it multiplies in f32, or undef.
static dnnl::memory::data_type dnnlType(DType dtype) {
  if (dtype == DType::F32)
    return dnnl::memory::data_type::f32;
  if (dtype == DType::BF16)
    return dnnl::memory::data_type::bf16;
  return dnnl::memory::data_type::undef;
}

/// Drops batch dimensions of size 1 and merges those that are one longer
/// dimension in all three tensors.
static std::vector<Matmul::Batch>
simplifyBatch(const std::vector<Matmul::Batch> &batch) {
  std::vector<Matmul::Batch> result;
  for (const Matmul::Batch &dim : batch) {
    if (dim.size == 1)
      continue;
    if (!result.empty()) {
      Matmul::Batch &outer = result.back();
      if (outer.lhs == dim.size * dim.lhs && outer.rhs == dim.size * dim.rhs &&
          outer.out == dim.size * dim.out) {
        outer = {outer.size * dim.size, dim.lhs, dim.rhs, dim.out};
        continue;
      }
    }
    result.push_back(dim);
  }
  return result;
}

/// Gives a dimension of size 1, whose stride means nothing, one that makes the
/// matrix an ordinary one; returns whether it is row- or column-major then.
static bool normalizeMatrix(int64_t rows, int64_t columns, int64_t &rowStride,
                            int64_t &columnStride) {
  if (rows == 1 && columns == 1) {
    rowStride = columnStride = 1;
  } else if (columns == 1) {
    columnStride = rowStride == 1 ? rows : 1;
  } else if (rows == 1) {
    rowStride = columnStride == 1 ? columns : 1;
  }
  return (columnStride == 1 && rowStride >= columns) ||
         (rowStride == 1 && columnStride >= rows);
}

PreparedMatmul::PreparedMatmul(const Matmul &matmul, CpuContext &context)
    : op(matmul) {
  op.batch = simplifyBatch(matmul.batch);
  empty = op.m == 0 || op.n == 0;
  for (const Matmul::Batch &dim : op.batch)
    empty |= dim.size == 0;
  if (empty)
    return;
  // With rows of `out` adjacent instead of columns, compute its transpose.
  if (op.nOut != 1 && op.n != 1 && (op.mOut == 1 || op.m == 1)) {
    transposed = true;
    std::swap(op.lhsType, op.rhsType);
    std::swap(op.m, op.n);
    std::swap(op.mOut, op.nOut);
    std::swap(op.mLhs, op.nRhs);
    std::swap(op.kLhs, op.kRhs);
    for (Matmul::Batch &dim : op.batch)
      std::swap(dim.lhs, dim.rhs);
  }
  direct = op.k != 0 && prepareDirect(context);
  if (direct)
    scratch = {{0, 0, 0, static_cast<int64_t>(scratchDesc.get_size())}};
  else
    dispatchProduct(op.lhsType, op.rhsType, op.outType, [&]<typename T>() {
      int64_t out = op.m * op.n * int64_t(sizeof(T));
      scratch = {{op.m * op.k * int64_t(sizeof(T)),
                  op.k * op.n * int64_t(sizeof(T)), out,
                  op.accumulate ? out : 0}};
    });
}

bool PreparedMatmul::prepareDirect(CpuContext &context) {
  using Dims = dnnl::memory::dims;
  auto lhsType = dnnlType(op.lhsType), rhsType = dnnlType(op.rhsType);
  auto outType = dnnlType(op.outType);
  constexpr auto undef = dnnl::memory::data_type::undef;
  if (lhsType == undef || rhsType != lhsType || outType == undef ||
      (lhsType == dnnl::memory::data_type::f32 && outType != lhsType))
    return false;
  if (op.batch.size() > DNNL_MAX_NDIMS - 2)
    return false;
  int64_t mLhs = op.mLhs, kLhs = op.kLhs, nRhs = op.nRhs, kRhs = op.kRhs;
  int64_t mOut = op.mOut, nOut = op.nOut;
  if (!normalizeMatrix(op.m, op.k, mLhs, kLhs) ||
      !normalizeMatrix(op.k, op.n, kRhs, nRhs) ||
      !normalizeMatrix(op.m, op.n, mOut, nOut) || nOut != 1)
    return false;

  Dims lhsDims, rhsDims, outDims, lhsStrides, rhsStrides, outStrides;
  for (const Matmul::Batch &dim : op.batch) {
    // A stride of 0 is a dimension of 1 that oneDNN broadcasts.
    lhsDims.push_back(dim.lhs ? dim.size : 1);
    rhsDims.push_back(dim.rhs ? dim.size : 1);
    outDims.push_back(dim.size);
    lhsStrides.push_back(dim.lhs ? dim.lhs : op.m * op.k);
    rhsStrides.push_back(dim.rhs ? dim.rhs : op.k * op.n);
    outStrides.push_back(dim.out);
  }
  lhsDims.insert(lhsDims.end(), {op.m, op.k});
  lhsStrides.insert(lhsStrides.end(), {mLhs, kLhs});
  rhsDims.insert(rhsDims.end(), {op.k, op.n});
  rhsStrides.insert(rhsStrides.end(), {kRhs, nRhs});
  outDims.insert(outDims.end(), {op.m, op.n});
  outStrides.insert(outStrides.end(), {mOut, nOut});
  if (!fitsOneDnn(
          {lhsDims, rhsDims, outDims, {mLhs, kLhs, kRhs, nRhs, mOut, nOut}}))
    return false;
  try {
    lhsDesc = {lhsDims, lhsType, lhsStrides};
    rhsDesc = {rhsDims, rhsType, rhsStrides};
    outDesc = {outDims, outType, outStrides};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (op.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    dnnl::matmul::primitive_desc desc(
        dnnl::matmul::desc(lhsDesc, rhsDesc, outDesc), attributes,
        context.engine);
    // The reference implementation is far slower than packing.
    if (std::strstr(desc.impl_info_str(), "ref"))
      return false;
    scratchDesc = desc.scratchpad_desc();
    primitive = dnnl::matmul(desc);
  } catch (const dnnl::error &) {
    return false; // not on this processor
  }
  return true;
}

template <typename T>
void PreparedMatmul::runPacked(CpuContext &context, const void *lhs,
                               const void *rhs, void *out) const {
  T *a = context.scratch.get<T>(0);
  T *b = context.scratch.get<T>(1);
  T *c = context.scratch.get<T>(2);
  int64_t lhsBytes = byteSize(op.lhsType), rhsBytes = byteSize(op.rhsType);
  int64_t outBytes = byteSize(op.outType);
  std::vector<int64_t> index(op.batch.size(), 0);
  int64_t lhsOffset = 0, rhsOffset = 0, outOffset = 0;
  int64_t packedLhs = -1, packedRhs = -1;
  while (true) {
    if (packedLhs != lhsOffset)
      packMatrix(op.lhsType,
                 moved(static_cast<const char *>(lhs), lhsOffset * lhsBytes),
                 op.m, op.mLhs, op.k, op.kLhs, a, context.threads);
    if (packedRhs != rhsOffset)
      packMatrix(op.rhsType,
                 moved(static_cast<const char *>(rhs), rhsOffset * rhsBytes),
                 op.k, op.kRhs, op.n, op.nRhs, b, context.threads);
    packedLhs = lhsOffset;
    packedRhs = rhsOffset;
    gemm(op.m, op.n, op.k, a, b, c, context.threads);
    char *target = static_cast<char *>(out) + outOffset * outBytes;
    if (op.accumulate) {
      T *before = context.scratch.get<T>(3);
      packMatrix(op.outType, target, op.m, op.mOut, op.n, op.nOut, before,
                 context.threads);
      for (int64_t i = 0; i < op.m * op.n; ++i)
        c[i] += before[i];
    }
    unpackMatrix(op.outType, target, op.m, op.mOut, op.n, op.nOut, c,
                 context.threads);

    size_t d = op.batch.size();
    while (d-- > 0) {
      const Matmul::Batch &dim = op.batch[d];
      lhsOffset += dim.lhs;
      rhsOffset += dim.rhs;
      outOffset += dim.out;
      if (++index[d] < dim.size)
        break;
      lhsOffset -= dim.size * dim.lhs;
      rhsOffset -= dim.size * dim.rhs;
      outOffset -= dim.size * dim.out;
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1))
      return;
  }
}

void PreparedMatmul::run(CpuContext &context, const void *lhs, const void *rhs,
                         void *out) const {
  if (empty)
    return;
  if (transposed)
    std::swap(lhs, rhs);
  context.scratch.reserve(scratch);
  if (direct) {
    auto memory = [&](const dnnl::memory::desc &desc, const void *data) {
      return dnnl::memory(desc, context.engine, const_cast<void *>(data));
    };
    void *temporary = context.scratch.get(3);
    primitive.execute(context.stream,
                      {{DNNL_ARG_SRC, memory(lhsDesc, lhs)},
                       {DNNL_ARG_WEIGHTS, memory(rhsDesc, rhs)},
                       {DNNL_ARG_DST, memory(outDesc, out)},
                       {DNNL_ARG_SCRATCHPAD, memory(scratchDesc, temporary)}});
    context.stream.wait();
    return;
  }
  dispatchProduct(op.lhsType, op.rhsType, op.outType,
                  [&]<typename T>() { runPacked<T>(context, lhs, rhs, out); });
}

} // namespace whale::runtime
