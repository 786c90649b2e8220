//===- Marks.h - When a GPU has come how far --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DEVICE_CUDA_MARKS_H
#define WHALE_DEVICE_CUDA_MARKS_H

#include "cuda/Gpu.h"

#include <chrono>
#include <memory>
#include <vector>

namespace whale::runtime::cuda {

/// Events on streams of one GPU, with times by the host's clock: the first mark
/// waits for its stream, and the host reads its clock then. They are right to
/// some 10 us, and to 1 us among themselves.
class Marks {
public:
  using Clock = std::chrono::steady_clock;

  explicit Marks(std::shared_ptr<const Gpu> gpu) : gpu(std::move(gpu)) {}
  /// While the GPU is attached.
  ~Marks();
  Marks(const Marks &) = delete;
  Marks &operator=(const Marks &) = delete;

  /// Marks the stream; mark 0 begins anew.
  void put(size_t mark, Stream stream);
  /// Waits for the first marks and gives their times.
  void read(std::vector<Clock::time_point> &times) const;

private:
  const std::shared_ptr<const Gpu> gpu;
  /// That of the origin, then by mark.
  std::vector<EventHandle> events;
  Clock::time_point origin;
};

} // namespace whale::runtime::cuda

#endif // WHALE_DEVICE_CUDA_MARKS_H
