//===- Handshake.cpp - What processes must have in common -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Handshake.h"

#include "job/Frames.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <thread>
#include <unistd.h>

namespace whale::runtime::job {

/// A kernel of Linux that was started once: whose cores this process uses.
static std::string machine() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

/// What has network interfaces of its own: a machine, or a container. Two of
/// them may have one name.
static std::string host() {
  char text[64] = {};
  [[maybe_unused]] ssize_t size =
      readlink("/proc/self/ns/net", text, sizeof(text) - 1);
  return machine() + " " + text;
}

int64_t shakeHands(Job &job, const Handshake &mine,
                   const format::Program &program) {
  job.agree({{"the program", mine.program},
             {"the number of threads of each rank",
              mine.threadsPerRank ? std::to_string(mine.threadsPerRank)
                                  : "what the cores allow"},
             {"the instruction set of oneDNN", mine.instructionSet}});
  auto cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::string> all = job.allGather(
      "hosts", FieldWriter().text(machine()).text(host()).number(cores).take());

  auto ranks = static_cast<int64_t>(program.ranks.size());
  std::map<int64_t, std::pair<std::string, int64_t>> hostOfNode;
  std::map<std::string, int64_t> ranksOf, coresOf;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    FieldReader fields(all[rank * job.processes() / ranks]);
    std::string itsMachine = fields.text(), itsHost = fields.text();
    ++ranksOf[itsMachine];
    coresOf[itsMachine] = static_cast<int64_t>(fields.number());
    int64_t node = program.ranks[rank].node;
    auto [it, isNew] = hostOfNode.try_emplace(node, itsHost, rank);
    if (it->second.first != itsHost)
      throw Error("ranks " + std::to_string(it->second.second) + " and " +
                  std::to_string(rank) + " are devices of node " +
                  std::to_string(node) +
                  " of the cluster, but are on different hosts: compile for a "
                  "cluster with a node for each host");
  }
  if (mine.threadsPerRank)
    return mine.threadsPerRank;
  int64_t threads = std::numeric_limits<int64_t>::max();
  for (const auto &[name, count] : ranksOf)
    threads = std::min(threads, coresOf[name] / count);
  return std::max<int64_t>(1, threads);
}

} // namespace whale::runtime::job
