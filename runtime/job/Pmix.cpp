//===- Pmix.cpp - Processes started by mpirun or srun ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The launcher tells each process its number, and passes one value on: where
// the first process listens. All else goes over the job's own connections,
// which are the same under all launchers. libpmix is opened when it is needed.
//
//===----------------------------------------------------------------------===//

#include "job/Pmix.h"

#include "job/Secret.h"
#include "job/Sockets.h"
#include "whale/Runtime/Libraries.h"
#include "whale/System/LateLibrary.h"

#include <cstdlib>
#include <cstring>
#include <pmix.h>
#include <unistd.h>

namespace whale::runtime::job {

namespace {
/// The functions of PMIx.
struct Pmix {
#define WHALE_PMIX_FUNCTIONS(DO)                                               \
  DO(PMIx_Init)                                                                \
  DO(PMIx_Finalize)                                                            \
  DO(PMIx_Put)                                                                 \
  DO(PMIx_Commit)                                                              \
  DO(PMIx_Fence)                                                               \
  DO(PMIx_Get)                                                                 \
  DO(PMIx_Error_string)

  WHALE_PMIX_FUNCTIONS(WHALE_DECLARE_FUNCTION)

  Pmix() {
    system::DeclaredLibrary library(
        kPmixFile, "PMIx",
        "by which the launcher tells the processes their "
        "numbers (Debian's libpmix2)");
    WHALE_PMIX_FUNCTIONS(WHALE_FIND_FUNCTION)
#undef WHALE_PMIX_FUNCTIONS
  }

  static const Pmix &get() {
    static const Pmix functions;
    return functions;
  }
};

void check(pmix_status_t status, const char *what) {
  if (status != PMIX_SUCCESS)
    throw Error(std::string("PMIx: ") + what + ": " +
                Pmix::get().PMIx_Error_string(status));
}

/// What the launcher knows about a process; `rank` may be PMIX_RANK_WILDCARD
/// for the job as a whole.
const pmix_value_t &ask(const pmix_proc_t &self, pmix_rank_t rank,
                        const char *key) {
  pmix_proc_t about = self;
  about.rank = rank;
  // Never freed: PMIx's own function for that is not in all its versions, and
  // there are three values in the life of a process.
  pmix_value_t *value = nullptr;
  check(Pmix::get().PMIx_Get(&about, key, nullptr, 0, &value), key);
  return *value;
}

int64_t askNumber(const pmix_proc_t &self, const char *key) {
  const pmix_value_t &value = ask(self, PMIX_RANK_WILDCARD, key);
  if (value.type != PMIX_UINT32)
    throw Error(std::string("PMIx: ") + key + " is no number");
  return value.data.uint32;
}
} // namespace

bool hasPmix() {
  return std::getenv("PMIX_NAMESPACE") && std::getenv("PMIX_RANK");
}

JobOptions joinPmix(const std::string &givenHost) {
  static const char *const key = "whale.coordinator";
  const Pmix &pmix = Pmix::get();
  pmix_proc_t self;
  check(pmix.PMIx_Init(&self, nullptr, 0), "cannot reach the launcher");
  // A launcher takes a process that ends without it for one that has failed.
  std::atexit([] { Pmix::get().PMIx_Finalize(nullptr, 0); });

  JobOptions options;
  options.process = self.rank;
  options.processes = askNumber(self, PMIX_JOB_SIZE);
  if (options.processes == 1)
    return options;
  bool isOneHost = askNumber(self, PMIX_LOCAL_SIZE) == options.processes;
  if (!isOneHost)
    requireSecret();
  if (options.process == 0) {
    std::string host = isOneHost ? "127.0.0.1" : givenHost;
    if (host.empty())
      host = hostName();
    // A host's name may stand for its loopback interface on the host itself.
    options.listener = listenOn(isOneHost ? host : "", options.port);
    options.host = host;
    options.port = portOf(options.listener);
    std::string text = host + " " + std::to_string(options.port);
    pmix_value_t value = {};
    value.type = PMIX_STRING;
    value.data.string = text.data();
    check(pmix.PMIx_Put(PMIX_GLOBAL, key, &value), "cannot publish an address");
    check(pmix.PMIx_Commit(), "cannot publish an address");
  }
  pmix_info_t collect = {};
  std::strncpy(collect.key, PMIX_COLLECT_DATA, PMIX_MAX_KEYLEN);
  collect.value.type = PMIX_BOOL;
  collect.value.data.flag = true;
  check(pmix.PMIx_Fence(nullptr, 0, &collect, 1),
        "cannot meet the other processes");
  if (options.process != 0) {
    const pmix_value_t &value = ask(self, 0, key);
    std::string text =
        value.type == PMIX_STRING ? value.data.string : std::string();
    size_t space = text.find(' ');
    if (space == std::string::npos)
      throw Error("PMIx: the first process has no address");
    options.host = text.substr(0, space);
    options.port = std::atoi(text.c_str() + space + 1);
  }
  return options;
}

} // namespace whale::runtime::job
