//===- LateLibraryTest.cpp ------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/LateLibrary.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <unistd.h>

using namespace whale::system;
namespace fs = std::filesystem;

// A wheel has libraries beside its programs that the loader does not find.
TEST(LateLibrary, IsFoundBesideTheProgram) {
  std::string file = "libOfNobody" + std::to_string(getpid()) + ".so.0";
  EXPECT_FALSE(openLibrary(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  EXPECT_NE(std::string(dlerror()).find("cannot open"), std::string::npos);

  Dl_info known;
  ASSERT_TRUE(dladdr(reinterpret_cast<const void *>(&dlopen), &known));
  fs::path place = ownDirectory() / "lib";
  fs::create_directories(place);
  fs::create_symlink(known.dli_fname, place / file);
  EXPECT_TRUE(openLibrary(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  fs::remove(place / file);
}

TEST(LateLibrary, PackagesAreFoundInAnEnvironment) {
  fs::path root =
      fs::path(testing::TempDir()) / ("whale-late-" + std::to_string(getpid()));
  fs::path folder = root / "lib" / "python3.11" / "site-packages" / "nvidia" /
                    "cuda_nvcc" / "nvvm";
  fs::create_directories(folder);
  setenv("VIRTUAL_ENV", root.c_str(), /*overwrite=*/1);
  std::vector<fs::path> found = packageDirectories("nvvm");
  EXPECT_NE(std::find(found.begin(), found.end(), folder), found.end());
  EXPECT_TRUE(packageDirectories("nothing").empty());
  unsetenv("VIRTUAL_ENV");
  fs::remove_all(root);
}
