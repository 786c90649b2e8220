//===- ProgramDirectory.cpp - Write a directory whole or not ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramDirectory.h"

#include "whale/Runtime/Checksum.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

namespace whale {

static llvm::Error failure(const llvm::Twine &path, std::error_code error) {
  return llvm::createStringError(error, "cannot write '" + path +
                                            "': " + error.message());
}

llvm::Expected<ProgramDirectory>
ProgramDirectory::create(llvm::StringRef target) {
  while (target.size() > 1 && llvm::sys::path::is_separator(target.back()))
    target = target.drop_back();
  if (target.empty())
    return llvm::createStringError("the output has no name");
  llvm::SmallString<128> manifest(target);
  llvm::sys::path::append(manifest, "manifest.json");
  if (llvm::sys::fs::exists(target) && !llvm::sys::fs::exists(manifest)) {
    std::error_code error;
    llvm::sys::fs::directory_iterator it(target, error);
    bool empty = !error && it == llvm::sys::fs::directory_iterator();
    if (!empty)
      return llvm::createStringError("cannot write '" + target +
                                     "': something that is no program stands "
                                     "there");
  }
  ProgramDirectory directory;
  directory.target = target.str();
  llvm::SmallString<128> temporary;
  llvm::sys::fs::createUniquePath(target + ".%%%%%%%%.part", temporary,
                                  /*MakeAbsolute=*/false);
  if (std::error_code error =
          llvm::sys::fs::create_directory(temporary, /*IgnoreExisting=*/false))
    return failure(target, error);
  directory.temporary = std::string(temporary);
  return directory;
}

ProgramDirectory::ProgramDirectory(ProgramDirectory &&other)
    : target(std::move(other.target)), temporary(std::move(other.temporary)),
      files(std::move(other.files)) {
  other.temporary.clear();
}

ProgramDirectory::~ProgramDirectory() {
  if (!temporary.empty())
    llvm::sys::fs::remove_directories(temporary);
}

std::string ProgramDirectory::path(llvm::StringRef file) const {
  llvm::SmallString<128> full(temporary);
  llvm::sys::path::append(full, file);
  return std::string(full);
}

llvm::Error ProgramDirectory::write(llvm::StringRef file,
                                    llvm::StringRef contents) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path(file), error);
  if (!error) {
    stream << contents;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return failure(target + "/" + file, error);
  add(file);
  return llvm::Error::success();
}

llvm::Error ProgramDirectory::commit() {
  std::string checksums;
  for (const std::string &file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(path(file));
    if (!buffer)
      return failure(target + "/" + file, buffer.getError());
    llvm::StringRef bytes = (*buffer)->getBuffer();
    checksums += runtime::checksumLine(file, {bytes.data(), bytes.size()});
  }
  if (llvm::Error error = write("checksums.txt", checksums))
    return error;
  // An older program is kept until the new one is in its place.
  std::string old;
  if (llvm::sys::fs::exists(target)) {
    old = temporary + ".old";
    if (std::error_code error = llvm::sys::fs::rename(target, old))
      return failure(target, error);
  }
  if (std::error_code error = llvm::sys::fs::rename(temporary, target)) {
    if (!old.empty())
      llvm::sys::fs::rename(old, target);
    return failure(target, error);
  }
  temporary.clear();
  if (!old.empty())
    llvm::sys::fs::remove_directories(old);
  return llvm::Error::success();
}

} // namespace whale
