//===- CheckedFiles.cpp - Files of a program, with their hashes -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/CheckedFiles.h"

#include "whale/Runtime/Types.h"
#include "whale/System/Checksum.h"

namespace whale::runtime {

void CheckedFiles::readChecksums() {
  std::filesystem::path path = directory / "checksums.txt";
  system::MappedFile sums(path);
  std::string_view text = sums.text();
  checksums.emplace();
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    size_t gap = line.find("  ");
    if (end == std::string_view::npos || gap == std::string_view::npos)
      throw Error(path.string() + ": must have lines of a hash, two spaces "
                                  "and a file name");
    checksums->emplace(line.substr(gap + 2), line.substr(0, gap));
    text.remove_prefix(end + 1);
  }
}

std::unique_ptr<system::MappedFile>
CheckedFiles::open(const std::string &file, const std::string &hash) const {
  auto mapped = std::make_unique<system::MappedFile>(directory / file);
  if (!checksums && hash.empty())
    return mapped;
  std::string found = system::Checksum::of(mapped->text());
  auto fail = [&](const char *what) {
    throw Error((directory / file).string() + what);
  };
  if (checksums) {
    auto it = checksums->find(file);
    if (it == checksums->end())
      throw Error((directory / "checksums.txt").string() +
                  ": has no line for " + file);
    if (found != it->second)
      fail(": differs from its checksum: the program was damaged or edited");
  }
  if (!hash.empty() && found != hash)
    fail(": differs from its hash in manifest.json: it was damaged, or is "
         "another program's");
  return mapped;
}

} // namespace whale::runtime
