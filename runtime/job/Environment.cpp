//===- Environment.cpp - How a process finds its job ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What launchers say in variables: fromEnvironment reads WHALE_PROCESSES and
// the like, asks PMIx, or reads the variables of srun or torchrun, in this
// order.
//
//===----------------------------------------------------------------------===//

#include "job/Pmix.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>

namespace whale::runtime {

std::optional<std::pair<std::string, int>>
parseAddress(const std::string &text) {
  size_t colon = text.rfind(':');
  if (colon == text.npos)
    return std::nullopt;
  const char *begin = text.c_str() + colon + 1,
             *end = text.c_str() + text.size();
  int port = 0;
  auto [rest, error] = std::from_chars(begin, end, port);
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (host.empty() || error != std::errc() || rest != end || port < 1 ||
      port > 65535)
    return std::nullopt;
  return std::pair(host, port);
}

static int64_t readNumber(const char *name, const char *text, int64_t most) {
  int64_t value = -1;
  const char *end = text + std::strlen(text);
  if (auto result = std::from_chars(text, end, value);
      result.ec != std::errc() || result.ptr != end || value < 0 ||
      value > most)
    throw Error(std::string(name) + ": '" + text +
                "' is no whole number from 0 to " + std::to_string(most));
  return value;
}

/// Reads the variable of a launcher; throws where it is missing.
static int64_t readVariable(const char *name, const char *because,
                            int64_t most) {
  const char *text = std::getenv(name);
  if (!text)
    throw Error(std::string(name) + " is not set, where " + because + " is");
  return readNumber(name, text, most);
}

/// Where the first process listens, by WHALE_HOST and WHALE_PORT, or by the
/// variables of another launcher. That listens on `otherPort` itself, so the
/// next one is taken.
static void readAddress(JobOptions &options, const char *otherHost,
                        const char *otherPort, const char *because) {
  constexpr int64_t most = 65535;
  const char *host = std::getenv("WHALE_HOST");
  if (!host && otherHost)
    host = std::getenv(otherHost);
  if (host)
    options.host = host;
  else if (options.processes > 1)
    throw Error(std::string(otherHost ? otherHost : "WHALE_HOST") +
                " is not set, where " + because + " is");
  if (std::getenv("WHALE_PORT") || !otherPort)
    options.port = static_cast<int>(readVariable("WHALE_PORT", because, most));
  else if (options.processes > 1)
    options.port =
        static_cast<int>(readVariable(otherPort, because, most - 1) + 1);
}

std::optional<JobOptions> JobOptions::fromEnvironment() {
  constexpr int64_t most = 1 << 20;
  JobOptions options;
  auto read = [&](const char *processes, const char *process) {
    options.processes = readVariable(processes, processes, most);
    options.process = readVariable(process, processes, most);
  };
  if (const char *given = "WHALE_PROCESSES"; std::getenv(given)) {
    read(given, "WHALE_PROCESS");
    readAddress(options, nullptr, nullptr, given);
    if (std::getenv("WHALE_ATTEMPT"))
      options.attempt = readVariable("WHALE_ATTEMPT", given, most);
    if (options.process == 0 && std::getenv("WHALE_LISTENER")) {
      options.listener =
          static_cast<int>(readVariable("WHALE_LISTENER", given, most));
      fcntl(options.listener, F_SETFD, FD_CLOEXEC);
    }
    if (std::getenv("WHALE_LAUNCHER")) {
      options.launcher =
          static_cast<int>(readVariable("WHALE_LAUNCHER", given, most));
      fcntl(options.launcher, F_SETFD, FD_CLOEXEC);
    }
  } else if (job::hasPmix()) {
    const char *host = std::getenv("WHALE_HOST");
    options = job::joinPmix(host ? host : "");
  } else if (const char *given = "SLURM_STEP_NUM_TASKS"; std::getenv(given)) {
    // Tasks of srun. A batch script without srun has no number of tasks of a
    // step.
    read(given, "SLURM_PROCID");
    if (options.processes > 1 &&
        (!std::getenv("WHALE_HOST") || !std::getenv("WHALE_PORT")))
      throw Error("srun has started " + std::to_string(options.processes) +
                  " processes without PMIx: start them by srun --mpi=pmix, or "
                  "set WHALE_HOST and WHALE_PORT, where the first one listens");
    if (options.processes > 1)
      readAddress(options, nullptr, nullptr, given);
  } else if (const char *given = "WORLD_SIZE"; std::getenv(given)) {
    read(given, "RANK");
    readAddress(options, "MASTER_ADDR", "MASTER_PORT", given);
  } else {
    return std::nullopt;
  }
  if (options.processes < 1 || options.process >= options.processes)
    throw Error("process " + std::to_string(options.process) + " is none of " +
                std::to_string(options.processes));
  return options;
}

} // namespace whale::runtime
