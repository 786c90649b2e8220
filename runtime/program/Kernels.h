//===- Kernels.h - Generated kernels of a program ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_KERNELS_H
#define WHALE_RUNTIME_PROGRAM_KERNELS_H

#include "program/BoundProgram.h"

#include <filesystem>

namespace whale::runtime {

/// A loaded shared object of kernels; unloaded at the end.
class KernelLibrary {
public:
  /// Throws Error naming the file.
  explicit KernelLibrary(const std::filesystem::path &path);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;

  /// The kernel of that name in this very file, or null.
  KernelFunction find(const std::string &symbol) const;

  /// Whether the kernels are those of a GPU, which the emulator runs.
  bool isEmulated() const { return emulated; }

private:
  void *handle;
  bool emulated = false;
  /// What the loader knows it by.
  std::string name;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_KERNELS_H
