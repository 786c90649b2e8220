//===- Values.h - Arrays of one value, and errors ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_VALUES_H
#define WHALE_UNITTESTS_RUNTIME_VALUES_H

#include "whale/Runtime/Array.h"

#include <gtest/gtest.h>

namespace whale::runtime::test {

/// f32 of shape [size], all of one value.
inline Array uniform(int64_t size, float value) {
  std::vector<float> values(static_cast<size_t>(size), value);
  return Array::fromHost(DType::F32, {size}, values.data());
}

/// The value that all elements have.
inline float valueOf(const Array &array) {
  std::vector<float> values(static_cast<size_t>(elementCount(array.shape())));
  array.toHost(values.data());
  EXPECT_EQ(values, std::vector<float>(values.size(), values[0]));
  return values[0];
}

/// What an action throws, or nothing.
template <typename Action>
std::string errorOf(Action action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_VALUES_H
