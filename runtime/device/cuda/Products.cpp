//===- Products.cpp - Matrix products by cuBLASLt -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a product of strided matrices. Out: calls of cuBLASLt, which computes D =
// A B of matrices whose columns are contiguous. A product whose result has
// contiguous rows is computed as the transpose: B' A'. Of a batch of several
// dimensions the library does the last one. The columns of D are rows of the
// result, so that a bias is along them, as the library has it. An epilogue is
// the library's where it has an algorithm for it: where it has none, or
// operands are not aligned to the 16 bytes that its vectors need, the product
// is formed alone.
//
// Cost: preparing asks the library's heuristic once, twice where it lacks the
// epilogue. A run is one call for each index of all batch dimensions but the
// last; it waits for nothing.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Products.h"

#include "device/Transpose.h"
#include "whale/ProgramFormat/GpuArchitecture.h"

#include <algorithm>
#include <bit>

namespace whale::runtime::cuda {

static std::optional<int> typeOf(DType dtype) {
  switch (dtype) {
  case DType::I8:
    return kTypeI8;
  case DType::I32:
    return kTypeI32;
  case DType::F8E4M3FN:
    return kTypeF8E4M3;
  case DType::F8E5M2:
    return kTypeF8E5M2;
  case DType::F16:
    return kTypeF16;
  case DType::BF16:
    return kTypeBF16;
  case DType::F32:
    return kTypeF32;
  case DType::F64:
    return kTypeF64;
  case DType::C64:
    return kTypeC64;
  case DType::C128:
    return kTypeC128;
  default:
    return std::nullopt;
  }
}

/// A matrix as the library takes it.
struct Columns {
  int64_t rows, columns, leading;
  bool isTransposed;
};

/// Of a matrix with these strides, or nothing if it has neither contiguous
/// columns nor rows.
static std::optional<Columns> columnsOf(int64_t rows, int64_t columns,
                                        int64_t rowStride,
                                        int64_t columnStride) {
  if ((rowStride == 1 || rows == 1) && (columnStride >= rows || columns == 1))
    return Columns{rows, columns, std::max(rows, columnStride), false};
  if ((columnStride == 1 || columns == 1) &&
      (rowStride >= columns || rows == 1))
    return Columns{columns, rows, std::max(columns, rowStride), true};
  return std::nullopt;
}

/// The product whose result has contiguous columns: itself or its transpose.
static std::optional<Matmul> normalize(const Matmul &matmul,
                                       bool &isTransposed) {
  Matmul op = matmul;
  auto out = columnsOf(op.m, op.n, op.mOut, op.nOut);
  isTransposed = out && out->isTransposed;
  if (!out)
    return std::nullopt;
  if (isTransposed)
    transpose(op);
  std::erase_if(op.batch,
                [](const Matmul::Batch &dim) { return dim.size == 1; });
  return op;
}

bool isForBlas(const Matmul &matmul, int capability, uint32_t alignment) {
  if (format::isOfBytes(matmul))
    return alignment >= format::stepOfBytes(matmul) &&
           !format::findLackOfBytes(matmul, capability);
  if (matmul.lhsType == DType::BF16 &&
      !format::findGpuArchitecture(capability).hasBF16)
    return false;
  bool isHalf = matmul.lhsType == DType::F16 || matmul.lhsType == DType::BF16;
  if (!typeOf(matmul.lhsType) || isInteger(matmul.lhsType) ||
      matmul.rhsType != matmul.lhsType ||
      (matmul.outType != matmul.lhsType &&
       !(isHalf && matmul.outType == DType::F32)))
    return false;
  bool isTransposed;
  std::optional<Matmul> op = normalize(matmul, isTransposed);
  return op && op->k > 0 && columnsOf(op->m, op->k, op->mLhs, op->kLhs) &&
         columnsOf(op->k, op->n, op->kRhs, op->nRhs);
}

uint32_t alignmentOf(const Matmul &matmul, const void *lhs, const void *rhs,
                     const void *out, const void *bias, const void *aux) {
  int64_t size = byteSize(matmul.lhsType), outSize = byteSize(matmul.outType);
  uint64_t bits = 256;
  for (const void *data : {lhs, rhs, out, bias, aux})
    bits |= addressOf(data);
  for (const Matmul::Batch &dim : matmul.batch)
    if (dim.size > 1)
      bits |= static_cast<uint64_t>(dim.lhs * size) |
              static_cast<uint64_t>(dim.rhs * size) |
              static_cast<uint64_t>(dim.out * outSize);
  return uint32_t(1) << std::countr_zero(bits);
}

/// As the library names it.
static int32_t epilogueOf(Epilogue epilogue) {
  switch (epilogue) {
  case Epilogue::None:
    return kEpilogueNone;
  case Epilogue::Bias:
    return kEpilogueBias;
  case Epilogue::Gelu:
    return kEpilogueGelu;
  case Epilogue::GeluBias:
    return kEpilogueGeluBias;
  case Epilogue::GeluAux:
    return kEpilogueGeluAux;
  case Epilogue::GeluAuxBias:
    return kEpilogueGeluAuxBias;
  case Epilogue::GeluGradient:
    return kEpilogueGradient;
  case Epilogue::GeluGradientBias:
    return kEpilogueGradientBias;
  }
  return kEpilogueNone;
}

void Product::check(const char *function, BlasStatus status) const {
  if (status)
    throw Error(gpu.name() + ": " + function + ": " +
                gpu.blas.getStatusString.function(status) + " (" +
                std::to_string(status) + ")");
}

template <typename Value>
void Product::describe(int attribute, const Value &value) const {
  check(gpu.blas.descSet.symbol,
        gpu.blas.descSet.function(description.get(), attribute, &value,
                                  sizeof(value)));
}

bool Product::choose(ProductPreference *preference) {
  int found = 0;
  BlasStatus status = gpu.blas.getHeuristic.function(
      handle, description.get(), a.get(), b.get(), d.get(), d.get(), preference,
      1, &choice, &found);
  // Without an epilogue there is one for each product but of bytes.
  if (epilogue == Epilogue::None && status != kBlasNotSupported)
    check(gpu.blas.getHeuristic.symbol, status);
  // Only then the rest of it means anything.
  return !status && found && !choice.state;
}

Product::Product(const Gpu &gpu, BlasHandle handle, const Matmul &matmul,
                 uint32_t alignment, int64_t workspaceBytes, const void *bias,
                 const void *aux)
    : gpu(gpu), handle(handle),
      description(nullptr, gpu.blas.descDestroy.function),
      a(nullptr, gpu.blas.layoutDestroy.function),
      b(nullptr, gpu.blas.layoutDestroy.function),
      d(nullptr, gpu.blas.layoutDestroy.function) {
  Matmul op = normalize(matmul, isTransposed).value();
  const BlasLt &blas = gpu.blas;
  auto call = [&](const auto &entry, auto... arguments) {
    check(entry.symbol, entry.function(arguments...));
  };
  auto make = [&]<typename Object>(Owned<Object> &object, const auto &entry,
                                   auto... arguments) {
    Object *made = nullptr;
    call(entry, &made, arguments...);
    object.reset(made);
  };
  bool isComplex = op.outType == DType::C64 || op.outType == DType::C128;
  bool isDouble = op.outType == DType::F64 || op.outType == DType::C128;
  bool isInt = op.outType == DType::I32;
  accumulates = op.accumulate;
  lhsBytes = byteSize(op.lhsType);
  outBytes = byteSize(op.outType);
  scale = isComplex || isDouble || isInt ? *typeOf(op.outType) : kTypeF32;
  bool isTf32 = op.tf32 && op.lhsType == DType::F32;
  make(description, blas.descCreate,
       isDouble ? kComputeF64
       : isInt  ? kComputeI32
       : isTf32 ? kComputeTf32
                : kComputeF32,
       scale);
  Columns left = *columnsOf(op.m, op.k, op.mLhs, op.kLhs);
  Columns right = *columnsOf(op.k, op.n, op.kRhs, op.nRhs);
  Columns out = *columnsOf(op.m, op.n, op.mOut, op.nOut);
  int32_t transposed = kOperationTranspose;
  if (left.isTransposed)
    describe(kProductTransposeA, transposed);
  if (right.isTransposed)
    describe(kProductTransposeB, transposed);
  // The types of bias and aux are left out: they are those of the result.
  constexpr uint32_t vectorBytes = 16;
  if (op.epilogue != Epilogue::None && alignment >= vectorBytes) {
    epilogue = op.epilogue;
    describe(kProductEpilogue, epilogueOf(epilogue));
    if (usesBias(epilogue))
      describe(kProductBias, bias);
    if (usesAux(epilogue)) {
      describe(kProductAux, aux);
      describe(kProductAuxLeading, out.leading);
    }
  }
  Matmul::Batch inner{1, 0, 0, 0};
  if (!op.batch.empty()) {
    inner = op.batch.back();
    op.batch.pop_back();
  }
  outer = op.batch;
  auto layout = [&](Owned<MatrixLayout> &layout, DType type,
                    const Columns &matrix, int64_t stride) {
    make(layout, blas.layoutCreate, *typeOf(type),
         static_cast<uint64_t>(matrix.rows),
         static_cast<uint64_t>(matrix.columns), matrix.leading);
    if (inner.size == 1)
      return;
    auto count = static_cast<int32_t>(inner.size);
    call(blas.layoutSet, layout.get(), kLayoutBatchCount,
         static_cast<const void *>(&count), sizeof(count));
    call(blas.layoutSet, layout.get(), kLayoutBatchStride,
         static_cast<const void *>(&stride), sizeof(stride));
  };
  layout(a, op.lhsType, left, inner.lhs);
  layout(b, op.rhsType, right, inner.rhs);
  layout(d, op.outType, out, inner.out);
  Owned<ProductPreference> preference(nullptr, blas.preferenceDestroy.function);
  make(preference, blas.preferenceCreate);
  auto prefer = [&](int attribute, const auto &value) {
    return blas.preferenceSet.function(preference.get(), attribute, &value,
                                       sizeof(value));
  };
  auto most = static_cast<size_t>(workspaceBytes);
  // Partial sums that are added in place could come in any order.
  auto reductions = static_cast<uint32_t>(kReductionComputeType);
  BlasStatus status = prefer(kPreferWorkspace, most);
  if (!status)
    status = prefer(kPreferReductions, reductions);
  for (int attribute : {kPreferAlignmentA, kPreferAlignmentB, kPreferAlignmentC,
                        kPreferAlignmentD})
    if (!status)
      status = prefer(attribute, alignment);
  isChosen = !status && choose(preference.get());
  if (!status && !isChosen && epilogue != Epilogue::None) {
    epilogue = Epilogue::None;
    describe(kProductEpilogue, epilogueOf(epilogue));
    isChosen = choose(preference.get());
  }
  check(blas.preferenceSet.symbol, status);
  if (!isChosen && !format::isOfBytes(op))
    throw Error(gpu.name() + ": cuBLASLt has no algorithm for this product");
}

std::string Product::algorithm() const {
  auto get = [&](int attribute) {
    int32_t value = 0;
    size_t written = 0;
    gpu.blas.algorithmGet.function(&choice.algorithm, attribute, &value,
                                   sizeof(value), &written);
    return std::to_string(value);
  };
  return "cuBLASLt " + get(kAlgorithmNumber) + ", tile " + get(kAlgorithmTile) +
         ", stages " + get(kAlgorithmStages) + ", " + get(kAlgorithmParts) +
         " parts of the sum" + (doesEpilogue() ? ", " : "") + name(epilogue);
}

void Product::run(const void *lhs, const void *rhs, void *out, const void *bias,
                  const void *aux, void *workspace, Stream stream) const {
  if (isTransposed)
    std::swap(lhs, rhs);
  if (usesBias(epilogue))
    describe(kProductBias, bias);
  if (usesAux(epilogue))
    describe(kProductAux, aux);
  // Large enough for complex numbers, whose imaginary parts are 0.
  double one[2] = {1, 0}, zero[2] = {0, 0};
  float oneFloat[2] = {1, 0}, zeroFloat[2] = {0, 0};
  int32_t oneInt = 1, zeroInt = 0;
  const void *alpha = one, *none = zero;
  if (scale == kTypeF32 || scale == kTypeC64)
    alpha = oneFloat, none = zeroFloat;
  else if (scale == kTypeI32)
    alpha = &oneInt, none = &zeroInt;
  const void *beta = accumulates ? alpha : none;
  std::vector<int64_t> index(outer.size());
  while (true) {
    int64_t lhsOffset = 0, rhsOffset = 0, outOffset = 0;
    for (size_t i = 0; i < outer.size(); ++i) {
      lhsOffset += index[i] * outer[i].lhs;
      rhsOffset += index[i] * outer[i].rhs;
      outOffset += index[i] * outer[i].out;
    }
    void *result = static_cast<char *>(out) + outOffset * outBytes;
    auto multiply = [&](auto... given) {
      return accumulates ? gpu.blas.matmul.function(given...)
                         : gpu.tryLibrary(gpu.blas.matmul, given...);
    };
    check(
        gpu.blas.matmul.symbol,
        multiply(handle, description.get(), alpha,
                 static_cast<const char *>(lhs) + lhsOffset * lhsBytes, a.get(),
                 static_cast<const char *>(rhs) + rhsOffset * lhsBytes, b.get(),
                 beta, result, d.get(), result, d.get(), &choice.algorithm,
                 workspace, choice.workspaceBytes, stream));
    size_t i = outer.size();
    while (i > 0 && ++index[i - 1] == outer[i - 1].size)
      index[--i] = 0;
    if (i == 0)
      return;
  }
}

int64_t workspaceOfProducts(int capability) {
  return format::findGpuArchitecture(capability).productWorkspace;
}

} // namespace whale::runtime::cuda
