//===- Compile.cpp - The compiler for Python ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Diagnostics become one exception; remarks and warnings are returned.
//
//===----------------------------------------------------------------------===//

#include "whale/Program/Compile.h"
#include "Module.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace whale;

static std::string format(const CompileMessage &message) {
  static constexpr const char *severities[] = {"error", "warning", "remark"};
  std::string where = message.location.empty() ? "" : message.location + ": ";
  return where + severities[message.severity] + ": " + message.text;
}

static std::vector<std::string>
compile(const std::string &text, const std::string &cluster,
        const std::string &path, const std::string &target,
        const std::string &dumpPhasesTo, bool explain) {
  nb::gil_scoped_release release;
  CompileOptions options;
  options.cluster = cluster;
  options.target = target;
  options.dumpPhasesTo = dumpPhasesTo;
  options.explain = explain;
  std::vector<std::string> notes;
  std::string errors;
  auto handler = [&](const CompileMessage &message) {
    if (message.severity == CompileMessage::Error)
      errors += (errors.empty() ? "" : "\n") + format(message);
    else
      notes.push_back(format(message));
  };
  if (llvm::failed(compileProgram(text, "step.mlir", options, path, handler)))
    throw python::CompileError(errors);
  return notes;
}

void whale::python::bindCompile(nb::module_ &module) {
  module.def("compile", compile, nb::arg("text"), nb::arg("cluster"),
             nb::arg("path"), nb::kw_only(), nb::arg("target"),
             nb::arg("dump_phases_to") = "", nb::arg("explain") = false,
             "Compiles annotated StableHLO into the directory `path`; returns "
             "warnings and remarks.");
}
