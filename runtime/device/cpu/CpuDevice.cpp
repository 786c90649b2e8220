//===- CpuDevice.cpp - Computes on CPU threads ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/Device.h"
#include "device/cpu/Operations.h"
#include "device/cpu/Parallel.h"
#include "device/cpu/Peaks.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace whale::runtime {

namespace {
class CpuDevice : public Device {
public:
  explicit CpuDevice(int64_t threads) : context(threads) {}

  void attachThread() override { setThreadCount(context.threads); }

  void launch(const KernelLaunch &launch, void **buffers) override {
    // Below some tens of microseconds waking the threads costs more than they
    // bring.
    constexpr double workPerThread = 262144;
    auto parts = static_cast<int64_t>(std::min(
        launch.work / workPerThread, static_cast<double>(context.threads)));
    parallelFor(launch.extent, std::max<int64_t>(parts, 1),
                [&](int64_t begin, int64_t end) {
                  launch.function(buffers, begin, end);
                });
  }

  void matmul(const Matmul &matmul, const void *lhs, const void *rhs,
              void *out) override {
    auto it = matmuls.find(&matmul);
    if (it == matmuls.end())
      it = matmuls.try_emplace(&matmul, matmul, context).first;
    it->second.run(context, lhs, rhs, out);
  }

  void convolution(const Convolution &convolution, const void *lhs,
                   const void *rhs, void *out) override {
    auto it = convolutions.find(&convolution);
    if (it == convolutions.end())
      it = convolutions.try_emplace(&convolution, convolution, context).first;
    it->second.run(context, lhs, rhs, out);
  }

  void copy(void *dst, const void *src, int64_t bytes) override {
    if (bytes)
      std::memmove(dst, src, static_cast<size_t>(bytes));
  }

  double leastSeconds(double flops, double bytes,
                      std::optional<DType> product) override {
    if (!bandwidth)
      bandwidth = measureBandwidth(context.threads);
    bool half = product == DType::BF16;
    std::optional<double> &peak = half ? halfPeak : floatPeak;
    if (!peak)
      peak = measureProducts(half ? DType::BF16 : DType::F32, context);
    return std::max(flops / *peak, bytes / *bandwidth);
  }

  int64_t scratchBytes() const override { return context.scratch.bytes(); }

private:
  CpuContext context;
  /// Bytes and FLOP/s a second, once measured.
  std::optional<double> bandwidth, floatPeak, halfPeak;
  std::unordered_map<const Matmul *, PreparedMatmul> matmuls;
  std::unordered_map<const Convolution *, PreparedConvolution> convolutions;
};
} // namespace

std::unique_ptr<Device> createCpuDevice(int64_t threads) {
  return std::make_unique<CpuDevice>(threads);
}

} // namespace whale::runtime
