//===- Parallel.cpp - The threads of one rank -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Parallel.h"

#include "whale/Runtime/Types.h"

#include <algorithm>
#include <exception>
#include <future>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

// What compilers call for `#pragma omp parallel`; GNU's and LLVM's runtimes
// both have it. Called by hand because clang's own pragma would bring in LLVM's
// runtime beside the GNU one of oneDNN.
extern "C" {
void GOMP_parallel(void (*body)(void *), void *data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace whale::runtime {

void setThreadCount(int64_t threads) {
  omp_set_num_threads(static_cast<int>(threads));
}

int64_t getThreadCount() { return omp_get_max_threads(); }

void checkThreads(int64_t count) {
  // Ranks that look at once would see each other's.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::promise<void> end;
  std::shared_future<void> ended = end.get_future();
  std::vector<std::jthread> threads;
  std::string failure;
  try {
    for (int64_t i = 1; i < count; ++i)
      threads.emplace_back([ended] { ended.wait(); });
  } catch (const std::system_error &error) {
    failure = error.what();
  }
  end.set_value();
  if (!failure.empty())
    throw Error("cannot start the " + std::to_string(count) +
                " threads of a rank: " + failure);
}

namespace {
struct Region {
  int64_t count;
  int64_t parts;
  const std::function<void(int64_t, int64_t)> &body;
  std::mutex mutex;
  std::exception_ptr error;

  void run(int64_t part) {
    int64_t small = count / parts, larger = count % parts;
    int64_t begin = part * small + std::min(part, larger);
    int64_t end = begin + small + (part < larger);
    try {
      body(begin, end);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error)
        error = std::current_exception();
    }
  }
};
} // namespace

void parallelFor(int64_t count, int64_t parts,
                 const std::function<void(int64_t, int64_t)> &body) {
  parts = std::min(parts, count);
  if (count <= 0)
    return;
  if (parts <= 1) {
    body(0, count);
    return;
  }
  Region region{count, parts, body, {}, nullptr};
  auto entry = [](void *data) {
    auto &region = *static_cast<Region *>(data);
    // The runtime may give fewer threads than asked for.
    for (int64_t part = omp_get_thread_num(); part < region.parts;
         part += omp_get_num_threads())
      region.run(part);
  };
  GOMP_parallel(entry, &region, static_cast<unsigned>(parts), 0);
  if (region.error)
    std::rethrow_exception(region.error);
}

} // namespace whale::runtime
