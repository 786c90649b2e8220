//===- whale-program-test.cpp - Read and write a program --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fails unless the program in a directory is written again as the same bytes,
// and means the same with each element of its tables in a file of its own.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace whale::format;

static std::string readText(const std::filesystem::path &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

static int test(const std::filesystem::path &directory) {
  auto readTable = [&](const std::string &name) {
    return readText(directory / name);
  };
  std::filesystem::path file = directory / "manifest.json";
  std::string manifest = readText(file);
  Program program = readProgram(manifest, file.string(), readTable);
  ProgramText again = writeProgram(program);
  if (again.manifest != manifest) {
    std::cerr << "error: the manifest is written as\n" << again.manifest;
    return 1;
  }
  for (const auto &[name, text] : again.tables)
    if (text != readTable(name)) {
      std::cerr << "error: " << name << " is written as\n" << text;
      return 1;
    }
  ProgramText parts = writeProgram(program, {}, /*mostBytes=*/1);
  auto readPart = [&](const std::string &name) {
    return parts.tables.at(name);
  };
  if (readProgram(parts.manifest, "parts", readPart) != program) {
    std::cerr << "error: in parts it is another program\n";
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "error: usage: whale-program-test DIRECTORY\n";
    return 1;
  }
  try {
    return test(argv[1]);
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
