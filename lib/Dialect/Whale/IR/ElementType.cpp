//===- ElementType.cpp - Element types in program files ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/ElementType.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace whale {

std::string getDTypeName(Type element) {
  // Printing a type takes far longer than this, and buffers are many.
  if (element.isF32())
    return "f32";
  if (element.isSignlessInteger())
    return "i" + std::to_string(element.getIntOrFloatBitWidth());
  std::string name;
  llvm::raw_string_ostream(name) << element;
  return name;
}

int64_t getElementBytes(Type element) {
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * getElementBytes(complex.getElementType());
  if (element.isIntOrFloat())
    return (element.getIntOrFloatBitWidth() + 7) / 8;
  return 0;
}

int64_t getTensorBytes(Type type) {
  auto tensor = dyn_cast<ShapedType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return 0;
  int64_t bytes = getElementBytes(tensor.getElementType());
  for (int64_t size : tensor.getShape())
    if (llvm::MulOverflow(bytes, size, bytes))
      return std::numeric_limits<int64_t>::max();
  return bytes;
}

} // namespace whale
