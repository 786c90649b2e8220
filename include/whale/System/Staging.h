//===- Staging.h - Files and directories replaced whole ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What takes the place of something else is made in a directory beside it,
// `.NAME.whale-XXXXXXXX`, which holds
//
//   lock  a file that its writer has locked (flock) for as long as it lives
//   new   what is being made
//   old   what was in the target's place, while it is moved aside
//
// A file is renamed over its target; a directory is exchanged with it in one
// step (renameat2) and the old one removed. Where a file system cannot
// exchange, the old directory is moved to `old` first. A writer that died has
// left its lock free: the next one with a target in the same directory removes
// what is there, and moves `old` back if nothing is in the target's place.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_STAGING_H
#define WHALE_SYSTEM_STAGING_H

#include <filesystem>
#include <functional>
#include <sys/types.h>

namespace whale::system {

/// The place beside a target where what will replace it is made. All functions
/// throw std::system_error.
class Staging {
public:
  /// Follows links in `target`, and removes what dead writers left beside it.
  explicit Staging(const std::filesystem::path &target);
  /// Without a commit nothing remains, and the target is what it was.
  ~Staging();
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  /// What will be replaced, never a link.
  const std::filesystem::path &target() const { return replaced; }
  /// Where the file or directory is to be made; nothing is there yet.
  std::filesystem::path place() const { return directory / "new"; }

  /// Moves the file at `place` to the target.
  void commitFile();
  /// The same for a directory. What is in the target's place is removed if
  /// `mayReplace` says so of its path; else the error is EEXIST.
  void commitDirectory(
      const std::function<bool(const std::filesystem::path &)> &mayReplace);

private:
  void remove();

  std::filesystem::path replaced, directory;
  int lock = -1;
  /// A forked child leaves its parent's directories alone.
  pid_t owner;
};

/// `path` with the links that it names followed, which may lead to nothing.
std::filesystem::path followLinks(std::filesystem::path path);

/// What a writer that died between two renames has moved aside from `target`;
/// empty where there is none.
std::filesystem::path findMovedAside(const std::filesystem::path &target);

/// Removes what dead writers have left beside a target.
void sweepStaging(const std::filesystem::path &target);

/// Removes all staging directories of this process and lets no thread go on
/// with one: the process is about to end. `exit` calls it.
void abandonStaging();

/// Does not return once `abandonStaging` was called. To be called before an
/// error is printed, which may come of what was removed.
void stopIfAbandoned();

} // namespace whale::system

#endif // WHALE_SYSTEM_STAGING_H
