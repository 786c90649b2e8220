//===- Choices.h - What was measured to be quickest -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_CHOICES_H
#define WHALE_RUNTIME_DEVICE_CUDA_CHOICES_H

#include <functional>
#include <string>

namespace whale::runtime::cuda {

/// A text file with a line for each choice, "key<TAB>choice": what is in it
/// stays, so that every run that reads it has the same bits.
class Choices {
public:
  /// Without a path nothing is measured.
  explicit Choices(std::string path) : path(std::move(path)) {}

  bool areMeasured() const { return !path.empty(); }

  /// What the file has for `key`, a line of text without tabs; else what
  /// `measure` gives, which is added to it. Meanwhile it is locked: of several
  /// ranks and processes one measures, the others read. Throws Error, with the
  /// file's name, where it cannot be read or written, or a line has no tab.
  std::string find(const std::string &key,
                   const std::function<std::string()> &measure) const;

  const std::string path;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_CHOICES_H
