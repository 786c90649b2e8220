//===- Processors.cpp - What a process may compute on ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what the kernel says of this process. Out: the processors, the share of
// their time, and the memory that it has. A process is in a control group of
// each hierarchy that /proc/self/cgroup lists; where the groups of a hierarchy
// are shown as directories, and which of them the mount begins with,
// /proc/self/mountinfo says. A quota of a group holds for all groups in it, so
// those from the process's own up to the mount's are asked. A container may see
// only the last of these. Cost: some small files for each level, read once for
// a program.
//
//===----------------------------------------------------------------------===//

#include "whale/System/Processors.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <pthread.h>
#include <sched.h>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace whale::system {

namespace fs = std::filesystem;

std::set<int64_t> allowedProcessors() {
  std::set<int64_t> list;
  // The kernel refuses masks with less room than it has processors.
  for (int most = CPU_SETSIZE; most <= 1 << 20; most *= 2) {
    cpu_set_t *mask = CPU_ALLOC(most);
    size_t bytes = CPU_ALLOC_SIZE(most);
    int error = sched_getaffinity(0, bytes, mask) == 0 ? 0 : errno;
    for (int i = 0; error == 0 && i < most; ++i)
      if (CPU_ISSET_S(i, bytes, mask))
        list.insert(i);
    CPU_FREE(mask);
    if (error != EINVAL)
      break;
  }
  if (list.empty())
    for (int64_t i = 0; i < std::thread::hardware_concurrency(); ++i)
      list.insert(i);
  return list;
}

int64_t ProcessorQuota::threads() const {
  return std::max<int64_t>(1, std::llround(processors));
}

/// Each field up to the next separator; none of an empty text.
static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(text);
  for (std::string field; std::getline(stream, field, separator);)
    fields.push_back(field);
  return fields;
}

static bool names(const std::string &list, const std::string &item) {
  return std::ranges::count(split(list, ','), item) > 0;
}

namespace {
/// Where groups of a hierarchy are directories.
struct Mount {
  bool isUnified;
  /// The group that the mount begins with, and its directory.
  std::string root, directory;
};
} // namespace

/// Those that may limit what `controller` gives out.
static std::vector<Mount> findMounts(const fs::path &proc,
                                     const std::string &controller) {
  std::vector<Mount> mounts;
  std::ifstream file(proc / "self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // 36 35 0:30 ROOT DIRECTORY rw,nosuid shared:1 - TYPE SOURCE rw,cpu
    std::vector<std::string> fields = split(line, ' ');
    auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 5 || fields.end() - dash < 4)
      continue;
    bool isUnified = dash[1] == "cgroup2";
    if (isUnified || (dash[1] == "cgroup" && names(dash[3], controller)))
      mounts.push_back({isUnified, fields[3], fields[4]});
  }
  return mounts;
}

/// The process's group in a hierarchy; nothing where it is in none.
static std::optional<std::string>
findGroup(const fs::path &proc, bool isUnified, const std::string &controller) {
  std::ifstream file(proc / "self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // NUMBER:CONTROLLERS:/GROUP, with colons in the group, too.
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (isUnified ? controllers.empty() : names(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// The processors that a group's files leave to it; nothing where they set no
/// limit.
static std::optional<double> readQuota(const fs::path &directory,
                                       bool isUnified) {
  double quota = 0, period = 0;
  if (isUnified) {
    // "max 100000" where there is none.
    std::ifstream(directory / "cpu.max") >> quota >> period;
  } else {
    std::ifstream(directory / "cpu.cfs_quota_us") >> quota;
    std::ifstream(directory / "cpu.cfs_period_us") >> period;
  }
  if (!(quota > 0) || !(period > 0))
    return std::nullopt;
  return quota / period;
}

/// The bytes that a group's files allow; nothing where they set no limit. The
/// older files hold a number near the largest one instead.
static std::optional<int64_t> readMemoryLimit(const fs::path &directory,
                                              bool isUnified) {
  int64_t limit = 0;
  std::ifstream(directory /
                (isUnified ? "memory.max" : "memory.limit_in_bytes")) >>
      limit;
  constexpr int64_t none = int64_t(1) << 60;
  if (limit <= 0 || limit >= none)
    return std::nullopt;
  return limit;
}

/// A directory's name that processes with other views of the files agree on.
static std::string identify(const fs::path &directory) {
  struct stat status;
  if (stat(directory.c_str(), &status) != 0)
    return directory.string();
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

/// Calls `action` with the directory of each group around this process, and
/// whether it is one of the unified hierarchy.
template <typename Action>
static void forEachGroup(const fs::path &proc, const std::string &controller,
                         const Action &action) {
  for (const Mount &mount : findMounts(proc, controller)) {
    std::optional<std::string> group =
        findGroup(proc, mount.isUnified, controller);
    if (!group)
      continue;
    // A mount of a group's own directory shows what is below that alone.
    if (mount.root != "/" && group->starts_with(mount.root))
      group->erase(0, mount.root.size());
    fs::path below = fs::path(*group).relative_path();
    while (true) {
      action(mount.directory / below, mount.isUnified);
      if (below.empty())
        break;
      below = below.parent_path();
    }
  }
}

std::optional<ProcessorQuota> findQuota(const fs::path &proc) {
  std::optional<ProcessorQuota> least;
  forEachGroup(proc, "cpu", [&](const fs::path &directory, bool isUnified) {
    std::optional<double> quota = readQuota(directory, isUnified);
    if (quota && (!least || *quota < least->processors))
      least = {*quota, identify(directory)};
  });
  return least;
}

std::optional<int64_t> findMemoryLimit(const fs::path &proc) {
  std::optional<int64_t> least;
  forEachGroup(proc, "memory", [&](const fs::path &directory, bool isUnified) {
    if (std::optional<int64_t> limit = readMemoryLimit(directory, isUnified))
      least = std::min(least.value_or(*limit), *limit);
  });
  return least;
}

int64_t usableProcessors() {
  auto processors = static_cast<int64_t>(allowedProcessors().size());
  if (std::optional<ProcessorQuota> quota = findQuota())
    processors = std::min(processors, quota->threads());
  return std::max<int64_t>(1, processors);
}

static std::atomic<pid_t> &currentProcess() {
  static std::atomic<pid_t> id = [] {
    pthread_atfork(nullptr, nullptr, [] { currentProcess() = getpid(); });
    return getpid();
  }();
  return id;
}

pid_t processId() { return currentProcess(); }

} // namespace whale::system
