//===- ArrayClass.cpp - Python's class of arrays --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArrayClass.h"
#include "Module.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <structmember.h>

namespace nb = nanobind;
using namespace whale::python;
using whale::runtime::Array;

ArrayClass::ArrayClass(nb::type_object type)
    : type(std::move(type)), handle(find("_handle")), kind(find("kind")),
      words(find("_words")), gathered(find("_gathered")) {}

ArrayClass::Slot ArrayClass::find(const char *name) const {
  nb::object slot = nb::getattr(type, name);
  if (!Py_IS_TYPE(slot.ptr(), &PyMemberDescr_Type))
    throw nb::type_error(
        ("'" + std::string(name) + "' is no slot of the class").c_str());
  auto *descriptor = reinterpret_cast<PyMemberDescrObject *>(slot.ptr());
  return {descriptor->d_member->offset};
}

bool ArrayClass::isArray(nb::handle value) const {
  return value.type().is(type);
}

std::vector<size_t> ArrayClass::findOthers(nb::list values,
                                           nb::list kinds) const {
  if (values.size() != kinds.size())
    throw nb::value_error("one kind for each value expected");
  std::vector<size_t> others;
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject *value = PyList_GET_ITEM(values.ptr(), i);
    if (!isArray(value) || kind.in(value) != PyList_GET_ITEM(kinds.ptr(), i))
      others.push_back(i);
  }
  return others;
}

bool ArrayClass::hasRepeated(nb::list values) {
  std::vector<PyObject *> objects;
  for (nb::handle value : values)
    objects.push_back(value.ptr());
  std::ranges::sort(objects);
  return std::ranges::adjacent_find(objects) != objects.end();
}

std::vector<Array> ArrayClass::unwrap(nb::list values,
                                      nb::callable toHandle) const {
  std::vector<Array> arrays;
  arrays.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    nb::handle value = PyList_GET_ITEM(values.ptr(), i);
    if (!isArray(value)) {
      arrays.push_back(nb::cast<Array>(toHandle(i, value)));
      continue;
    }
    nb::handle own = handle.in(value.ptr());
    // Where there may be something to say, the class says it.
    if (own && !own.is_none() && gathered.in(value.ptr()) == Py_None)
      if (const Array &array = nb::cast<const Array &>(own);
          !array.isDonated()) {
        arrays.push_back(array);
        continue;
      }
    arrays.push_back(nb::cast<Array>(value.attr("handle")()));
  }
  return arrays;
}

nb::list ArrayClass::wrap(std::vector<Array> arrays, nb::list kinds) const {
  if (arrays.size() != kinds.size())
    throw nb::value_error("one kind for each array expected");
  auto *pythonType = reinterpret_cast<PyTypeObject *>(type.ptr());
  nb::object result =
      nb::steal(PyList_New(static_cast<Py_ssize_t>(arrays.size())));
  if (!result)
    nb::raise_python_error();
  for (size_t i = 0; i < arrays.size(); ++i) {
    nb::object own = nb::borrow(PyList_GET_ITEM(kinds.ptr(), i));
    nb::object array = nb::none();
    if (!own.is_none()) {
      array = nb::steal(pythonType->tp_alloc(pythonType, 0));
      if (!array)
        nb::raise_python_error();
      handle.in(array.ptr()) = nb::cast(std::move(arrays[i])).release().ptr();
      kind.in(array.ptr()) = own.release().ptr();
      words.in(array.ptr()) = nb::none().release().ptr();
      gathered.in(array.ptr()) = nb::none().release().ptr();
    }
    PyList_SET_ITEM(result.ptr(), i, array.release().ptr());
  }
  return nb::borrow<nb::list>(result);
}

void whale::python::bindArrayClass(nb::module_ &module) {
  nb::class_<ArrayClass>(module, "ArrayClass",
                         "Python's class of arrays, for calls of steps.")
      .def(nb::init<nb::type_object>(), nb::arg("type"))
      .def("find_others", &ArrayClass::findOthers, nb::arg("values"),
           nb::arg("kinds"),
           "The places of values that are no such arrays, or of another kind.")
      .def_static("has_repeated", &ArrayClass::hasRepeated, nb::arg("values"),
                  "Whether an object is in the list twice.");
}
