//===- Matmul.cpp - Batched matrix products on a CPU ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a batched product of strided matrices. Out: a call of one of four ways,
// chosen when it is prepared: for small matrices, and complex ones, loops of
// our own (SmallProduct.h); oneDNN's sgemm, its primitives, or, for types and
// layouts that it does not take, copies to dense matrices and a product of
// these (Gemm.h). A result whose rows are adjacent is computed as the
// transpose. Products of i8 are oneDNN's where the processor adds four of them
// to an i32 in one instruction, and terms are few: elsewhere it saturates sums
// of two at 16 bits, and rounds those of many to f32. Long sums of f32 are
// computed by oneDNN in blocks of terms, each added to the result, so that
// rounding errors grow less.
//
// Cost: of small products see there, and a division for each of a batch; else
// oneDNN's; each block of terms reads and writes the result once more. A
// copied operand is read once, and again where it changes along the batch.
// Scratch: the three dense matrices (four with accumulation), or what oneDNN
// asks for.
//
//===----------------------------------------------------------------------===//

#include "device/Transpose.h"
#include "device/cpu/Gemm.h"
#include "device/cpu/Operations.h"
#include "device/cpu/Parallel.h"
#include "device/cpu/Work.h"

#include <algorithm>
#include <cstring>

namespace whale::runtime {

/// oneDNN's name of a type of its products, or undef.
static dnnl::memory::data_type dnnlType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return dnnl::memory::data_type::f32;
  case DType::BF16:
    return dnnl::memory::data_type::bf16;
  case DType::I8:
    return dnnl::memory::data_type::s8;
  case DType::I32:
    return dnnl::memory::data_type::s32;
  default:
    return dnnl::memory::data_type::undef;
  }
}

/// Whether oneDNN multiplies what has these types, without more roundings.
static bool hasProduct(const Matmul &op) {
  if (op.lhsType != op.rhsType)
    return false;
  switch (op.lhsType) {
  case DType::F32:
    return op.outType == DType::F32;
  case DType::BF16:
    return op.outType == DType::F32 || op.outType == DType::BF16;
  case DType::I8:
    // It adds to what was there in f32.
    return op.outType == DType::I32 && !op.accumulate &&
           op.k <= format::mostExactTerms && hasVnni();
  default:
    return false;
  }
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
    : op(matmul), threads(threadsFor(workOf(matmul), context.threads)) {
  // oneDNN prepares an operation for the threads of the one that prepares it.
  ThreadCount count(threads);
  op.batch = simplifyBatch(matmul.batch);
  empty = op.m == 0 || op.n == 0;
  for (const Matmul::Batch &dim : op.batch)
    empty |= dim.size == 0;
  if (empty)
    return;
  // With rows of `out` adjacent instead of columns, compute its transpose.
  if (op.nOut != 1 && op.n != 1 && (op.mOut == 1 || op.m == 1)) {
    transposed = true;
    transpose(op);
  }
  isSmall = prepareSmall();
  direct = !isSmall && op.k != 0 && prepareDirect(context);
  if (!isSmall && !direct)
    dispatchProduct(op.lhsType, op.rhsType, op.outType, [&]<typename T>() {
      int64_t out = op.m * op.n * int64_t(sizeof(T));
      scratch = {{op.m * op.k * int64_t(sizeof(T)),
                  op.k * op.n * int64_t(sizeof(T)), out,
                  op.accumulate ? out : 0}};
    });
}

/// Whether the product is one of small matrices, or, as oneDNN has none of
/// these, of complex ones.
bool PreparedMatmul::prepareSmall() {
  bool isComplex = op.lhsType == DType::C64;
  if (op.lhsType != op.rhsType || op.lhsType != op.outType || op.k == 0 ||
      (op.nOut != 1 && op.n != 1) ||
      !(isComplex ||
        (op.lhsType == DType::F32 && isSmallProduct(op.m, op.n, op.k))))
    return false;
  small = {op.m,    op.n,    op.k,    op.mLhs,       op.kLhs,
           op.kRhs, op.nRhs, op.mOut, op.accumulate, isComplex};
  products = 1;
  for (const Matmul::Batch &dim : op.batch)
    products *= dim.size;
  return true;
}

/// Terms of a sum that oneDNN adds at a time. It adds them one after the other,
/// about a thousand and more, so that the error grows; joining blocks has its
/// price, above all where those of rhs are not whole rows.
static int64_t getDepth(const Matmul &op, bool hasRows) {
  constexpr int64_t manyResults = 1 << 15, leastWork = 1 << 17, step = 16;
  if (op.lhsType != DType::F32 || op.outType != DType::F32)
    return op.k;
  int64_t most = !hasRows ? 2048 : op.m >= manyResults / op.n ? 256 : 512;
  most = std::max(most, leastWork / op.m / op.n);
  int64_t blocks = (op.k - 1) / most + 1;
  int64_t size = (op.k - 1) / blocks + 1;
  return blocks == 1 ? op.k : (size + step - 1) / step * step;
}

bool PreparedMatmul::prepareDirect(CpuContext &context) {
  if (!hasProduct(op))
    return false;
  if (op.batch.size() > DNNL_MAX_NDIMS - 2)
    return false;
  if (!normalizeMatrix(op.m, op.k, op.mLhs, op.kLhs) ||
      !normalizeMatrix(op.k, op.n, op.kRhs, op.nRhs) ||
      !normalizeMatrix(op.m, op.n, op.mOut, op.nOut) || op.nOut != 1)
    return false;
  depth = getDepth(op, op.nRhs == 1);
  usesGemm = prepareGemm();
  if (usesGemm)
    return true;
  int64_t rest = op.k % depth;
  return prepareBlock(context, depth, op.accumulate, first) &&
         (depth == op.k || prepareBlock(context, depth, true, middle)) &&
         (rest == 0 || prepareBlock(context, rest, true, last));
}

/// Whether oneDNN's GEMM computes the product, which is up to 1.4 times as fast
/// as its primitives for wide matrices (measured with AVX-512), and slower
/// where it would have to transpose rhs or has few columns.
bool PreparedMatmul::prepareGemm() {
  constexpr int64_t wide = 128;
  if (op.lhsType != DType::F32 || op.outType != DType::F32 ||
      !op.batch.empty() || (op.nRhs != 1 && op.n != 1))
    return false;
  if (op.n < wide && op.n != 1 && op.mLhs != 1)
    return false;
  if (!fitsOneDnn({{op.m, op.n, op.k},
                   {op.mLhs, op.kLhs, op.kRhs, op.nRhs, op.mOut, op.nOut}}))
    return false;
  // It allocates copies of blocks of both matrices; most of them are of rhs, of
  // which it takes up to 9984 columns for each thread. Fewer at a time are as
  // fast; what they cost is another copy of lhs each time, 3% where that has
  // many rows.
  constexpr int64_t blockDepth = 384, blockRows = 384, manyRows = 512;
  constexpr int64_t step = 48; // Columns of its tiles.
  int64_t bytesOfThread = op.m > manyRows ? 2 << 20 : 1 << 20;
  int64_t rowBytes =
      std::min({op.k, depth, blockDepth}) * int64_t(sizeof(float));
  columns = std::max(bytesOfThread / rowBytes / step * step, blockRows);
  columns = std::min(op.n, columns * threads);
  scratch[3] = rowBytes * (columns + std::min(op.m, blockRows));
  return true;
}

bool PreparedMatmul::prepareBlock(CpuContext &context, int64_t size,
                                  bool accumulate, Block &block) {
  using Dims = dnnl::memory::dims;
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
  lhsDims.insert(lhsDims.end(), {op.m, size});
  lhsStrides.insert(lhsStrides.end(), {op.mLhs, op.kLhs});
  rhsDims.insert(rhsDims.end(), {size, op.n});
  rhsStrides.insert(rhsStrides.end(), {op.kRhs, op.nRhs});
  outDims.insert(outDims.end(), {op.m, op.n});
  outStrides.insert(outStrides.end(), {op.mOut, op.nOut});
  if (!fitsOneDnn({lhsDims,
                   rhsDims,
                   outDims,
                   {op.mLhs, op.kLhs, op.kRhs, op.nRhs, op.mOut, op.nOut}}))
    return false;
  try {
    block.lhs = {lhsDims, dnnlType(op.lhsType), lhsStrides};
    block.rhs = {rhsDims, dnnlType(op.rhsType), rhsStrides};
    outDesc = {outDims, dnnlType(op.outType), outStrides};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    dnnl::matmul::primitive_desc desc(
        dnnl::matmul::desc(block.lhs, block.rhs, outDesc), attributes,
        context.engine);
    // The reference implementation is far slower than packing.
    if (std::strstr(desc.impl_info_str(), "ref"))
      return false;
    block.scratch = desc.scratchpad_desc();
    block.primitive = dnnl::matmul(desc);
  } catch (const dnnl::error &) {
    return false; // not on this processor
  }
  int64_t &bytes = scratch[3];
  bytes = std::max(bytes, static_cast<int64_t>(block.scratch.get_size()));
  return true;
}

void PreparedMatmul::runDirect(CpuContext &context, const void *lhs,
                               const void *rhs, void *out) const {
  auto memory = [&](const dnnl::memory::desc &desc, const void *data) {
    return dnnl::memory(desc, context.engine, const_cast<void *>(data));
  };
  const char *left = static_cast<const char *>(lhs);
  const char *right = static_cast<const char *>(rhs);
  for (int64_t from = 0; from < op.k; from += depth) {
    const Block &block = from == 0              ? first
                         : op.k - from >= depth ? middle
                                                : last;
    int64_t lhsOffset = from * op.kLhs * byteSize(op.lhsType);
    int64_t rhsOffset = from * op.kRhs * byteSize(op.rhsType);
    block.primitive.execute(
        context.stream,
        {{DNNL_ARG_SRC, memory(block.lhs, left + lhsOffset)},
         {DNNL_ARG_WEIGHTS, memory(block.rhs, right + rhsOffset)},
         {DNNL_ARG_DST, memory(outDesc, out)},
         {DNNL_ARG_SCRATCHPAD, memory(block.scratch, context.scratch.get(3))}});
  }
  context.stream.wait();
}

void PreparedMatmul::runGemm(const void *lhs, const void *rhs,
                             void *out) const {
  const auto *left = static_cast<const float *>(lhs);
  const auto *right = static_cast<const float *>(rhs);
  auto *result = static_cast<float *>(out);
  bool isTransposed = op.kLhs != 1;
  for (int64_t column = 0; column < op.n; column += columns)
    for (int64_t from = 0; from < op.k; from += depth) {
      float before = from > 0 || op.accumulate ? 1.0f : 0.0f;
      if (dnnl_sgemm(isTransposed ? 'T' : 'N', 'N', op.m,
                     std::min(columns, op.n - column),
                     std::min(depth, op.k - from), 1.0f, left + from * op.kLhs,
                     isTransposed ? op.kLhs : op.mLhs,
                     right + from * op.kRhs + column, op.kRhs, before,
                     result + column, op.mOut) != dnnl_success)
        throw Error("oneDNN could not compute a matrix product");
    }
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
                 op.m, op.mLhs, op.k, op.kLhs, a, threads);
    if (packedRhs != rhsOffset)
      packMatrix(op.rhsType,
                 moved(static_cast<const char *>(rhs), rhsOffset * rhsBytes),
                 op.k, op.kRhs, op.n, op.nRhs, b, threads);
    packedLhs = lhsOffset;
    packedRhs = rhsOffset;
    gemm(op.m, op.n, op.k, a, b, c, threads);
    char *target = static_cast<char *>(out) + outOffset * outBytes;
    if (op.accumulate) {
      T *before = context.scratch.get<T>(3);
      packMatrix(op.outType, target, op.m, op.mOut, op.n, op.nOut, before,
                 threads);
      for (int64_t i = 0; i < op.m * op.n; ++i)
        c[i] += before[i];
    }
    unpackMatrix(op.outType, target, op.m, op.mOut, op.n, op.nOut, c, threads);

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

/// Whole products on each thread or, where there are fewer, rows of them.
void PreparedMatmul::runSmall(const char *lhs, const char *rhs,
                              char *out) const {
  int64_t parts = products < threads ? std::min(threads, op.m) : 1;
  int64_t bytes = byteSize(op.lhsType);
  auto multiply = [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      int64_t rest = item / parts, part = item % parts;
      int64_t row = part * op.m / parts;
      int64_t left = row * op.mLhs, right = 0, to = row * op.mOut;
      for (size_t d = op.batch.size(); d-- > 0;) {
        const Matmul::Batch &dim = op.batch[d];
        int64_t at = d > 0 ? rest % dim.size : rest;
        left += at * dim.lhs;
        right += at * dim.rhs;
        to += at * dim.out;
        rest /= dim.size;
      }
      SmallProduct product = small;
      product.m = (part + 1) * op.m / parts - row;
      product.run(lhs + left * bytes, rhs + right * bytes, out + to * bytes);
    }
  };
  if (threads <= 1)
    multiply(0, products);
  else
    parallelFor(products * parts, threads, multiply);
}

void PreparedMatmul::run(CpuContext &context, const void *lhs, const void *rhs,
                         void *out) const {
  if (empty)
    return;
  if (transposed)
    std::swap(lhs, rhs);
  if (isSmall) {
    runSmall(static_cast<const char *>(lhs), static_cast<const char *>(rhs),
             static_cast<char *>(out));
    return;
  }
  ThreadCount count(threads);
  // Of GEMM, which allocates its memory itself, this counts it.
  context.scratch.reserve(scratch);
  if (usesGemm) {
    runGemm(lhs, rhs, out);
    return;
  }
  if (direct) {
    runDirect(context, lhs, rhs, out);
    return;
  }
  dispatchProduct(op.lhsType, op.rhsType, op.outType,
                  [&]<typename T>() { runPacked<T>(context, lhs, rhs, out); });
}

} // namespace whale::runtime
