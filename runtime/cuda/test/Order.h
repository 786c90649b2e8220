//===- Order.h - Which operations come before which -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vector clocks, and the last users of each byte.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_TEST_ORDER_H
#define WHALE_RUNTIME_CUDA_TEST_ORDER_H

#include "cuda/Driver.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace whale::runtime::cuda::test {

/// By stream: how many of its operations come before.
class Clock {
public:
  int64_t at(size_t stream) const {
    return stream < times.size() ? times[stream] : 0;
  }
  void tick(size_t stream) {
    if (times.size() <= stream)
      times.resize(stream + 1);
    ++times[stream];
  }
  void join(const Clock &other) {
    if (times.size() < other.times.size())
      times.resize(other.times.size());
    for (size_t i = 0; i < other.times.size(); ++i)
      times[i] = std::max(times[i], other.times[i]);
  }
  bool includes(const Clock &other) const {
    for (size_t i = 0; i < other.times.size(); ++i)
      if (at(i) < other.times[i])
        return false;
    return true;
  }

private:
  std::vector<int64_t> times;
};

struct Access {
  Address address = 0;
  int64_t bytes = 0;
  bool writes = false;
};

/// Who has used which bytes: ranges, which are cut where uses differ.
class Shadow {
public:
  /// Notes a use by an operation of a stream whose clock, which counts the
  /// operation, is given. Returns the operation that it is in no order with.
  std::optional<std::string> use(const Access &access, size_t stream,
                                 const Clock &clock, const std::string &what);
  void forget(Address address, int64_t bytes);

private:
  struct User {
    size_t stream = 0;
    int64_t time = 0;
    std::string what;
  };
  struct Cell {
    Address end = 0;
    std::optional<User> writer;
    std::vector<User> readers;
  };
  void cut(Address address);

  std::map<Address, Cell> cells;
};

} // namespace whale::runtime::cuda::test

#endif // WHALE_RUNTIME_CUDA_TEST_ORDER_H
