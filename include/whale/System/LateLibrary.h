//===- LateLibrary.h - Libraries that are opened when needed ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Libraries of GPUs, and those between processes, are not on every machine:
// compiler and runtime hold a table of the functions that they call of each,
// and fill it at run time.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_LATELIBRARY_H
#define WHALE_SYSTEM_LATELIBRARY_H

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace whale::system {

/// One row of a table of functions: null until the library has been opened, or
/// a test has put its own function there.
template <typename Signature>
struct Entry {
  /// The name in the library.
  const char *symbol;
  Signature *function = nullptr;
};

// What a table is made of: a list of FUNCTION(member, symbol, signature) of the
// library's functions, and one of VALUE(name, symbol, number) of its constants.
#define WHALE_LIBRARY_ENTRY(member, symbol, ...)                               \
  ::whale::system::Entry<__VA_ARGS__> member{#symbol};
#define WHALE_LIBRARY_VISIT(member, ...) visit(member);
#define WHALE_LIBRARY_VALUE(name, symbol, number)                              \
  inline constexpr int name = number;

/// Fills a table, whose forEach visits its rows, from an opened library.
/// Returns the first function that it lacks, or null.
template <typename Table>
const char *fill(Table &table, void *library) {
  const char *missing = nullptr;
  table.forEach([&]<typename Signature>(Entry<Signature> &entry) {
    entry.function =
        reinterpret_cast<Signature *>(dlsym(library, entry.symbol));
    if (!entry.function && !missing)
      missing = entry.symbol;
  });
  return missing;
}

/// A library whose header declares its functions. A struct of those has a list
/// of DO(function), which WHALE_DECLARE_FUNCTION makes its members of, and
/// WHALE_FIND_FUNCTION, in its constructor, finds in `library`.
class DeclaredLibrary {
public:
  /// Never closed. Throws Error that says what `name` is, and `what` it is for.
  DeclaredLibrary(const char *file, const char *name, const char *what);

  /// Throws Error where there is none.
  template <typename Function>
  void find(Function &function, const char *symbol) const {
    function = reinterpret_cast<Function>(find(symbol));
  }

private:
  void *find(const char *symbol) const;

  void *library;
  const char *name;
};
#define WHALE_DECLARE_FUNCTION(function) decltype(&::function) function;
#define WHALE_FIND_FUNCTION(function) library.find(function, #function);

/// The directory of the executable or library that this code is a part of.
std::filesystem::path ownDirectory();

/// Opens a library where the loader finds it, else that in the directory `lib`
/// beside Whale, where a wheel has those that it brings. Null, and dlerror,
/// where it is in neither.
void *openLibrary(const char *file, int flags);

/// Where NVIDIA's libraries are looked for, besides the loader's own path: the
/// directories of CUDA_HOME or CUDA_PATH, /usr/local/cuda, and nvidia/*/lib of
/// the site-packages that Whale, VIRTUAL_ENV or CONDA_PREFIX is in.
std::vector<std::filesystem::path> libraryDirectories();

/// The same of a folder of another name in NVIDIA's Python packages, as `nvvm`.
std::vector<std::filesystem::path> packageDirectories(const char *folder);

} // namespace whale::system

#endif // WHALE_SYSTEM_LATELIBRARY_H
