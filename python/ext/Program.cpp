//===- Program.cpp - Programs for Python ----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loading, and waiting for steps, let other Python threads go on.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Program.h"
#include "ArrayClass.h"
#include "Module.h"
#include "Text.h"
#include "Waiting.h"
#include "whale/Runtime/Trace.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace whale::runtime;
using whale::python::ArrayClass;
using whale::python::letOthersRun;

/// What a program calls on the threads of its ranks: `call` gets the number of
/// a function and, for each operand, its element type, shape and bytes; it
/// gives what went wrong, or None, and the bytes of each result.
static PythonFunction makeFunction(nb::callable call) {
  // Dropped by whoever drops the program.
  auto drop = [](nb::callable *own) {
    if (!Py_IsInitialized())
      return;
    nb::gil_scoped_acquire gil;
    delete own;
  };
  std::shared_ptr<nb::callable> held(new nb::callable(std::move(call)), drop);
  return [held](int64_t index, std::span<const HostTensor> inputs,
                std::span<const HostTensor> outputs) {
    nb::gil_scoped_acquire gil;
    auto size = [](const HostTensor &tensor) {
      return static_cast<size_t>(
          whale::format::byteCount(tensor.type.dtype, tensor.type.shape));
    };
    nb::list operands;
    for (const HostTensor &input : inputs)
      operands.append(
          nb::make_tuple(std::string(whale::format::name(input.type.dtype)),
                         input.type.shape, nb::bytes(input.data, size(input))));
    auto [error, results] =
        nb::cast<std::pair<nb::object, std::vector<nb::bytes>>>(
            (*held)(index, operands));
    if (!error.is_none())
      throw Error(nb::cast<std::string>(error));
    if (results.size() != outputs.size())
      throw Error("a function of the step gives another number of results");
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].size() != size(outputs[i]))
        throw Error("a function of the step gives a result of another size");
      std::memcpy(outputs[i].data, results[i].data(), results[i].size());
    }
  };
}

static void load(Program *place, const std::string &path,
                 std::shared_ptr<Job> job, std::optional<nb::callable> python,
                 bool hasOwnRanks, bool inMainThread) {
  LoadOptions options;
  options.hasOwnRanks = hasOwnRanks;
  if (python)
    options.python = makeFunction(std::move(*python));
  options.job = std::move(job);
  letOthersRun(inMainThread, [&](const AskInterrupted &interrupted) {
    new (place) Program(Program::load(path, options, interrupted));
  });
}

/// All processes have all of it afterwards.
static Array gather(const Program &program, const Array &array,
                    bool inMainThread) {
  Array whole;
  letOthersRun(inMainThread, [&](const AskInterrupted &interrupted) {
    whole = program.gather(array, /*everywhere=*/true, interrupted);
  });
  return whole;
}

/// Takes part in a move that this process cannot make.
static void refuseMove(const Program &program, const std::string &why) {
  nb::gil_scoped_release release;
  program.refuseMove(why);
}

static nb::list move(const Program &program, const ArrayClass &arrayClass,
                     nb::list values, const std::vector<size_t> &arguments,
                     nb::callable toHandle, nb::list kinds, bool inMainThread) {
  // As they are: what does not fit is found together with the others.
  std::vector<Array> arrays;
  try {
    arrays = arrayClass.unwrap(nullptr, values, toHandle);
  } catch (nb::python_error &error) {
    refuseMove(program, nb::cast<std::string>(nb::str(error.value())));
    throw;
  }
  letOthersRun(inMainThread, [&](const AskInterrupted &interrupted) {
    arrays = program.move(arrays, arguments, interrupted);
  });
  return arrayClass.wrap(std::move(arrays), kinds);
}

namespace {
/// A step that may still run.
struct PythonStep {
  std::shared_ptr<Step> step;
  std::shared_ptr<const StepCosts> costs;
};
} // namespace

static std::pair<nb::list, PythonStep>
submit(const Program &program, const ArrayClass &arrayClass, nb::list values,
       nb::callable toHandle, nb::list kinds, bool inMainThread) {
  std::vector<Array> arguments = arrayClass.unwrap(&program, values, toHandle);
  StepOptions options;
  options.isProfiled = true;
  Submission submission =
      letOthersRun(inMainThread, [&](const AskInterrupted &interrupted) {
        options.interrupted = interrupted;
        return program.submit(arguments, options);
      });
  return {arrayClass.wrap(std::move(submission.results), kinds),
          {std::move(submission.step), std::move(submission.costs)}};
}

/// Runs a step, which the trace gets; what it costs, as JSON and as a profile.
static nb::tuple runTraced(const Program &program, const ArrayClass &arrayClass,
                           nb::list values, nb::callable toHandle,
                           nb::list kinds, Trace &trace) {
  std::vector<Array> arguments = arrayClass.unwrap(&program, values, toHandle);
  Stats stats;
  Profile profile;
  RunOptions options;
  options.isProfiled = true;
  options.trace = &trace;
  options.stats = &stats;
  options.profile = &profile;
  std::vector<Array> results;
  {
    nb::gil_scoped_release release;
    results = program.run(arguments, options);
  }
  return nb::make_tuple(arrayClass.wrap(std::move(results), kinds),
                        stats.json(), std::move(profile));
}

static const StepCosts &waitForCosts(const PythonStep &step,
                                     bool inMainThread) {
  letOthersRun(inMainThread, [&](const AskInterrupted &interrupted) {
    step.step->wait(interrupted);
  });
  return *step.costs;
}

static void stop(const std::vector<PythonStep> &stopped) {
  nb::gil_scoped_release release;
  std::vector<std::shared_ptr<Step>> steps;
  for (const PythonStep &step : stopped)
    steps.push_back(step.step);
  Step::stop(steps);
}

static std::string describeProfile(const Program &program,
                                   const Profile &profile) {
  nb::gil_scoped_release release;
  return program.describe(profile);
}

void whale::python::bindProgram(nb::module_ &module) {
  module.def(
      "check_plan",
      [](const std::string &path) {
        nb::gil_scoped_release release;
        checkPlan(path);
      },
      nb::arg("path"), "Checks a program directory that has no code.");
  module.def(
      "read_tables",
      [](const std::string &path) {
        nb::gil_scoped_release release;
        return readTables(path);
      },
      nb::arg("path"),
      "The tables of a program directory, at length, as JSON.");
  nb::class_<Profile>(module, "Profile", "The times of a step's instructions.");
  nb::class_<Trace>(module, "Trace", "What each rank did when.")
      .def(nb::init<>())
      .def(
          "json",
          [](const Trace &trace, const std::vector<size_t> &ranks) {
            return trace.json(&ranks);
          },
          nb::arg("ranks"), "Chrome trace events of these ranks.")
      .def_static("join", Trace::join, nb::arg("parts"),
                  "One text for those of several processes.");
  nb::class_<PythonStep>(module, "Step", "A step that may still run.")
      .def_prop_ro(
          "has_left",
          [](const PythonStep &step) { return step.step->hasLeft(); },
          "Whether nothing runs for it any more.")
      .def(
          "stats",
          [](const PythonStep &step, bool inMainThread) {
            return waitForCosts(step, inMainThread).stats.json();
          },
          nb::arg("in_main_thread"), "Its costs as JSON, once it has ended.")
      .def(
          "profile",
          [](const PythonStep &step, bool inMainThread) {
            return waitForCosts(step, inMainThread).profile;
          },
          nb::arg("in_main_thread"), "Its profile, once it has ended.");
  module.def("stop_steps", stop, nb::arg("steps"),
             "Ends steps, and waits until they have left.");
  nb::class_<Program>(module, "Program",
                      "A program directory in memory, with its ranks.")
      .def("__init__", load, nb::arg("path"),
           nb::arg("job").none() = nb::none(),
           nb::arg("python").none() = nb::none(), nb::arg("own_ranks") = false,
           nb::arg("in_main_thread") = false)
      .def("gather", gather, nb::arg("array"), nb::arg("in_main_thread"),
           "Collective: the whole array, in all processes.")
      .def("move", move, nb::arg("array_class"), nb::arg("values"),
           nb::arg("arguments"), nb::arg("to_handle"), nb::arg("kinds"),
           nb::arg("in_main_thread"),
           "Collective: the arrays as these arguments want them.")
      .def("refuse_move", refuseMove, nb::arg("why"),
           "Collective: takes part in a `move` that this process cannot make, "
           "which raises this in all others.")
      .def("place", &Program::place, nb::arg("argument"), nb::arg("array"),
           nb::call_guard<nb::gil_scoped_release>(),
           "An argument of which the array has what is in this process.")
      .def("process_of", &Program::processOf, nb::arg("rank"))
      .def_prop_ro("plan", &Program::plan)
      .def_prop_ro(
          "notes",
          [](const Program &program) {
            std::vector<std::pair<bool, std::string>> notes;
            for (const LoadNote &note : program.notes())
              notes.emplace_back(note.isWarning, note.text);
            return notes;
          },
          "What there is to say of how it was loaded, and of each whether it "
          "is "
          "a warning.")
      .def("submit", submit, nb::arg("array_class"), nb::arg("values"),
           nb::arg("to_handle"), nb::arg("kinds"), nb::arg("in_main_thread"),
           "Hands over a step: its results, which it has yet to compute, and "
           "the step itself.")
      .def("run_traced", runTraced, nb::arg("array_class"), nb::arg("values"),
           nb::arg("to_handle"), nb::arg("kinds"), nb::arg("trace"),
           "Runs a step: its results, its costs as JSON, and its profile.")
      .def("describe", describeProfile, nb::arg("profile"),
           "Where the time of a step went, as text.");
}
