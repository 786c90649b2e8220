//===- Nccl.h - What we use of NCCL -----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Driver.h, for nccl.h from version 2.14 on.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_NCCL_H
#define WHALE_RUNTIME_CUDA_NCCL_H

#include "cuda/Driver.h"

struct ncclComm;

namespace whale::runtime::cuda {

/// ncclResult_t: 0 if all is well.
using NcclStatus = int;
using Communicator = ncclComm *;

/// Names a communicator that is about to be made: one rank makes it, all have
/// it.
struct CommunicatorId {
  char bytes[128];
};

/// How a communicator behaves. Later versions have more fields behind these,
/// and take their defaults where `version` is older than a field.
struct CommunicatorConfig {
  size_t size = sizeof(CommunicatorConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  /// 0: calls return at once, and commGetAsyncError says how far they are.
  int blocking = 0;
};

#define WHALE_CUDA_NCCL_FUNCTIONS(FUNCTION)                                    \
  FUNCTION(getVersion, ncclGetVersion, NcclStatus(int *))                      \
  FUNCTION(getErrorString, ncclGetErrorString, const char *(NcclStatus))       \
  FUNCTION(getLastError, ncclGetLastError, const char *(Communicator))         \
  FUNCTION(getUniqueId, ncclGetUniqueId, NcclStatus(CommunicatorId *))         \
  FUNCTION(commInitRankConfig, ncclCommInitRankConfig,                         \
           NcclStatus(Communicator *, int, CommunicatorId, int,                \
                      CommunicatorConfig *))                                   \
  FUNCTION(commFinalize, ncclCommFinalize, NcclStatus(Communicator))           \
  FUNCTION(commDestroy, ncclCommDestroy, NcclStatus(Communicator))             \
  FUNCTION(commAbort, ncclCommAbort, NcclStatus(Communicator))                 \
  FUNCTION(commGetAsyncError, ncclCommGetAsyncError,                           \
           NcclStatus(Communicator, NcclStatus *))                             \
  FUNCTION(send, ncclSend,                                                     \
           NcclStatus(const void *, size_t, int, int, Communicator, Stream))   \
  FUNCTION(recv, ncclRecv,                                                     \
           NcclStatus(void *, size_t, int, int, Communicator, Stream))         \
  FUNCTION(groupStart, ncclGroupStart, NcclStatus())                           \
  FUNCTION(groupEnd, ncclGroupEnd, NcclStatus())

#define WHALE_CUDA_NCCL_VALUES(VALUE)                                          \
  VALUE(kNcclUnhandledCudaError, ncclUnhandledCudaError, 1)                    \
  VALUE(kNcclInvalidArgument, ncclInvalidArgument, 4)                          \
  VALUE(kNcclInvalidUsage, ncclInvalidUsage, 5)                                \
  VALUE(kNcclRemoteError, ncclRemoteError, 6)                                  \
  VALUE(kNcclInProgress, ncclInProgress, 7)                                    \
  VALUE(kNcclBytes, ncclUint8, 1)

WHALE_CUDA_NCCL_VALUES(WHALE_LIBRARY_VALUE)

/// The functions of libnccl.so.2.
struct Nccl {
  WHALE_CUDA_NCCL_FUNCTIONS(WHALE_LIBRARY_ENTRY)

  /// Calls `visit` with each entry.
  template <typename Visit>
  void forEach(Visit visit) {
    WHALE_CUDA_NCCL_FUNCTIONS(WHALE_LIBRARY_VISIT)
  }
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_NCCL_H
