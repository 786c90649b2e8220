//===- ProgramDirectory.cpp - Write a directory whole or not ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramDirectory.h"

#include "whale/ProgramFormat/ProgramPlace.h"
#include "whale/ProgramFormat/WriteProgram.h"
#include "whale/Support/WriteFile.h"
#include "whale/System/Checksum.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <system_error>

namespace whale {

static llvm::Error failure(const llvm::Twine &path,
                           const llvm::Twine &message) {
  return llvm::createStringError("cannot write '" + path + "': " + message);
}

llvm::Expected<ProgramDirectory>
ProgramDirectory::create(llvm::StringRef target) {
  ProgramDirectory directory;
  directory.target = target.rtrim('/').str();
  if (directory.target.empty())
    directory.target = "/";
  try {
    directory.staging = std::make_unique<system::Staging>(target.str());
    if (!format::mayHoldProgram(directory.staging->target()))
      return failure(directory.target,
                     "something that is no program, or holds other files too, "
                     "is there");
    std::filesystem::create_directory(directory.staging->place());
  } catch (const std::system_error &error) {
    return failure(directory.target, error.code().message());
  }
  return directory;
}

std::string ProgramDirectory::path(llvm::StringRef file) const {
  return (staging->place() / file.str()).string();
}

llvm::Error ProgramDirectory::write(llvm::StringRef file,
                                    llvm::StringRef contents) {
  auto write = [&](llvm::raw_ostream &stream) { stream << contents; };
  if (std::error_code error = writeFile(path(file), write))
    return failure(target + "/" + file, error.message());
  hashes[file.str()] = system::Checksum::of({contents.data(), contents.size()});
  return llvm::Error::success();
}

llvm::Error ProgramDirectory::add(llvm::StringRef file) {
  auto buffer = llvm::MemoryBuffer::getFile(path(file), /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return failure(target + "/" + file, buffer.getError().message());
  llvm::StringRef bytes = (*buffer)->getBuffer();
  hashes[file.str()] = system::Checksum::of({bytes.data(), bytes.size()});
  return llvm::Error::success();
}

llvm::Error ProgramDirectory::commit() {
  std::string checksums;
  for (const auto &[file, hash] : hashes)
    checksums += format::checksumLine(file, hash);
  if (llvm::Error error = write("checksums.txt", checksums))
    return error;
  try {
    staging->commitDirectory(format::mayHoldProgram);
  } catch (const std::system_error &error) {
    return failure(target, error.code().message());
  }
  return llvm::Error::success();
}

} // namespace whale
