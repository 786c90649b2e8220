//===- BlasLt.cpp - The functions of cuBLASLt of a test machine -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In come layouts and descriptions of products, out goes an operation of a
// stream for each product, which the processor's library computes. Types,
// leading dimensions, alignments (as they were promised to the heuristic), the
// workspace, the algorithm and epilogues are checked as cublasLt.h documents
// them; epilogues only of dense results.
//
// Cost: a product costs what the processor's library takes for it, under the
// machine's lock.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/Machine.h"
#include "device/cpu/Epilogue.h"
#include "device/cpu/Operations.h"

#include <bit>
#include <cstring>

namespace whale::runtime::cuda {

// What the library keeps to itself.
struct MatrixLayout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batches = 1;
  int64_t batchStride = 0;
};
struct ProductDescription {
  int compute = 0, scale = 0;
  bool transposeA = false, transposeB = false;
  int32_t epilogue = kEpilogueNone;
  void *bias = nullptr, *aux = nullptr;
  int64_t auxLeading = 0;
};
struct ProductPreference {
  size_t workspace = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

} // namespace whale::runtime::cuda

namespace whale::runtime::cuda::test {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

/// Of the library's own kinds.
template <typename Object, typename... Fields>
BlasStatus make(Object **object, Fields... fields) {
  Lock lock(Machine::get().mutex);
  ++Machine::get().blasObjects;
  *object = new Object{fields...};
  return 0;
}
template <typename Object>
BlasStatus erase(Object *object) {
  Lock lock(Machine::get().mutex);
  --Machine::get().blasObjects;
  delete object;
  return 0;
}

size_t getVersion() { return 130000; }
const char *getStatusString(BlasStatus) {
  return Machine::get().lastFaultText();
}
BlasStatus create(BlasHandle *handle) {
  *handle = reinterpret_cast<BlasHandle>(uintptr_t(64));
  return Machine::get().takeObject() ? 0 : kBlasAllocationFailed;
}
BlasStatus destroy(BlasHandle) {
  Machine::get().giveObject();
  return 0;
}
BlasStatus descCreate(ProductDescription **description, int compute,
                      int scale) {
  return make(description, compute, scale);
}
BlasStatus descDestroy(ProductDescription *description) {
  return erase(description);
}
BlasStatus descSet(ProductDescription *description, int attribute,
                   const void *value, size_t bytes) {
  int32_t number = 0;
  auto take = [&](auto &field) -> BlasStatus {
    if (bytes != sizeof(field))
      return kBlasInvalidValue;
    std::memcpy(&field, value, bytes);
    return 0;
  };
  switch (attribute) {
  case kProductTransposeA:
  case kProductTransposeB: {
    BlasStatus status = take(number);
    (attribute == kProductTransposeA ? description->transposeA
                                     : description->transposeB) =
        number == kOperationTranspose;
    return status;
  }
  case kProductEpilogue:
    return take(description->epilogue);
  case kProductBias:
    return take(description->bias);
  case kProductAux:
    return take(description->aux);
  case kProductAuxLeading:
    return take(description->auxLeading);
  default:
    return kBlasInvalidValue;
  }
}

std::optional<Epilogue> epilogueOf(int32_t number) {
  switch (number) {
  case kEpilogueNone:
    return Epilogue::None;
  case kEpilogueBias:
    return Epilogue::Bias;
  case kEpilogueGelu:
    return Epilogue::Gelu;
  case kEpilogueGeluBias:
    return Epilogue::GeluBias;
  case kEpilogueGeluAux:
    return Epilogue::GeluAux;
  case kEpilogueGeluAuxBias:
    return Epilogue::GeluAuxBias;
  case kEpilogueGradient:
    return Epilogue::GeluGradient;
  case kEpilogueGradientBias:
    return Epilogue::GeluGradientBias;
  default:
    return std::nullopt;
  }
}

/// What is wrong with an epilogue; empty if nothing is.
std::string findFault(const ProductDescription &description,
                      const MatrixLayout &d) {
  std::optional<Epilogue> epilogue = epilogueOf(description.epilogue);
  if (!epilogue)
    return "an unknown epilogue";
  auto isVector = [](const void *data) {
    return data && reinterpret_cast<uintptr_t>(data) % 16 == 0;
  };
  if (usesBias(*epilogue) && !isVector(description.bias))
    return "a bias that is not there, or not aligned to 16 bytes";
  if (!usesAux(*epilogue))
    return "";
  if (!isVector(description.aux))
    return "an aux that is not there, or not aligned to 16 bytes";
  if (description.auxLeading % 8 ||
      description.auxLeading < static_cast<int64_t>(d.rows))
    return "a leading dimension of aux of " +
           std::to_string(description.auxLeading) + " for " +
           std::to_string(d.rows) + " rows";
  return "";
}
BlasStatus layoutCreate(MatrixLayout **layout, int type, uint64_t rows,
                        uint64_t columns, int64_t leading) {
  if (leading < static_cast<int64_t>(rows))
    return Machine::get().fault(currentGpu(),
                                "a leading dimension of " +
                                    std::to_string(leading) + " for " +
                                    std::to_string(rows) + " rows",
                                kBlasInvalidValue);
  return make(layout, type, rows, columns, leading);
}
BlasStatus layoutDestroy(MatrixLayout *layout) { return erase(layout); }
BlasStatus layoutSet(MatrixLayout *layout, int attribute, const void *value,
                     size_t bytes) {
  if (attribute == kLayoutBatchCount && bytes == 4)
    std::memcpy(&layout->batches, value, 4);
  else if (attribute == kLayoutBatchStride && bytes == 8)
    std::memcpy(&layout->batchStride, value, 8);
  else
    return kBlasInvalidValue;
  return 0;
}
BlasStatus preferenceCreate(ProductPreference **preference) {
  return make(preference);
}
BlasStatus preferenceDestroy(ProductPreference *preference) {
  return erase(preference);
}
BlasStatus preferenceSet(ProductPreference *preference, int attribute,
                         const void *value, size_t bytes) {
  if (attribute == kPreferWorkspace && bytes == sizeof(size_t))
    std::memcpy(&preference->workspace, value, bytes);
  else if (attribute >= kPreferAlignmentA && attribute <= kPreferAlignmentD &&
           bytes == 4)
    std::memcpy(&preference->alignments[attribute - kPreferAlignmentA], value,
                4);
  else if (attribute != kPreferReductions || bytes != 4)
    return kBlasInvalidValue;
  return 0;
}

/// The type of an element, if products of it are known.
std::optional<DType> typeOf(int type) {
  switch (type) {
  case kTypeI8:
    return DType::I8;
  case kTypeI32:
    return DType::I32;
  case kTypeF8E4M3:
    return DType::F8E4M3FN;
  case kTypeF8E5M2:
    return DType::F8E5M2;
  case kTypeF16:
    return DType::F16;
  case kTypeBF16:
    return DType::BF16;
  case kTypeF32:
    return DType::F32;
  case kTypeF64:
    return DType::F64;
  case kTypeC64:
    return DType::C64;
  case kTypeC128:
    return DType::C128;
  default:
    return std::nullopt;
  }
}

bool isByte(int type) {
  return type == kTypeI8 || type == kTypeF8E4M3 || type == kTypeF8E5M2;
}

/// What the library documents of a product of 8-bit elements and this does not
/// heed; empty if it is as it should be.
std::string findFaultOfBytes(const ProductDescription &description,
                             const MatrixLayout &a, const MatrixLayout &b,
                             const MatrixLayout &d,
                             const ProductPreference &preference,
                             int capability) {
  bool isInteger = a.type == kTypeI8;
  if (!description.transposeA || description.transposeB)
    return "not of a transposed A and a B that is not";
  if (isInteger ? b.type != kTypeI8 || d.type != kTypeI32
                : b.type == kTypeI8 ||
                      (a.type == kTypeF8E5M2 && b.type == kTypeF8E5M2) ||
                      (d.type != kTypeF32 && d.type != kTypeBF16 &&
                       d.type != kTypeF16))
    return "of unknown types";
  if (isInteger && capability < 75)
    return "i8 before sm_75";
  if (!isInteger && capability < 89)
    return "f8 before sm_89";
  // Of i8 the extents and leading dimensions must be multiples of 4, of f8 all
  // in bytes multiples of 16; the columns of B and D may be as many as they
  // are.
  uint64_t step = isInteger ? 4 : 16;
  uint64_t bytes = isInteger ? 1 : byteSize(*typeOf(d.type));
  for (uint64_t number :
       {a.rows, uint64_t(a.leading), uint64_t(a.batchStride),
        uint64_t(b.leading), uint64_t(b.batchStride), d.rows * bytes,
        uint64_t(d.leading) * bytes, uint64_t(d.batchStride) * bytes})
    if (number % step)
      return std::to_string(number) + " is no multiple of " +
             std::to_string(step);
  for (uint32_t alignment : preference.alignments)
    if (alignment < step)
      return "addresses are not multiples of " + std::to_string(step);
  return "";
}

/// In the algorithm, with the epilogue that it was chosen for.
constexpr uint64_t kChosen = 0x77686c65;

/// What is promised of addresses is kept in the algorithm.
BlasStatus getHeuristic(BlasHandle, ProductDescription *description,
                        MatrixLayout *a, MatrixLayout *b, MatrixLayout *,
                        MatrixLayout *d, ProductPreference *preference, int,
                        ProductChoice *choice, int *count) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (machine.isCapturing(currentGpu()))
    return machine.fault(currentGpu(), "a heuristic during a capture",
                         kBlasNotSupported);
  bool isDouble = d->type == kTypeF64 || d->type == kTypeC128;
  bool isInteger = d->type == kTypeI32, isOfBytes = isByte(a->type);
  int compute = isDouble ? kComputeF64 : isInteger ? kComputeI32 : kComputeF32;
  int scale = isDouble || isInteger || d->type == kTypeC64 ? d->type : kTypeF32;
  bool isTf32 = description->compute == kComputeTf32 && a->type == kTypeF32;
  if (std::string fault = findFault(*description, *d); !fault.empty())
    return machine.fault(currentGpu(), "a heuristic: " + fault,
                         kBlasInvalidValue);
  int capability = machine.capabilityOf(currentGpu());
  if (a->type == kTypeBF16 && capability < 80)
    return machine.fault(currentGpu(), "a product of bf16 before sm_80",
                         kBlasNotSupported);
  if (isOfBytes)
    if (std::string fault =
            findFaultOfBytes(*description, *a, *b, *d, *preference, capability);
        !fault.empty())
      return machine.fault(currentGpu(),
                           "a heuristic of 8-bit elements: " + fault,
                           kBlasInvalidValue);
  bool hasEpilogue = description->epilogue != kEpilogueNone;
  if (hasEpilogue && (isDouble || machine.options.refusesEpilogues)) {
    *count = 0;
    return kBlasNotSupported;
  }
  bool isKnown = typeOf(a->type) && typeOf(d->type) &&
                 (a->type == b->type || isOfBytes) &&
                 (description->compute == compute || isTf32) &&
                 description->scale == scale &&
                 !(isOfBytes && machine.options.refusesBytes);
  *count = isKnown;
  if (!isKnown)
    return kBlasNotSupported;
  *choice = {};
  for (size_t i = 0; i < 4; ++i)
    choice->algorithm.data[i] = preference->alignments[i];
  choice->algorithm.data[4] = kChosen + uint64_t(description->epilogue);
  choice->workspaceBytes = std::min<size_t>(preference->workspace, 4096);
  return 0;
}

/// Of its one algorithm: 10 more than the attribute.
BlasStatus algorithmGet(const ProductAlgorithm *algorithm, int attribute,
                        void *value, size_t bytes, size_t *written) {
  int32_t number = attribute + 10;
  if (algorithm->data[4] < kChosen || bytes != sizeof(number))
    return kBlasInvalidValue;
  std::memcpy(value, &number, bytes);
  *written = bytes;
  return 0;
}

int64_t spanOf(const MatrixLayout &layout) {
  if (layout.rows == 0 || layout.columns == 0)
    return 0;
  return int64_t(layout.batches - 1) * layout.batchStride +
         int64_t(layout.columns - 1) * layout.leading + int64_t(layout.rows);
}

/// With ten bits of fraction, to the nearest.
std::vector<float> toTf32(const void *data, int64_t count) {
  std::vector<float> numbers(static_cast<const float *>(data),
                             static_cast<const float *>(data) + count);
  for (float &number : numbers)
    number = std::bit_cast<float>(
        (std::bit_cast<uint32_t>(number) + (1u << 12)) & ~((1u << 13) - 1));
  return numbers;
}

BlasStatus matmul(BlasHandle, ProductDescription *description,
                  const void *alpha, const void *a, MatrixLayout *aLayout,
                  const void *b, MatrixLayout *bLayout, const void *beta,
                  const void *c, MatrixLayout *, void *d, MatrixLayout *dLayout,
                  const ProductAlgorithm *algorithm, void *workspace,
                  size_t workspaceBytes, Stream handle) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  int gpu = currentGpu();
  if (machine.gpus[gpu].error)
    return kBlasExecutionFailed;
  bool &isLoaded = machine.gpus[gpu].hasProducts;
  if (!isLoaded && !(isLoaded = machine.takeObject()))
    return kBlasAllocationFailed;
  auto fail = [&](const std::string &what) {
    return machine.fault(gpu, "a product: " + what, kBlasInvalidValue);
  };
  auto stream = machine.streams.find(handle);
  if (stream == machine.streams.end())
    return fail("an unknown stream");
  if (algorithm->data[4] != kChosen + uint64_t(description->epilogue))
    return fail("an algorithm that no heuristic has chosen for it");
  const void *operands[] = {a, b, c, d};
  for (size_t i = 0; i < 4; ++i)
    if (reinterpret_cast<uintptr_t>(operands[i]) % algorithm->data[i])
      return fail("an operand at an address that is no multiple of " +
                  std::to_string(algorithm->data[i]) + ", as was promised");
  if (workspaceBytes && reinterpret_cast<uintptr_t>(workspace) % 256)
    return fail("its workspace is not aligned to 256 bytes");
  if (c != d)
    return fail("its addend is not its result");
  uint64_t m = dLayout->rows, n = dLayout->columns;
  uint64_t k = description->transposeA ? aLayout->rows : aLayout->columns;
  if ((description->transposeA ? aLayout->columns : aLayout->rows) != m ||
      (description->transposeB ? bLayout->rows : bLayout->columns) != n ||
      (description->transposeB ? bLayout->columns : bLayout->rows) != k)
    return fail("its matrices don't match");
  double one = 0, rest = 0;
  bool isDouble = dLayout->type == kTypeF64 || dLayout->type == kTypeC128;
  auto read = [&](const void *from) {
    if (isDouble)
      return *static_cast<const double *>(from);
    if (dLayout->type == kTypeI32)
      return static_cast<double>(*static_cast<const int32_t *>(from));
    return static_cast<double>(*static_cast<const float *>(from));
  };
  one = read(alpha), rest = read(beta);
  if (one != 1 || (rest != 0 && rest != 1))
    return fail("it is scaled");

  Matmul op;
  op.lhsType = *typeOf(aLayout->type), op.rhsType = *typeOf(bLayout->type);
  op.outType = *typeOf(dLayout->type);
  op.m = int64_t(m), op.n = int64_t(n), op.k = int64_t(k);
  op.mLhs = 1, op.kLhs = aLayout->leading;
  if (description->transposeA)
    std::swap(op.mLhs, op.kLhs);
  op.kRhs = 1, op.nRhs = bLayout->leading;
  if (description->transposeB)
    std::swap(op.kRhs, op.nRhs);
  op.mOut = 1, op.nOut = dLayout->leading;
  op.accumulate = rest == 1;
  if (dLayout->batches > 1)
    op.batch = {{dLayout->batches, aLayout->batchStride, bLayout->batchStride,
                 dLayout->batchStride}};
  if (std::string fault = findFault(*description, *dLayout); !fault.empty())
    return fail(fault);
  op.epilogue = *epilogueOf(description->epilogue);
  const char *why = nullptr;
  if (op.epilogue != Epilogue::None && !shapeForEpilogue(op, &why))
    return fail(std::string("its epilogue: ") + why);
  bool isTf32 = description->compute == kComputeTf32;
  int64_t aSpan = spanOf(*aLayout), bSpan = spanOf(*bLayout);
  auto access = [&](const void *data, const MatrixLayout &layout, bool writes) {
    return Access{reinterpret_cast<Address>(data),
                  spanOf(layout) * byteSize(*typeOf(layout.type)), writes};
  };
  std::vector<Access> accesses = {access(a, *aLayout, false),
                                  access(b, *bLayout, false),
                                  access(d, *dLayout, true)};
  int64_t size = byteSize(op.outType);
  void *bias = usesBias(op.epilogue) ? description->bias : nullptr;
  void *aux = usesAux(op.epilogue) ? description->aux : nullptr;
  if (bias)
    accesses.push_back({reinterpret_cast<Address>(bias), op.m * size,
                        writesBias(op.epilogue)});
  if (aux)
    accesses.push_back({reinterpret_cast<Address>(aux),
                        description->auxLeading * op.n * size,
                        writesAux(op.epilogue)});
  if (workspaceBytes)
    accesses.push_back(
        {reinterpret_cast<Address>(workspace), int64_t(workspaceBytes), true});
  machine.put(*stream->second,
              {"a product", std::move(accesses), [=] {
                 CpuContext context(1);
                 std::vector<float> left, right;
                 const void *lhs = a, *rhs = b;
                 if (isTf32) {
                   left = toTf32(a, aSpan);
                   right = toTf32(b, bSpan);
                   lhs = left.data(), rhs = right.data();
                 }
                 PreparedMatmul(op, context).run(context, lhs, rhs, d);
                 if (op.epilogue != Epilogue::None)
                   applyEpilogue(op, d, bias, aux, 1);
               }});
  return machine.gpus[gpu].error ? kBlasExecutionFailed : 0;
}

} // namespace

void fillBlasLt(BlasLt &blas) {
#define WHALE_CUDA_FILL_BLAS(member, ...) blas.member.function = member;
  WHALE_CUDA_BLASLT_FUNCTIONS(WHALE_CUDA_FILL_BLAS)
}

} // namespace whale::runtime::cuda::test
