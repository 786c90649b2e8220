//===- LibraryCalls.h - What the library can be called with -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARYCALLS_H
#define WHALE_RUNTIME_LIBRARYCALLS_H

#include "whale/ProgramFormat/Program.h"
#include "whale/Runtime/Types.h"

#include <string>
#include <vector>

namespace whale::runtime {

/// What a library function computes with, or gives.
struct LibraryTensor {
  DType dtype;
  Shape shape;
};

/// Throws Error, as loading a program with such a call does, where there is no
/// such function, or it can't take these tensors or this configuration, a text
/// of JSON. Kernels that it names may be anything.
void checkLibraryCall(const std::string &function,
                      std::vector<LibraryTensor> inputs,
                      std::vector<LibraryTensor> outputs,
                      const std::string &config);

// Whether a library of NVIDIA's computes it on a GPU; others are computed by
// the processor, where their operands are copied.
bool isGpuCall(const std::string &function);
bool isGpuConvolution(const format::Convolution &convolution);

// The most bytes that a GPU's library may use for one besides its tensors: no
// algorithm that needs more is chosen. 0 for what the processor computes.
int64_t gpuWorkspace(const format::Convolution &convolution);
int64_t gpuWorkspace(const std::string &function,
                     const std::vector<LibraryTensor> &inputs,
                     const std::vector<LibraryTensor> &outputs);

/// What a rank on a GPU of this compute capability (90 for sm_90) takes for its
/// products besides their buffers, in bytes.
int64_t gpuProductWorkspace(int capability);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARYCALLS_H
