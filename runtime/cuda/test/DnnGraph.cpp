//===- DnnGraph.cpp - Graphs of cuDNN on a test machine -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In come operations over tensors of four dimensions; their results are what
// the definitions say, in f64, rounded where a tensor is of a narrower type.
// All of a tensor is computed, also what no real engine keeps.
//
// Cost: every tensor of the graph is in memory at once, in 8 bytes for each
// element. A product is computed by its definition, one multiplication after
// the other.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/DnnGraph.h"

#include "whale/ProgramFormat/Layout.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace whale::runtime::cuda::test {

Place::Place(const Descriptor &descriptor,
             const std::map<int64_t, void *> &memory)
    : type(descriptor.one<int>(kDnnTensorType)),
      sizes(descriptor.all<int64_t>(kDnnTensorSizes)),
      strides(descriptor.all<int64_t>(kDnnTensorStrides)),
      data(descriptor.one<uint8_t>(kDnnTensorVirtual)
               ? nullptr
               : memory.at(descriptor.one<int64_t>(kDnnTensorNumber))) {}

bool Place::isIn(const std::vector<size_t> &order) const {
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0; stride *= sizes[order[i]])
    if (sizes[order[i]] > 1 && strides[order[i]] != stride)
      return false;
  return true;
}

int64_t Place::span() const {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    last += (sizes[i] - 1) * strides[i];
  return last + 1;
}

double Place::read(int64_t at) const {
  if (type == kDnnF32)
    return static_cast<const float *>(data)[at];
  if (type == kDnnF16)
    return static_cast<double>(static_cast<const _Float16 *>(data)[at]);
  uint32_t bits = static_cast<const uint16_t *>(data)[at];
  return std::bit_cast<float>(bits << 16);
}

/// To the nearest; no number stays none.
static uint16_t toBf16(double value) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (std::isnan(value))
    return 0x7fc0;
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

void Place::write(int64_t at, double value) const {
  if (type == kDnnF32)
    static_cast<float *>(data)[at] = static_cast<float>(value);
  else if (type == kDnnF16)
    static_cast<_Float16 *>(data)[at] =
        static_cast<_Float16>(static_cast<float>(value));
  else
    static_cast<uint16_t *>(data)[at] = toBf16(value);
}

/// Calls `body` with the number of each element in row-major order, and its
/// indices.
template <typename Body>
static void forEach(const std::vector<int64_t> &sizes, const Body &body) {
  std::vector<int64_t> at(sizes.size());
  int64_t count = format::elementCount(sizes);
  for (int64_t number = 0; number < count; ++number) {
    body(number, at);
    for (size_t dim = sizes.size(); dim-- > 0;) {
      if (++at[dim] < sizes[dim])
        break;
      at[dim] = 0;
    }
  }
}

/// Where indices are in a tensor that may have one element in a dimension, or
/// an element for several.
static int64_t locate(const std::vector<int64_t> &sizes,
                      const std::vector<int64_t> &at,
                      const std::vector<int64_t> &of) {
  int64_t number = 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    number = number * sizes[dim] + at[dim] * sizes[dim] / of[dim];
  return number;
}

GraphWork::GraphWork(const std::vector<const Descriptor *> &given,
                     const std::map<int64_t, void *> &memory) {
  std::map<const Descriptor *, int> numbers;
  auto add = [&](const Descriptor &operation, int attribute, bool isWritten) {
    const auto *tensor = operation.one<const Descriptor *>(attribute);
    if (!tensor)
      return -1;
    auto [it, isNew] =
        numbers.emplace(tensor, static_cast<int>(tensors.size()));
    if (isNew) {
      Place place(*tensor, memory);
      Values value;
      if (tensor->one<uint8_t>(kDnnTensorByValue)) {
        value.push_back(place.read(0));
        place.data = nullptr;
      }
      tensors.push_back({std::move(place), false, std::move(value)});
    }
    tensors[static_cast<size_t>(it->second)].isWritten |= isWritten;
    return it->second;
  };
  for (const Descriptor *operation : given) {
    Operation own{operation->type, 0, -1, -1, -1, -1, -1};
    switch (own.type) {
    case kDnnMatmulOperation:
      own.x = add(*operation, kDnnMatmulA, false);
      own.b = add(*operation, kDnnMatmulB, false);
      own.y = add(*operation, kDnnMatmulC, true);
      break;
    case kDnnReductionOperation:
      own.mode = operation->descriptor(kDnnReductionDescriptor)
                     .one<int>(kDnnReductionMode);
      own.x = add(*operation, kDnnReductionX, false);
      own.y = add(*operation, kDnnReductionY, true);
      break;
    case kDnnReshapeOperation:
      own.x = add(*operation, kDnnReshapeX, false);
      own.y = add(*operation, kDnnReshapeY, true);
      break;
    default: {
      const Descriptor &how = operation->descriptor(kDnnPointwiseDescriptor);
      own.mode = how.one<int>(kDnnPointwiseMode);
      own.axis = how.one<int64_t>(kDnnPointwiseAxis);
      own.x = add(*operation, kDnnPointwiseX, false);
      own.b = add(*operation, kDnnPointwiseB, false);
      own.condition = add(*operation, kDnnPointwiseT, false);
      own.y = add(*operation, kDnnPointwiseY, true);
    }
    }
    operations.push_back(own);
  }
}

std::vector<std::pair<const Place *, bool>> GraphWork::places() const {
  std::vector<std::pair<const Place *, bool>> result;
  for (const Tensor &tensor : tensors)
    if (tensor.place.data)
      result.emplace_back(&tensor.place, tensor.isWritten);
  return result;
}

/// The elements of a tensor in memory, by `visit(number, place)`.
template <typename Visit>
static void inMemory(const Place &place, const Visit &visit) {
  forEach(place.sizes, [&](int64_t number, const std::vector<int64_t> &at) {
    int64_t offset = 0;
    for (size_t dim = 0; dim < at.size(); ++dim)
      offset += at[dim] * place.strides[dim];
    visit(number, offset);
  });
}

GraphWork::Values GraphWork::load(const Tensor &tensor) const {
  if (!tensor.place.data)
    return tensor.given;
  Values values(static_cast<size_t>(format::elementCount(tensor.place.sizes)));
  inMemory(tensor.place, [&](int64_t number, int64_t offset) {
    values[static_cast<size_t>(number)] = tensor.place.read(offset);
  });
  return values;
}

GraphWork::Values GraphWork::multiply(const Operation &operation,
                                      const Values &a, const Values &b) const {
  const auto &aSizes = tensors[operation.x].place.sizes,
             &bSizes = tensors[operation.b].place.sizes,
             &sizes = tensors[operation.y].place.sizes;
  Values result(static_cast<size_t>(format::elementCount(sizes)));
  forEach(sizes, [&](int64_t number, const std::vector<int64_t> &at) {
    // Neighbouring heads may share those of the other factor.
    int64_t row = ((at[0] * aSizes[1]) + at[1]) * aSizes[2] + at[2];
    int64_t first =
        (at[0] * bSizes[1] + at[1] * bSizes[1] / sizes[1]) * bSizes[2];
    double sum = 0;
    for (int64_t k = 0; k < aSizes[3]; ++k)
      sum += a[static_cast<size_t>(row * aSizes[3] + k)] *
             b[static_cast<size_t>((first + k) * bSizes[3] + at[3])];
    result[static_cast<size_t>(number)] = sum;
  });
  return result;
}

static double apply(int mode, double x, double b, bool condition) {
  switch (mode) {
  case kDnnAdd:
    return x + b;
  case kDnnMultiply:
    return x * b;
  case kDnnDivide:
    return x / b;
  case kDnnSubtract:
    return x - b;
  case kDnnExponential:
    return std::exp(x);
  case kDnnLogarithm:
    return std::log(x);
  case kDnnNotLess:
    return x >= b;
  case kDnnSelect:
    return condition ? x : b;
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

GraphWork::Values GraphWork::compute(const Operation &operation,
                                     const std::vector<Values> &values) const {
  const auto &sizes = tensors[operation.y].place.sizes,
             &xSizes = tensors[operation.x].place.sizes;
  const Values &x = values[operation.x];
  if (operation.type == kDnnMatmulOperation)
    return multiply(operation, x, values[operation.b]);
  Values result(static_cast<size_t>(format::elementCount(sizes)));
  if (operation.type == kDnnReductionOperation) {
    bool isSum = operation.mode == kDnnSum;
    std::ranges::fill(result,
                      isSum ? 0 : -std::numeric_limits<double>::infinity());
    forEach(xSizes, [&](int64_t number, const std::vector<int64_t> &at) {
      double &into = result[locate(sizes, at, xSizes)];
      double value = x[static_cast<size_t>(number)];
      into = isSum ? into + value : std::max(into, value);
    });
    return result;
  }
  forEach(sizes, [&](int64_t number, std::vector<int64_t> at) {
    double &into = result[static_cast<size_t>(number)];
    if (operation.type == kDnnReshapeOperation) {
      // The only one is of the last two dimensions.
      std::swap(at[2], at[3]);
      into = x[locate(xSizes, at, xSizes)];
      return;
    }
    if (operation.mode == kDnnIndex) {
      into = static_cast<double>(at[static_cast<size_t>(operation.axis)]);
      return;
    }
    auto element = [&](int tensor) {
      return tensor < 0
                 ? 0
                 : values[tensor]
                         [locate(tensors[tensor].place.sizes, at, sizes)];
    };
    into = apply(operation.mode, x[locate(xSizes, at, sizes)],
                 element(operation.b), element(operation.condition) != 0);
  });
  return result;
}

void GraphWork::run() const {
  std::vector<Values> values(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    values[i] = load(tensors[i]);
  for (const Operation &operation : operations) {
    Values result = compute(operation, values);
    const Place &place = tensors[operation.y].place;
    if (place.type == kDnnBF16)
      for (double &value : result)
        value = std::bit_cast<float>(uint32_t(toBf16(value)) << 16);
    if (place.data)
      inMemory(place, [&](int64_t number, int64_t offset) {
        place.write(offset, result[static_cast<size_t>(number)]);
      });
    values[operation.y] = std::move(result);
  }
}

} // namespace whale::runtime::cuda::test
