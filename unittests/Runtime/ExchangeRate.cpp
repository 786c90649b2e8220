//===- ExchangeRate.cpp - How fast all processes exchange data ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   mpirun -n N ExchangeRate
//
// For each number that the first process reads from standard input, a line
// each, every process sends as many bytes to the others, the same to each, all
// at once, by UCX alone. Prints the seconds of the slowest, a line each.
// benchmarks/state.py runs it.
//
//===----------------------------------------------------------------------===//

#include "transport/message/Mover.h"
#include "whale/Runtime/Job.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

using namespace whale::runtime;

static double exchange(const Job &job, Mover &mover, std::vector<char> &data,
                       int64_t bytesOfPeer) {
  int64_t processes = job.processes(), pending = 0;
  // What comes, by peer, and then what goes.
  char *taken = data.data(), *given = taken + bytesOfPeer * processes;
  auto begin = std::chrono::steady_clock::now();
  for (int64_t distance = 1; distance < processes; ++distance) {
    int64_t from = (job.process() + processes - distance) % processes;
    mover.receive(from, 1, taken + from * bytesOfPeer, bytesOfPeer, pending);
  }
  for (int64_t distance = 1; distance < processes; ++distance) {
    int64_t to = (job.process() + distance) % processes;
    mover.send(to, 1, given + to * bytesOfPeer, bytesOfPeer, false, pending);
  }
  while (pending)
    if (!mover.progress())
      mover.sleep();
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return seconds.count();
}

static void measure(Job &job) {
  std::unique_ptr<Mover> mover = createUcxMover([&](const std::string &mine) {
    return job.allGather("addresses", mine);
  });
  std::vector<char> data;
  while (true) {
    std::string line;
    if (job.process() == 0)
      std::getline(std::cin, line);
    line = job.allGather("bytes", line)[0];
    if (line.empty())
      return;
    int64_t bytesOfPeer =
        std::stoll(line) / std::max<int64_t>(job.processes() - 1, 1);
    // Where it is longer, all of it is touched.
    data.resize(2 * bytesOfPeer * job.processes(), 1);
    job.allGather("begin", "");
    double seconds = exchange(job, *mover, data, bytesOfPeer);
    for (const std::string &each :
         job.allGather("seconds", std::to_string(seconds)))
      seconds = std::max(seconds, std::stod(each));
    if (job.process() == 0) {
      std::printf("%.9g\n", seconds);
      std::fflush(stdout);
    }
  }
}

int main() {
  try {
    auto options = JobOptions::fromEnvironment();
    auto job = Job::join(options.value_or(JobOptions()));
    measure(*job);
    job->leave();
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
