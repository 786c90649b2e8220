//===- ConstantTable.h - The constants of a program -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_CONSTANTTABLE_H
#define WHALE_LIB_PROGRAM_CONSTANTTABLE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace whale {

/// The contents of constants.bin; equal bytes are stored once.
class ConstantTable {
public:
  /// Returns the offset of the tensor's bytes.
  int64_t add(mlir::DenseElementsAttr value);

  llvm::StringRef bytes() const { return data; }

private:
  std::string data;
  llvm::StringMap<int64_t> offsets;
};

/// The elements of a tensor, dense and row-major, as a program holds them: each
/// takes whole bytes, types of less than a byte are extended.
std::string getElementData(mlir::DenseElementsAttr value);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_CONSTANTTABLE_H
