//===- Device.h - What a rank computes on -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The seam between the executor and the hardware: one object for each rank,
// used by that rank's thread alone. Buffers are addresses in the device's
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_DEVICE_H
#define WHALE_RUNTIME_DEVICE_DEVICE_H

#include "program/BoundProgram.h"

namespace whale::runtime {

/// Instructions keep their address for the life of the program: a device may
/// prepare one when it first sees it and find it again by its address.
class Device {
public:
  virtual ~Device() = default;

  /// Called once on the rank's thread, before anything else.
  virtual void attachThread() = 0;

  virtual void launch(const KernelLaunch &launch, void **buffers) = 0;
  virtual void matmul(const Matmul &matmul, const void *lhs, const void *rhs,
                      void *out) = 0;
  virtual void convolution(const Convolution &convolution, const void *lhs,
                           const void *rhs, void *out) = 0;
  /// The ranges are equal or disjoint.
  virtual void copy(void *dst, const void *src, int64_t bytes) = 0;

  /// The least seconds for so much arithmetic (in products of `product`, else
  /// in f32) and so many bytes, at peaks that are measured when first asked
  /// for.
  virtual double leastSeconds(double flops, double bytes,
                              std::optional<DType> product) = 0;

  /// Memory that the device has taken for its own purposes so far.
  virtual int64_t scratchBytes() const = 0;
};

/// A device of `threads` CPU threads.
std::unique_ptr<Device> createCpuDevice(int64_t threads);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_DEVICE_H
