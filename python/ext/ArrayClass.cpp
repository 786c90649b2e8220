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
using whale::runtime::Program;

static nb::object intern(const char *name) {
  return nb::steal(PyUnicode_InternFromString(name));
}

ArrayClass::ArrayClass(nb::type_object type, nb::type_object plain,
                       nb::type_object host)
    : type(std::move(type)), plain(std::move(plain)), host(std::move(host)),
      handle(find("_handle")), kind(find("kind")), words(find("_words")),
      gathered(find("_gathered")), aval(intern("aval")), dtype(intern("dtype")),
      shape(intern("shape")) {}

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

static bool isNumber(nb::handle value) {
  return PyFloat_CheckExact(value.ptr()) || PyLong_CheckExact(value.ptr()) ||
         PyBool_Check(value.ptr());
}

nb::object ArrayClass::markOf(nb::handle value) const {
  if (isArray(value))
    return nb::borrow(kind.in(value.ptr()));
  if (value.type().is(plain))
    return nb::getattr(value, aval);
  if (value.type().is(host))
    return nb::make_tuple(nb::getattr(value, dtype), nb::getattr(value, shape));
  return isNumber(value) ? nb::borrow(value.type()) : nb::none();
}

bool ArrayClass::hasMark(nb::handle value, nb::handle mark) const {
  if (isArray(value))
    return mark.is(kind.in(value.ptr()));
  if (value.type().is(plain))
    return mark.is(nb::getattr(value, aval));
  if (value.type().is(host))
    return PyTuple_CheckExact(mark.ptr()) &&
           PyTuple_GET_ITEM(mark.ptr(), 0) == nb::getattr(value, dtype).ptr() &&
           nb::getattr(value, shape)
               .equal(nb::handle(PyTuple_GET_ITEM(mark.ptr(), 1)));
  return isNumber(value) && mark.is(value.type());
}

std::vector<size_t> ArrayClass::findOthers(nb::list values,
                                           nb::list marks) const {
  if (values.size() != marks.size())
    throw nb::value_error("one mark for each value expected");
  std::vector<size_t> others;
  for (size_t i = 0; i < values.size(); ++i)
    if (!hasMark(PyList_GET_ITEM(values.ptr(), i),
                 PyList_GET_ITEM(marks.ptr(), i)))
      others.push_back(i);
  return others;
}

bool ArrayClass::hasRepeated(nb::list values) {
  std::vector<PyObject *> objects;
  for (nb::handle value : values)
    objects.push_back(value.ptr());
  std::ranges::sort(objects);
  return std::ranges::adjacent_find(objects) != objects.end();
}

namespace {
/// An object's memory in one piece, row by row; nothing where it lends none.
class Lent {
public:
  explicit Lent(nb::handle value) {
    isLent = PyObject_GetBuffer(value.ptr(), &view, PyBUF_C_CONTIGUOUS) == 0;
    if (!isLent)
      PyErr_Clear(); // Who asks for the elements themselves learns why.
  }
  ~Lent() {
    if (isLent)
      PyBuffer_Release(&view);
  }
  Lent(const Lent &) = delete;
  Lent &operator=(const Lent &) = delete;

  /// Null unless it is so many bytes.
  const void *data(int64_t bytes) const {
    return isLent && view.len == bytes ? view.buf : nullptr;
  }

private:
  Py_buffer view;
  bool isLent;
};
} // namespace

/// The empty handle where it is for others: what is large is not copied while
/// other threads of Python wait.
Array ArrayClass::copy(const Program &program, size_t argument,
                       nb::handle value) const {
  constexpr int64_t large = 1 << 16;
  int64_t bytes = program.argumentBytes(argument);
  if (bytes == 0 || bytes > large)
    return {};
  if (value.type().is(plain) || value.type().is(host)) {
    Lent lent(value);
    if (const void *data = lent.data(bytes))
      return program.copyArgument(argument, data);
  }
  if (PyFloat_CheckExact(value.ptr()) &&
      program.arguments()[argument].dtype == whale::runtime::DType::F32) {
    auto number = static_cast<float>(PyFloat_AS_DOUBLE(value.ptr()));
    return program.copyArgument(argument, &number);
  }
  return {};
}

std::vector<Array> ArrayClass::unwrap(const Program *program, nb::list values,
                                      nb::callable toHandle) const {
  std::vector<Array> arrays;
  arrays.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    nb::handle value = PyList_GET_ITEM(values.ptr(), i);
    if (!isArray(value)) {
      Array copied;
      if (program && i < program->arguments().size())
        copied = copy(*program, i, value);
      arrays.push_back(copied ? std::move(copied)
                              : nb::cast<Array>(toHandle(i, value)));
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
      .def(nb::init<nb::type_object, nb::type_object, nb::type_object>(),
           nb::arg("type"), nb::arg("plain"), nb::arg("host"))
      .def("mark_of", &ArrayClass::markOf, nb::arg("value"),
           "What `find_others` knows values of such a type by.")
      .def("find_others", &ArrayClass::findOthers, nb::arg("values"),
           nb::arg("marks"), "The places of values without these marks.")
      .def_static("has_repeated", &ArrayClass::hasRepeated, nb::arg("values"),
                  "Whether an object is in the list twice.");
}
