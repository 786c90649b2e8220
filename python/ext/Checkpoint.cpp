//===- Checkpoint.cpp - Python's view of checkpoints ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Checkpoint.h"
#include "Module.h"
#include "Text.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

namespace nb = nanobind;
using namespace whale::runtime;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

static void
save(Checkpointer &checkpointer, int64_t step,
     const std::vector<std::tuple<std::string, std::string, Array>> &leaves,
     const std::string &extra, const std::string &tree, const std::string &plan,
     const std::string &refusal) {
  std::vector<StateLeaf> state;
  for (const auto &[name, key, array] : leaves)
    state.push_back({name, array, key});
  checkpointer.save(step, state, {extra, tree, plan, refusal});
}

/// Name, element type, shape and implementation of keys of each leaf.
static std::vector<std::tuple<std::string, std::string, Shape, std::string>>
leavesOf(const Checkpoint &checkpoint) {
  std::vector<std::tuple<std::string, std::string, Shape, std::string>> leaves;
  for (const auto &leaf : checkpoint.manifest().leaves)
    leaves.emplace_back(leaf.name, std::string(name(leaf.dtype)), leaf.shape,
                        leaf.key);
  return leaves;
}

void whale::python::bindCheckpoint(nb::module_ &module) {
  nb::class_<Checkpoint>(module, "Checkpoint", "A checkpoint that is read.")
      .def_prop_ro("step",
                   [](const Checkpoint &self) { return self.manifest().step; })
      .def_prop_ro("extra",
                   [](const Checkpoint &self) { return self.manifest().extra; })
      .def_prop_ro("leaves", leavesOf)
      .def("array", &Checkpoint::array, nb::arg("leaf"));
  nb::class_<Checkpointer>(module, "Checkpointer",
                           "Saves and restores the states of a job.")
      .def(
          "__init__",
          [](Checkpointer *self, const std::string &directory, int64_t keep,
             std::shared_ptr<Job> job) {
            new (self) Checkpointer({directory, keep, std::move(job)});
          },
          nb::arg("directory"), nb::arg("keep"), nb::arg("job").none())
      .def("save", save, nb::arg("step"), nb::arg("leaves"), nb::arg("extra"),
           nb::arg("tree"), nb::arg("plan"), nb::arg("refusal") = "",
           Unlocked())
      .def("restore", &Checkpointer::restore, nb::arg("step").none(),
           Unlocked())
      .def("latest", &Checkpointer::latest, Unlocked())
      .def("wait", &Checkpointer::wait, Unlocked())
      .def("any_of_us", &Checkpointer::anyOfUs, nb::arg("mine"), Unlocked());
}
