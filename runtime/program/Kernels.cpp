//===- Kernels.cpp - Generated kernels of a program -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/Kernels.h"

#include "emulator/Emulator.h"
#include "whale/System/Io.h"

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <mutex>
#include <set>

namespace whale::runtime {

/// The dynamic loader trusts its input: a file cut short makes it read past the
/// mapping. Checks that the segments that it will map are there.
static void checkObject(const std::filesystem::path &path) {
  system::MappedFile file(path);
  auto fail = [&](const char *what) {
    throw Error(path.string() + ": " + what);
  };
  ElfW(Ehdr) header;
  if (file.size() < sizeof(header))
    fail("not a shared object");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_type != ET_DYN || header.e_phentsize != sizeof(ElfW(Phdr)))
    fail("not a shared object");
  uint64_t size = file.size();
  uint64_t table = uint64_t(header.e_phnum) * sizeof(ElfW(Phdr));
  if (header.e_phoff > size || table > size - header.e_phoff)
    fail("the shared object is truncated");
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof(segment),
                sizeof(segment));
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC)
      continue;
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
      fail("the shared object is truncated");
  }
  // Section headers come last in a file of a linker: cut there, it is damaged
  // too, though the loader would not mind.
  uint64_t sections = uint64_t(header.e_shnum) * header.e_shentsize;
  if (header.e_shoff > size || sections > size - header.e_shoff)
    fail("the shared object is truncated");
}

namespace {
/// The names of the objects that are loaded. The loader takes a name that it
/// knows for the object that it has, though another file is there by now.
struct LoadedNames {
  std::mutex mutex;
  std::set<std::string> names;
};
} // namespace

static LoadedNames &getLoadedNames() {
  static auto *names = new LoadedNames;
  return *names;
}

KernelLibrary::KernelLibrary(const std::filesystem::path &path) {
  checkObject(path);
  // The absolute path keeps the loader from searching its directories.
  std::filesystem::path file = std::filesystem::absolute(path);
  std::filesystem::path directory = file.parent_path();
  LoadedNames &loaded = getLoadedNames();
  std::lock_guard lock(loaded.mutex);
  do {
    name = directory / file.filename();
    directory /= ".";
  } while (loaded.names.count(name));
  handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Error(path.string() + ": cannot be loaded: " + dlerror());
  loaded.names.insert(name);
  if (void *table = dlsym(handle, "whale_emulator")) {
    *static_cast<const format::EmulatorFunctions **>(table) =
        &emulatorFunctions();
    emulated = true;
  }
}

KernelLibrary::~KernelLibrary() {
  LoadedNames &loaded = getLoadedNames();
  std::lock_guard lock(loaded.mutex);
  dlclose(handle);
  loaded.names.erase(name);
}

KernelFunction KernelLibrary::find(const std::string &symbol) const {
  void *address = dlsym(handle, symbol.c_str());
  // dlsym also searches what the object depends on (the C library): a kernel
  // must come from the object itself.
  Dl_info info;
  ElfW(Sym) *entry = nullptr;
  struct link_map *map = nullptr;
  if (!address ||
      !dladdr1(address, &info, reinterpret_cast<void **>(&entry),
               RTLD_DL_SYMENT) ||
      !entry || ELF64_ST_TYPE(entry->st_info) != STT_FUNC ||
      dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 ||
      reinterpret_cast<ElfW(Addr)>(info.dli_fbase) != map->l_addr)
    return nullptr;
  return reinterpret_cast<KernelFunction>(address);
}

} // namespace whale::runtime
