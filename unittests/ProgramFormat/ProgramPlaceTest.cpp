//===- ProgramPlaceTest.cpp -----------------------------------------------===//
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

#include "gtest/gtest.h"

#include <cstdlib>

namespace fs = std::filesystem;
using namespace whale;
using namespace whale::format;

namespace {

class ProgramPlaceTest : public ::testing::Test {
protected:
  ProgramPlaceTest() {
    std::string name = (fs::temp_directory_path() / "whale-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~ProgramPlaceTest() override { fs::remove_all(folder); }

  /// Makes a directory with a manifest of that text.
  fs::path makeProgram(std::string_view manifest) const {
    fs::path directory = folder / "program";
    fs::create_directory(directory);
    write(directory / "manifest.json", manifest);
    return directory;
  }

  static void write(const fs::path &path, std::string_view text) {
    system::FileWriter file(path);
    file.write(text);
    file.commit();
  }

  fs::path folder;
};

TEST_F(ProgramPlaceTest, KnowsItsFiles) {
  for (const char *name :
       {"manifest.json", "kernels.so", "constants.bin", "checksums.txt",
        "python.json", "kernels.0.ptx", "kernels.12.cubin", "functions-0.json",
        "classes-10.json", "channels-3.json"})
    EXPECT_TRUE(isProgramFile(name)) << name;
  for (const char *name :
       {"", "kernels.ptx", "kernels.x.ptx", "classes-.json", "classes-1x.json",
        "classes.json", "ranks-0.json", "classes-0.txt", "../manifest.json"})
    EXPECT_FALSE(isProgramFile(name)) << name;
}

TEST_F(ProgramPlaceTest, ReplacesProgramsAlone) {
  EXPECT_TRUE(mayHoldProgram(folder / "nothing"));
  EXPECT_TRUE(mayHoldProgram(folder));
  fs::path program = makeProgram(R"({"format": "whale"})");
  EXPECT_TRUE(mayHoldProgram(program));
  EXPECT_FALSE(mayHoldProgram(program / "manifest.json"));
  write(program / "notes.txt", "of its owner");
  EXPECT_FALSE(mayHoldProgram(program));
  fs::remove(program / "notes.txt");
  write(program / "manifest.json", R"({"format": "other"})");
  EXPECT_FALSE(mayHoldProgram(program));
}

TEST_F(ProgramPlaceTest, PacksItsFilesAlone) {
  fs::path program = makeProgram("text");
  write(program / "kernels.so", std::string_view("\0\1", 2));
  write(program / "notes.txt", "of its owner");
  unpackProgram(packProgram(program), folder / "copy");
  EXPECT_EQ(system::MappedFile(folder / "copy/manifest.json").text(), "text");
  EXPECT_EQ(system::MappedFile(folder / "copy/kernels.so").text(),
            std::string_view("\0\1", 2));
  EXPECT_FALSE(fs::exists(folder / "copy/notes.txt"));
}

TEST_F(ProgramPlaceTest, UnpacksNothingElsewhere) {
  std::string packed =
      system::FieldWriter().text("../manifest.json").text("{}").take();
  EXPECT_THROW(unpackProgram(packed, folder / "copy"), system::Error);
  EXPECT_FALSE(fs::exists(folder / "manifest.json"));
  packed = system::FieldWriter().text("manifest.json").text("{}").take();
  packed.pop_back();
  EXPECT_THROW(unpackProgram(packed, folder / "copy"), system::Error);
}

} // namespace
