//===- SolverCalls.cpp - Linear algebra by cuSOLVER and cuBLAS ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the calls of LAPACK and of triangular systems. Out: calls of cuSOLVER and
// cuBLAS, one for each matrix of a batch. Matrices are in column-major order,
// as these libraries want them. What a routine says of its success is written
// to the call's result, or to the workspace where the call has none; nothing of
// it is read by the host. cuSOLVER may wait for the stream inside, so graphs do
// not hold its calls. Its results are deterministic unless it is asked for
// others.
//
// Cost: for each matrix a copy of the operand that the routine overwrites, and
// the routine; they share a workspace and run one after the other, however
// small they are. Preparing asks for the size of the workspace.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Calls.h"
#include "library/TriangularSystem.h"

namespace whale::runtime::cuda {

// One name for the four types of a routine.
#define WHALE_CUDA_PICK(TABLE, NAME)                                           \
  template <typename T>                                                        \
  static const auto &NAME(const TABLE &table) {                                \
    if constexpr (std::is_same_v<T, float>)                                    \
      return table.s##NAME;                                                    \
    else if constexpr (std::is_same_v<T, double>)                              \
      return table.d##NAME;                                                    \
    else if constexpr (std::is_same_v<T, std::complex<float>>)                 \
      return table.c##NAME;                                                    \
    else                                                                       \
      return table.z##NAME;                                                    \
  }
WHALE_CUDA_PICK(Blas, trsm)
WHALE_CUDA_PICK(Solver, potrf)
WHALE_CUDA_PICK(Solver, potrfSize)
WHALE_CUDA_PICK(Solver, getrf)
WHALE_CUDA_PICK(Solver, getrfSize)
WHALE_CUDA_PICK(Solver, geqrf)
WHALE_CUDA_PICK(Solver, geqrfSize)
WHALE_CUDA_PICK(Solver, orgqr)
WHALE_CUDA_PICK(Solver, orgqrSize)
WHALE_CUDA_PICK(Solver, ormqr)
WHALE_CUDA_PICK(Solver, ormqrSize)
WHALE_CUDA_PICK(Solver, syevd)
WHALE_CUDA_PICK(Solver, syevdSize)
WHALE_CUDA_PICK(Solver, gesvd)
WHALE_CUDA_PICK(Solver, gesvdSize)

static int lead(int64_t extent) {
  return static_cast<int>(std::max<int64_t>(extent, 1));
}

static int fillOf(char uplo) { return uplo == 'L' ? kFillLower : kFillUpper; }

namespace {
/// A routine of cuSOLVER for matrices of T: checks its operands while it is
/// made, as the runtime's own routines do.
template <typename T>
class Routine {
public:
  Routine(CallContext &context, const std::string &function,
          const LibraryRequest &request)
      : context(context), request(request), batch(request, function),
        table(openSolver(context.gpu.libraries)), handle(context.solver()) {}

  GpuCall potrf();
  GpuCall getrf();
  GpuCall geqrf();
  GpuCall orgqr();
  GpuCall ormqr();
  GpuCall syevd();
  GpuCall gesdd();

private:
  /// Of the elements of a tensor, counted from its last dimension.
  int64_t extent(const std::vector<LibraryTensor> &tensors, size_t number,
                 size_t fromEnd) const {
    if (tensors.size() <= number || tensors[number].shape.size() < fromEnd)
      return 0;
    return tensors[number].shape.end()[-static_cast<std::ptrdiff_t>(fromEnd)];
  }

  /// What a routine asks for of its workspace.
  template <typename Signature, typename... Arguments>
  int elements(const system::Entry<Signature> &size, Arguments... arguments) {
    int count = 0;
    context.call(size, handle, arguments..., &count);
    return count;
  }

  /// `body` gets the operands of one matrix, `count` elements of workspace and
  /// a place for what the routine says of its success.
  GpuCall
  finish(int count,
         std::function<void(const MatrixCall &, T *work, int *info)> body) {
    CallContext *context = &this->context;
    const Solver *table = &this->table;
    constexpr int64_t infoBytes = 256;
    GpuCall call;
    call.algorithm = "cuSOLVER";
    call.workspaceBytes = infoBytes + int64_t(count) * int64_t(sizeof(T));
    call.isRecordable = false;
    // They share the workspace and the handle.
    constexpr int64_t mostThreads = 1;
    auto run = batch.finish(
        [context, body](const MatrixCall &matrices) {
          char *memory = static_cast<char *>(context->workspace);
          body(matrices, reinterpret_cast<T *>(memory + infoBytes),
               reinterpret_cast<int *>(memory));
        },
        mostThreads);
    call.run = [context, table, run](std::span<void *const> inputs,
                                     std::span<void *const> outputs) {
      context->call(table->setStream, context->solver(), context->stream);
      run(inputs, outputs);
    };
    return call;
  }

  /// Copies operand `number` to the first result, where it is overwritten.
  auto copier(int64_t count, size_t number = 0) const {
    CallContext *context = &this->context;
    return [context, count, number](const MatrixCall &call) {
      context->gpu.copy(call.out<T>(0), call.in<T>(number),
                        count * int64_t(sizeof(T)), context->stream);
      return call.out<T>(0);
    };
  }

  CallContext &context;
  const LibraryRequest &request;
  MatrixBatch batch;
  const Solver &table;
  SolverHandle handle;
};

template <typename T>
GpuCall Routine<T>::potrf() {
  int n = int(batch.extent(0)), fill = fillOf(batch.letter("uplo", "LU"));
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<int32_t>({});
  T *none = nullptr;
  int count = elements(potrfSize<T>(table), fill, n, none, lead(n));
  return finish(count, [=, copy = copier(int64_t(n) * n), &context = context,
                        &table = table, handle = handle](const MatrixCall &call,
                                                         T *work, int *) {
    context.call(cuda::potrf<T>(table), handle, fill, n, copy(call), lead(n),
                 work, count, call.out<int32_t>(1));
  });
}

template <typename T>
GpuCall Routine<T>::getrf() {
  int n = int(batch.extent(0)), m = int(batch.extent(1));
  batch.input<T>({n, m});
  batch.output<T>({n, m});
  batch.output<int32_t>({std::min(m, n)});
  batch.output<int32_t>({});
  T *none = nullptr;
  int count = elements(getrfSize<T>(table), m, n, none, lead(m));
  return finish(count, [=, copy = copier(int64_t(m) * n), &context = context,
                        &table = table, handle = handle](const MatrixCall &call,
                                                         T *work, int *) {
    context.call(cuda::getrf<T>(table), handle, m, n, copy(call), lead(m), work,
                 call.out<int32_t>(1), call.out<int32_t>(2));
  });
}

template <typename T>
GpuCall Routine<T>::geqrf() {
  int n = int(batch.extent(0)), m = int(batch.extent(1));
  batch.input<T>({n, m});
  batch.output<T>({n, m});
  batch.output<T>({std::min(m, n)});
  T *none = nullptr;
  int count = elements(geqrfSize<T>(table), m, n, none, lead(m));
  return finish(count, [=, copy = copier(int64_t(m) * n), &context = context,
                        &table = table, handle = handle](const MatrixCall &call,
                                                         T *work, int *info) {
    context.call(cuda::geqrf<T>(table), handle, m, n, copy(call), lead(m),
                 call.out<T>(1), work, count, info);
  });
}

template <typename T>
GpuCall Routine<T>::orgqr() {
  int n = int(batch.extent(0)), m = int(batch.extent(1));
  int k = int(extent(request.inputs, 1, 1));
  batch.input<T>({n, m});
  batch.input<T>({k});
  batch.output<T>({n, m});
  // The library has no other shapes.
  if (n > m || k > n)
    return {};
  const T *none = nullptr;
  int count = elements(orgqrSize<T>(table), m, n, k, none, lead(m), none);
  return finish(count, [=, copy = copier(int64_t(m) * n), &context = context,
                        &table = table, handle = handle](const MatrixCall &call,
                                                         T *work, int *info) {
    context.call(cuda::orgqr<T>(table), handle, m, n, k, copy(call), lead(m),
                 call.in<T>(1), work, count, info);
  });
}

template <typename T>
GpuCall Routine<T>::ormqr() {
  int k = int(extent(request.inputs, 1, 1));
  int n = int(extent(request.inputs, 2, 2)),
      m = int(extent(request.inputs, 2, 1));
  bool isLeft = batch.flag("left");
  int side = isLeft ? kSideLeft : kSideRight, order = isLeft ? m : n;
  int operation = !batch.flag("transpose") ? kOperationNone
                  : isComplexType<T>       ? kOperationAdjoint
                                           : kOperationTranspose;
  batch.input<T>({batch.extent(0), order});
  batch.input<T>({k});
  batch.input<T>({n, m});
  batch.output<T>({n, m});
  if (k > std::min<int64_t>(order, batch.extent(0)))
    return {};
  const T *none = nullptr;
  int count = elements(ormqrSize<T>(table), side, operation, m, n, k, none,
                       lead(order), none, none, lead(m));
  return finish(count, [=, copy = copier(int64_t(m) * n, 2), &context = context,
                        &table = table, handle = handle](const MatrixCall &call,
                                                         T *work, int *info) {
    context.call(cuda::ormqr<T>(table), handle, side, operation, m, n, k,
                 call.in<T>(0), lead(order), call.in<T>(1), copy(call), lead(m),
                 work, count, info);
  });
}

template <typename T>
GpuCall Routine<T>::syevd() {
  int n = int(batch.extent(0)), fill = fillOf(batch.letter("uplo", "LU"));
  int mode =
      batch.letter("mode", "NV") == 'V' ? kSolverVectors : kSolverValuesOnly;
  batch.input<T>({n, n});
  batch.output<T>({n, n});
  batch.output<Real<T>>({n});
  batch.output<int32_t>({});
  const T *none = nullptr;
  const Real<T> *noReals = nullptr;
  int count =
      elements(syevdSize<T>(table), mode, fill, n, none, lead(n), noReals);
  return finish(count, [=, copy = copier(int64_t(n) * n), &context = context,
                        &table = table, handle = handle](const MatrixCall &call,
                                                         T *work, int *) {
    context.call(cuda::syevd<T>(table), handle, mode, fill, n, copy(call),
                 lead(n), call.out<Real<T>>(1), work, count,
                 call.out<int32_t>(2));
  });
}

template <typename T>
GpuCall Routine<T>::gesdd() {
  int n = int(batch.extent(0)), m = int(batch.extent(1));
  char mode = batch.letter("mode", "ASN");
  // The library has no wide matrices. Without vectors their results have any
  // shape, and are zero.
  if (m < n || mode == 'N')
    return {};
  batch.input<T>({n, m});
  batch.output<T>({n, m});
  batch.output<Real<T>>({n});
  batch.output<T>({mode == 'A' ? m : n, m});
  batch.output<T>({n, n});
  batch.output<int32_t>({});
  int count = elements(gesvdSize<T>(table), m, n);
  return finish(count, [=, copy = copier(int64_t(m) * n), &context = context,
                        &table = table, handle = handle](const MatrixCall &call,
                                                         T *work, int *) {
    auto job = static_cast<signed char>(mode);
    context.call(gesvd<T>(table), handle, job, job, m, n, copy(call), lead(m),
                 call.out<Real<T>>(1), call.out<T>(2), lead(m), call.out<T>(3),
                 lead(n), work, count, static_cast<Real<T> *>(nullptr),
                 call.out<int32_t>(4));
  });
}

template <typename T>
GpuCall prepareLapack(CallContext &context, const std::string &function,
                      const LibraryRequest &request) {
  Routine<T> routine(context, function, request);
  if (function == "lapack.potrf")
    return routine.potrf();
  if (function == "lapack.getrf")
    return routine.getrf();
  if (function == "lapack.geqrf")
    return routine.geqrf();
  if (function == "lapack.orgqr")
    return routine.orgqr();
  if (function == "lapack.ormqr")
    return routine.ormqr();
  if (function == "lapack.syevd")
    return routine.syevd();
  return routine.gesdd();
}
} // namespace

int64_t workspaceOfLapack(const std::vector<LibraryTensor> &inputs,
                          const std::vector<LibraryTensor> &outputs) {
  // Blocked routines keep some hundred rows or columns, those of eigenvalues
  // and singular vectors some matrices. Of small ones cuSOLVER asks for some
  // 820,000 numbers (version 12, on an H200).
  constexpr int64_t least = 1 << 20, lines = 512, copies = 4;
  int64_t bytes = inputs.empty() ? 0 : least * byteSize(inputs[0].dtype);
  for (const auto *tensors : {&inputs, &outputs})
    for (const auto &[dtype, shape] : *tensors) {
      if (shape.size() < 2)
        continue;
      int64_t rows = shape.end()[-2], columns = shape.end()[-1];
      bytes += (copies * rows * columns + lines * (rows + columns)) *
               byteSize(dtype);
    }
  return bytes;
}

GpuCall prepareGpuLapack(CallContext &context, const std::string &function,
                         const LibraryRequest &request) {
  return dispatchNumber(request, function, [&]<typename T>() {
    return prepareLapack<T>(context, function, request);
  });
}

/// The transposes of the matrices are in column-major order, and the system of
/// the transposes has its unknowns on the other side.
template <typename T>
static GpuCall prepareSystemOf(CallContext &context,
                               const TriangularSystem &system,
                               const LibraryRequest &request) {
  static_assert(TriangularSystem::Transpose == kOperationTranspose &&
                TriangularSystem::Adjoint == kOperationAdjoint);
  const Blas &table = openBlas(context.gpu.libraries);
  TriangularHandle handle = context.triangles();
  int size = int(system.size), others = int(system.others);
  GpuCall call;
  call.algorithm = "cuBLAS";
  call.workspaceBytes = workspaceOfSystem;
  auto run = prepareSystem<T>(
      request, system, [=, &table, &context](const MatrixCall &call) {
        T one = 1;
        context.gpu.copy(call.out<T>(0), call.in<T>(1),
                         system.size * system.others * int64_t(sizeof(T)),
                         context.stream);
        context.call(
            trsm<T>(table), handle, system.isLeft ? kSideRight : kSideLeft,
            system.isLower ? kFillUpper : kFillLower, int(system.operation),
            system.hasUnitDiagonal ? kDiagonalOnes : kDiagonalGiven,
            system.isLeft ? others : size, system.isLeft ? size : others,
            static_cast<const T *>(&one), call.in<T>(0), lead(size),
            call.out<T>(0), lead(system.isLeft ? others : size));
      });
  call.run = [=, &table, &context](std::span<void *const> inputs,
                                   std::span<void *const> outputs) {
    context.call(table.setStream, handle, context.stream);
    context.call(table.setWorkspace, handle, context.workspace,
                 size_t(workspaceOfSystem));
    run(inputs, outputs);
  };
  return call;
}

GpuCall prepareGpuSystem(CallContext &context, const std::string &function,
                         const LibraryRequest &request) {
  TriangularSystem system = readTriangularSystem(function, request);
  return dispatchNumber(request, function, [&]<typename T>() {
    return prepareSystemOf<T>(context, system, request);
  });
}

} // namespace whale::runtime::cuda
