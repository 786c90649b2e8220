//===- Checkpoint.cpp - A training state that is read ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the directory of a step. Out: arrays whose shards are the pieces in the
// mapped files. Each chunk is compared with its checksum when bytes of it are
// first asked for, once.
//
// Cost: opening reads the manifest. What is read of a file is the chunks that
// are copied from; what is needed twice is in the page cache.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Checkpoint.h"

#include "checkpoint/Chunks.h"
#include "whale/System/Io.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <sys/mman.h>

namespace whale::runtime {

namespace {
/// The bytes of a piece in a mapped file.
class MappedPiece : public Backing {
public:
  MappedPiece(std::shared_ptr<const system::MappedFile> file, std::string where,
              const char *data, int64_t bytes,
              std::vector<std::string> checksums)
      : file(std::move(file)), where(std::move(where)), data(data),
        bytes(bytes), checksums(std::move(checksums)),
        isChecked(this->checksums.size()) {}

  void bring(void *, int64_t begin, int64_t end) override;

private:
  const std::shared_ptr<const system::MappedFile> file;
  /// For errors: the leaf and the file.
  const std::string where;
  const char *const data;
  const int64_t bytes;
  const std::vector<std::string> checksums;
  std::mutex mutex;
  std::vector<bool> isChecked;
};
} // namespace

/// Has the system read these bytes of a mapped file, all at once: else it does
/// when each page is first touched, a little ahead.
static void readAhead(const char *data, int64_t bytes) {
  constexpr uintptr_t page = 4096;
  auto first = reinterpret_cast<uintptr_t>(data) / page * page;
  auto last = reinterpret_cast<uintptr_t>(data + bytes);
  madvise(reinterpret_cast<void *>(first), last - first, MADV_WILLNEED);
}

void MappedPiece::bring(void *, int64_t begin, int64_t end) {
  readAhead(data + begin, end - begin);
  for (int64_t chunk = begin / format::checkpointChunk;
       chunk * format::checkpointChunk < end; ++chunk) {
    {
      std::lock_guard lock(mutex);
      if (isChecked[chunk])
        continue;
    }
    auto [first, last] = chunkOf(bytes, chunk);
    if (checksumOf(data + first, last - first) != checksums[chunk])
      throw Error(where + ": damaged: bytes " + std::to_string(first) + " to " +
                  std::to_string(last) + " have another checksum");
    std::lock_guard lock(mutex);
    isChecked[chunk] = true;
  }
}

struct Checkpoint::State {
  std::filesystem::path directory;
  format::CheckpointManifest manifest;
  std::vector<std::shared_ptr<const system::MappedFile>> files;
};

Checkpoint Checkpoint::open(const std::filesystem::path &directory) {
  auto state = std::make_shared<State>();
  state->directory = directory;
  std::filesystem::path path = directory / "manifest.json";
  state->manifest =
      format::readCheckpoint(system::MappedFile(path).text(), path.string());
  // A checkpoint is found by its directory.
  std::string name = path.parent_path().filename().string();
  if (name.starts_with("step-") &&
      name != "step-" + std::to_string(state->manifest.step))
    throw Error(path.string() + ": step: must be " + name.substr(5) +
                ", as that of its directory");
  for (const auto &[name, bytes] : state->manifest.files) {
    auto file = std::make_shared<system::MappedFile>(directory / name);
    if (static_cast<int64_t>(file->size()) != bytes)
      throw Error((directory / name).string() + ": has " +
                  std::to_string(file->size()) +
                  " bytes, by the checkpoint's manifest " +
                  std::to_string(bytes));
    state->files.push_back(std::move(file));
  }
  Checkpoint checkpoint;
  checkpoint.state = std::move(state);
  return checkpoint;
}

const format::CheckpointManifest &Checkpoint::manifest() const {
  return state->manifest;
}

Array Checkpoint::array(size_t number) const {
  const format::CheckpointLeaf &leaf = state->manifest.leaves.at(number);
  auto layout = std::make_shared<Layout>(Layout{leaf.view, {}});
  std::vector<std::shared_ptr<Buffer>> pieces;
  for (const format::CheckpointPiece &piece : leaf.pieces) {
    const auto &file = state->files[piece.file];
    std::filesystem::path path =
        state->directory / state->manifest.files[piece.file].name;
    auto buffer = std::make_shared<Buffer>();
    buffer->data = std::shared_ptr<void>(file, file->data() + piece.offset);
    buffer->bytes = piece.box.elements() * byteSize(leaf.dtype);
    buffer->writable = false;
    buffer->backing = std::make_shared<MappedPiece>(
        file, path.string() + ": '" + leaf.name + "'",
        file->data() + piece.offset, buffer->bytes, piece.checksums);
    layout->boxes.push_back(piece.box);
    pieces.push_back(std::move(buffer));
  }
  return Array::fromFiles(leaf.dtype, leaf.shape, std::move(layout),
                          std::move(pieces));
}

void Checkpoint::verify() const {
  for (size_t leaf = 0; leaf < state->manifest.leaves.size(); ++leaf) {
    Array whole = array(leaf);
    for (size_t i = 0; i < whole.layout().boxes.size(); ++i)
      whole.shard(i);
  }
}

static const std::string stepPrefix = "step-";

std::filesystem::path stepDirectory(const std::filesystem::path &directory,
                                    int64_t step) {
  return directory / (stepPrefix + std::to_string(step));
}

std::optional<int64_t> stepOf(const std::filesystem::path &directory) {
  std::string name = directory.filename().string();
  int64_t step = 0;
  const char *last = name.data() + name.size();
  if (!name.starts_with(stepPrefix) ||
      std::from_chars(name.data() + stepPrefix.size(), last, step).ptr !=
          last ||
      stepDirectory(directory.parent_path(), step) != directory)
    return std::nullopt;
  return step;
}

std::vector<int64_t> stepsIn(const std::filesystem::path &directory) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end;
       !error && it != end; it.increment(error)) {
    std::optional<int64_t> step = stepOf(it->path());
    if (!step)
      continue;
    std::error_code ignored;
    if (std::filesystem::exists(it->path() / "manifest.json", ignored))
      steps.push_back(*step);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error(directory.string() + ": " + error.message());
  std::ranges::sort(steps);
  return steps;
}

} // namespace whale::runtime
