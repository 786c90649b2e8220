//===- Calibration.cpp - How fast this machine is -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks do the same at once, each in a thread with its part of the
// processors, and the slowest counts: they share caches and memory, as they do
// in a step. Cost: some fifty products and copies, and a thousand messages.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Calibration.h"

#include "device/cpu/Parallel.h"
#include "device/cpu/Peaks.h"
#include "transport/Transport.h"
#include "whale/System/Processors.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>

namespace whale::runtime {

namespace {
/// A product of matrices of zeros.
class Product {
public:
  Product(DType dtype, int64_t m, int64_t n, int64_t k, CpuContext &context)
      : context(context),
        flops(2.0 * static_cast<double>(m) * static_cast<double>(n) *
              static_cast<double>(k)),
        prepared(squareOf(dtype, m, n, k), context),
        lhs(zeros(m * k * byteSize(dtype))),
        rhs(zeros(k * n * byteSize(dtype))),
        out(zeros(m * n * byteSize(dtype))) {}

  void run() {
    prepared.run(context, lhs->data.get(), rhs->data.get(), out->data.get());
  }

private:
  static Matmul squareOf(DType dtype, int64_t m, int64_t n, int64_t k) {
    Matmul product;
    product.lhsType = product.rhsType = product.outType = dtype;
    product.m = m;
    product.mLhs = k;
    product.mOut = n;
    product.n = n;
    product.nRhs = product.nOut = 1;
    product.k = k;
    product.kLhs = 1;
    product.kRhs = n;
    return product;
  }
  static std::shared_ptr<Buffer> zeros(int64_t bytes) {
    std::shared_ptr<Buffer> buffer = Buffer::allocate(bytes);
    std::memset(buffer->data.get(), 0, static_cast<size_t>(bytes));
    return buffer;
  }

  CpuContext &context;

public:
  const double flops;

private:
  PreparedMatmul prepared;
  std::shared_ptr<Buffer> lhs, rhs, out;
};

/// Ranks that do the same at once.
class Ranks {
public:
  Ranks(int64_t count, int64_t threads) : count(count), threads(threads) {}

  /// Seconds of one of the runs that `prepare` returns for a rank; of the
  /// slowest rank, in the fastest of some attempts.
  template <typename Prepare>
  double time(const Prepare &prepare) {
    // Enough for a clock, and for the others to begin.
    constexpr double enough = 0.02;
    constexpr int attempts = 3;
    std::vector<std::array<double, attempts>> seconds(count);
    std::barrier all(count);
    auto work = [&](int64_t rank) {
      ThreadCount limit(threads);
      CpuContext context(threads);
      auto run = prepare(context);
      run();
      auto begin = Clock::now();
      run();
      double once = std::max(secondsSince(begin), 1e-7);
      auto times = static_cast<int64_t>(std::clamp(enough / once, 1.0, 1e4));
      for (double &each : seconds[rank]) {
        all.arrive_and_wait();
        begin = Clock::now();
        for (int64_t i = 0; i < times; ++i)
          run();
        each = secondsSince(begin) / static_cast<double>(times);
      }
    };
    {
      std::vector<std::jthread> others;
      for (int64_t rank = 1; rank < count; ++rank)
        others.emplace_back(work, rank);
      work(0);
    }
    double least = 0;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      double slowest = 0;
      for (const auto &rank : seconds)
        slowest = std::max(slowest, rank[attempt]);
      least = attempt == 0 ? slowest : std::min(least, slowest);
    }
    return least;
  }

  /// FLOP/s of a product.
  double rateOf(DType dtype, int64_t m, int64_t n, int64_t k) {
    double flops = 0;
    double seconds = time([&](CpuContext &context) {
      auto product = std::make_shared<Product>(dtype, m, n, k, context);
      flops = product->flops;
      return [product] { product->run(); };
    });
    return flops / seconds;
  }

private:
  using Clock = std::chrono::steady_clock;
  static double secondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  int64_t count, threads;
};
} // namespace

/// More than a cache holds.
static constexpr int64_t copiedBytes = 64 << 20;

/// Bytes a second of copies that no cache holds.
static double measureCopies(Ranks &ranks) {
  double seconds = ranks.time([&](CpuContext &context) {
    auto from = Buffer::allocate(copiedBytes),
         to = Buffer::allocate(copiedBytes);
    std::memset(from->data.get(), 1, copiedBytes);
    return [from, to, threads = context.threads] {
      parallelFor(copiedBytes, threads, [&](int64_t begin, int64_t end) {
        std::memcpy(static_cast<char *>(to->data.get()) + begin,
                    static_cast<char *>(from->data.get()) + begin,
                    static_cast<size_t>(end - begin));
      });
    };
  });
  return 2.0 * copiedBytes / seconds;
}

/// Seconds of a message of `bytes` from one rank to the other.
static double measureMessage(int64_t bytes, int64_t times) {
  Collective channel;
  channel.kind = "send_recv";
  channel.dtype = DType::I8;
  channel.participants = {0, 1};
  channel.groups = {{0, 1}};
  channel.srcShapes[0] = channel.dstShapes[1] = {bytes};
  channel.cells[1] = std::make_shared<std::vector<Cell>>(
      std::vector<Cell>{{{0}, {bytes}, {{0, {0}}}}});
  std::unique_ptr<Transport> transport = createLocalTransport(2);
  int64_t number = transport->addChannels(
      {{0, std::make_shared<Collective>(std::move(channel))}}, 1);
  auto from = Buffer::allocate(bytes), to = Buffer::allocate(bytes);
  std::memset(from->data.get(), 1, static_cast<size_t>(bytes));
  auto work = [&](int64_t rank) {
    for (int64_t i = 0; i <= times; ++i)
      transport->wait(rank,
                      transport->start(rank, number,
                                       rank == 0 ? from->data.get() : nullptr,
                                       rank == 0 ? nullptr : to->data.get()));
    transport->finish(rank);
  };
  auto begin = std::chrono::steady_clock::now();
  {
    std::jthread other(work, 1);
    work(0);
  }
  std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  return all.count() / static_cast<double>(times + 1);
}

MachineSpeed measureMachine(int64_t count) {
  MachineSpeed speed;
  speed.ranks = count;
  speed.threads = std::max<int64_t>(1, system::usableProcessors() / count);
  checkThreads(count * speed.threads);
  Ranks ranks(count, speed.threads);
  constexpr int64_t large = 1024;
  double peak = 0;
  for (int64_t side : {16, 32, 64, 128, 256, 512, 1024}) {
    double rate = ranks.rateOf(DType::F32, side, side, side);
    peak = std::max(peak, rate);
    speed.byFlops.push_back(
        {2.0 * static_cast<double>(side * side * side), rate});
  }
  for (int64_t side : {1, 4, 16, 64, 256, 1024})
    speed.bySmallest.push_back({static_cast<double>(side),
                                ranks.rateOf(DType::F32, large, large, side)});
  for (const auto &[size, rate] : speed.bySmallest)
    peak = std::max(peak, rate);
  for (auto *curve : {&speed.byFlops, &speed.bySmallest})
    for (auto &[size, share] : *curve)
      share /= peak;
  speed.flops["f32"] = peak;
  speed.flops["bf16"] = ranks.rateOf(DType::BF16, large, large, large);
  speed.flops["f64"] = ranks.rateOf(DType::F64, 512, 512, 512);
  speed.memoryBandwidth = measureCopies(ranks);
  speed.kernelStart = ranks.time([](CpuContext &context) {
    auto product = std::make_shared<Product>(DType::F32, 1, 1, 1, context);
    return [product] { product->run(); };
  });
  if (count > 1) {
    constexpr int64_t bytes = 32 << 20;
    speed.linkLatency = measureMessage(8, 1000);
    speed.linkBandwidth =
        bytes / std::max(1e-9, measureMessage(bytes, 8) - speed.linkLatency);
  }
  return speed;
}

} // namespace whale::runtime
