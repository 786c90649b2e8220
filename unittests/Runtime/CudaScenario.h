//===- CudaScenario.h - GPUs that are not there for tests -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_CUDASCENARIO_H
#define WHALE_UNITTESTS_RUNTIME_CUDASCENARIO_H

#include "TransportScenario.h"
#include "cuda/test/Machine.h"
#include "device/cuda/CudaDevice.h"
#include "whale/System/LateLibrary.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace whale::runtime::test {

/// A device without kernels on the first GPU of the test machine, for the
/// calling thread.
inline std::unique_ptr<Device> makeGpu(const cuda::test::Machine &machine) {
  auto device = createCudaDevice(
      std::make_shared<cuda::Gpu>(machine.libraries(), 0), programOf(1, {}),
      [](const KernelLaunch &) { return GpuKernel(); }, nullptr, 0, {});
  device->attachThread();
  return device;
}

/// What a device makes of `out` where `compute` gets a table of the buffers 0
/// to 2: `lhs` and `rhs`, which are read alone, and `out`.
template <typename Element, typename Compute>
std::vector<Element> computeOn(Device &device, const std::vector<Element> &lhs,
                               const std::vector<Element> &rhs,
                               const std::vector<Element> &out,
                               Compute compute) {
  auto copy = [](const std::vector<Element> &elements) {
    auto buffer = Buffer::allocate(
        static_cast<int64_t>(elements.size() * sizeof(Element)));
    std::memcpy(buffer->data.get(), elements.data(),
                elements.size() * sizeof(Element));
    return buffer;
  };
  std::shared_ptr<Buffer> buffers[] = {copy(lhs), copy(rhs), copy(out)};
  Region regions[] = {{buffers[0].get(), 0, true, false},
                      {buffers[1].get(), 0, true, false},
                      {buffers[2].get(), 0}};
  BufferTable table;
  device.reset();
  device.bind(table, regions);
  compute(table);
  device.finish();
  device.bind(table, {});
  auto *data = static_cast<Element *>(buffers[2]->data.get());
  return {data, data + out.size()};
}

/// The real cuDNN, of that version or a later one; null, and `why`, if there is
/// none.
inline std::unique_ptr<cuda::Dnn> openRealDnn(size_t version,
                                              std::string &why) {
  try {
    std::unique_ptr<cuda::Dnn> dnn =
        cuda::openDnnFrom(system::libraryDirectories());
    if (dnn->getVersion.function() >= version)
      return dnn;
    why = "cuDNN is older than " + std::to_string(version / 10000) + "." +
          std::to_string(version / 100 % 100);
  } catch (const Error &error) {
    why = error.what();
  }
  return nullptr;
}

/// What cuDNN asks of a device, as an H200 answers; of another architecture,
/// with its shared memory.
inline std::string propertiesOf(int capability = 90) {
  nlohmann::json json = {{"maxGridSize", {2147483647, 65535, 65535}},
                         {"maxBlockSize", {1024, 1024, 64}},
                         {"regsPerBlock", 65536},
                         {"multiProcessorCount", 132},
                         {"warpSize", 32},
                         {"maxSharedMemoryPerBlock", 49152},
                         {"reservedSharedMemoryPerBlock", 1024},
                         {"maxRegistersPerSM", 65536},
                         {"maxCtasPerSM", 32},
                         {"maxThreadsPerBlock", 1024},
                         {"maxThreadsPerSM", 2048},
                         {"pciDeviceId", 0},
                         {"isTccDriver", 0},
                         {"supportCoopLaunch", 1},
                         {"totalGlobalMem", 150000000000},
                         {"smClockRateKHz", 1980000},
                         {"memClockRateKHz", 2619000},
                         {"l2CacheSize", 52428800},
                         {"cudaDeviceId", 0},
                         {"deviceVer", capability * 10},
                         {"driverVer", 13000},
                         {"deviceName", "NVIDIA H200"}};
  int64_t shared = capability >= 90   ? 232448
                   : capability >= 80 ? 166912
                                      : 65536;
  json["maxSharedMemoryPerBlockOptin"] = shared;
  json["maxSharedMemoryPerSM"] = shared + 1024;
  return json.dump();
}

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_CUDASCENARIO_H
