//===- SharedMemory.cpp - What processes of a host read -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory is a file without a name, so that nothing is left of it however
// processes end, and /dev/shm may be as small as it likes. A process opens
// those of others where the system lists their files, which it may if it may
// read their memory, and sees by a number in it that it is what was meant.
//
// Cost: two exchanges between all processes; pages are there once they are
// written, and count in each process that has read them.
//
//===----------------------------------------------------------------------===//

#include "transport/SharedMemory.h"

#include "HostId.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace whale::runtime {

std::vector<bool> foundByBoth(const Exchange &exchange, size_t self,
                              const std::vector<bool> &found) {
  std::string mine;
  for (bool isFound : found)
    mine += isFound ? '+' : '-';
  std::vector<bool> both;
  for (const std::string &other : exchange(mine))
    both.push_back(mine[both.size()] == '+' && other.at(self) == '+');
  return both;
}

namespace {
class MemoryFile {
public:
  explicit MemoryFile(int number) : number(number) {}
  ~MemoryFile() {
    if (number >= 0)
      close(number);
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  const int number;
};

/// What a process says of its memory.
struct MemoryOffer {
  pid_t process;
  int file;
  /// What it begins with.
  uint64_t number;
};
} // namespace

static std::shared_ptr<char> mapFile(const MemoryFile &file, size_t bytes,
                                     int protection) {
  void *data =
      mmap(nullptr, bytes, protection, MAP_SHARED, file.number, /*offset=*/0);
  if (data == MAP_FAILED)
    return nullptr;
  return {static_cast<char *>(data), [bytes](char *p) { munmap(p, bytes); }};
}

static std::shared_ptr<char> openOther(const MemoryOffer &offer, size_t bytes) {
  MemoryFile file(::open(("/proc/" + std::to_string(offer.process) + "/fd/" +
                          std::to_string(offer.file))
                             .c_str(),
                         O_RDONLY | O_CLOEXEC));
  struct stat facts;
  if (file.number < 0 || fstat(file.number, &facts) ||
      static_cast<size_t>(facts.st_size) != bytes)
    return nullptr;
  std::shared_ptr<char> memory = mapFile(file, bytes, PROT_READ);
  if (memory &&
      std::memcmp(memory.get(), &offer.number, sizeof(offer.number)) != 0)
    return nullptr;
  return memory;
}

SharedMemory::SharedMemory(size_t bytes, const Exchange &exchange) {
  MemoryFile file(memfd_create("whale", MFD_CLOEXEC));
  MemoryOffer offer = {getpid(), file.number, 0};
  if (getrandom(&offer.number, sizeof(offer.number), 0) ==
          sizeof(offer.number) &&
      file.number >= 0 && !ftruncate(file.number, static_cast<off_t>(bytes)))
    mine = mapFile(file, bytes, PROT_READ | PROT_WRITE);
  if (mine)
    std::memcpy(mine.get(), &offer.number, sizeof(offer.number));
  std::string place = memoryId();
  std::string text(reinterpret_cast<const char *>(&offer), sizeof(offer));
  text += place;
  std::vector<std::string> offers = exchange(text);
  std::vector<bool> found;
  for (const std::string &other : offers) {
    std::shared_ptr<char> &memory = others.emplace_back();
    if (mine && other != text && other.size() >= sizeof(offer) &&
        other.substr(sizeof(offer)) == place) {
      MemoryOffer its;
      std::memcpy(&its, other.data(), sizeof(its));
      memory = openOther(its, bytes);
    }
    found.push_back(memory != nullptr);
  }
  auto self = std::ranges::find(offers, text) - offers.begin();
  // Both must pack for each other, or none. The file may be closed behind it.
  std::vector<bool> both =
      foundByBoth(exchange, static_cast<size_t>(self), found);
  for (size_t i = 0; i < others.size(); ++i)
    if (!both[i])
      others[i].reset();
  if (std::ranges::find(both, true) == both.end())
    mine.reset();
}

} // namespace whale::runtime
