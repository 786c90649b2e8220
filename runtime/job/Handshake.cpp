//===- Handshake.cpp - What processes must have in common -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what this process has loaded, and where it runs. Out: the number of
// threads of each rank, the same in all processes, or the same error. Two
// collectives: all processes compare what decides the bits of the results, then
// each tells all others its machine, host and cores. From this list every
// process computes the same answer. Unless it is given, the number of a rank's
// threads is the cores of its process, or of its machine, or those that a quota
// of their time is enough for, divided by the ranks there: the least of all.
//
// Cost: two messages from each process and two answers, of which the second
// names all cores of all processes; then linear in these, sorted, and in ranks.
//
//===----------------------------------------------------------------------===//

#include "job/Handshake.h"

#include "HostId.h"
#include "job/Frames.h"
#include "whale/System/Processors.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

namespace whale::runtime::job {

/// How many cores srun was asked for, for each process; 0 where nobody was.
static int64_t coresAskedFor() {
  const char *text = std::getenv("SLURM_CPUS_PER_TASK");
  return text && std::getenv("SLURM_STEP_NUM_TASKS") ? std::atoll(text) : 0;
}

namespace {
/// What a process says of where it runs.
struct Place {
  std::string machine, host;
  int64_t asked = 0;
  std::set<int64_t> processors;
  /// The threads that a quota of processors' time is enough for, and the group
  /// that shares it; 0 where there is none.
  int64_t quota = 0;
  std::string group;
  /// Of the program, in this process.
  int64_t ranks = 0;

  static Place ofThisProcess();
  static Place read(const std::string &text);
  std::string write() const;
};
} // namespace

Place Place::ofThisProcess() {
  Place place;
  place.machine = machineId();
  place.host = hostId();
  place.asked = coresAskedFor();
  place.processors = system::allowedProcessors();
  if (auto quota = system::findQuota()) {
    place.quota = quota->threads();
    place.group = quota->group;
  }
  return place;
}

std::string Place::write() const {
  FieldWriter fields;
  fields.text(machine).text(host).number(asked).number(processors.size());
  for (int64_t each : processors)
    fields.number(each);
  fields.number(quota).text(group);
  return fields.take();
}

Place Place::read(const std::string &text) {
  FieldReader fields(text);
  Place place;
  place.machine = fields.text();
  place.host = fields.text();
  place.asked = static_cast<int64_t>(fields.number());
  for (uint64_t count = fields.number(); count > 0 && !fields.isWrong();
       --count)
    place.processors.insert(static_cast<int64_t>(fields.number()));
  place.quota = static_cast<int64_t>(fields.number());
  place.group = fields.text();
  return place;
}

static void checkNodes(const std::vector<Place> &places,
                       const std::vector<int64_t> &processOf,
                       const format::Program &program) {
  std::map<int64_t, std::pair<std::string, int64_t>> hostOfNode;
  for (size_t i = 0; i < processOf.size(); ++i) {
    auto rank = static_cast<int64_t>(i);
    const std::string &host = places[processOf[i]].host;
    int64_t node = program.ranks[i].node;
    auto [it, isNew] = hostOfNode.try_emplace(node, host, rank);
    if (it->second.first != host)
      throw Error("ranks " + std::to_string(it->second.second) + " and " +
                  std::to_string(rank) + " are devices of node " +
                  std::to_string(node) +
                  " of the cluster, but are on different hosts: compile for a "
                  "cluster with a node for each host");
  }
}

/// Launchers may share the cores of a machine out among its processes, or let
/// each use all; a quota is shared by the processes of its group. Every process
/// has ranks.
static int64_t threadsFor(const std::vector<Place> &places) {
  auto threads = std::numeric_limits<int64_t>::max();
  std::map<std::string, std::pair<int64_t, std::set<int64_t>>> machines;
  std::map<std::pair<std::string, std::string>, int64_t> ranksOfGroup;
  for (const Place &place : places) {
    auto &[ranks, processors] = machines[place.machine];
    ranks += place.ranks;
    processors.insert(place.processors.begin(), place.processors.end());
    auto own = static_cast<int64_t>(place.processors.size());
    threads = std::min(threads, own / place.ranks);
    ranksOfGroup[{place.machine, place.group}] += place.ranks;
  }
  for (const Place &place : places)
    if (place.quota)
      threads = std::min(
          threads, place.quota / ranksOfGroup[{place.machine, place.group}]);
  for (const auto &[name, machine] : machines) {
    auto all = static_cast<int64_t>(machine.second.size());
    threads = std::min(threads, all / machine.first);
  }
  return std::max<int64_t>(1, threads);
}

int64_t shakeHands(Job &job, const Handshake &mine, const RankMap &map,
                   const format::Program &program) {
  job.agree({{"the program", mine.program},
             {"the number of threads of each rank",
              mine.threadsPerRank ? std::to_string(mine.threadsPerRank)
                                  : "what the cores allow"},
             {"what oneDNN is and the instructions that it uses",
              mine.instructionSet}});
  if (std::ranges::count(map.firstRanks(job.processes()), -1))
    throw Error("there are " + std::to_string(job.processes()) +
                " processes for " + std::to_string(program.ranks.size()) +
                " ranks: some would have none");
  std::vector<Place> places;
  for (const std::string &each :
       job.allGather("hosts", Place::ofThisProcess().write()))
    places.push_back(Place::read(each));
  for (int64_t process : map.processOf)
    ++places[process].ranks;
  checkNodes(places, map.processOf, program);
  int64_t threads =
      mine.threadsPerRank ? mine.threadsPerRank : threadsFor(places);
  for (size_t i = 0; i < places.size(); ++i) {
    const Place &place = places[i];
    if (place.asked && place.ranks * threads > place.asked)
      throw Error(
          "process " + std::to_string(i) + " runs " +
          std::to_string(place.ranks) + " ranks of " + std::to_string(threads) +
          " threads, but srun was asked for " + std::to_string(place.asked) +
          " cores (SLURM_CPUS_PER_TASK): start more processes, or ask "
          "for more cores");
  }
  return threads;
}

} // namespace whale::runtime::job
