//===- EmulatorTest.cpp - What emulated kernels may ask for ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "emulator/Emulator.h"
#include "whale/ProgramFormat/GpuArchitecture.h"

#include <gtest/gtest.h>

namespace whale::runtime::test {
namespace {

/// The fault of a kernel of one block with so much shared memory, on GPUs of an
/// architecture.
std::string faultOf(int64_t sharedBytes, int capability) {
  auto body = [](format::EmulatedThread *, void **) {};
  format::EmulatedKernel kernel = {};
  kernel.name = "k";
  kernel.body = body;
  kernel.threads = 1;
  kernel.sharedBytes = static_cast<int32_t>(sharedBytes);
  kernel.mostSharedBytes = static_cast<int32_t>(
      format::findGpuArchitecture(capability).blockSharedBytes);
  kernel.isByBlock = 1;
  emulatorFunctions().run(&kernel, nullptr, 0, 1);
  return takeEmulatorFault().value_or("");
}

TEST(Emulator, ABlockHasTheSharedMemoryOfItsGpu) {
  constexpr int64_t kib = 1024;
  // Pascal's multiprocessors have 64 KiB, of which a block has 48.
  EXPECT_EQ(format::findGpuArchitecture(60).sharedBytes, 64 * kib);
  constexpr std::pair<int, int64_t> most[] = {
      {60, 48 * kib},  {61, 48 * kib}, {70, 96 * kib}, {75, 64 * kib},
      {80, 163 * kib}, {86, 99 * kib}, {90, 227 * kib}};
  for (const auto &[capability, bytes] : most) {
    EXPECT_EQ(faultOf(bytes, capability), "");
    EXPECT_EQ(faultOf(bytes + 1, capability),
              "kernel k, block 0: it has " + std::to_string(bytes + 1) +
                  " bytes of shared memory: a block of its GPU has at most " +
                  std::to_string(bytes));
  }
}

TEST(GpuArchitecture, WhatIsNotListedHasWhatTheOneBeforeHas) {
  EXPECT_EQ(format::findGpuArchitecture(52).name, "sm_60");
  EXPECT_EQ(format::findGpuArchitecture(88).name, "sm_87");
  EXPECT_EQ(format::findGpuArchitecture(130).name, "sm_121");
  for (const format::GpuArchitecture &arch : format::getGpuArchitectures()) {
    EXPECT_EQ(format::capabilityOf(std::string(arch.name)), arch.capability);
    EXPECT_EQ(format::archOf(arch.capability), arch.name);
    // A text declares at most what every GPU gives a block.
    EXPECT_GE(arch.blockSharedBytes, 48 << 10) << arch.name;
    EXPECT_LE(arch.blockSharedBytes, arch.sharedBytes) << arch.name;
  }
}

} // namespace
} // namespace whale::runtime::test
