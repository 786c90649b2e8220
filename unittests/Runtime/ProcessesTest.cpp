//===- ProcessesTest.cpp - Collectives of real processes ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   mpirun -n N ProcessesTest ucx|mpi
//
// Each process runs its part of eight ranks through random collectives of all
// kinds and dtypes, each twice, and compares what the ranks receive with the
// oracle. Prints how many scenarios passed; any rank with a wrong result is an
// error. test/Tools/test_launchers.py runs it.
//
//===----------------------------------------------------------------------===//

#include "TransportScenario.h"
#include "transport/message/MessageTransport.h"
#include "whale/Runtime/Job.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {
constexpr int64_t ranks = 8;

class Process {
public:
  Process(const std::shared_ptr<Job> &job, const std::string &kind)
      : map(RankMap::inRuns(ranks, job->processes(), job->process())) {
    auto exchange = [job](const std::string &mine) {
      return job->allGather("addresses", mine);
    };
    auto create = kind == "ucx" ? createUcxMover : createMpiMover;
    program = programOf(
        ranks, {makeCollective("all_reduce", std::vector<int64_t>(ranks, 9))});
    transport =
        withChannels(createMessageTransport(map, create(exchange)), program);
  }

  void check(const Scenario &scenario);
  void checkAll();

  int64_t scenarios = 0;
  std::atomic<int64_t> wrong = 0;

private:
  const RankMap map;
  whale::format::Program program;
  std::unique_ptr<Transport> transport;
};
} // namespace

void Process::check(const Scenario &scenario) {
  ++scenarios;
  Channels added;
  added[0] = {std::make_shared<Collective>(scenario.channel)};
  int64_t channel = transport->addChannels(added, 1);
  Scenario::Buffers expected = expectedOf(scenario);
  Scenario::Buffers src = scenario.src, dst = scenario.dst;
  std::vector<std::thread> threads;
  // The channel may have fewer ranks.
  for (size_t rank = 0; rank < src.front().size(); ++rank)
    if (map.isLocal(rank))
      threads.emplace_back([&, rank] {
        std::vector<PartBuffers> parts = buffersOf(scenario, src, dst, rank);
        for (int i = scenario.inPlace; i < 2; ++i)
          transport->wait(rank, transport->start(rank, channel, parts));
        const Scenario::Buffers &made = scenario.inPlace ? src : dst;
        for (size_t part = 0; part < made.size(); ++part)
          wrong += made[part][rank] != expected[part][rank];
      });
  for (std::thread &thread : threads)
    thread.join();
}

void Process::checkAll() {
  std::mt19937 random(17);
  for (int i = 0; i <= static_cast<int>(DType::C128); ++i) {
    auto dtype = static_cast<DType>(i);
    check(randomScenario(random, dtype, std::nullopt, /*groups=*/false));
    for (int r = 0; r <= static_cast<int>(Reduction::Or); ++r) {
      auto reduction = static_cast<Reduction>(r);
      if (!isAllowed(dtype, reduction))
        continue;
      check(randomScenario(random, dtype, reduction, /*groups=*/false));
      check(randomScenario(random, dtype, reduction, /*groups=*/true));
    }
  }
  for (int64_t parts = 2; parts <= 5; ++parts) {
    std::vector<Scenario> list;
    for (int64_t i = 0; i < parts; ++i)
      list.push_back(randomScenario(
          random, static_cast<DType>(random() % (int(DType::C128) + 1)),
          std::nullopt, /*groups=*/false, ranks));
    check(join(std::move(list)));
  }
  // More bytes than libraries send before the receiver asks for them.
  for (const char *kind : {"all_reduce", "all_gather", "reduce_scatter",
                           "all_to_all", "broadcast", "send_recv"}) {
    std::vector<int64_t> shares(
        ranks, std::string(kind) == "all_to_all" ? 101 : 40'001);
    check(scenarioOf(random, makeCollective(kind, shares),
                     /*inPlace=*/std::string(kind) == "all_reduce"));
  }
}

int main(int argc, char **argv) {
  std::string kind = argc == 2 ? argv[1] : "";
  if (kind != "ucx" && kind != "mpi") {
    std::fprintf(stderr, "error: usage: ProcessesTest ucx|mpi\n");
    return 1;
  }
  try {
    auto options = JobOptions::fromEnvironment();
    auto job = Job::join(options.value_or(JobOptions()));
    Process process(job, kind);
    process.checkAll();
    int64_t wrong = 0;
    for (const std::string &each :
         job->allGather("results", std::to_string(process.wrong)))
      wrong += std::atoll(each.c_str());
    if (job->process() == 0)
      std::printf("%lld scenarios, %lld wrong ranks\n",
                  static_cast<long long>(process.scenarios),
                  static_cast<long long>(wrong));
    job->leave();
    return wrong ? 1 : 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
