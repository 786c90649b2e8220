//===- Products.h - Products of a device for tests --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_PRODUCTS_H
#define WHALE_UNITTESTS_RUNTIME_PRODUCTS_H

#include "device/Device.h"

namespace whale::runtime::test {

/// A table of memory of the host.
inline BufferTable tableOf(Device &device,
                           std::initializer_list<const void *> memory) {
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Region> regions;
  for (const void *data : memory)
    regions.push_back(
        {buffers.emplace_back(device.adoptConstants(data, 0)).get(), 0});
  BufferTable table;
  device.bind(table, regions);
  return table;
}

/// Computes a product or convolution, whose buffers it numbers.
template <typename Product>
void multiply(Device &device, Product &op, const void *lhs, const void *rhs,
              void *out) {
  op.lhs = 0;
  op.rhs = 1;
  op.out = 2;
  BufferTable table = tableOf(device, {lhs, rhs, out});
  if constexpr (std::is_same_v<Product, Matmul>)
    device.matmul(Queue::Compute, op, table);
  else
    device.convolution(Queue::Compute, op, table);
}

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_PRODUCTS_H
