//===- Program.cpp - Programs for Python ----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loading and running let other Python threads go on.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Program.h"
#include "Module.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

namespace nb = nanobind;
using namespace whale::runtime;

static void load(Program *place, const std::string &path) {
  nb::gil_scoped_release release;
  new (place) Program(Program::load(path));
}

/// Python handles signals in its main thread, and only where it is asked to:
/// what a handler raises there (KeyboardInterrupt) ends the run.
static std::tuple<std::vector<Array>, std::string, Profile>
run(const Program &program, const std::vector<Array> &arguments,
    bool inMainThread) {
  Stats stats;
  RunOptions options;
  options.stats = &stats;
  Profile profile;
  options.profile = &profile;
  std::optional<nb::python_error> raised;
  if (inMainThread)
    options.interrupted = [&] {
      nb::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() != 0)
        raised.emplace();
      return raised.has_value();
    };
  try {
    nb::gil_scoped_release release;
    std::vector<Array> results = program.run(arguments, options);
    return {std::move(results), stats.json(), std::move(profile)};
  } catch (const Interrupted &) {
    throw nb::python_error(std::move(*raised));
  }
}

static std::string describe(const Program &program, const Profile &profile) {
  nb::gil_scoped_release release;
  return program.describe(profile);
}

void whale::python::bindProgram(nb::module_ &module) {
  nb::class_<Profile>(module, "Profile", "The times of a step's instructions.");
  nb::class_<Program>(module, "Program",
                      "A program directory in memory, with its ranks.")
      .def("__init__", load, nb::arg("path"))
      .def("run", run, nb::arg("arrays"), nb::arg("in_main_thread"),
           "Runs one step: the results, its statistics as JSON, its profile.")
      .def("describe", describe, nb::arg("profile"),
           "Where the time of a step went, as text.");
}
