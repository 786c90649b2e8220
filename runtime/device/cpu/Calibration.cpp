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
// in a step. Cost: some seventy products and copies, and a thousand messages.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Calibration.h"

#include "device/cpu/Parallel.h"
#include "device/cpu/Peaks.h"
#include "library/Library.h"
#include "transport/Transport.h"
#include "whale/ProgramFormat/Attention.h"
#include "whale/System/Processors.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
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

/// Of images of zeros, with stride 1 and as large as before: the convolution,
/// or the gradient of its filter. That of its images is a convolution again.
class Convolved {
public:
  struct Sizes {
    int64_t batch, side, channels, window;
  };
  Convolved(const Sizes &sizes, bool isFilterGradient, CpuContext &context)
      : context(context), prepared(make(sizes, isFilterGradient), context),
        images(zeros(sizes.batch * sizes.side * sizes.side * sizes.channels)),
        results(zeros(sizes.batch * sizes.side * sizes.side * sizes.channels)),
        filter(zeros(sizes.window * sizes.window * sizes.channels *
                     sizes.channels)),
        isFilterGradient(isFilterGradient) {}

  static double flopsOf(const Sizes &sizes) {
    return 2.0 *
           static_cast<double>(sizes.batch * sizes.side * sizes.side *
                               sizes.window * sizes.window) *
           static_cast<double>(sizes.channels * sizes.channels);
  }

  void run() {
    if (isFilterGradient)
      prepared.run(context, images->data.get(), results->data.get(),
                   filter->data.get());
    else
      prepared.run(context, images->data.get(), filter->data.get(),
                   results->data.get());
  }

private:
  static Convolution make(const Sizes &sizes, bool isFilterGradient) {
    Shape image = {sizes.batch, sizes.side, sizes.side, sizes.channels};
    Shape filter = {sizes.window, sizes.window, sizes.channels, sizes.channels};
    Convolution op;
    op.lhsType = op.rhsType = op.outType = DType::F32;
    op.lhsShape = image;
    op.rhsShape = isFilterGradient ? image : filter;
    op.outShape = isFilterGradient ? filter : image;
    // Batch and features of images; input and output features of filters.
    using Dimensions = Convolution::Dimensions;
    Dimensions ofImages{0, 3, {1, 2}}, ofFilters{2, 3, {0, 1}};
    op.lhsDims = isFilterGradient ? Dimensions{3, 0, {1, 2}} : ofImages;
    op.rhsDims = isFilterGradient ? Dimensions{0, 3, {1, 2}} : ofFilters;
    op.outDims = isFilterGradient ? ofFilters : ofImages;
    Convolution::Window window;
    window.low = window.high = sizes.window / 2;
    op.windows = {window, window};
    return op;
  }
  static std::shared_ptr<Buffer> zeros(int64_t elements) {
    int64_t bytes = elements * byteSize(DType::F32);
    std::shared_ptr<Buffer> buffer = Buffer::allocate(bytes);
    std::memset(buffer->data.get(), 0, static_cast<size_t>(bytes));
    return buffer;
  }

  CpuContext &context;
  PreparedConvolution prepared;
  std::shared_ptr<Buffer> images, results, filter;
  bool isFilterGradient;
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
    constexpr int attempts = 5;
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

  /// FLOP/s of a convolution with both gradients.
  double rateOf(const Convolved::Sizes &sizes) {
    auto timeOf = [&](bool isFilterGradient) {
      return time([&](CpuContext &context) {
        auto convolved =
            std::make_shared<Convolved>(sizes, isFilterGradient, context);
        return [convolved] { convolved->run(); };
      });
    };
    return 3 * Convolved::flopsOf(sizes) / (2 * timeOf(false) + timeOf(true));
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

/// FLOP/s of attention with its gradient.
static double measureAttention(Ranks &ranks) {
  // Of a small transformer.
  constexpr int64_t heads = 16, tokens = 128, features = 64;
  auto timeOf = [&](bool isGradient) {
    return ranks.time([=](CpuContext &context) {
      nlohmann::json config = {
          {"query", "hqd"}, {"key", "hkd"}, {"value", "hke"}, {"scale", 0.125}};
      LibraryTensor tensor{DType::F32, {heads, tokens, features}};
      std::vector<LibraryTensor> inputs(isGradient ? 4 : 3, tensor),
          outputs(isGradient ? 3 : 1, tensor);
      if (isGradient) {
        config["cotangent"] = "hqe";
        config["query_result"] = "hqd";
        config["key_result"] = "hkd";
        config["value_result"] = "hke";
      } else {
        config["result"] = "hqe";
      }
      format::AttentionSizes sizes{heads, tokens, tokens, features, features};
      outputs.push_back(
          {DType::F32,
           {context.threads *
            (isGradient ? sizes.gradientScratch() : sizes.scratch())}});
      auto allocate = [](const std::vector<LibraryTensor> &tensors) {
        std::vector<std::shared_ptr<Buffer>> buffers;
        for (const LibraryTensor &each : tensors) {
          int64_t bytes = elementCount(each.shape) * byteSize(each.dtype);
          buffers.push_back(Buffer::allocate(bytes));
          std::memset(buffers.back()->data.get(), 0,
                      static_cast<size_t>(bytes));
        }
        return buffers;
      };
      LibraryRequest request{inputs, outputs, config, {}};
      LibraryFunction function =
          (isGradient ? prepareAttentionGradient : prepareAttention)(request);
      return [function, in = allocate(inputs), out = allocate(outputs)] {
        auto pointers = [](const std::vector<std::shared_ptr<Buffer>> &list) {
          std::vector<void *> data;
          for (const auto &buffer : list)
            data.push_back(buffer->data.get());
          return data;
        };
        function(pointers(in), pointers(out));
      };
    });
  };
  // Two products forward, and five in the gradient.
  double flops = 7 * 2.0 * heads * tokens * tokens * features;
  return flops / (timeOf(false) + timeOf(true));
}

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
  channel.participants = {0, 1};
  channel.groups = {{0, 1}};
  ChannelPart &part = channel.parts.front();
  part.dtype = DType::I8;
  part.srcShapes[0] = part.dstShapes[1] = {bytes};
  part.cells[1] = std::make_shared<std::vector<Cell>>(
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
  for (const Convolved::Sizes &sizes :
       {Convolved::Sizes{1, 8, 16, 3}, Convolved::Sizes{4, 14, 32, 3},
        Convolved::Sizes{8, 28, 64, 3}})
    speed.convolutionByFlops.push_back(
        {Convolved::flopsOf(sizes), ranks.rateOf(sizes)});
  for (int64_t window : {1, 3, 5})
    speed.convolutionByWindow.push_back(
        {static_cast<double>(window * window),
         ranks.rateOf(Convolved::Sizes{8, 28, 64, window})});
  for (auto *curve : {&speed.byFlops, &speed.bySmallest,
                      &speed.convolutionByFlops, &speed.convolutionByWindow})
    for (auto &[size, share] : *curve)
      share /= peak;
  speed.attention = measureAttention(ranks) / peak;
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
