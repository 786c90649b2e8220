//===- Staging.cpp - Files and directories replaced whole -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a target, and what a writer makes of it in a staging directory beside it.
// Out: the target replaced whole by a commit, or as it was. What dead writers
// have left beside it, for this target or another one, is removed.
//
// Other processes may write or clean up the same target at any time. So a name
// changes by a single call of the file system, which is tried again where the
// target has changed meanwhile; a lock counts only if its file is still the one
// that has its name.
//
// A mutex guards the renames: a signal's thread takes it for good before it
// removes what this process has staged, as the end of the process does. Only
// what replaces something is brought to the disk before, one fsync for each
// file.
//
// Cost: the start lists the directory of the target, and removes what has been
// left there. A commit is a rename or an exchange of names, whatever the size,
// and is tried again at most 1000 times while others change the target. Removal
// takes time linear in the files, and one descriptor, that of the lock if need
// be: processes may have none left.
//
//===----------------------------------------------------------------------===//

#include "whale/System/Staging.h"

#include "whale/System/Checksum.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace whale::system {

[[noreturn]] static void fail(int code) {
  throw std::system_error(code, std::generic_category());
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static constexpr size_t kRandomDigits = 8;
static constexpr std::string_view kSuffix = ".whale-";
/// Of a target's name, as much is in that of a staging directory, which may
/// have 255 bytes.
static constexpr size_t kLongestName = 200;

/// What the names of a target's staging directories begin with.
static std::string prefixOf(const fs::path &target) {
  std::string name = target.filename().string();
  if (name.size() > kLongestName)
    name = name.substr(0, kLongestName) + "-" + Checksum::of(name);
  return "." + name + std::string(kSuffix);
}

static fs::path parentOf(const fs::path &path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

static std::string randomDigits() {
  std::random_device random;
  char digits[kRandomDigits + 1];
  std::snprintf(digits, sizeof(digits), "%08x", unsigned(random()));
  return digits;
}

namespace {
/// A staging directory, of a living writer or a dead one.
struct Found {
  fs::path directory;
  /// Empty where the directory's name has only the beginning of it.
  fs::path target;
};
} // namespace

/// The staging directories beside a target, with their targets.
static std::vector<Found> findStaging(const fs::path &target) {
  std::vector<Found> found;
  const std::string own = prefixOf(target);
  std::error_code error;
  for (fs::directory_iterator it(parentOf(target), error), end;
       !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    std::error_code ignored;
    if (name.size() <= kSuffix.size() + kRandomDigits + 1 ||
        !fs::is_directory(it->symlink_status(ignored)))
      continue;
    std::string prefix = name.substr(0, name.size() - kRandomDigits);
    bool isRandom =
        name.find_first_not_of("0123456789abcdef", prefix.size()) == name.npos;
    if (!isRandom || !prefix.starts_with('.') || !prefix.ends_with(kSuffix))
      continue;
    std::string theirs = prefix.substr(1, prefix.size() - 1 - kSuffix.size());
    fs::path replaced =
        theirs.size() <= kLongestName ? parentOf(target) / theirs : fs::path();
    found.push_back({it->path(), prefix == own ? target : replaced});
  }
  return found;
}

static bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

fs::path followLinks(fs::path path) {
  std::string text = path.string();
  while (text.size() > 1 && text.back() == '/')
    text.pop_back();
  path = text;
  // As many as the kernel follows.
  constexpr int mostLinks = 40;
  std::error_code ignored;
  for (int links = 0; fs::is_symlink(fs::symlink_status(path, ignored));
       ++links) {
    if (links == mostLinks)
      fail(ELOOP);
    fs::path next = fs::read_symlink(path);
    path = next.is_absolute() ? next : path.parent_path() / next;
    if (path.has_relative_path() && !path.has_filename())
      path = path.parent_path();
  }
  // The name of the directory itself, where it is named by its place.
  if (path.filename() == "." || path.filename() == "..")
    path = fs::canonical(path);
  if (path.filename().empty())
    fail(path.empty() ? ENOENT : EBUSY);
  return path;
}

//===----------------------------------------------------------------------===//
// Locks
//===----------------------------------------------------------------------===//

namespace {
enum class LockState { Taken, Held, NotSupported, Gone };
} // namespace

/// Locks a staging directory; `descriptor` is open where the state is Taken or
/// NotSupported. Throws where the file of the lock cannot be made.
static LockState takeLock(const fs::path &directory, int &descriptor) {
  fs::path path = directory / "lock";
  descriptor =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) {
    if (errno == ENOENT)
      return LockState::Gone;
    fail(errno);
  }
  LockState state = LockState::Taken;
  struct stat locked, named;
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    state = errno == EWOULDBLOCK ? LockState::Held : LockState::NotSupported;
  // Who held it before may have removed it.
  else if (fstat(descriptor, &locked) != 0 || stat(path.c_str(), &named) != 0 ||
           locked.st_ino != named.st_ino || locked.st_dev != named.st_dev)
    state = LockState::Gone;
  if (state == LockState::Held || state == LockState::Gone)
    close(descriptor);
  return state;
}

//===----------------------------------------------------------------------===//
// Removal
//===----------------------------------------------------------------------===//

namespace {
/// The staging directories of this process. The mutex is held while one is
/// made, and while it changes places with its target.
struct Registry {
  struct Entry {
    /// A forked child leaves its parent's directories alone.
    pid_t owner;
    int lock;
  };

  std::mutex mutex;
  std::map<fs::path, Entry> directories;
};
} // namespace

static void removeAtExit();

/// Never destroyed: a signal may come while the process exits.
static Registry &getRegistry() {
  static auto *registry = [] {
    std::atexit(removeAtExit);
    return new Registry;
  }();
  return *registry;
}

/// Adds what is there, a directory behind its entries, with one descriptor at a
/// time.
static void listAll(const fs::path &path, std::vector<fs::path> &all) {
  std::error_code error;
  std::vector<fs::path> entries;
  if (fs::is_directory(fs::symlink_status(path, error)))
    for (fs::directory_iterator it(path, error), end; !error && it != end;
         it.increment(error))
      entries.push_back(it->path());
  for (const fs::path &entry : entries)
    listAll(entry, all);
  all.push_back(path);
}

/// The same of one whose lock was given up: false where it is somebody else's
/// now, or gone.
static bool takeAgain(const fs::path &directory, int &descriptor) {
  try {
    LockState state = takeLock(directory, descriptor);
    return state == LockState::Taken || state == LockState::NotSupported;
  } catch (const std::system_error &) {
    return false;
  }
}

/// Removes a staging directory, with what is in it, and gives up its lock.
/// Another thread may be writing there until it finds the directory gone; and
/// whoever has just made it may lock it once the lock's file is removed.
static void removeTree(const fs::path &directory, int lock) {
  std::error_code error;
  // What is being removed must not be taken for what was moved aside.
  fs::rename(directory / "old", directory / "dropped", error);
  constexpr int mostTries = 50;
  std::vector<fs::path> all;
  listAll(directory, all);
  for (int tries = 0; tries < mostTries; ++tries) {
    for (const fs::path &path : all)
      fs::remove(path, error);
    close(lock);
    if (!isThere(directory))
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // The lock's descriptor may be the only one that is free.
    all.clear();
    listAll(directory, all);
    if (!takeAgain(directory, lock))
      return;
  }
  close(lock);
}

void sweepStaging(const fs::path &beside) {
  for (const auto &[directory, target] : findStaging(beside)) {
    int descriptor = -1;
    try {
      if (takeLock(directory, descriptor) != LockState::Taken)
        continue;
    } catch (const std::system_error &) {
      continue; // Somebody else's, or a full disk: it stays.
    }
    // What was moved aside must not be lost.
    std::error_code error;
    bool isNeeded =
        isThere(directory / "old") && (target.empty() || !isThere(target));
    if (isNeeded && !target.empty())
      fs::rename(directory / "old", target, error);
    if (error || (isNeeded && target.empty()))
      close(descriptor);
    else
      removeTree(directory, descriptor);
  }
}

fs::path findMovedAside(const fs::path &target) {
  for (const auto &[directory, replaced] : findStaging(target))
    if (replaced == target && isThere(directory / "old"))
      return directory / "old";
  return "";
}

/// With the mutex held.
static void removeOwn(Registry &registry) {
  for (const auto &[directory, entry] : registry.directories)
    if (entry.owner == getpid())
      removeTree(directory, entry.lock);
}

void abandonStaging() {
  Registry &registry = getRegistry();
  registry.mutex.lock(); // For good.
  removeOwn(registry);
}

/// Of objects that nobody has destroyed, or whose threads the end finds at
/// work.
static void removeAtExit() {
  Registry &registry = getRegistry();
  std::lock_guard guard(registry.mutex);
  removeOwn(registry);
  registry.directories.clear();
}

void stopIfAbandoned() { std::lock_guard guard(getRegistry().mutex); }

//===----------------------------------------------------------------------===//
// Staging
//===----------------------------------------------------------------------===//

Staging::Staging(const fs::path &target)
    : replaced(followLinks(target)), owner(getpid()) {
  sweepStaging(replaced);
  Registry &registry = getRegistry();
  std::lock_guard guard(registry.mutex);
  while (lock < 0) {
    directory = parentOf(replaced) / (prefixOf(replaced) + randomDigits());
    if (mkdir(directory.c_str(), 0700) != 0) {
      if (errno == EEXIST)
        continue;
      fail(errno);
    }
    int descriptor;
    try {
      LockState state = takeLock(directory, descriptor);
      // A sweep has found the directory before it was locked.
      if (state == LockState::Held || state == LockState::Gone)
        continue;
    } catch (...) {
      rmdir(directory.c_str());
      throw;
    }
    lock = descriptor;
  }
  registry.directories[directory] = {owner, lock};
}

Staging::~Staging() {
  if (owner == getpid())
    remove();
  else
    close(lock);
}

void Staging::remove() {
  if (lock < 0)
    return;
  removeTree(directory, std::exchange(lock, -1));
  // Not before: a signal in between would leave the rest.
  Registry &registry = getRegistry();
  std::lock_guard guard(registry.mutex);
  registry.directories.erase(directory);
}

/// Brings a file or directory to the disk.
static void sync(const fs::path &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail(errno);
  int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  // Some file systems have no such thing.
  if (error && error != EINVAL && error != ENOSYS && error != ENOTSUP)
    fail(error);
}

static void syncTree(const fs::path &directory) {
  for (const fs::directory_entry &entry :
       fs::recursive_directory_iterator(directory))
    if (entry.is_directory() || entry.is_regular_file())
      sync(entry.path());
  sync(directory);
}

void Staging::commitFile() {
  // What there was is only given up for what is on the disk.
  struct stat old;
  if (stat(replaced.c_str(), &old) == 0) {
    chmod(place().c_str(), old.st_mode & 07777);
    sync(place());
  }
  {
    std::lock_guard guard(getRegistry().mutex);
    if (rename(place().c_str(), replaced.c_str()) != 0)
      fail(errno);
  }
  remove();
}

namespace {
/// Brings a staged directory to its target; step by step, as others may do so
/// at the same time.
class DirectoryExchange {
public:
  using Predicate = std::function<bool(const fs::path &)>;

  DirectoryExchange(const fs::path &directory, const fs::path &target,
                    const Predicate &mayReplace)
      : directory(directory), fresh(directory / "new"), old(directory / "old"),
        target(target), mayReplace(mayReplace) {}

  /// False if the target has changed meanwhile.
  bool attempt() {
    if (!isThere(target))
      return moveIn();
    if (!mayReplace(target))
      fail(EEXIST);
    if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(),
                  RENAME_EXCHANGE) == 0) {
      if (mayReplace(fresh))
        return true;
      // It came there after it was looked at.
      renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(),
                RENAME_EXCHANGE);
      fail(EEXIST);
    }
    switch (errno) {
    case ENOENT:
      return false;
    case EXDEV:
    case EINVAL:
    case ENOSYS:
      return moveAside() && moveIn();
    default:
      fail(errno);
    }
  }

private:
  bool moveAside() {
    if (isThere(old))
      fs::rename(old, directory / ("dropped" + std::to_string(dropped++)));
    if (rename(target.c_str(), old.c_str()) == 0)
      return true;
    if (errno != ENOENT)
      fail(errno);
    return false;
  }

  bool moveIn() {
    if (rename(fresh.c_str(), target.c_str()) == 0)
      return true;
    int error = errno;
    if (error == EEXIST || error == ENOTEMPTY)
      return false;
    if (isThere(old))
      rename(old.c_str(), target.c_str());
    fail(error);
  }

  const fs::path &directory;
  fs::path fresh, old;
  const fs::path &target;
  const Predicate &mayReplace;
  int dropped = 0;
};
} // namespace

void Staging::commitDirectory(
    const std::function<bool(const fs::path &)> &mayReplace) {
  bool isNew = !isThere(replaced);
  if (!isNew)
    syncTree(place());
  {
    std::lock_guard guard(getRegistry().mutex);
    DirectoryExchange exchange(directory, replaced, mayReplace);
    constexpr int mostAttempts = 1000;
    for (int attempts = 0; !exchange.attempt(); ++attempts)
      if (attempts == mostAttempts)
        fail(EBUSY);
  }
  if (!isNew)
    sync(parentOf(replaced));
  remove();
}

} // namespace whale::system
