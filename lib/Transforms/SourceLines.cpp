//===- SourceLines.cpp - Lines of the user's program ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/SourceLines.h"

#include "llvm/Support/Path.h"

using namespace mlir;

std::optional<FileLineColLoc> whale::findPosition(Location loc) {
  std::optional<FileLineColLoc> found;
  loc->walk([&](Location part) {
    if (auto position = dyn_cast<FileLineColLoc>(part)) {
      found = position;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return found;
}

std::optional<FileLineColLoc> whale::findCaller(Location loc) {
  bool first = true;
  std::optional<FileLineColLoc> found;
  loc->walk([&](Location part) {
    auto position = dyn_cast<FileLineColLoc>(part);
    if (!position)
      return WalkResult::advance();
    StringRef file = position.getFilename();
    if (file.contains("/site-packages/") || file.contains("/dist-packages/")) {
      first = false;
      return WalkResult::advance();
    }
    if (!first)
      found = position;
    return WalkResult::interrupt();
  });
  return found;
}

std::string whale::getUserLine(Location loc) {
  std::optional<FileLineColLoc> position = findCaller(loc);
  if (!position)
    position = findPosition(loc);
  if (!position || position->getLine() == 0)
    return "";
  return (llvm::sys::path::filename(position->getFilename()) + ":" +
          Twine(position->getLine()))
      .str();
}

SmallVector<std::string> whale::getUserLines(Location loc) {
  SmallVector<std::string> lines;
  auto add = [&](Location part) {
    std::string line = getUserLine(part);
    if (!line.empty() && !llvm::is_contained(lines, line))
      lines.push_back(std::move(line));
  };
  if (auto fused = dyn_cast<FusedLoc>(loc))
    llvm::for_each(fused.getLocations(), add);
  else
    add(loc);
  return lines;
}
