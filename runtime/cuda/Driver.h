//===- Driver.h - What we use of the CUDA driver ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declarations of our own, so that the runtime builds where no CUDA toolkit is.
// unittests/Runtime/CudaHeadersTest.cpp compares them with cuda.h where there
// is one. Handles have the tags of cuda.h; enumerations are plain integers.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_DRIVER_H
#define WHALE_RUNTIME_CUDA_DRIVER_H

#include "whale/System/LateLibrary.h"

#include <cstddef>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace whale::runtime::cuda {

/// CUresult: 0 if all is well.
using Status = int;
/// CUdeviceptr.
using Address = unsigned long long;
using Context = CUctx_st *;
using Module = CUmod_st *;
using Function = CUfunc_st *;
using Stream = CUstream_st *;
using EventHandle = CUevent_st *;
using Graph = CUgraph_st *;
using GraphExec = CUgraphExec_st *;

/// CUuuid: the same in all processes.
struct DeviceId {
  char bytes[16];
};

#define WHALE_CUDA_DRIVER_FUNCTIONS(FUNCTION)                                  \
  FUNCTION(init, cuInit, Status(unsigned))                                     \
  FUNCTION(getErrorName, cuGetErrorName, Status(Status, const char **))        \
  FUNCTION(getErrorString, cuGetErrorString, Status(Status, const char **))    \
  FUNCTION(driverGetVersion, cuDriverGetVersion, Status(int *))                \
  FUNCTION(deviceGetCount, cuDeviceGetCount, Status(int *))                    \
  FUNCTION(deviceGet, cuDeviceGet, Status(int *, int))                         \
  FUNCTION(deviceGetName, cuDeviceGetName, Status(char *, int, int))           \
  FUNCTION(deviceGetUuid, cuDeviceGetUuid_v2, Status(DeviceId *, int))         \
  FUNCTION(deviceGetAttribute, cuDeviceGetAttribute, Status(int *, int, int))  \
  FUNCTION(deviceTotalMem, cuDeviceTotalMem_v2, Status(size_t *, int))         \
  FUNCTION(primaryCtxRetain, cuDevicePrimaryCtxRetain, Status(Context *, int)) \
  FUNCTION(primaryCtxRelease, cuDevicePrimaryCtxRelease_v2, Status(int))       \
  FUNCTION(ctxSetCurrent, cuCtxSetCurrent, Status(Context))                    \
  FUNCTION(memGetInfo, cuMemGetInfo_v2, Status(size_t *, size_t *))            \
  FUNCTION(memAlloc, cuMemAlloc_v2, Status(Address *, size_t))                 \
  FUNCTION(memFree, cuMemFree_v2, Status(Address))                             \
  FUNCTION(memHostAlloc, cuMemHostAlloc, Status(void **, size_t, unsigned))    \
  FUNCTION(memFreeHost, cuMemFreeHost, Status(void *))                         \
  FUNCTION(memcpyAsync, cuMemcpyAsync,                                         \
           Status(Address, Address, size_t, Stream))                           \
  FUNCTION(streamCreate, cuStreamCreate, Status(Stream *, unsigned))           \
  FUNCTION(streamDestroy, cuStreamDestroy_v2, Status(Stream))                  \
  FUNCTION(streamSynchronize, cuStreamSynchronize, Status(Stream))             \
  FUNCTION(streamQuery, cuStreamQuery, Status(Stream))                         \
  FUNCTION(streamWaitEvent, cuStreamWaitEvent,                                 \
           Status(Stream, EventHandle, unsigned))                              \
  FUNCTION(streamBeginCapture, cuStreamBeginCapture_v2, Status(Stream, int))   \
  FUNCTION(streamEndCapture, cuStreamEndCapture, Status(Stream, Graph *))      \
  FUNCTION(eventCreate, cuEventCreate, Status(EventHandle *, unsigned))        \
  FUNCTION(eventDestroy, cuEventDestroy_v2, Status(EventHandle))               \
  FUNCTION(eventRecord, cuEventRecord, Status(EventHandle, Stream))            \
  FUNCTION(eventQuery, cuEventQuery, Status(EventHandle))                      \
  FUNCTION(eventSynchronize, cuEventSynchronize, Status(EventHandle))          \
  FUNCTION(eventElapsedTime, cuEventElapsedTime,                               \
           Status(float *, EventHandle, EventHandle))                          \
  FUNCTION(moduleLoadDataEx, cuModuleLoadDataEx,                               \
           Status(Module *, const void *, unsigned, int *, void **))           \
  FUNCTION(moduleUnload, cuModuleUnload, Status(Module))                       \
  FUNCTION(moduleGetFunction, cuModuleGetFunction,                             \
           Status(Function *, Module, const char *))                           \
  FUNCTION(launchKernel, cuLaunchKernel,                                       \
           Status(Function, unsigned, unsigned, unsigned, unsigned, unsigned,  \
                  unsigned, unsigned, Stream, void **, void **))               \
  FUNCTION(graphInstantiate, cuGraphInstantiateWithFlags,                      \
           Status(GraphExec *, Graph, unsigned long long))                     \
  FUNCTION(graphLaunch, cuGraphLaunch, Status(GraphExec, Stream))              \
  FUNCTION(graphExecDestroy, cuGraphExecDestroy, Status(GraphExec))            \
  FUNCTION(graphDestroy, cuGraphDestroy, Status(Graph))

/// VALUE(name, name in cuda.h, number) for each constant.
#define WHALE_CUDA_DRIVER_VALUES(VALUE)                                        \
  VALUE(kInvalidValue, CUDA_ERROR_INVALID_VALUE, 1)                            \
  VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY, 2)                             \
  VALUE(kNoDevice, CUDA_ERROR_NO_DEVICE, 100)                                  \
  VALUE(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE, 101)                        \
  VALUE(kInvalidImage, CUDA_ERROR_INVALID_IMAGE, 200)                          \
  VALUE(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT, 201)                      \
  VALUE(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                    \
  VALUE(kInvalidPtx, CUDA_ERROR_INVALID_PTX, 218)                              \
  VALUE(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)       \
  VALUE(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE, 400)                        \
  VALUE(kNotFound, CUDA_ERROR_NOT_FOUND, 500)                                  \
  VALUE(kNotReady, CUDA_ERROR_NOT_READY, 600)                                  \
  VALUE(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                      \
  VALUE(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED, 719)                          \
  VALUE(kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)       \
  VALUE(kCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)       \
  VALUE(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)    \
  VALUE(kCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)    \
  VALUE(kCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)    \
  VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING, 1)                         \
  VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING, 2)                       \
  VALUE(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED, 2)                    \
  VALUE(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE, 1)                       \
  VALUE(kJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER, 5)                        \
  VALUE(kJitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)

WHALE_CUDA_DRIVER_VALUES(WHALE_LIBRARY_VALUE)

/// The functions of libcuda.so.1.
struct Driver {
  WHALE_CUDA_DRIVER_FUNCTIONS(WHALE_LIBRARY_ENTRY)

  /// Calls `visit` with each entry.
  template <typename Visit>
  void forEach(Visit visit) {
    WHALE_CUDA_DRIVER_FUNCTIONS(WHALE_LIBRARY_VISIT)
  }
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_DRIVER_H
