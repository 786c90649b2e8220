//===- ConstantTable.cpp - The constants of a program -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConstantTable.h"

#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Step/BufferPlan.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace whale {

std::string getElementData(DenseElementsAttr value) {
  Type type = value.getElementType();
  std::string data;
  // Booleans and numbers of less than a byte are packed in the attribute.
  bool small = type.isIntOrFloat() && type.getIntOrFloatBitWidth() < 8;
  if (small && isa<IntegerType>(type)) {
    bool isSigned = !type.isUnsignedInteger() && !type.isInteger(1);
    for (llvm::APInt element : value.getValues<llvm::APInt>())
      data.push_back(char(isSigned ? element.getSExtValue()
                                   : int64_t(element.getZExtValue())));
    return data;
  }
  if (small) {
    for (llvm::APFloat element : value.getValues<llvm::APFloat>())
      data.push_back(char(element.bitcastToAPInt().getZExtValue()));
    return data;
  }
  ArrayRef<char> raw = value.getRawData();
  if (!value.isSplat())
    return std::string(raw.data(), raw.size());
  for (int64_t i = 0, n = value.getNumElements(); i < n; ++i)
    data.append(raw.data(), raw.size());
  return data;
}

int64_t ConstantTable::add(DenseElementsAttr value) {
  std::string element = getElementData(value);
  int64_t next = llvm::alignTo(data.size(), bufferAlignment);
  auto [it, isNew] = offsets.try_emplace(element, next);
  if (isNew) {
    data.resize(next);
    data += element;
  }
  return it->second;
}

} // namespace whale
