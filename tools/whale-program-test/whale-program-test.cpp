//===- whale-program-test.cpp - Read and write a program --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fails unless the program in a directory is written again as the same bytes,
// and means the same with each element of its tables in a file of its own; and
// if an arena is much larger than what is in use of it at once.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/LiveBytes.h"
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

/// Smaller arenas are mostly what offsets are rounded up by.
constexpr int64_t leastArena = 1 << 20;
constexpr double mostWaste = 1.03;

static int testArenas(const Program &program) {
  for (const RankClass &rankClass : program.classes) {
    int64_t live = findLiveBytes(program, rankClass);
    if (rankClass.arenaBytes >= leastArena &&
        rankClass.arenaBytes > mostWaste * live) {
      std::cerr << "error: rank " << rankClass.ranks.front()
                << " has an arena of " << rankClass.arenaBytes
                << " bytes, of which at most " << live
                << " are in use at once\n";
      return 1;
    }
  }
  return 0;
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
  return testArenas(program);
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
