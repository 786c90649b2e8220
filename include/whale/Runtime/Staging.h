//===- Staging.h - Atomic replacement of files and directories --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file or directory that replaces another is created in a staging directory
// beside it, `.NAME.whale-XXXXXXXX`, which contains
//
//   lock  a file that its writer keeps locked (flock) until it exits
//   new   the new file or directory
//   old   the old directory, while it is moved aside
//
// A file is renamed over its target. A directory is exchanged with it in one
// step (renameat2) and the old one removed. If a file system cannot exchange,
// the old directory is moved to `old` first. The lock of a writer that crashed
// is free: the next writer with the same target removes its staging directory,
// and moves `old` back if the target doesn't exist.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_STAGING_H
#define WHALE_RUNTIME_STAGING_H

#include <filesystem>
#include <functional>
#include <sys/types.h>

namespace whale::runtime {

/// The staging directory of a target. All functions throw std::system_error.
class Staging {
public:
  /// Follows links in `target`, and removes staging directories that crashed
  /// writers left for it.
  explicit Staging(const std::filesystem::path &target);
  /// Without a commit, removes the new file; the target is unchanged.
  ~Staging();
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  /// Returns the path that will be replaced, never a link.
  const std::filesystem::path &target() const { return replaced; }
  /// Returns the path at which to create the file or directory; nothing exists
  /// there yet.
  std::filesystem::path place() const { return directory / "new"; }

  /// Moves the file at `place` to the target.
  void commitFile();
  /// The same for a directory. What is at the target is removed if `mayReplace`
  /// returns true for its path; otherwise the error is EEXIST.
  void commitDirectory(
      const std::function<bool(const std::filesystem::path &)> &mayReplace);

private:
  void remove();

  std::filesystem::path replaced, directory;
  int lock = -1;
  /// The process that created it: a forked child doesn't remove its parent's
  /// staging directories.
  pid_t owner;
};

/// Returns `path` with links followed; the result may not exist.
std::filesystem::path followLinks(std::filesystem::path path);

/// Returns the old directory that a crashed writer has moved aside from
/// `target`; empty if there is none.
std::filesystem::path findMovedAside(const std::filesystem::path &target);

/// Removes all staging directories of this process, which is about to exit, and
/// blocks threads that continue to use one.
void abandonStaging();

/// Doesn't return after `abandonStaging` was called. To be called before an
/// error is printed, because removing the directories may have caused it.
void stopIfAbandoned();

} // namespace whale::runtime

#endif // WHALE_RUNTIME_STAGING_H
