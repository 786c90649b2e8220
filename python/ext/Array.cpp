//===- Array.cpp - Distributed arrays for Python --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements cross the border as bytes, so that types which Python's buffer
// protocol lacks (bf16, f8) need nothing special.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Array.h"
#include "Module.h"
#include "Text.h"
#include "Waiting.h"
#include "whale/Runtime/Types.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace whale::runtime;
using whale::python::letOthersRun;

using HostBytes =
    nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using NewBytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

static bool isFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

static Array fromHost(HostBytes data, const std::string &typeName,
                      Shape shape) {
  std::optional<DType> dtype = parseDType(typeName);
  if (!dtype)
    throw Error("no element type is called '" + typeName + "'");
  int64_t elements = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
      throw Error("no tensor has the shape " + toString(shape));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, byteSize(*dtype), &bytes) ||
      static_cast<size_t>(bytes) != data.nbytes())
    throw Error(std::to_string(data.nbytes()) +
                " bytes for a tensor of shape " + toString(shape) +
                " and type " + typeName);
  if (bytes == 0)
    return Array::fromHost(*dtype, std::move(shape), data.data());
  // The handle of the NumPy array lives as long as the memory is in use, which
  // may end where other Python threads run.
  const void *memory = data.data();
  auto *owner = new HostBytes(std::move(data));
  std::shared_ptr<const void> shared(memory, [owner](const void *) {
    // A thread that outlives Python leaves it.
    if (!Py_IsInitialized() || isFinalizing())
      return;
    nb::gil_scoped_acquire gil;
    delete owner;
  });
  return Array::adopt(*dtype, std::move(shape), std::move(shared));
}

static NewBytes toHost(const Array &array, bool inMainThread) {
  // Aligned as a buffer is, so that JAX uses the memory in place.
  auto memory = std::make_unique<std::shared_ptr<Buffer>>();
  letOthersRun(inMainThread, [&](const AskInterrupted &interrupted) {
    array.wait(interrupted);
    *memory = Buffer::allocate(array.bytes());
    array.toHost((*memory)->data.get());
  });
  auto *bytes = static_cast<uint8_t *>((*memory)->data.get());
  nb::capsule owner(memory.release(), [](void *held) noexcept {
    delete static_cast<std::shared_ptr<Buffer> *>(held);
  });
  return NewBytes(bytes, {static_cast<size_t>(array.bytes())}, owner);
}

static std::optional<NewBytes> shard(const Array &array, size_t rank,
                                     bool inMainThread) {
  auto memory = std::make_unique<std::shared_ptr<Buffer>>();
  letOthersRun(inMainThread, [&](const AskInterrupted &interrupted) {
    array.wait(interrupted);
    if (std::shared_ptr<Buffer> own = array.shard(rank))
      *memory = own->copy();
  });
  if (!*memory)
    return std::nullopt;
  size_t size = (*memory)->bytes;
  auto *bytes = static_cast<uint8_t *>((*memory)->data.get());
  nb::capsule owner(memory.release(), [](void *held) noexcept {
    delete static_cast<std::shared_ptr<Buffer> *>(held);
  });
  return NewBytes(bytes, {size}, owner);
}

/// As a manifest has them.
static std::vector<std::optional<std::pair<Shape, Shape>>>
boxesOf(const Array &array) {
  std::vector<std::optional<std::pair<Shape, Shape>>> boxes;
  for (const std::optional<Box> &box : array.layout().boxes)
    boxes.push_back(box ? std::optional(std::pair(box->start, box->size))
                        : std::nullopt);
  return boxes;
}

static void wait(const Array &array, bool inMainThread) {
  letOthersRun(inMainThread, [&](const AskInterrupted &interrupted) {
    array.wait(interrupted);
  });
}

void whale::python::bindArray(nb::module_ &module) {
  nb::class_<Array>(module, "Array", "A tensor in shards, one for each rank.")
      .def_static("from_host", fromHost, nb::arg("data"), nb::arg("dtype"),
                  nb::arg("shape"),
                  "Reads `data` in place, until a program copies it.")
      .def("to_host", toHost, nb::arg("in_main_thread"),
           "Gathers the tensor's bytes into new memory, once it is ready.")
      .def("wait", wait, nb::arg("in_main_thread"),
           "Waits for the step that computes it, and raises its error.")
      .def("shard", shard, nb::arg("rank"), nb::arg("in_main_thread"),
           "A copy of a rank's part as bytes, once it is ready; None where "
           "this process has none.")
      .def_prop_ro("is_ready", &Array::isReady)
      .def_prop_ro("is_done", &Array::isDone)
      .def_prop_ro(
          "dtype",
          [](const Array &array) { return std::string(name(array.dtype())); })
      .def_prop_ro("shape", [](const Array &array) { return array.shape(); })
      .def_prop_ro("view",
                   [](const Array &array) { return array.layout().view; })
      .def_prop_ro("boxes", boxesOf)
      .def_prop_ro("is_donated", &Array::isDonated)
      .def_prop_ro("fate", &Array::fate);
}
