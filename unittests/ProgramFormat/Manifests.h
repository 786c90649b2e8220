//===- Manifests.h - Hand-written manifests for tests -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_PROGRAMFORMAT_MANIFESTS_H
#define WHALE_UNITTESTS_PROGRAMFORMAT_MANIFESTS_H

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace whale::format::test {

/// A manifest of `ranks` ranks of one class, without arguments, results,
/// buffers and instructions.
nlohmann::json emptyManifest(size_t ranks);

/// An argument or result held whole by every rank.
nlohmann::json replicated(const std::string &name, const std::string &dtype,
                          const std::vector<int64_t> &shape, size_t ranks);

nlohmann::json arenaBuffer(int64_t offset, const std::string &dtype,
                           const std::vector<int64_t> &shape);
/// At an index of a space, or an offset where it has these.
nlohmann::json shardBuffer(const std::string &space, int64_t where,
                           const std::string &dtype,
                           const std::vector<int64_t> &shape);

/// A valid program of four ranks in two classes that uses every kind of buffer
/// and instruction, and the kernels `add`, `scale`, `less` and `increment`.
nlohmann::json richManifest();

/// What is wrong with a manifest; empty if it is a program's.
std::string errorOf(const std::string &text);

} // namespace whale::format::test

#endif // WHALE_UNITTESTS_PROGRAMFORMAT_MANIFESTS_H
