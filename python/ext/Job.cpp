//===- Job.cpp - Several processes, for Python ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Job.h"
#include "Module.h"
#include "Text.h"
#include "whale/System/Staging.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace nb = nanobind;
using namespace whale::runtime;

/// What is not given comes from the launcher.
static std::shared_ptr<Job> join(const std::string &host, int port,
                                 std::optional<int64_t> process,
                                 std::optional<int64_t> processes,
                                 std::optional<double> progressLimit) {
  nb::gil_scoped_release release;
  JobOptions options;
  // All that a launcher would say may be given instead.
  if (host.empty() || !process || !processes) {
    std::optional<JobOptions> launched = JobOptions::fromEnvironment();
    // Not to be silently alone.
    if (!launched && (!host.empty() || process) && !processes)
      throw Error("nobody says how many processes there are: start them by "
                  "mpirun, srun, torchrun or whale.launch, or give "
                  "process_count=");
    if (!launched && processes.value_or(1) > 1 && !process)
      throw Error("nobody says which process this is: give process_index=");
    options = launched.value_or(options);
  }
  if (!host.empty()) {
    options.host = host;
    options.port = port;
    options.listener = -1;
  }
  options.process = process.value_or(options.process);
  options.processes = processes.value_or(options.processes);
  options.progressLimit = progressLimit;
  if (options.processes < 1 || options.process < 0 ||
      options.process >= options.processes)
    throw Error("process " + std::to_string(options.process) + " is none of " +
                std::to_string(options.processes));
  if (options.processes > 1 && options.port == 0 && options.listener < 0)
    throw Error("nobody says where process 0 listens: start the processes by "
                "mpirun, srun, torchrun or whale-run's variables, or give "
                "coordinator='HOST:PORT'");
  return Job::join(options);
}

static std::vector<nb::bytes> allGather(Job &job, const std::string &name,
                                        const nb::bytes &mine) {
  std::string text(mine.c_str(), mine.size());
  std::vector<std::string> all;
  {
    nb::gil_scoped_release release;
    all = job.allGather(name, text);
  }
  std::vector<nb::bytes> result;
  for (const std::string &each : all)
    result.emplace_back(each.data(), each.size());
  return result;
}

/// Has this process, whose job has failed, end with its own status or 1, and
/// right where `exit` would destroy what threads may still use. Only `exit`
/// knows the status of a `SystemExit`.
static void endAsFailed() {
  on_exit(
      [](int status, void *) {
        std::fflush(nullptr);
        whale::system::abandonStaging();
        _exit(status == 0 ? 1 : status);
      },
      nullptr);
}

void whale::python::bindJob(nb::module_ &module) {
  nb::class_<Job>(module, "Job", "The processes that run programs together.")
      .def_prop_ro("process", &Job::process)
      .def_prop_ro("processes", &Job::processes)
      .def_prop_ro("name", &Job::name, "\"process 2 (host b, pid 77)\".")
      .def("all_gather", allGather, nb::arg("name"), nb::arg("mine"),
           "Collective: the bytes of each process.")
      .def("fail", &Job::fail, nb::arg("what"),
           nb::call_guard<nb::gil_scoped_release>(),
           "Ends the job with an error; returns its first one.")
      .def("leave", &Job::leave, nb::call_guard<nb::gil_scoped_release>(),
           "Collective: the process ends in order.")
      .def("forget", &Job::forget,
           "In a child of fork: it takes no part, and keeps this for good.");
  module.def("end_as_failed", endAsFailed,
             "Has this process not end with status 0.");
  module.def("parse_address", parseAddress, nb::arg("text"),
             "The host and the port of \"host:port\", or None.");
  module.def(
      "run_processes",
      [](int64_t first, int64_t count, int64_t total, const std::string &host,
         int port, const std::vector<std::string> &arguments,
         const std::string &logDirectory, int64_t restarts) {
        return runProcesses({first, count, total, host, port, arguments,
                             logDirectory, restarts});
      },
      nb::arg("first"), nb::arg("count"), nb::arg("total"), nb::arg("host"),
      nb::arg("port"), nb::arg("arguments"), nb::arg("log_directory"),
      nb::arg("restarts"),
      "Starts this executable in several processes, and waits.");
  module.def("join", join, nb::arg("host"), nb::arg("port"),
             nb::arg("process").none(), nb::arg("processes").none(),
             nb::arg("progress_limit").none(), "Joins the other processes.");
}
