//===- Json.h - Build JSON from IR ------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_JSON_H
#define WHALE_LIB_PROGRAM_JSON_H

#include "nlohmann/json.hpp"
#include "llvm/ADT/ArrayRef.h"

namespace whale {

/// Keeps the order in which fields are written.
using Json = nlohmann::ordered_json;

inline Json toJson(llvm::ArrayRef<int64_t> list) {
  Json json = Json::array();
  for (int64_t element : list)
    json.push_back(element);
  return json;
}

} // namespace whale

#endif // WHALE_LIB_PROGRAM_JSON_H
