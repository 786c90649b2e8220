//===- DeviceConformance.h - What every device must do ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests of an implementation of Device. One gains them all by
//
//   INSTANTIATE_TEST_SUITE_P(Name, DeviceConformance,
//                            testing::Values(DeviceMaker(create)));
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_DEVICECONFORMANCE_H
#define WHALE_UNITTESTS_RUNTIME_DEVICECONFORMANCE_H

#include "Products.h"
#include "TransportConformance.h"
#include "TransportScenario.h"

#include <numeric>

namespace whale::runtime::test {

/// A device for each rank. The program and the transport outlive them.
using DeviceMaker = std::function<std::vector<std::unique_ptr<Device>>(
    const format::Program &, Transport &)>;

/// Devices of ranks that are threads of the test.
class Devices {
public:
  Devices(const DeviceMaker &make, int64_t ranks,
          const std::vector<Collective> &channels = {})
      : program(programOf(ranks, channels)),
        transport(localTransportOf(program)),
        devices(make(program, *transport)) {}

  /// Called by a rank that fails.
  std::function<void()> onError;
  /// Called by a rank that has finished.
  std::function<void(int64_t rank)> onEnd;

  using Job = std::function<void(int64_t rank, Device &device)>;
  /// Runs a job on each rank, in one run.
  Outcome run(const Job &job);

  const format::Program program;
  const std::unique_ptr<Transport> transport;
  const std::vector<std::unique_ptr<Device>> devices;
};

/// Buffers of i32 in one block of the host's memory, and their table.
class Integers {
public:
  /// `count` buffers of `length` integers.
  Integers(Device &device, int64_t count, int64_t length = 4);

  /// Only while no operation is on a queue.
  int32_t *at(BufferIndex buffer) const {
    return static_cast<int32_t *>(memory->data.get()) + buffer * length;
  }
  void fill(BufferIndex buffer, int32_t first) const {
    std::iota(at(buffer), at(buffer) + length, first);
  }
  std::vector<int32_t> values(BufferIndex buffer) const {
    return {at(buffer), at(buffer) + length};
  }
  Copy copy(BufferIndex src, BufferIndex dst) const {
    return {src, dst, length * 4};
  }

  int64_t length;
  std::shared_ptr<Buffer> memory;
  BufferTable table;
};

class DeviceConformance : public testing::TestWithParam<DeviceMaker> {
public:
  /// What is checked after each test, when its devices are gone.
  static inline std::function<void()> afterwards;

protected:
  void TearDown() override {
    if (afterwards)
      afterwards();
  }
};

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_DEVICECONFORMANCE_H
