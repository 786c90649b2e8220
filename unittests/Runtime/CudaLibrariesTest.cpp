//===- CudaLibrariesTest.cpp - What is said where there is no GPU ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is said where the driver or a library of NVIDIA's is missing, too old,
// broken, or lacks a function. Such libraries are compiled here from C, with
// functions that return 0, so that none of NVIDIA's is needed.
//
// Messages are compared in parts: the name of the file, the version, and the
// package to install. The dynamic loader keeps a library by its path once it
// was opened, so each test has a folder, and each driver a name, of its own.
// Cost: a run of the C compiler for each library.
//
//===----------------------------------------------------------------------===//

#include "cuda/Libraries.h"
#include "whale/Runtime/Types.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace whale::runtime::cuda {
namespace {

class CudaLibraries : public testing::Test {
protected:
  void SetUp() override {
    // The loader keeps what it has opened by its path.
    static int number = 0;
    directory = fs::path(testing::TempDir()) /
                ("whale-cuda-libraries-" + std::to_string(getpid()) + "-" +
                 std::to_string(number++));
    fs::create_directories(directory);
  }
  void TearDown() override { fs::remove_all(directory); }

  /// Builds a shared library of all functions of a table but `missing`; each
  /// returns 0, but for what `code` defines.
  template <typename Table>
  void build(const std::string &name, const std::string &code,
             const std::string &missing = "") const {
    std::ofstream source(directory / "library.c");
    source << code << "\n";
    Table().forEach([&](const auto &entry) {
      std::string symbol = entry.symbol;
      if (symbol != missing && code.find(symbol + "(") == code.npos)
        source << "int " << symbol << "() { return 0; }\n";
    });
    source.close();
    std::string command = std::string(WHALE_TEST_CC) + " -w -shared -fPIC -o " +
                          (directory / name).string() + " " +
                          (directory / "library.c").string();
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  void buildDriver(int version, int gpus, const std::string &missing = "",
                   const std::string &more = "") {
    // The loader keeps what it has opened by its name.
    static int number = 0;
    driver = "libcuda." + std::to_string(number++) + ".so";
    build<Driver>(
        driver,
        "int cuDriverGetVersion(int *v) { *v = " + std::to_string(version) +
            "; return 0; }\nint cuDeviceGetCount(int *n) { *n = " +
            std::to_string(gpus) + "; return 0; }" + more,
        missing);
  }
  /// What is said, or "" if all is well.
  std::string open() const {
    try {
      openLibrariesFrom(directory / driver, {directory});
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }
  std::string openNccl() const {
    try {
      openNcclFrom({directory});
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }
  void expect(std::initializer_list<const char *> parts) const {
    expect(open(), parts);
  }
  static void expect(const std::string &text,
                     std::initializer_list<const char *> parts) {
    for (const char *part : parts)
      EXPECT_NE(text.find(part), text.npos) << text;
  }

  fs::path directory;
  std::string driver = "libcuda.none.so";
};

TEST_F(CudaLibraries, NoDriver) {
  expect({"libcuda.so.1 cannot be opened", "driver 525 or later",
          "package nvidia-driver"});
}

TEST_F(CudaLibraries, AnOldDriver) {
  buildDriver(11040, 1, "cuStreamBeginCapture_v2");
  expect({"for CUDA 11.4", "12.0 or later", "driver 525"});
}

TEST_F(CudaLibraries, ADriverThatLacksAFunction) {
  buildDriver(12040, 1, "cuGraphInstantiateWithFlags");
  expect({"for CUDA 12.4, lacks the function cuGraphInstantiateWithFlags"});
}

TEST_F(CudaLibraries, NoGpu) {
  buildDriver(13000, 0);
  expect({"needs a GPU", "CUDA 13.0, finds none", "CUDA_VISIBLE_DEVICES"});
}

TEST_F(CudaLibraries, NoBlas) {
  buildDriver(13000, 1);
  expect({"libcublasLt.so.13 (or libcublasLt.so.12)", "toolkit 13",
          "nvidia-cublas"});
  buildDriver(12080, 1);
  expect({"libcublasLt.so.12, which is not in", "toolkit 12",
          "nvidia-cublas-cu12"});
}

TEST_F(CudaLibraries, TheLibrariesThatTheDriverCanRun) {
  build<BlasLt>("libcublasLt.so.13", "");
  buildDriver(13000, 1);
  EXPECT_EQ(open(), "");
  // A driver for CUDA 12 runs no library of CUDA 13.
  buildDriver(12080, 1);
  expect({"libcublasLt.so.12"});
  build<BlasLt>("libcublasLt.so.12", "", "cublasLtMatmul");
  expect({"libcublasLt.so.12 lacks the function cublasLtMatmul"});
}

/// CUDA 13 has dropped them: also a driver for it takes libraries of CUDA 12.
TEST_F(CudaLibraries, TheLibrariesThatOldGpusCanRun) {
  const std::string volta = "\nint cuDeviceGetAttribute(int *v, int a, int d) "
                            "{ *v = a == 75 ? 7 : 0; "
                            "return 0; }";
  build<BlasLt>("libcublasLt.so.13", "");
  buildDriver(13000, 1, "", volta);
  expect({"needs libcublasLt.so.12 (a GPU is of sm_70, on which later ones do "
          "not compute), which is not in",
          "toolkit 12", "nvidia-cublas-cu12"});
  build<BlasLt>("libcublasLt.so.12", "");
  buildDriver(13000, 1, "", volta);
  EXPECT_EQ(open(), "");
  auto openDnn = [&](int version) -> std::string {
    std::string name = std::to_string(version);
    fs::create_directories(directory / name);
    build<Dnn>(name + "/libcudnn.so.9",
               "long cudnnGetVersion() { return " + name + "; }");
    try {
      openDnnFrom({directory / name}, 70);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  expect(openDnn(91900), {"libcudnn.so.9 is cuDNN 9.19, which does not compute "
                          "on GPUs of sm_70: install cuDNN 9.10 for CUDA 12"});
  EXPECT_EQ(openDnn(91002), "");
}

TEST_F(CudaLibraries, ALibraryThatIsBroken) {
  buildDriver(12080, 1);
  std::ofstream(directory / "libcublasLt.so.12") << "no library";
  expect({"needs libcublasLt.so.12, which cannot be opened (",
          "libcublasLt.so.12: ", "nvidia-cublas-cu12"});
}

TEST_F(CudaLibraries, NoFft) {
  auto open = [&](int version) -> std::string {
    try {
      openFftFrom(version, {directory});
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  expect(open(13000), {"a Fourier transform needs libcufft.so.12 (or "
                       "libcufft.so.11), which is not in ",
                       "package libcufft-13-x", "Python package nvidia-cufft"});
  expect(open(12080), {"needs libcufft.so.11, which", "nvidia-cufft-cu12"});
  build<Fft>("libcufft.so.12", "", "cufftXtExec");
  expect(open(13000), {"libcufft.so.12 lacks the function cufftXtExec"});
  build<Fft>("libcufft.so.11", "");
  EXPECT_EQ(open(12080), "");
}

TEST_F(CudaLibraries, NoDnn) {
  auto open = [&]() -> std::string {
    try {
      openDnnFrom({directory});
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  expect(open(),
         {"convolutions and attention need libcudnn.so.9, which is not in ",
          "package libcudnn9-cuda-13", "nvidia-cudnn-cu12"});
  build<Dnn>("libcudnn.so.9", "");
  EXPECT_EQ(open(), "");
}

/// The code of an ncclGetVersion.
std::string ncclOf(int version) {
  return "int ncclGetVersion(int *v) { *v = " + std::to_string(version) +
         "; return 0; }";
}

TEST_F(CudaLibraries, NoNccl) {
  expect(openNccl(), {"libnccl.so.2, which is not in ", directory.c_str(),
                      "NCCL 2.14", "package libnccl2", "nvidia-nccl-cu12"});
}

TEST_F(CudaLibraries, AnOldNccl) {
  build<Nccl>("libnccl.so.2", ncclOf(21104), "ncclCommInitRankConfig");
  expect(openNccl(), {"libnccl.so.2 is NCCL 2.11.4", "2.14.0 or later"});
}

TEST_F(CudaLibraries, AnNcclThatLacksAFunction) {
  build<Nccl>("libnccl.so.2", ncclOf(22809), "ncclRecv");
  expect(openNccl(), {"NCCL 2.28.9, lacks the function ncclRecv"});
}

TEST_F(CudaLibraries, AnNcclThatHasAll) {
  build<Nccl>("libnccl.so.2", ncclOf(22809));
  EXPECT_EQ(openNccl(), "");
}

TEST_F(CudaLibraries, AreListedFromWhereTheyAreOpened) {
  build<Fft>("libcufft.so.11", "");
  for (const LateLibrary &library : findLibrariesFrom({directory}))
    EXPECT_EQ(library.place, std::string(library.name) == "cuFFT"
                                 ? (directory / "libcufft.so.11").string()
                                 : "");
}

} // namespace
} // namespace whale::runtime::cuda
