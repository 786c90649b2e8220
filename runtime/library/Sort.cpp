//===- Sort.cpp - Sort along a dimension ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: operands of one shape, a dimension, and an order: keys, or a comparator,
// which is a kernel. Out: all operands in the order of their lines along it.
//
// Of each line the indices are sorted, then the elements of all operands
// copied. It is a merge sort: stable, and safe for orders that are none (a
// comparator may say anything). Lines are shared out to threads. Cost: n log n
// comparisons for a line of n elements, each a call if there is a comparator,
// and two lists of n indices a thread.
//
//===----------------------------------------------------------------------===//

#include "Numeric.h"
#include "device/cpu/Parallel.h"
#include "library/Library.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace whale::runtime {

namespace {
enum class Order : uint8_t { Default, Total, Partial };

/// A line of elements: the address of the first and the bytes between two.
struct Line {
  const uint8_t *data;
  int64_t stride;
  const uint8_t *at(int64_t i) const { return data + i * stride; }
};

/// Whether element a of a line comes before element b, or is not after it.
using Less = bool (*)(const uint8_t *a, const uint8_t *b);

struct Key {
  size_t operand;
  bool descending;
  Less less;
};

struct Sort {
  size_t operands;
  std::vector<int64_t> bytes;
  int64_t outer, length, inner;
  std::vector<Key> keys;
  void (*comparator)(void **, int64_t, int64_t) = nullptr;

  bool before(const std::vector<Line> &lines, int64_t a, int64_t b) const;
  void sortLine(const std::vector<Line> &lines, std::vector<int64_t> &order,
                std::vector<int64_t> &other) const;
  void run(std::span<void *const> inputs, std::span<void *const> outputs) const;
};
} // namespace

template <typename T, Order order>
static bool lessThan(const uint8_t *aBytes, const uint8_t *bBytes) {
  T aStored, bStored;
  std::memcpy(&aStored, aBytes, sizeof(T));
  std::memcpy(&bStored, bBytes, sizeof(T));
  auto a = Element<T>::load(aStored), b = Element<T>::load(bStored);
  if constexpr (std::is_floating_point_v<decltype(a)>) {
    if constexpr (order == Order::Default)
      return a < b || (!std::isnan(a) && std::isnan(b));
    if constexpr (order == Order::Total) {
      if (std::isnan(a) || std::isnan(b) || (a == 0 && b == 0)) {
        // -NaN < negative < -0 < 0 < positive < NaN.
        auto rank = [](auto value) {
          int magnitude = std::isnan(value) ? 3 : value == 0 ? 1 : 2;
          return std::signbit(value) ? -magnitude : magnitude;
        };
        return rank(a) < rank(b);
      }
    }
  }
  return a < b;
}

static Less findLess(DType dtype, Order order) {
  return dispatch(dtype, [&]<typename T>() -> Less {
    if constexpr (isOpaque<T>) {
      return nullptr;
    } else {
      using Compute = typename Element<T>::Compute;
      if constexpr (!std::is_arithmetic_v<Compute>)
        return nullptr;
      else if (order == Order::Default)
        return lessThan<T, Order::Default>;
      else if (order == Order::Total)
        return lessThan<T, Order::Total>;
      else
        return lessThan<T, Order::Partial>;
    }
  });
}

bool Sort::before(const std::vector<Line> &lines, int64_t a, int64_t b) const {
  if (comparator) {
    std::array<void *, 65> buffers;
    for (size_t i = 0; i < operands; ++i) {
      buffers[2 * i] = const_cast<uint8_t *>(lines[i].at(a));
      buffers[2 * i + 1] = const_cast<uint8_t *>(lines[i].at(b));
    }
    uint8_t result = 0;
    buffers[2 * operands] = &result;
    comparator(buffers.data(), 0, 1);
    return result != 0;
  }
  for (const Key &key : keys) {
    const Line &line = lines[key.operand];
    const uint8_t *first = line.at(a), *second = line.at(b);
    if (key.descending)
      std::swap(first, second);
    if (key.less(first, second))
      return true;
    if (key.less(second, first))
      return false;
  }
  return false;
}

void Sort::sortLine(const std::vector<Line> &lines, std::vector<int64_t> &order,
                    std::vector<int64_t> &other) const {
  for (int64_t i = 0; i < length; ++i)
    order[i] = i;
  for (int64_t width = 1; width < length; width *= 2) {
    for (int64_t begin = 0; begin < length; begin += 2 * width) {
      int64_t middle = std::min(begin + width, length);
      int64_t end = std::min(begin + 2 * width, length);
      int64_t left = begin, right = middle;
      for (int64_t out = begin; out < end; ++out) {
        bool takeRight =
            left == middle ||
            (right < end && before(lines, order[right], order[left]));
        other[out] = order[takeRight ? right++ : left++];
      }
    }
    std::swap(order, other);
  }
}

void Sort::run(std::span<void *const> inputs,
               std::span<void *const> outputs) const {
  int64_t count = outer * inner;
  // A comparison, for each power of two in a line's length, takes as long as
  // some ten bytes.
  constexpr double comparison = 16;
  double elements = static_cast<double>(count * length);
  int64_t threads = threadsFor(
      elements * std::log2(static_cast<double>(length) + 1) * comparison,
      getThreadCount());
  parallelFor(count, threads, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> order(length), other(length);
    std::vector<Line> lines(operands);
    for (int64_t line = begin; line < end; ++line) {
      int64_t first = line / inner * length * inner + line % inner;
      for (size_t i = 0; i < operands; ++i)
        lines[i] = {static_cast<const uint8_t *>(inputs[i]) + first * bytes[i],
                    inner * bytes[i]};
      sortLine(lines, order, other);
      for (size_t i = 0; i < operands; ++i) {
        auto *to = static_cast<uint8_t *>(outputs[i]) + first * bytes[i];
        for (int64_t j = 0; j < length; ++j)
          std::memcpy(to + j * lines[i].stride, lines[i].at(order[j]),
                      static_cast<size_t>(bytes[i]));
      }
    }
  });
}

/// The non-negative integer below `bound` that a member of an object is.
static size_t readIndex(const nlohmann::json &object, const char *key,
                        size_t bound, const char *message) {
  auto it = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || it == object.end() || !it->is_number_integer())
    throw Error(message);
  // A negative number becomes a large one.
  auto index = static_cast<uint64_t>(it->get<int64_t>());
  if (index >= bound)
    throw Error(message);
  return index;
}

static Key readKey(const nlohmann::json &entry, const LibraryRequest &request) {
  Key key;
  key.operand = readIndex(entry, "operand", request.inputs.size(),
                          "config.keys: operand must be the index of an input");
  const nlohmann::json descending = entry.value("descending", nlohmann::json());
  if (!descending.is_null() && !descending.is_boolean())
    throw Error("config.keys: descending must be true or false");
  key.descending = descending.is_boolean() && descending.get<bool>();
  const nlohmann::json name = entry.value("order", nlohmann::json("default"));
  Order order;
  if (name == "default")
    order = Order::Default;
  else if (name == "total")
    order = Order::Total;
  else if (name == "partial")
    order = Order::Partial;
  else
    throw Error("config.keys: order must be 'default', 'total' or 'partial'");
  key.less = findLess(request.inputs[key.operand].dtype, order);
  if (!key.less)
    throw Error(
        "config.keys: there is no order of " +
        std::string(whale::runtime::name(request.inputs[key.operand].dtype)));
  return key;
}

LibraryFunction prepareSort(const LibraryRequest &request) {
  size_t operands = request.inputs.size();
  if (operands == 0 || operands > 32 || request.outputs.size() != operands)
    throw Error("sort takes 1 to 32 inputs and as many outputs");
  const Shape &shape = request.inputs[0].shape;
  Sort sort;
  sort.operands = operands;
  for (size_t i = 0; i < operands; ++i) {
    const auto &input = request.inputs[i], &output = request.outputs[i];
    if (input.shape != shape || output.shape != shape ||
        input.dtype != output.dtype)
      throw Error("sort: inputs and outputs must have one shape, and each "
                  "output its input's dtype");
    sort.bytes.push_back(byteSize(input.dtype));
  }
  const nlohmann::json &config = request.config;
  size_t dimension =
      readIndex(config, "dimension", shape.size(),
                "config.dimension must be a dimension of the inputs");
  sort.length = shape[dimension];
  sort.outer = elementCount(std::span(shape).first(dimension));
  sort.inner = elementCount(std::span(shape).subspan(dimension + 1));

  if (config.contains("comparator")) {
    if (config["comparator"].is_string())
      sort.comparator = request.findKernel(config["comparator"]);
    if (!sort.comparator)
      throw Error("config.comparator must be the name of a kernel");
  } else {
    if (!config.contains("keys") || !config["keys"].is_array() ||
        config["keys"].empty())
      throw Error("config.keys must be a list of keys");
    for (const nlohmann::json &entry : config["keys"])
      sort.keys.push_back(readKey(entry, request));
  }
  return [sort](std::span<void *const> inputs, std::span<void *const> outputs) {
    sort.run(inputs, outputs);
  };
}

} // namespace whale::runtime
