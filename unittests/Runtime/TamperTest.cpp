//===- TamperTest.cpp - Damaged programs are refused ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes every value of a valid manifest to many others, removes it, and cuts
// the files that it names short. Each must load and run, or be one Error.
//
//===----------------------------------------------------------------------===//

#include "ProgramFiles.h"
#include "program/Kernels.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/Runtime/Program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

using namespace whale;
using namespace whale::runtime;
using namespace whale::runtime::test;
using nlohmann::json;

namespace {

/// Stops runs that take too long: a changed loop may legally never end.
class Watchdog {
public:
  std::stop_token start() {
    std::lock_guard lock(mutex);
    source = std::stop_source();
    deadline = Clock::now() + std::chrono::milliseconds(200);
    wake.notify_all();
    return source.get_token();
  }
  void finish() {
    std::lock_guard lock(mutex);
    deadline = Clock::time_point::max();
  }

private:
  using Clock = std::chrono::steady_clock;

  void watch(std::stop_token end) {
    std::unique_lock lock(mutex);
    while (!end.stop_requested()) {
      wake.wait_until(
          lock, std::min(deadline, Clock::now() + std::chrono::seconds(1)));
      if (Clock::now() < deadline)
        continue;
      deadline = Clock::time_point::max();
      std::stop_source late = source;
      lock.unlock();
      late.request_stop();
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable wake;
  std::stop_source source;
  Clock::time_point deadline = Clock::time_point::max();
  std::jthread thread{[this](std::stop_token end) { watch(end); }};
};

class TamperTest : public ::testing::Test {
protected:
  void SetUp() override { manifest = richProgram(directory.path()); }

  /// Loads without running; true if the program was refused.
  bool refused(const std::string &text) {
    try {
      format::Program program = format::readProgram(text, "manifest.json");
      checkTarget(program, "manifest.json");
      if (program.kernels && program.kernels->name != "kernels.so")
        throw Error(program.kernels->name + ": missing");
      const KernelLibrary *library = program.kernels ? &kernels() : nullptr;
      int64_t constants = program.constants ? 68 : 0;
      bindProgram(std::move(program), "manifest.json", library, constants);
      return false;
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(": "), std::string::npos);
      return true;
    }
  }

  /// Loads and, where that succeeds, runs.
  void exercise(const json &changed) {
    if (refused(changed.dump()))
      return;
    writeFile(directory.path() / "manifest.json", changed.dump());
    try {
      Program program = Program::load(directory.path());
      std::vector<Array> arguments;
      for (const Parameter &parameter : program.arguments()) {
        std::vector<uint8_t> zeros(elementCount(parameter.shape) *
                                   byteSize(parameter.dtype));
        arguments.push_back(
            Array::fromHost(parameter.dtype, parameter.shape, zeros.data()));
      }
      RunOptions options;
      options.stop = watchdog.start();
      for (const Array &result : program.run(arguments, options)) {
        std::vector<uint8_t> bytes(result.bytes());
        result.toHost(bytes.data());
      }
    } catch (const Error &) {
    }
    watchdog.finish();
  }

  KernelLibrary &kernels() {
    if (!library)
      library =
          std::make_unique<KernelLibrary>(directory.path() / "kernels.so");
    return *library;
  }

  TemporaryDirectory directory;
  json manifest;
  std::unique_ptr<KernelLibrary> library;
  Watchdog watchdog;
};

std::vector<json> replacements(const json &value) {
  std::vector<json> list = {nullptr,
                            true,
                            -1,
                            0,
                            1,
                            3,
                            65,
                            int64_t(1) << 31,
                            int64_t(1) << 62,
                            UINT64_MAX,
                            0.5,
                            "",
                            "x",
                            json::array(),
                            json::array({1, 2, 3}),
                            json::array({json::array()}),
                            json::object()};
  if (value.is_number_integer()) {
    auto number = value.get<int64_t>();
    list.insert(list.end(), {number + 1, number - 1, number * 2, number + 8});
  }
  if (value.is_string())
    list.insert(list.end(), {"f64", "i1", "argument", "arena", "constant",
                             "while", "result", "sum", "1", "/kernels.so"});
  if (value.is_array() && !value.empty()) {
    json shorter = value, longer = value;
    shorter.erase(shorter.size() - 1);
    longer.push_back(value[0]);
    list.push_back(shorter);
    list.push_back(longer);
  }
  return list;
}

/// All paths to values of a document.
void collect(const json &value, const json::json_pointer &path,
             std::vector<json::json_pointer> &paths) {
  if (!path.empty())
    paths.push_back(path);
  if (value.is_object())
    for (auto it = value.begin(); it != value.end(); ++it)
      collect(it.value(), path / it.key(), paths);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      collect(value[i], path / i, paths);
}

TEST_F(TamperTest, TheProgramItselfIsValid) {
  EXPECT_FALSE(refused(manifest.dump()));
  exercise(manifest);
}

TEST_F(TamperTest, EveryFieldChanged) {
  std::vector<json::json_pointer> paths;
  collect(manifest, json::json_pointer(), paths);
  ASSERT_GT(paths.size(), 500u);
  // All values take half a minute: without --full each sixth, others for each
  // field.
  size_t every = std::getenv("WHALE_TEST_FULL") ? 1 : 6, count = 0;
  for (const json::json_pointer &path : paths) {
    SCOPED_TRACE(path.to_string());
    for (const json &value : replacements(manifest[path])) {
      if (count++ % every)
        continue;
      json changed = manifest;
      changed[path] = value;
      exercise(changed);
    }
    json changed = manifest;
    json &parent = changed[path.parent_pointer()];
    if (parent.is_object())
      parent.erase(path.back());
    else
      parent.erase(std::stoul(path.back()));
    exercise(changed);
  }
}

TEST_F(TamperTest, CutConstantsAndKernels) {
  std::string constants = readFile(directory.path() / "constants.bin");
  for (size_t size : {size_t(0), size_t(1), constants.size() - 1}) {
    writeFile(directory.path() / "constants.bin", constants.substr(0, size));
    EXPECT_THROW(Program::load(directory.path()), Error);
  }
  writeFile(directory.path() / "constants.bin", constants);
  std::string object = readFile(directory.path() / "kernels.so");
  for (size_t size = 0; size < object.size(); size += object.size() / 37) {
    writeFile(directory.path() / "kernels.so", object.substr(0, size));
    EXPECT_THROW(Program::load(directory.path()), Error) << size;
  }
  std::filesystem::remove(directory.path() / "kernels.so");
  EXPECT_THROW(Program::load(directory.path()), Error);
}

} // namespace
