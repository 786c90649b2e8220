//===- ProgramPlace.cpp - Where programs lie --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/ProgramPlace.h"

#include "whale/System/Error.h"
#include "whale/System/Io.h"
#include "whale/System/Staging.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace fs = std::filesystem;

namespace whale::format {

/// Whether the text of a manifest says that it is one of Whale's; other tools
/// have manifests of that name too.
static bool saysWhale(std::string_view text) {
  constexpr std::string_view key = "\"format\"", value = "\"whale\"";
  for (size_t at = text.find(key); at != text.npos;
       at = text.find(key, at + 1)) {
    size_t next = text.find_first_not_of(" \t\r\n:", at + key.size());
    if (next != text.npos && text.substr(next).starts_with(value))
      return true;
  }
  return false;
}

bool isProgramFile(std::string_view name) {
  static constexpr std::string_view files[] = {"manifest.json", "kernels.so",
                                               "constants.bin", "checksums.txt",
                                               "python.json"};
  if (std::ranges::count(files, name) != 0)
    return true;
  auto isNumber = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  // Kernels of a GPU: a module, by its number.
  constexpr std::string_view module = "kernels.";
  for (std::string_view kind : {".ptx", ".cubin"})
    if (name.starts_with(module) && name.ends_with(kind) &&
        name.size() > module.size() + kind.size())
      return isNumber(name.substr(module.size(),
                                  name.size() - module.size() - kind.size()));
  // A part of a table: its name, a hyphen, a number.
  size_t hyphen = name.find('-');
  if (hyphen == name.npos || !name.ends_with(".json"))
    return false;
  std::string_view table = name.substr(0, hyphen);
  std::string_view number =
      name.substr(hyphen + 1, name.size() - hyphen - 1 - strlen(".json"));
  return (table == "functions" || table == "classes" || table == "channels") &&
         isNumber(number);
}

/// Whether all that is in a directory is what programs are made of.
static bool holdsProgramFilesAlone(const fs::path &directory) {
  fs::directory_iterator entries(directory), end;
  return std::all_of(entries, end, [](const fs::directory_entry &entry) {
    std::error_code error;
    return entry.is_regular_file(error) &&
           isProgramFile(entry.path().filename().string());
  });
}

bool mayHoldProgram(const fs::path &path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return true;
  if (!fs::is_directory(path, error) || !holdsProgramFilesAlone(path))
    return false;
  fs::path manifest = path / "manifest.json";
  // Without it, there is nothing, or what is left of a program.
  if (!fs::exists(manifest, error) || fs::file_size(manifest, error) == 0)
    return true;
  if (access(manifest.c_str(), R_OK) != 0)
    throw std::system_error(errno, std::generic_category());
  try {
    return saysWhale(system::MappedFile(manifest).text());
  } catch (const system::Error &) {
    return false;
  }
}

fs::path locateProgram(const fs::path &path) {
  std::error_code error;
  if (fs::exists(path, error))
    return path;
  try {
    fs::path target = system::followLinks(path);
    fs::path aside = system::findMovedAside(target);
    if (!aside.empty() && !fs::exists(target, error))
      return aside;
  } catch (const std::system_error &) {
    // A wrong path is reported where it is read.
  }
  return path;
}

DirectoryIdentity DirectoryIdentity::of(const fs::path &directory) {
  struct stat status;
  if (stat(directory.c_str(), &status) != 0)
    return {};
  return {status.st_dev, status.st_ino};
}

} // namespace whale::format
