//===- Chunks.cpp - Checksums of what a checkpoint holds ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/Chunks.h"

#include "whale/ProgramFormat/Checkpoint.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace whale::runtime {

std::pair<int64_t, int64_t> chunkOf(int64_t pieceBytes, int64_t chunk) {
  int64_t begin = chunk * format::checkpointChunk;
  return {begin, std::min(begin + format::checkpointChunk, pieceBytes)};
}

std::string checksumOf(const void *data, int64_t bytes) {
  char text[17];
  std::snprintf(
      text, sizeof(text), "%016" PRIx64,
      static_cast<uint64_t>(XXH3_64bits(data, static_cast<size_t>(bytes))));
  return text;
}

} // namespace whale::runtime
