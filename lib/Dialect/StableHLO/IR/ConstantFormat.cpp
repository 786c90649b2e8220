//===- ConstantFormat.cpp - Text form of constants --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;

void stablehlo::printConstantValue(OpAsmPrinter &printer, ElementsAttr value) {
  auto elements = dyn_cast<DenseIntElementsAttr>(value);
  OpPrintingFlags flags;
  bool isHex = elements && elements.getElementType().isInteger(1) &&
               flags.shouldPrintElementsAttrWithHex(value) &&
               !flags.shouldElideElementsAttr(value) && !elements.isSplat();
  if (!isHex) {
    printer.printAttribute(value);
    return;
  }
  printer << "dense<\"0x";
  for (bool element : elements.getValues<bool>())
    printer << (element ? "01" : "00");
  printer << "\"> : " << elements.getType();
}

/// Whether the text starts with `dense<"0x..."> : tensor<...xi1>`, which the
/// parser of MLIR can't read.
static bool isHexOfBooleans(const char *text) {
  // The buffer ends with a zero byte, so no comparison reads beyond it.
  auto consume = [&](StringRef prefix) {
    if (strncmp(text, prefix.data(), prefix.size()) != 0)
      return false;
    text += prefix.size();
    return true;
  };
  if (!consume("dense<\"0x"))
    return false;
  while (llvm::isHexDigit(*text))
    ++text;
  if (!consume("\"> : tensor<"))
    return false;
  while (llvm::isDigit(*text) || *text == 'x')
    ++text;
  return consume("i1>");
}

ParseResult stablehlo::parseConstantValue(OpAsmParser &parser,
                                          ElementsAttr &value) {
  SMLoc loc = parser.getCurrentLocation();
  if (!isHexOfBooleans(loc.getPointer()))
    return parser.parseAttribute(value);
  std::string hex;
  RankedTensorType type;
  if (parser.parseKeyword("dense") || parser.parseLess() ||
      parser.parseString(&hex) || parser.parseGreater() ||
      parser.parseColonType(type))
    return failure();
  std::string bytes;
  if (hex.size() % 2 != 0 ||
      !llvm::tryGetFromHex(StringRef(hex).drop_front(2), bytes))
    return parser.emitError(loc, "expects an even number of hex digits");
  SmallVector<bool> elements(
      llvm::map_range(bytes, [](char byte) { return byte != 0; }));
  // One byte for all elements (a splat), or one for each.
  bool isSplat = elements.size() == 1;
  if (!isSplat &&
      static_cast<int64_t>(elements.size()) != type.getNumElements())
    return parser.emitError(loc)
           << "expects a byte for each of " << type.getNumElements()
           << " booleans (got " << elements.size() << ")";
  value = DenseElementsAttr::get(type, elements);
  return success();
}
