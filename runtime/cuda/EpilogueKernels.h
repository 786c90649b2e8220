//===- EpilogueKernels.h - Epilogues of products on a GPU -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_EPILOGUEKERNELS_H
#define WHALE_RUNTIME_CUDA_EPILOGUEKERNELS_H

#include "cuda/Gpu.h"
#include "program/Format.h"

#include <map>

namespace whale::runtime::cuda {

/// Does to products what their epilogues say, where the library has none.
class EpilogueKernels {
public:
  explicit EpilogueKernels(const Gpu &gpu) : gpu(gpu) {}
  ~EpilogueKernels();
  EpilogueKernels(const EpilogueKernels &) = delete;
  EpilogueKernels &operator=(const EpilogueKernels &) = delete;

  /// Loads what `run` needs.
  void prepare(const Matmul &op);
  /// Puts it on the stream; the product is in `out`.
  void run(const Matmul &op, void *out, void *bias, void *aux, Stream stream);

private:
  void load(const std::string &name);

  const Gpu &gpu;
  std::vector<Module> modules;
  std::map<std::string, Function> functions;
};

/// The PTX of a kernel, such as "epilogue_gelu_aux_bias_bf16", or
/// "epilogue_sum_f32", which adds up rows.
std::string epilogueKernelText(const std::string &name);
/// The names of all.
std::vector<std::string> epilogueKernelNames();

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_EPILOGUEKERNELS_H
