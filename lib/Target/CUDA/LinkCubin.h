//===- LinkCubin.h - PTX to the code of one GPU -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TARGET_CUDA_LINKCUBIN_H
#define WHALE_LIB_TARGET_CUDA_LINKCUBIN_H

#include "whale/Target/CUDA/NvJitLink.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace whale {

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
