//===- NcclTransportTest.cpp - NCCL's transport on a test machine ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/NcclTransport.h"
#include "TransportConformance.h"
#include "TransportScenario.h"
#include "cuda/test/Machine.h"

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {

using cuda::test::Machine;
using cuda::test::MachineOptions;

/// A transport with the machine that its ranks are on.
class OnMachine : public Transport {
public:
  OnMachine(const whale::format::Program &program,
            const MachineOptions &options)
      : machine(options), inner(createNcclTransport(
                              program, machine.libraries(), machine.nccl())) {}
  ~OnMachine() override {
    inner.reset();
    EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
    EXPECT_TRUE(machine.memory.empty());
  }

  int64_t addChannel(std::shared_ptr<const Collective> channel) override {
    return inner->addChannel(std::move(channel));
  }
  Ticket start(int64_t rank, int64_t channel, const void *src,
               void *dst) override {
    return inner->start(rank, channel, src, dst);
  }
  bool test(int64_t rank, const Ticket &ticket) override {
    return inner->test(rank, ticket);
  }
  Traffic wait(int64_t rank, const Ticket &ticket) override {
    return inner->wait(rank, ticket);
  }
  void finish(int64_t rank) override { inner->finish(rank); }
  void abort() override { inner->abort(); }
  bool aborted() const override { return inner->aborted(); }
  bool settle() override { return inner->settle(); }
  void reset() override { inner->reset(); }

  Machine machine;
  std::unique_ptr<Transport> inner;
};

TransportMaker onMachine(uint64_t seed) {
  return [seed](const whale::format::Program &program) {
    return std::make_unique<OnMachine>(
        program,
        MachineOptions{.seed = seed,
                       .gpus = static_cast<int>(program.ranks.size())});
  };
}

INSTANTIATE_TEST_SUITE_P(Nccl, TransportConformance,
                         testing::Values(onMachine(0), onMachine(1)));

TEST(NcclTransportTest, AnErrorOfNcclEndsTheRunAndTheNextOneIsWell) {
  auto program = programOf(3, {makeCollective("all_gather", {2, 0, 3})});
  OnMachine transport(program, {.gpus = 3, .failingGroup = 1});
  auto job = [&](int64_t rank) {
    int32_t src[3] = {1, 2, 3}, dst[5];
    run(transport, rank, 0, src, dst);
  };
  Outcome outcome = runRanks(transport, 3, job);
  EXPECT_GE(outcome.errors, 1);
  EXPECT_EQ(outcome.errors + outcome.aborted, 3);
  EXPECT_EQ(runRanks(transport, 3, job), Outcome());
}

} // namespace
