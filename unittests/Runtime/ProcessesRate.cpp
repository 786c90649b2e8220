//===- ProcessesRate.cpp - How fast an all-reduce of processes is ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   mpirun -n N ProcessesRate ucx|mpi
//
// In turn, several times: each two neighbours send a large message to each
// other and back, all pairs at once; and all processes, with a rank each, sum
// up 64 MiB. Prints the medians as JSON: bytes per second of all pairs
// together, and the seconds and bytes of an all-reduce. benchmarks/processes.py
// runs it.
//
//===----------------------------------------------------------------------===//

#include "TransportScenario.h"
#include "transport/message/MessageTransport.h"
#include "whale/Runtime/Job.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {
constexpr int64_t bytes = 64 << 20, rounds = 15;

double secondsOf(const std::function<void()> &run) {
  auto begin = std::chrono::steady_clock::now();
  run();
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return seconds.count();
}

double median(std::vector<double> list) {
  std::ranges::nth_element(list, list.begin() + list.size() / 2);
  return list[list.size() / 2];
}

/// The messages of a process with its neighbour.
class PingPong {
public:
  PingPong(Job &job, Mover &mover)
      : mover(mover), isFirst(job.process() % 2 == 0),
        peer(job.process() + (isFirst ? 1 : -1)) {}

  void run() {
    for (bool isSender : {isFirst, !isFirst}) {
      int64_t pending = 0;
      if (isSender)
        mover.send(peer, 1, data.data(), data.size(), false, pending);
      else
        mover.receive(peer, 1, data.data(), data.size(), pending);
      while (pending)
        if (!mover.progress())
          mover.sleep();
    }
  }

private:
  Mover &mover;
  bool isFirst;
  int64_t peer;
  std::vector<char> data = std::vector<char>(bytes, 1);
};
} // namespace

static void measure(Job &job, const std::string &kind) {
  int64_t processes = job.processes();
  if (bytes / 4 % processes != 0 || processes % 2 != 0)
    throw Error("the number of processes must be a power of two");
  auto exchange = [&](const std::string &mine) {
    return job.allGather("addresses", mine);
  };
  auto create = kind == "ucx" ? createUcxMover : createMpiMover;
  std::unique_ptr<Mover> mover = create(exchange);
  PingPong pingPong(job, *mover);

  constexpr int64_t elements = bytes / 4;
  Collective channel = makeCollective(
      "all_reduce", std::vector<int64_t>(processes, elements / processes));
  channel.parts[0].dtype = DType::F32;
  whale::format::Program program = programOf(processes, {channel});
  auto transport =
      withChannels(createMessageTransport(
                       RankMap::inRuns(processes, processes, job.process()),
                       create(exchange)),
                   program);
  std::vector<float> source(elements, 1), result(elements);

  std::vector<double> messages, reductions;
  for (int64_t round = 0; round < rounds; ++round) {
    job.allGather("a round", "");
    messages.push_back(secondsOf([&] { pingPong.run(); }));
    job.allGather("a round", "");
    reductions.push_back(secondsOf([&] {
      transport->wait(
          job.process(),
          transport->start(job.process(), 0, source.data(), result.data()));
    }));
  }
  job.allGather("the end", "");
  if (result[0] != float(processes))
    throw Error("a wrong sum");
  // Of each pair one is sending at a time.
  double rate = double(processes / 2) * 2 * bytes / median(messages);
  double sent = 2.0 * double(processes - 1) * bytes;
  if (job.process() == 0)
    std::printf("{\"bytes_per_s\": %.6g, \"seconds\": %.6g, \"bytes\": %.6g}\n",
                rate, median(reductions), sent);
}

int main(int argc, char **argv) {
  std::string kind = argc == 2 ? argv[1] : "";
  try {
    if (kind != "ucx" && kind != "mpi")
      throw Error("usage: ProcessesRate ucx|mpi");
    auto options = JobOptions::fromEnvironment();
    auto job = Job::join(options.value_or(JobOptions()));
    measure(*job, kind);
    job->leave();
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
