//===- Outputs.cpp - The files that whale-run writes ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Outputs.h"

#include "whale/ProgramFormat/ProgramPlace.h"
#include "whale/Runtime/Safetensors.h"
#include "whale/System/Staging.h"

#include <filesystem>
#include <map>
#include <vector>

using namespace whale::runtime;

void whale::runtime::checkFiles(const Options &options) {
  namespace fs = std::filesystem;
  std::map<fs::path, std::string> usedAs;
  auto place = [](const fs::path &path) {
    try {
      return fs::weakly_canonical(
          fs::absolute(whale::system::followLinks(path)));
    } catch (const std::system_error &) {
      return path; // What is wrong with it is said when it is opened.
    }
  };
  fs::path program = place(options.program);
  auto claim = [&](const std::string &flag, const std::string &path) {
    std::error_code error;
    if (path.empty() || fs::is_character_file(path, error))
      return;
    fs::path at = place(path);
    if (at.parent_path() == program &&
        whale::format::isProgramFile(at.filename().string()))
      throw Error(flag + ": " + path + " is the file of the program too");
    auto [other, isNew] = usedAs.try_emplace(at, flag);
    if (!isNew)
      throw Error(flag + ": " + path + " is the file of " + other->second +
                  " too");
  };
  // Both may be read from one file.
  if (!options.inputs.empty())
    usedAs.try_emplace(place(options.inputs), "--inputs");
  if (!options.data.empty())
    usedAs.try_emplace(place(options.data), "--data");
  if (!options.network.empty())
    usedAs.try_emplace(place(options.network), "--network");
  claim("--outputs", options.outputs);
  claim("--stats", options.stats);
  claim("--trace", options.trace);
}

Outputs::Outputs(const Options &options) : results(options.outputs) {
  if (!options.stats.empty())
    stats = std::make_unique<whale::system::FileWriter>(options.stats);
  if (!options.trace.empty())
    trace = std::make_unique<whale::system::FileWriter>(options.trace);
}

void Outputs::write(const Program &program, std::span<const Array> values,
                    const std::string &statsText,
                    const std::string &traceText) {
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < values.size(); ++i)
    tensors.push_back({program.results()[i].name, program.results()[i].dtype,
                       program.results()[i].shape,
                       [&, i](void *out) { values[i].toHost(out); }});
  std::vector<whale::system::FileWriter *> files = {&results};
  writeSafetensors(results, tensors);
  if (stats)
    files.emplace_back(stats.get())->write(statsText);
  if (trace)
    files.emplace_back(trace.get())->write(traceText);
  for (whale::system::FileWriter *file : files)
    file->flush();
  for (whale::system::FileWriter *file : files)
    file->commit();
}
