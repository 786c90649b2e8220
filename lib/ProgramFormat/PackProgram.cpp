//===- PackProgram.cpp - The files of a program as bytes ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/ProgramPlace.h"

#include "whale/System/Error.h"
#include "whale/System/Fields.h"
#include "whale/System/Io.h"

namespace fs = std::filesystem;

namespace whale::format {

std::string packProgram(const fs::path &directory) {
  system::FieldWriter fields;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory)) {
    std::string name = entry.path().filename().string();
    if (isProgramFile(name))
      fields.text(name).text(system::MappedFile(entry.path()).text());
  }
  return fields.take();
}

void unpackProgram(const std::string &packed, const fs::path &directory) {
  fs::create_directory(directory);
  system::FieldReader fields(packed);
  while (!fields.isComplete()) {
    std::string name = fields.text(), bytes = fields.text();
    // The sender decides what a file contains, but not where it is.
    if (fields.isWrong() || !isProgramFile(name))
      throw system::Error("the first process has sent what is no program");
    system::FileWriter file(directory / name);
    file.write(bytes);
    file.flush();
    file.commit();
  }
}

} // namespace whale::format
