//===- whale-checkpoint.cpp - Looks into checkpoints ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   whale-checkpoint list DIR              prints the complete checkpoints
//   whale-checkpoint verify DIR            reads and checks all of them
//   whale-checkpoint export DIR -o OUT     writes whole tensors
//   whale-checkpoint import DIR -i IN      makes a checkpoint of whole tensors
//
//===----------------------------------------------------------------------===//

#include "WholeFiles.h"

#include "whale/System/Printable.h"
#include "whale/System/Tool.h"
#include "whale/Version.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdio>
#include <iostream>
#include <limits>

using namespace whale;
using namespace whale::runtime;

namespace {
struct Options {
  std::string directory, output, input;
  std::optional<int64_t> step;
  int64_t mostBytes = int64_t(5) << 30;
  bool showsLeaves = false;
};
} // namespace

static int64_t bytesOf(const format::CheckpointManifest &manifest) {
  int64_t bytes = 0;
  for (const format::CheckpointLeaf &leaf : manifest.leaves)
    bytes += leaf.bytes();
  return bytes;
}

/// The steps that are asked for: one, or all that are complete.
static std::vector<int64_t> stepsOf(const Options &options) {
  if (options.step)
    return {*options.step};
  std::vector<int64_t> steps = stepsIn(options.directory);
  if (steps.empty())
    throw Error(options.directory + ": there is no complete checkpoint");
  return steps;
}

static Checkpoint openStep(const Options &options, int64_t step) {
  return Checkpoint::open(stepDirectory(options.directory, step));
}

/// "step 100: 12 leaves, 4096 bytes in 2 files".
static std::string titleOf(const format::CheckpointManifest &manifest) {
  return "step " + std::to_string(manifest.step) + ": " +
         std::to_string(manifest.leaves.size()) + " leaves, " +
         std::to_string(bytesOf(manifest)) + " bytes in " +
         std::to_string(manifest.files.size()) + " files";
}

static void list(const Options &options) {
  for (int64_t step : stepsOf(options)) {
    Checkpoint checkpoint = openStep(options, step);
    const format::CheckpointManifest &manifest = checkpoint.manifest();
    std::cout << titleOf(manifest) << "\n";
    if (!options.showsLeaves)
      continue;
    for (const format::CheckpointLeaf &leaf : manifest.leaves)
      std::cout << "  " << system::diagnosticLine(leaf.name) << " "
                << name(leaf.dtype) << toString(leaf.shape)
                << (leaf.key.empty() ? "" : " of keys " + leaf.key) << " in "
                << leaf.pieces.size() << " pieces\n";
    std::cout << "  extra " << manifest.extra << "\n";
  }
}

static void verify(const Options &options) {
  for (int64_t step : stepsOf(options)) {
    Checkpoint checkpoint = openStep(options, step);
    checkpoint.verify();
    std::cout << titleOf(checkpoint.manifest()) << ", all as they were saved\n";
  }
}

static void addStep(CLI::App &app, Options &options, const char *text) {
  app.add_option("--step", options.step, text)
      ->type_name("N")
      ->check(CLI::Range(int64_t(0), std::numeric_limits<int64_t>::max())
                  .description(""));
}

static CLI::App *addCommand(CLI::App &app, Options &options, const char *name,
                            const char *text) {
  CLI::App *command = app.add_subcommand(name, text);
  command->add_option("directory", options.directory, "The checkpoints' own")
      ->required();
  return command;
}

int main(int argc, char **argv) {
  system::beginTool();
  Options options;
  CLI::App app("Looks into checkpoints of Whale.", "whale-checkpoint");
  app.require_subcommand(1);
  app.set_version_flag("--version", WHALE_VERSION_TEXT,
                       "Print the versions of Whale and of its LLVM");
  CLI::App *listing =
      addCommand(app, options, "list", "Print the complete checkpoints");
  listing->add_flag("--leaves", options.showsLeaves,
                    "With each of their arrays");
  CLI::App *verifying = addCommand(
      app, options, "verify", "Read all, and compare it with its checksums");
  CLI::App *exporting =
      addCommand(app, options, "export",
                 "Write whole tensors as safetensors files with an index");
  exporting
      ->add_option("-o,--output", options.output,
                   "A directory for the files, which is made")
      ->required();
  exporting
      ->add_option("--file-bytes", options.mostBytes,
                   "The most bytes of a file (default: 5 GiB)")
      ->check(CLI::Range(int64_t(1), std::numeric_limits<int64_t>::max())
                  .description(""));
  CLI::App *importing =
      addCommand(app, options, "import",
                 "Make a checkpoint of whole tensors in safetensors files");
  importing
      ->add_option("-i,--input", options.input,
                   "A file, or a directory with model.safetensors.index.json")
      ->required();
  addStep(*listing, options, "Only the checkpoint of this step");
  addStep(*verifying, options, "Only the checkpoint of this step");
  addStep(*exporting, options, "Of this step (default: the last)");
  addStep(*importing, options,
          "As that of this step (default: what the index says, else 0)");
  return system::runTool([&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success &help) {
      return app.exit(help);
    }
    if (*listing)
      list(options);
    else if (*verifying)
      verify(options);
    else if (*exporting)
      exportWhole(openStep(options, stepsOf(options).back()), options.output,
                  options.mostBytes);
    else {
      Checkpointer checkpointer(
          {options.directory, std::numeric_limits<int64_t>::max()});
      importWhole(options.input, checkpointer, options.step);
    }
    return 0;
  });
}
