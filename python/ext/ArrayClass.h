//===- ArrayClass.h - Python's class of arrays ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PYTHON_ARRAYCLASS_H
#define WHALE_PYTHON_ARRAYCLASS_H

#include "whale/Runtime/Array.h"

#include <nanobind/nanobind.h>

#include <vector>

namespace whale::python {

/// `whale.Array`, a class of Python, as calls of steps touch it: hundreds of
/// arrays go in and out of each, so its slots are read and written in place.
class ArrayClass {
public:
  /// Throws nanobind::type_error where the class lacks one of the slots.
  explicit ArrayClass(nanobind::type_object type);

  /// Which values are no such arrays, or have another `kind`.
  std::vector<size_t> findOthers(nanobind::list values,
                                 nanobind::list kinds) const;

  /// Whether an object is in the list twice.
  static bool hasRepeated(nanobind::list values);

  /// What is behind arrays; of other values, what `toHandle(index, value)`
  /// gives. Throws what that or `handle()` of an array raises.
  std::vector<runtime::Array> unwrap(nanobind::list values,
                                     nanobind::callable toHandle) const;

  /// New arrays, each of its kind; None where there is none.
  nanobind::list wrap(std::vector<runtime::Array> arrays,
                      nanobind::list kinds) const;

private:
  struct Slot {
    Py_ssize_t offset;
    PyObject *&in(PyObject *object) const {
      return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) +
                                            offset);
    }
  };
  Slot find(const char *name) const;
  bool isArray(nanobind::handle value) const;

  nanobind::type_object type;
  Slot handle, kind, words, gathered;
};

} // namespace whale::python

#endif // WHALE_PYTHON_ARRAYCLASS_H
