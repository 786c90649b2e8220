//===- LinkCubin.h - PTX to the code of one GPU -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TARGET_CUDA_LINKCUBIN_H
#define WHALE_LIB_TARGET_CUDA_LINKCUBIN_H

#include "whale/Runtime/LateLibrary.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace whale {

/// The functions of nvJitLink 12 and 13 that are called, as nvJitLink.h
/// declares them.
struct NvJitLink {
  using Handle = struct nvJitLink *;
  using Status = int;
  template <typename Signature>
  using Entry = runtime::Entry<Signature>;

  Entry<Status(Handle *, uint32_t, const char **)> create{"nvJitLinkCreate"};
  Entry<Status(Handle *)> destroy{"nvJitLinkDestroy"};
  Entry<Status(Handle, int, const void *, size_t, const char *)> addData{
      "nvJitLinkAddData"};
  Entry<Status(Handle)> complete{"nvJitLinkComplete"};
  Entry<Status(Handle, size_t *)> getCubinSize{"nvJitLinkGetLinkedCubinSize"};
  Entry<Status(Handle, void *)> getCubin{"nvJitLinkGetLinkedCubin"};
  Entry<Status(Handle, size_t *)> getLogSize{"nvJitLinkGetErrorLogSize"};
  Entry<Status(Handle, char *)> getLog{"nvJitLinkGetErrorLog"};

  template <typename Visit>
  void forEach(Visit visit) {
    visit(create), visit(destroy), visit(addData), visit(complete);
    visit(getCubinSize), visit(getCubin), visit(getLogSize), visit(getLog);
  }
};

/// Opens the library, which stays open: the file that WHALE_NVJITLINK names,
/// where it is set, else the newest one of the loader's path and of where
/// NVIDIA's libraries are that knows `arch`. An error says what is missing.
llvm::Expected<NvJitLink> openNvJitLink(llvm::StringRef arch);

/// The code of a text of PTX for the GPUs of exactly `arch`; an error has what
/// the library says of the text.
llvm::Expected<std::string> linkCubin(const NvJitLink &library,
                                      const std::string &ptx,
                                      llvm::StringRef arch);

} // namespace whale

#endif // WHALE_LIB_TARGET_CUDA_LINKCUBIN_H
