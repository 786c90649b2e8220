//===- Writer.h - Parts of a program as JSON --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_WRITER_H
#define WHALE_LIB_PROGRAMFORMAT_WRITER_H

#include "JsonText.h"
#include "whale/ProgramFormat/Program.h"

namespace whale::format {

/// Appends a member that the object does not have, without looking for it.
void addMember(Json &object, const std::string &key, Json value);

/// Null where there is no value.
template <typename T>
Json toJson(const std::optional<T> &value) {
  return value ? Json(*value) : Json();
}

Json toJson(const std::vector<Instruction> &instructions);

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_WRITER_H
