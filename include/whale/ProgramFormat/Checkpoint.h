//===- Checkpoint.h - What a checkpoint's manifest says ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest of a checkpoint (docs/checkpoints.md) as structs. Each leaf of a
// state is divided into pieces, boxes of the leaf's view that lie in files and
// that together are the whole leaf, no element twice.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_CHECKPOINT_H
#define WHALE_PROGRAMFORMAT_CHECKPOINT_H

#include "whale/ProgramFormat/DType.h"
#include "whale/ProgramFormat/Layout.h"

#include <string>
#include <string_view>
#include <vector>

namespace whale::format {

/// The version that is written, and the only one that is read.
inline constexpr int64_t checkpointVersion = 1;

/// The bytes of a piece that have a checksum in common; the last ones of a
/// piece may be fewer.
inline constexpr int64_t checkpointChunk = int64_t(1) << 22;

struct CheckpointPiece {
  /// Index in the manifest's list of files, and the first byte in that file.
  int64_t file = 0, offset = 0;
  Box box;
  /// 64 bits of XXH3 as 16 hexadecimal digits, of each chunk.
  std::vector<std::string> checksums;
  bool operator==(const CheckpointPiece &) const = default;
};

struct CheckpointLeaf {
  /// Its path in the tree; no two are equal.
  std::string name;
  DType dtype;
  Shape shape;
  /// The implementation of typed PRNG keys, whose words are the leaf; else
  /// empty.
  std::string key;
  /// See Layout.
  Shape view;
  std::vector<CheckpointPiece> pieces;

  int64_t bytes() const { return elementCount(shape) * byteSize(dtype); }
  bool operator==(const CheckpointLeaf &) const = default;
};

struct CheckpointFile {
  /// Without folders.
  std::string name;
  int64_t bytes = 0;
  bool operator==(const CheckpointFile &) const = default;
};

struct CheckpointManifest {
  int64_t step = 0;
  /// JSON texts: what the user adds, the tree of the leaves, and the plan of
  /// the program that had them.
  std::string extra = "null", tree = "null", plan = "null";
  std::vector<CheckpointFile> files;
  std::vector<CheckpointLeaf> leaves;
  bool operator==(const CheckpointManifest &) const = default;
};

/// Returns the text of manifest.json.
std::string writeCheckpoint(const CheckpointManifest &manifest);

/// Reads the text of manifest.json; `file` is in errors. Throws Error where a
/// field is wrong, pieces reach out of their files, or they are not their leaf,
/// each element once.
CheckpointManifest readCheckpoint(std::string_view text,
                                  const std::string &file);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_CHECKPOINT_H
