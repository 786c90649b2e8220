//===- Checkpoint.h - Training states on disk -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A directory of checkpoints has one directory for each step, with a file of
// each process and a manifest, which is written last: what has none is no
// checkpoint. docs/checkpoints.md describes the files.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CHECKPOINT_H
#define WHALE_RUNTIME_CHECKPOINT_H

#include "whale/ProgramFormat/Checkpoint.h"
#include "whale/Runtime/Array.h"
#include "whale/Runtime/Job.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace whale::runtime {

/// A leaf of a state to be saved.
struct StateLeaf {
  /// Its path in the tree; no two leaves of a state have one name.
  std::string name;
  Array array;
  /// See format::CheckpointLeaf.
  std::string key = "";
};

/// JSON texts that a checkpoint has beside its leaves; see
/// format::CheckpointManifest.
struct CheckpointNotes {
  std::string extra = "null", tree = "null", plan = "null";
  /// Why the process cannot save, if it cannot: none does then.
  std::string refusal = {};
};

/// A complete checkpoint that is read.
class Checkpoint {
public:
  /// Reads the manifest of a step's directory and maps its files. Throws Error
  /// where a file is missing or has another size.
  static Checkpoint open(const std::filesystem::path &directory);

  const format::CheckpointManifest &manifest() const;

  /// The leaf, of which each process has all. Nothing of it is read until it
  /// is copied, and then only the chunks that are needed; a chunk with another
  /// checksum is an Error where it is read, which names leaf and file.
  Array array(size_t leaf) const;

  /// Reads all and throws the first Error.
  void verify() const;

private:
  struct State;
  std::shared_ptr<const State> state;
};

/// The steps of a directory that have a manifest, ascending; none where there
/// is no directory. Throws Error where it cannot be read.
std::vector<int64_t> stepsIn(const std::filesystem::path &directory);

/// The directory of a step.
std::filesystem::path stepDirectory(const std::filesystem::path &directory,
                                    int64_t step);

/// The step whose directory this is by its name, if it is one.
std::optional<int64_t> stepOf(const std::filesystem::path &directory);

struct CheckpointerOptions {
  /// Made by the first save. All processes see the same.
  std::filesystem::path directory;
  /// So many complete checkpoints are kept, the last ones.
  int64_t keep = 3;
  std::shared_ptr<Job> job = nullptr;
};

/// Saves and restores the states of a job. All functions are collective where
/// there are several processes, and throw one Error in all of them: that of the
/// first process which has one.
class Checkpointer {
public:
  explicit Checkpointer(CheckpointerOptions options);
  /// Waits; what fails then is not told.
  ~Checkpointer();
  Checkpointer(const Checkpointer &) = delete;
  Checkpointer &operator=(const Checkpointer &) = delete;

  /// The last complete step.
  std::optional<int64_t> latest();

  /// Waits for the save before, copies what this process writes, and returns:
  /// a thread writes it. `step` is later than the last one.
  void save(int64_t step, const std::vector<StateLeaf> &leaves,
            const CheckpointNotes &notes);

  /// Returns when the last save is complete.
  void wait();

  /// The checkpoint of a step, by default the last one.
  Checkpoint restore(std::optional<int64_t> step = std::nullopt);

  /// Whether any process says so.
  bool anyOfUs(bool mine);

  /// The memory that copies are made in; it is kept for the next save.
  int64_t stagingBytes() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_CHECKPOINT_H
