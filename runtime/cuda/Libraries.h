//===- Libraries.h - The libraries of a GPU ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_LIBRARIES_H
#define WHALE_RUNTIME_CUDA_LIBRARIES_H

#include "cuda/Blas.h"
#include "cuda/BlasLt.h"
#include "cuda/Dnn.h"
#include "cuda/Fft.h"
#include "cuda/Nccl.h"
#include "cuda/Solver.h"
#include "whale/Runtime/Libraries.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace whale::runtime::cuda {

struct Libraries {
  Driver driver;
  BlasLt blas;
  /// For tests: what stands for those that are opened when needed.
  const Nccl *nccl = nullptr;
  const Blas *triangles = nullptr;
  const Dnn *dnn = nullptr;
  const Fft *fft = nullptr;
  const Solver *solver = nullptr;
};

/// The driver and the libraries, opened when first asked for and kept for the
/// life of the process. Throws Error: what was found, what is needed and which
/// package has it.
const Libraries &openLibraries();

/// For tests of messages: the same with libcuda.so.1 from `driver`, which is
/// not kept, and the others from `directories` alone.
std::unique_ptr<Libraries>
openLibrariesFrom(const std::string &driver,
                  const std::vector<std::filesystem::path> &directories);

/// NCCL, which only ranks on several GPUs need; as openLibraries.
const Nccl &openNccl(const Libraries &libraries);

/// What only some programs need; as openLibraries.
const Blas &openBlas(const Libraries &libraries);
const Dnn &openDnn(const Libraries &libraries);
const Fft &openFft(const Libraries &libraries);
const Solver &openSolver(const Libraries &libraries);

/// Those that are opened for GPUs; of what the toolkit has, the latest.
std::vector<LateLibrary> findLibraries();

/// For tests: the same from `directories` alone.
std::vector<LateLibrary>
findLibrariesFrom(const std::vector<std::filesystem::path> &directories);
std::unique_ptr<Nccl>
openNcclFrom(const std::vector<std::filesystem::path> &directories);
/// (`oldGpu`: the capability of one that runs none of CUDA 13).
std::unique_ptr<Dnn>
openDnnFrom(const std::vector<std::filesystem::path> &directories,
            int oldGpu = 0);
std::unique_ptr<Fft>
openFftFrom(int driverVersion,
            const std::vector<std::filesystem::path> &directories);

/// "12.4" for 12040.
std::string versionText(int version);

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_LIBRARIES_H
