//===- Module.cpp - The Python module whale._whale ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime as Python sees it: arrays of bytes in and out. Pytrees, dtypes
// and messages for users are the package's business.
//
//===----------------------------------------------------------------------===//

#include "Module.h"
#include "Text.h"

#include "whale/Runtime/Libraries.h"
#include "whale/Runtime/Types.h"
#include "whale/Sim/Calibrate.h"
#include "whale/System/Json.h"
#include "whale/System/Machine.h"
#include "whale/System/Processors.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

NB_MODULE(_whale, module) {
  module.doc() = "The runtime of Whale.";
  // Threads that run steps may outlive the interpreter, with what they hold.
  nb::set_leak_warnings(false);
  nb::exception<whale::runtime::Error> type(module, "RuntimeError");
  // A message may quote names that are no UTF-8.
  nb::register_exception_translator(
      [](const std::exception_ptr &thrown, void *type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const whale::runtime::Error &error) {
          PyErr_SetString(static_cast<PyObject *>(type),
                          whale::system::utf8FromBytes(error.what()).c_str());
        }
      },
      type.ptr());
  module.def(
      "calibrate",
      [](int64_t ranks) {
        nb::gil_scoped_release release;
        return whale::sim::calibrate(ranks).toJson();
      },
      nb::arg("ranks"),
      "A cluster file of this machine's processor, measured as so many ranks "
      "that share it.");
  module.def(
      "machine_memory", [] { return whale::system::machineMemory(); },
      "Bytes of memory of this machine that control groups leave.");
  module.def(
      "usable_processors", [] { return whale::system::usableProcessors(); },
      "How many threads this process can have run at once.");
  module.def(
      "late_libraries",
      [] {
        std::vector<std::tuple<std::string, std::string, std::string>> found;
        for (const auto &[name, use, place] :
             whale::runtime::findLateLibraries())
          found.emplace_back(name, use, place);
        return found;
      },
      "Of each library that programs open where they need it, its name, what "
      "it is for, and the file that there is, or none.");
  whale::python::bindArray(module);
  whale::python::bindArrayClass(module);
  whale::python::bindJob(module);
  whale::python::bindCheckpoint(module);
  whale::python::bindProgram(module);
  whale::python::bindReport(module);
  whale::python::bindFiles(module);
}
