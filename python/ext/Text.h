//===- Text.h - Strings of bytes for Python ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the place of nanobind/stl/string.h, which refuses names of files and
// scopes that are no UTF-8: their bytes are in Python as os.fsdecode has them.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PYTHON_EXT_TEXT_H
#define WHALE_PYTHON_EXT_TEXT_H

#include <nanobind/nanobind.h>

#include <string>

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, uint32_t, cleanup_list *) noexcept {
    if (!PyUnicode_Check(source.ptr()))
      return false;
    PyObject *bytes =
        PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape");
    if (!bytes) {
      PyErr_Clear();
      return false;
    }
    value.assign(PyBytes_AsString(bytes), size_t(PyBytes_Size(bytes)));
    Py_DECREF(bytes);
    return true;
  }

  static handle from_cpp(const std::string &value, rv_policy,
                         cleanup_list *) noexcept {
    return PyUnicode_DecodeUTF8(value.data(), Py_ssize_t(value.size()),
                                "surrogateescape");
  }
};

} // namespace nanobind::detail

#endif // WHALE_PYTHON_EXT_TEXT_H
