//===- whale-program-test.cpp - Read and write a manifest -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests: prints the manifest of a program as it is written after it was
// read.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Error.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"

#include <fstream>
#include <iostream>
#include <sstream>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::cerr << "error: usage: whale-program-test FILE\n";
    return 1;
  }
  std::ostringstream text;
  text << std::ifstream(argv[1]).rdbuf();
  try {
    std::cout << whale::format::writeProgram(
        whale::format::readProgram(text.str(), argv[1]));
  } catch (const whale::format::Error &error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
