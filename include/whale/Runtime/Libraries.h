//===- Libraries.h - The libraries that compute programs --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARIES_H
#define WHALE_RUNTIME_LIBRARIES_H

#include "whale/ProgramFormat/Libraries.h"

#include <string>
#include <vector>

namespace whale::runtime {

/// A library that is no part of Whale, and is opened where a program needs it.
struct LateLibrary {
  const char *name;
  /// What it does there.
  const char *use;
  /// The file that is opened; empty where there is none.
  std::string place;
};

/// What those between processes are opened by.
inline constexpr const char *kUcxFile = "libucp.so.0";
inline constexpr const char *kMpiFile = "libmpi.so.40";
inline constexpr const char *kPmixFile = "libpmix.so.2";

/// All of them, each looked for where a program would find it.
std::vector<LateLibrary> findLateLibraries();

/// What the runtime computes programs with, for the compiler.
const format::Libraries &getLibraries();

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARIES_H
