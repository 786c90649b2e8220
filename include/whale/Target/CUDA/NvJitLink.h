//===- NvJitLink.h - What we use of nvJitLink -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declarations of our own, so that the compiler builds where no CUDA toolkit
// is, for nvJitLink.h of CUDA 12 and 13. unittests/Runtime/CudaHeadersTest.cpp
// compares them with the header where there is one.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TARGET_CUDA_NVJITLINK_H
#define WHALE_TARGET_CUDA_NVJITLINK_H

#include "whale/System/LateLibrary.h"

#include <cstddef>
#include <cstdint>

struct nvJitLink;

namespace whale {

/// nvJitLinkResult: 0 if all is well.
using LinkStatus = int;
using LinkHandle = ::nvJitLink *;

#define WHALE_NVJITLINK_FUNCTIONS(FUNCTION)                                    \
  FUNCTION(create, nvJitLinkCreate,                                            \
           LinkStatus(LinkHandle *, uint32_t, const char **))                  \
  FUNCTION(destroy, nvJitLinkDestroy, LinkStatus(LinkHandle *))                \
  FUNCTION(addData, nvJitLinkAddData,                                          \
           LinkStatus(LinkHandle, int, const void *, size_t, const char *))    \
  FUNCTION(complete, nvJitLinkComplete, LinkStatus(LinkHandle))                \
  FUNCTION(getCubinSize, nvJitLinkGetLinkedCubinSize,                          \
           LinkStatus(LinkHandle, size_t *))                                   \
  FUNCTION(getCubin, nvJitLinkGetLinkedCubin, LinkStatus(LinkHandle, void *))  \
  FUNCTION(getLogSize, nvJitLinkGetErrorLogSize,                               \
           LinkStatus(LinkHandle, size_t *))                                   \
  FUNCTION(getLog, nvJitLinkGetErrorLog, LinkStatus(LinkHandle, char *))

#define WHALE_NVJITLINK_VALUES(VALUE) VALUE(kInputPtx, NVJITLINK_INPUT_PTX, 2)
WHALE_NVJITLINK_VALUES(WHALE_LIBRARY_VALUE)

/// The functions of libnvJitLink.
struct NvJitLink {
  WHALE_NVJITLINK_FUNCTIONS(WHALE_LIBRARY_ENTRY)

  template <typename Visit>
  void forEach(Visit visit) {
    WHALE_NVJITLINK_FUNCTIONS(WHALE_LIBRARY_VISIT)
  }
};

} // namespace whale

#endif // WHALE_TARGET_CUDA_NVJITLINK_H
