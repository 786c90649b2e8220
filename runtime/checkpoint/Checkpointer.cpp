//===- Checkpointer.cpp - Saves and restores the states of a job ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step's directory comes about in this order:
//
//   nonce             the first process makes it; the others prove by it that
//                     they see the same directory
//   shard-2.safetensors   of each process, synced
//   part-2            the places and checksums of what it wrote, of all but the
//                     first process
//   manifest.json     of the first process, when it has all parts: synced,
//                     renamed, and the directory synced
//
// Files are written by a thread of each process. A failure there is told where
// the processes meet next, in `wait` or the next save. What a process that was
// killed has left has no manifest; a later save removes it.
//
// Cost: saving exchanges four short messages between processes; shares are
// computed on each process from all layouts.
//
//===----------------------------------------------------------------------===//

#include "checkpoint/ShardFile.h"
#include "whale/Runtime/Checkpoint.h"
#include "whale/System/Checksum.h"
#include "whale/System/Fields.h"
#include "whale/System/Io.h"
#include "whale/System/Processors.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <pthread.h>
#include <random>
#include <sched.h>
#include <set>
#include <sstream>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace whale::runtime {

namespace fs = std::filesystem;

namespace {
/// A lock on a directory that holds while the process lives.
class DirectoryLock {
public:
  explicit DirectoryLock(const fs::path &directory, const std::string &owner);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock &) = delete;
  DirectoryLock &operator=(const DirectoryLock &) = delete;

  static std::set<int> &all();

private:
  int descriptor;
};

/// What one save has in common in a process.
struct Saving {
  fs::path directory;
  /// Without files and pieces, which are known when they are written.
  format::CheckpointManifest manifest;
  std::vector<Share> shares;
  std::optional<ShardFile> own;
  /// Of this process's file.
  std::promise<void> written;
  std::future<void> isWritten = written.get_future();
  /// Whether the directory is this job's, in the first process.
  bool isClaimed = false;
  /// What kept the first process from completing it.
  std::string failure;
  std::atomic<bool> isCancelled = false;
  std::thread thread;
};
} // namespace

/// A child of fork would hold the lock as long as it lives.
static void closeLocksInChildren() {
  static int registered = pthread_atfork(nullptr, nullptr, [] {
    for (int descriptor : DirectoryLock::all())
      close(descriptor);
  });
  (void)registered;
}

std::set<int> &DirectoryLock::all() {
  static std::set<int> descriptors;
  return descriptors;
}

DirectoryLock::~DirectoryLock() {
  if (all().erase(descriptor))
    close(descriptor);
}

DirectoryLock::DirectoryLock(const fs::path &directory,
                             const std::string &owner) {
  closeLocksInChildren();
  fs::path path = directory / ".lock";
  descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0)
    throw Error(path.string() + ": " + std::strerror(errno));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    int error = errno;
    std::ifstream file(path);
    std::string other;
    std::getline(file, other);
    close(descriptor);
    throw Error(directory.string() + ": " +
                (error == EWOULDBLOCK
                     ? "another job saves its checkpoints here: " + other
                     : std::strerror(error)));
  }
  if (ftruncate(descriptor, 0) != 0 ||
      write(descriptor, owner.data(), owner.size()) < 0)
    errno = 0; // It only names the owner.
  all().insert(descriptor);
}

struct Checkpointer::State {
  explicit State(CheckpointerOptions given) : options(std::move(given)) {}

  int64_t process() const { return options.job ? options.job->process() : 0; }
  int64_t processes() const {
    return options.job ? options.job->processes() : 1;
  }

  std::vector<std::string>
  together(const std::string &name,
           const std::function<std::string()> &action) const;
  void agree(int64_t step, const std::vector<StateLeaf> &leaves,
             const std::string &refusal) const;
  [[noreturn]] void failUnlike(const std::vector<StateLeaf> &leaves,
                               size_t process) const;
  std::string claim(int64_t step);
  void checkNonce(const Saving &saving, const std::string &nonce) const;
  void run(Saving &saving);
  void start(const std::vector<StateLeaf> &leaves);
  std::vector<ShardFile::Written> gatherParts(const Saving &saving) const;
  void complete(Saving &saving, ShardFile::Written own);
  void prune(int64_t step) const;
  void wait();
  void discard();

  const CheckpointerOptions options;
  const pid_t owner = system::processId();
  std::shared_ptr<Buffer> memory;
  std::optional<DirectoryLock> lock;
  std::unique_ptr<Saving> saving;
};

static fs::path shardName(int64_t process) {
  return "shard-" + std::to_string(process) + ".safetensors";
}

static fs::path partPath(const Saving &saving, int64_t process) {
  return saving.directory / ("part-" + std::to_string(process));
}

std::vector<std::string> Checkpointer::State::together(
    const std::string &name, const std::function<std::string()> &action) const {
  if (!options.job)
    return {action()};
  return options.job->together("checkpoint, " + name, action);
}

void Checkpointer::State::agree(int64_t step,
                                const std::vector<StateLeaf> &leaves,
                                const std::string &refusal) const {
  std::string number = std::to_string(step);
  std::vector<std::string> all = together("save", [&] {
    if (!refusal.empty())
      throw Error(refusal);
    system::Checksum checksum;
    for (const auto &[name, array, key] : leaves)
      checksum.add(name + "\n" + key + "\n" + array.layoutChecksum());
    return number + ' ' + checksum.hex();
  });
  for (size_t process = 1; process < all.size(); ++process) {
    if (all[process] == all[0])
      continue;
    std::string ours = all[0].substr(0, all[0].find(' ')),
                theirs = all[process].substr(0, all[process].find(' '));
    if (ours == theirs)
      failUnlike(leaves, process);
    throw Error("step to save differs: process 0 has " + ours + ", process " +
                std::to_string(process) + " has " + theirs);
  }
}

/// Names the first leaf that is another one in a process than in the first. In
/// all processes, which have found that there is one.
void Checkpointer::State::failUnlike(const std::vector<StateLeaf> &leaves,
                                     size_t process) const {
  std::vector<std::string> all = together("what differs", [&] {
    system::FieldWriter writer;
    for (const auto &[name, array, key] : leaves)
      writer.text(name)
          .text(format::tensorType(array.dtype(), array.shape()) +
                (key.empty() ? "" : ", keys of " + key))
          .text(array.layoutChecksum());
    return writer.take();
  });
  system::FieldReader first(all[0]), other(all[process]);
  std::string who = ", process " + std::to_string(process);
  // Nothing behind the last one.
  using Name = std::optional<std::string>;
  auto next = [](system::FieldReader &reader) {
    return reader.isComplete() ? Name() : Name(reader.text());
  };
  auto describe = [](const Name &name) {
    return name ? "the tensor '" + *name + "'" : "no more tensors";
  };
  while (true) {
    Name name = next(first), its = next(other);
    if (name != its || !name)
      throw Error("state to save differs: process 0 has " + describe(name) +
                  who + " has " + describe(its) + " there");
    std::string type = first.text(), itsType = other.text();
    std::string what = describe(name) + " to save differs: ";
    if (type != itsType)
      throw Error(what + "process 0 has " + type + who + " has " + itsType);
    if (first.text() != other.text())
      throw Error(what + "it lies in other places for process 0 than for" +
                  who.substr(1));
  }
}

/// In the first process: makes the directory of a step, and returns what the
/// others find in it.
std::string Checkpointer::State::claim(int64_t step) {
  const fs::path &all = options.directory;
  fs::path directory = stepDirectory(all, step);
  std::error_code error;
  fs::create_directories(all, error);
  if (error)
    throw Error(all.string() + ": cannot be made: " + error.message());
  if (fs::path parent = fs::absolute(all).parent_path(); !lock)
    system::syncDirectory(parent);
  if (!lock)
    lock.emplace(all, options.job ? options.job->name()
                                  : "process " + std::to_string(owner));
  std::vector<int64_t> steps = stepsIn(all);
  if (!steps.empty() && step <= steps.back())
    throw Error(all.string() + ": step " + std::to_string(step) +
                " is not later than step " + std::to_string(steps.back()) +
                ", which is there");
  fs::remove_all(directory, error);
  if (!fs::create_directory(directory, error))
    throw Error(directory.string() + ": cannot be made: " + error.message());
  std::random_device random;
  std::string nonce = std::to_string(random()) + std::to_string(random());
  if (processes() > 1) {
    system::FileWriter file(directory / "nonce");
    file.write(nonce);
    file.commit();
  }
  return nonce;
}

void Checkpointer::State::checkNonce(const Saving &saving,
                                     const std::string &nonce) const {
  std::ifstream file(saving.directory / "nonce");
  std::string found;
  std::getline(file, found);
  if (found != nonce)
    throw Error(options.directory.string() +
                ": this process does not see what process 0 has made here: "
                "checkpoints need a directory that all processes share");
}

/// What the thread does.
void Checkpointer::State::run(Saving &saving) {
  ShardFile::Written own;
  try {
    own = saving.own->write(saving.directory / shardName(process()));
    if (process() != 0) {
      std::ostringstream text;
      text << own.bytes << "\n";
      for (size_t i = 0; i < own.offsets.size(); ++i) {
        text << own.offsets[i];
        for (const std::string &checksum : own.checksums[i])
          text << " " << checksum;
        text << "\n";
      }
      system::FileWriter part(partPath(saving, process()));
      part.write(text.str());
      part.commit();
    }
    saving.written.set_value();
  } catch (...) {
    saving.written.set_exception(std::current_exception());
    return;
  }
  if (process() != 0)
    return;
  try {
    complete(saving, std::move(own));
    prune(saving.manifest.step);
  } catch (const std::exception &error) {
    saving.failure = error.what();
  }
}

/// In the first process: what the others say of their files, by process.
std::vector<ShardFile::Written>
Checkpointer::State::gatherParts(const Saving &saving) const {
  std::vector<ShardFile::Written> parts(static_cast<size_t>(processes()));
  for (int64_t other = 1; other < processes(); ++other) {
    fs::path path = partPath(saving, other);
    std::error_code error;
    while (!fs::exists(path, error)) {
      if (saving.isCancelled)
        throw Error("the checkpoint was given up");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ShardFile::Written &part = parts[other];
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    part.bytes = std::stoll(line);
    while (std::getline(file, line)) {
      std::istringstream words(line);
      words >> part.offsets.emplace_back();
      part.checksums.emplace_back(std::istream_iterator<std::string>(words),
                                  std::istream_iterator<std::string>());
    }
  }
  return parts;
}

/// In the first process: writes the manifest.
void Checkpointer::State::complete(Saving &saving, ShardFile::Written own) {
  std::vector<ShardFile::Written> parts = gatherParts(saving);
  parts[0] = std::move(own);
  format::CheckpointManifest &manifest = saving.manifest;
  for (int64_t each = 0; each < processes(); ++each)
    manifest.files.push_back({shardName(each).string(), parts[each].bytes});
  // Shares of a process are in one order everywhere.
  std::vector<size_t> next(parts.size());
  for (const Share &share : saving.shares) {
    const ShardFile::Written &part = parts[share.process];
    size_t number = next[share.process]++;
    manifest.leaves[share.leaf].pieces.push_back(
        {share.process, part.offsets.at(number), share.box,
         part.checksums.at(number)});
  }
  std::error_code ignored;
  for (int64_t other = 1; other < processes(); ++other)
    fs::remove(partPath(saving, other), ignored);
  fs::remove(saving.directory / "nonce", ignored);
  fs::path path = saving.directory / "manifest.json";
  std::string text = format::writeCheckpoint(manifest);
  // What could not be read again is no checkpoint.
  format::readCheckpoint(text, path.string());
  // The names of all that it names are on the disk before it.
  system::syncDirectory(options.directory);
  system::syncDirectory(saving.directory);
  system::FileWriter file(path);
  file.write(text);
  file.sync();
  file.commit();
  system::syncDirectory(saving.directory);
}

/// Removes checkpoints that are too many, and what is incomplete before `step`.
void Checkpointer::State::prune(int64_t step) const {
  std::vector<int64_t> steps = stepsIn(options.directory);
  auto count = static_cast<int64_t>(steps.size());
  int64_t oldest = options.keep < count
                       ? steps[static_cast<size_t>(count - options.keep)]
                       : (steps.empty() ? step : steps.front());
  std::error_code ignored;
  std::vector<fs::path> unwanted;
  for (const auto &entry : fs::directory_iterator(options.directory, ignored)) {
    std::optional<int64_t> number = stepOf(entry.path());
    if (!number)
      continue;
    bool isComplete = std::ranges::binary_search(steps, *number);
    if (*number < (isComplete ? oldest : step))
      unwanted.push_back(entry.path());
  }
  for (const fs::path &directory : unwanted) {
    // Without its manifest it is no checkpoint, however much of it is left.
    fs::remove(directory / "manifest.json", ignored);
    fs::remove_all(directory, ignored);
  }
}

/// Ends a save that has failed, and removes what is there of it.
void Checkpointer::State::discard() {
  saving->isCancelled = true;
  if (saving->thread.joinable())
    saving->thread.join();
  std::error_code ignored;
  if (saving->isClaimed &&
      !fs::exists(saving->directory / "manifest.json", ignored))
    fs::remove_all(saving->directory, ignored);
  saving.reset();
}

void Checkpointer::State::wait() {
  // A fork has none of its parent's threads, nor a part in what they do.
  if (!saving || owner != system::processId())
    return;
  try {
    together("written", [&] {
      saving->isWritten.get();
      return std::string();
    });
    together("complete", [&] {
      saving->thread.join();
      if (!saving->failure.empty())
        throw Error(saving->failure);
      return std::string();
    });
  } catch (...) {
    discard();
    throw;
  }
  saving.reset();
}

/// Copies what this process writes, and leaves it to a thread.
void Checkpointer::State::start(const std::vector<StateLeaf> &leaves) {
  std::string nonce = together("begin", [&] {
    std::vector<Holding> holdings;
    for (const auto &[name, array, key] : leaves) {
      const Layout &layout = array.layout();
      saving->manifest.leaves.push_back(
          {name, array.dtype(), array.shape(), key, layout.view, {}});
      holdings.push_back({layout, byteSize(array.dtype()), array.ranks()});
    }
    saving->shares = shareOut(holdings, processes());
    std::vector<Share> own;
    for (const Share &share : saving->shares)
      if (share.process == process())
        own.push_back(share);
    saving->own.emplace(leaves, std::move(own), memory);
    if (process() != 0)
      return std::string();
    std::string made = claim(saving->manifest.step);
    saving->isClaimed = true;
    return made;
  })[0];
  if (processes() > 1)
    together("directory", [&] {
      checkNonce(*saving, nonce);
      return std::string();
    });
  saving->thread = std::thread([this, own = saving.get()] {
    // Steps go first: what is idle makes way as soon as they wake up.
    sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none);
    run(*own);
  });
}

Checkpointer::Checkpointer(CheckpointerOptions options)
    : state(std::make_unique<State>(std::move(options))) {
  if (state->options.keep < 1)
    throw Error("keep must be at least 1, got " +
                std::to_string(state->options.keep));
}

Checkpointer::~Checkpointer() {
  if (!state->saving)
    return;
  // A fork has none of its parent's threads.
  if (state->owner != system::processId()) {
    state.release();
    return;
  }
  // The parts of others may never come.
  state->saving->isCancelled = state->processes() > 1;
  if (state->saving->thread.joinable())
    state->saving->thread.join();
}

void Checkpointer::wait() { state->wait(); }

std::optional<int64_t> Checkpointer::latest() {
  // All follow the first process: directories are listed at other times.
  std::string last = state->together("latest", [&] {
    std::vector<int64_t> steps = stepsIn(state->options.directory);
    return steps.empty() ? std::string() : std::to_string(steps.back());
  })[0];
  return last.empty() ? std::nullopt : std::optional(std::stoll(last));
}

void Checkpointer::save(int64_t step, const std::vector<StateLeaf> &leaves,
                        const CheckpointNotes &notes) {
  if (state->owner != system::processId())
    throw Error(
        state->options.directory.string() +
        ": a forked process cannot save with its parent's Checkpointer");
  state->wait();
  state->agree(step, leaves, notes.refusal);
  state->saving = std::make_unique<Saving>();
  Saving &saving = *state->saving;
  saving.directory = stepDirectory(state->options.directory, step);
  saving.manifest = {step, notes.extra, notes.tree, notes.plan, {}, {}};
  try {
    state->start(leaves);
  } catch (...) {
    state->discard();
    throw;
  }
}

Checkpoint Checkpointer::restore(std::optional<int64_t> step) {
  wait();
  if (!step)
    step = latest();
  if (!step)
    throw Error(state->options.directory.string() +
                ": there is no complete checkpoint");
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> all = state->together("restore", [&] {
    checkpoint =
        Checkpoint::open(stepDirectory(state->options.directory, *step));
    return system::Checksum::of(
        format::writeCheckpoint(checkpoint->manifest()));
  });
  if (std::ranges::count(all, all[0]) != std::ssize(all))
    throw Error(state->options.directory.string() +
                ": processes find other checkpoints here: it must be a "
                "directory that all share");
  return *checkpoint;
}

bool Checkpointer::anyOfUs(bool mine) {
  return std::ranges::count(
      state->together("due", [&] { return std::string(mine ? "yes" : "no"); }),
      "yes");
}

int64_t Checkpointer::stagingBytes() const {
  return state->memory ? state->memory->bytes : 0;
}

} // namespace whale::runtime
