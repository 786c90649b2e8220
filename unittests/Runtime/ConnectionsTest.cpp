//===- ConnectionsTest.cpp - Which ranks exchange data how ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/Connections.h"
#include "TransportScenario.h"
#include "cuda/test/Machine.h"

#include <gtest/gtest.h>

namespace whale::runtime::test {
namespace {

TEST(Connections, ARankWaitsInChannelsOfTheHostAlone) {
  cuda::test::Machine machine({.gpus = 2});
  // Ranks 0 and 2 share a GPU.
  format::Program program = programOf(3, {makeSend(0, 1), makeSend(0, 2)});
  program.target = "cuda";
  BoundProgram bound(std::move(program));
  bound.testLibraries = &machine.libraries();
  LoadOptions options;
  Connections connections(bound, options, Ranks(3));
  EXPECT_FALSE(connections.staged().empty());
  auto awaited = [&](auto operation) {
    Instruction instruction;
    instruction.operation = operation;
    return connections.awaited(0, instruction);
  };
  EXPECT_EQ(awaited(Wait{0, 0}), std::nullopt);
  EXPECT_EQ(awaited(Wait{0, 1}), 1);
  EXPECT_EQ(awaited(Start{0, 1, {}, {}}), std::nullopt);
}

} // namespace
} // namespace whale::runtime::test
