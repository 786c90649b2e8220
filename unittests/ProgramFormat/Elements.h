//===- Elements.h - The elements of boxes -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_PROGRAMFORMAT_ELEMENTS_H
#define WHALE_UNITTESTS_PROGRAMFORMAT_ELEMENTS_H

#include "whale/ProgramFormat/Layout.h"

namespace whale::format::test {

/// The tensor's elements that a box of a view has, in the order of its shard.
inline std::vector<int64_t> elementsOf(const Box &box, const Shape &view) {
  std::vector<int64_t> elements = {0};
  for (size_t d = 0; d < view.size(); ++d) {
    std::vector<int64_t> longer;
    for (int64_t element : elements)
      for (int64_t i = 0; i < box.size[d]; ++i)
        longer.push_back(element * view[d] + box.start[d] + i);
    elements = std::move(longer);
  }
  return elements;
}

} // namespace whale::format::test

#endif // WHALE_UNITTESTS_PROGRAMFORMAT_ELEMENTS_H
