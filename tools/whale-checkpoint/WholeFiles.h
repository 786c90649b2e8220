//===- WholeFiles.h - Checkpoints as files of whole tensors -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What other libraries read and write: model.safetensors, or several files
// model-00001-of-00003.safetensors, with model.safetensors.index.json, which
// names the file of each tensor. Its metadata keeps what such files have no
// place for: the step, the implementations of PRNG keys, element types that go
// by their bytes, and `extra`.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALECHECKPOINT_WHOLEFILES_H
#define WHALE_TOOLS_WHALECHECKPOINT_WHOLEFILES_H

#include "whale/Runtime/Checkpoint.h"

#include <filesystem>
#include <optional>

namespace whale::runtime {

/// The element type that a tensor of such a file has by the file alone, if any.
std::optional<DType> wholeType(std::string_view name);

/// Writes a checkpoint into a directory, which is made; of files of at most so
/// many bytes, but that a tensor is in one file. Throws Error where there is a
/// checkpoint in it already.
void exportWhole(const Checkpoint &checkpoint,
                 const std::filesystem::path &directory, int64_t mostBytes);

/// Saves the tensors of a file of safetensors, or of a directory with an index,
/// as a checkpoint of `step`; by default the step that the index has, else 0.
void importWhole(const std::filesystem::path &from, Checkpointer &checkpointer,
                 std::optional<int64_t> step);

} // namespace whale::runtime

#endif // WHALE_TOOLS_WHALECHECKPOINT_WHOLEFILES_H
