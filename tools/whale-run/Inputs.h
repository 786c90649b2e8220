//===- Inputs.h - The arguments of a program, from files --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALE_RUN_INPUTS_H
#define WHALE_TOOLS_WHALE_RUN_INPUTS_H

#include "whale/Runtime/Program.h"
#include "whale/Runtime/Safetensors.h"

namespace whale::runtime {

/// The tensors of the two input files as arguments of a program.
class Inputs {
public:
  /// `data` may be empty. Throws Error where a file is not what the program
  /// takes. `program` outlives this.
  Inputs(const Program &program, const std::string &inputs,
         const std::string &data);

  /// The arguments of step `step`, without those that results feed.
  void fill(std::vector<Array> &arguments, int64_t step) const;

private:
  using File = SafetensorsFile;
  void checkNames(const File &file, const std::string &path, bool data) const;
  const File::Tensor &check(const File &file, const std::string &path,
                            const Parameter &parameter, bool data) const;
  Array read(const File &file, const Parameter &parameter,
             const File::Tensor &tensor, int64_t row) const;

  const Program &program;
  File inputs, data;
  /// For each argument: its tensor in one of the files; null for what is the
  /// program's own.
  struct Source {
    const File::Tensor *tensor;
    bool data;
  };
  std::vector<Source> sources;
};

} // namespace whale::runtime

#endif // WHALE_TOOLS_WHALE_RUN_INPUTS_H
