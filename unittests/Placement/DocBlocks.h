//===- DocBlocks.h - Examples in the documentation --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_PLACEMENT_DOCBLOCKS_H
#define WHALE_UNITTESTS_PLACEMENT_DOCBLOCKS_H

#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <string>
#include <vector>

namespace whale {

/// The blocks of a page that are marked with `language`.
inline std::vector<std::string> docBlocks(llvm::StringRef page,
                                          llvm::StringRef language) {
  std::string path = (WHALE_SOURCE_DIR "/docs/" + page).str();
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(buffer)) << path;
  std::vector<std::string> found;
  if (!buffer)
    return found;
  llvm::StringRef rest = (*buffer)->getBuffer();
  std::string fence = ("```" + language + "\n").str();
  while (rest.contains(fence)) {
    rest = rest.split(fence).second;
    auto [block, after] = rest.split("\n```");
    found.push_back(block.str());
    rest = after;
  }
  return found;
}

} // namespace whale

#endif // WHALE_UNITTESTS_PLACEMENT_DOCBLOCKS_H
