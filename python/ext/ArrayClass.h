//===- ArrayClass.h - Python's class of arrays ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PYTHON_ARRAYCLASS_H
#define WHALE_PYTHON_ARRAYCLASS_H

#include "whale/Runtime/Program.h"

#include <nanobind/nanobind.h>

#include <vector>

namespace whale::python {

/// `whale.Array`, a class of Python, as calls of steps touch it: hundreds of
/// arrays go in and out of each, so its slots are read and written in place.
/// Arrays of JAX and NumPy and numbers are known by their types, too.
class ArrayClass {
public:
  /// `plain` is the type of JAX's own arrays, `host` that of NumPy's. Throws
  /// nanobind::type_error where the class lacks one of the slots.
  ArrayClass(nanobind::type_object type, nanobind::type_object plain,
             nanobind::type_object host);

  /// What `findOthers` knows values of this type, shape and dtype by: the
  /// `kind` of such an array, the `aval` of an array of JAX, dtype and shape of
  /// one of NumPy, the type of a number; None for all else.
  nanobind::object markOf(nanobind::handle value) const;

  /// Which values don't have these marks.
  std::vector<size_t> findOthers(nanobind::list values,
                                 nanobind::list marks) const;

  /// Whether an object is in the list twice.
  static bool hasRepeated(nanobind::list values);

  /// What is behind arrays, and copies of what others hold for the arguments of
  /// a program, if there is one, whose types they have; of other values, what
  /// `toHandle(index, value)` gives. Throws what that or `handle()` of an array
  /// raises.
  std::vector<runtime::Array> unwrap(const runtime::Program *program,
                                     nanobind::list values,
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
  bool hasMark(nanobind::handle value, nanobind::handle mark) const;
  runtime::Array copy(const runtime::Program &program, size_t argument,
                      nanobind::handle value) const;

  nanobind::type_object type, plain, host;
  Slot handle, kind, words, gathered;
  /// Names of attributes.
  nanobind::object aval, dtype, shape;
};

} // namespace whale::python

#endif // WHALE_PYTHON_ARRAYCLASS_H
