//===- Files.cpp - Program directories for Python -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs are replaced and found in Python as in the compiler and the runtime.
// Failures of the file system are Python's OSError.
//
//===----------------------------------------------------------------------===//

#include "Module.h"
#include "Text.h"
#include "whale/ProgramFormat/ProgramPlace.h"
#include "whale/System/Staging.h"

#include <nanobind/nanobind.h>

#include <cerrno>
#include <optional>
#include <system_error>

namespace nb = nanobind;
using namespace whale;

namespace {
/// Calls `action` without Python's lock; its failures become OSErrors of
/// `path`.
template <typename Action>
void guarded(const std::string &path, Action action) {
  int error = 0;
  {
    nb::gil_scoped_release release;
    try {
      action();
    } catch (const std::system_error &failure) {
      error = failure.code().value();
    }
  }
  if (!error)
    return;
  errno = error;
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
  throw nb::python_error();
}

class PythonStaging {
public:
  explicit PythonStaging(const std::string &path) : path(path) {
    guarded(path, [&] { staging.emplace(path); });
  }
  std::string place() const { return get().place().string(); }
  void commit() {
    guarded(path, [&] { get().commitDirectory(format::mayHoldProgram); });
    staging.reset();
  }
  void discard() { staging.reset(); }

private:
  const system::Staging &get() const {
    if (!staging)
      throw nb::value_error("there is nothing staged any more");
    return *staging;
  }
  system::Staging &get() {
    return const_cast<system::Staging &>(std::as_const(*this).get());
  }

  std::string path;
  std::optional<system::Staging> staging;
};
} // namespace

void whale::python::bindFiles(nb::module_ &module) {
  nb::class_<PythonStaging>(module, "Staging",
                            "A directory that will replace another one.")
      .def(nb::init<const std::string &>(), nb::arg("path"))
      .def_prop_ro("place", &PythonStaging::place)
      .def("commit", &PythonStaging::commit)
      .def("discard", &PythonStaging::discard);
  module.def(
      "may_hold_program",
      [](const std::string &path) {
        bool mayHold = false;
        guarded(path, [&] {
          mayHold = format::mayHoldProgram(system::followLinks(path));
        });
        return mayHold;
      },
      nb::arg("path"));
  module.def(
      "read_program",
      [](const std::string &path, const nb::callable &read) {
        return format::readProgramDirectory(
            path, [&](const std::filesystem::path &directory) {
              return nb::object(read(directory.string()));
            });
      },
      nb::arg("path"), nb::arg("read"));
  module.def(
      "pack_program",
      [](const std::string &directory) {
        std::string packed = format::packProgram(directory);
        return nb::bytes(packed.data(), packed.size());
      },
      nb::arg("directory"), "The files of a program as bytes.");
  module.def(
      "unpack_program",
      [](const nb::bytes &packed, const std::string &directory) {
        format::unpackProgram({packed.c_str(), packed.size()}, directory);
      },
      nb::arg("packed"), nb::arg("directory"),
      "Makes the directory of a program of such bytes.");
}
