//===- Libraries.cpp - The libraries that compute programs ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Libraries.h"

#include "cuda/Libraries.h"
#include "device/cpu/Scratch.h"
#include "device/cuda/Calls.h"
#include "device/cuda/Products.h"
#include "whale/System/Json.h"
#include "whale/System/LateLibrary.h"

#include <algorithm>
#include <iterator>

namespace whale::runtime {

namespace {
class RuntimeLibraries final : public format::Libraries {
public:
  void checkCall(const std::string &function, std::vector<LibraryTensor> inputs,
                 std::vector<LibraryTensor> outputs,
                 const std::string &config) const override {
    const LibraryFactory *factory = findLibraryFunction(function);
    if (!factory)
      throw Error("there is no library function '" + function + "'");
    nlohmann::json parsed = system::parseJson<nlohmann::json>(config);
    auto findKernel = [](const std::string &) {
      return [](void **, int64_t, int64_t) {};
    };
    (*factory)({std::move(inputs), std::move(outputs), parsed, findKernel});
  }

  std::optional<int64_t>
  gpuWorkspace(const std::string &function,
               const std::vector<LibraryTensor> &inputs,
               const std::vector<LibraryTensor> &outputs) const override {
    return cuda::workspaceOf(function, inputs, outputs);
  }

  std::optional<int64_t>
  gpuWorkspace(const format::Convolution &convolution) const override {
    auto described = cuda::describeForDnn(convolution);
    if (!described)
      return std::nullopt;
    return cuda::workspaceOf(*described);
  }

  int64_t gpuProductWorkspace(int capability) const override {
    return cuda::workspaceOfProducts(capability);
  }

  std::vector<ScratchSizes>
  findScratch(std::span<const format::Product> products,
              int64_t ranks) const override {
    return runtime::findScratch(products, threadsOfRanks(ranks));
  }
};
} // namespace

const format::Libraries &getLibraries() {
  static const RuntimeLibraries libraries;
  return libraries;
}

std::vector<LateLibrary> findLateLibraries() {
  std::vector<LateLibrary> found = {
      {"UCX", "data between processes and hosts", kUcxFile},
      {"Open MPI", "the same, under mpirun", kMpiFile},
      {"PMIx", "processes that srun or mpirun starts", kPmixFile}};
  for (LateLibrary &library : found)
    if (!system::openLibrary(library.place.c_str(), RTLD_NOW | RTLD_LOCAL))
      library.place.clear();
  std::ranges::move(cuda::findLibraries(), std::back_inserter(found));
  return found;
}

} // namespace whale::runtime
