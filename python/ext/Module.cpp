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

#include "whale/Runtime/Types.h"
#include "whale/System/Json.h"
#include "whale/System/Machine.h"

#include <nanobind/nanobind.h>

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
      "machine_memory", [] { return whale::system::machineMemory(); },
      "Bytes of memory of this machine that control groups leave.");
  whale::python::bindArray(module);
  whale::python::bindArrayClass(module);
  whale::python::bindJob(module);
  whale::python::bindCheckpoint(module);
  whale::python::bindProgram(module);
  whale::python::bindReport(module);
  whale::python::bindFiles(module);
}
