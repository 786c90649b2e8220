//===- Safetensors.h - Files of tensors -------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Format: eight bytes of little-endian header length, a JSON object of names
// with dtype, shape and byte range, then the tensors' bytes without gaps
// (https://github.com/huggingface/safetensors). Types that the format lacks go
// by their bytes: i2 and i4 as I8, ui2 and ui4 as U8, f4, f6 and the unnamed f8
// types as U8; complex<f64> as F64 with a last dimension of 2, the real and the
// imaginary part.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_SAFETENSORS_H
#define WHALE_RUNTIME_SAFETENSORS_H

#include "whale/Runtime/Types.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace whale::system {
class FileWriter;
} // namespace whale::system

namespace whale::runtime {

/// The file's own name of a type ("BF16"), or of its bytes.
std::string_view safetensorsName(DType dtype);

/// The shape that a tensor has in a file.
Shape safetensorsShape(DType dtype, Shape shape);

/// A file whose header was checked: all byte ranges are in the file, fit their
/// dtype and shape, don't overlap and leave no gap.
class SafetensorsFile {
public:
  struct Tensor {
    /// The file's name of the dtype.
    std::string dtype;
    Shape shape;
    /// Inside the file's memory; not aligned for the dtype.
    const uint8_t *data;
    int64_t bytes;
  };

  /// Maps a file. Throws Error naming the file and tensor at fault.
  static SafetensorsFile open(const std::filesystem::path &path);
  /// Parses `bytes`, which must outlive the file; `name` is in errors.
  static SafetensorsFile parse(const std::string &name, const uint8_t *bytes,
                               size_t size);

  const std::map<std::string, Tensor> &tensors() const { return byName; }
  const std::map<std::string, std::string> &metadata() const { return meta; }
  /// Keeps the tensors' bytes alive beyond the file.
  const std::shared_ptr<const void> &owner() const { return memory; }

private:
  std::shared_ptr<const void> memory;
  std::map<std::string, Tensor> byName;
  std::map<std::string, std::string> meta;
};

/// A tensor to be written; `read` fills its bytes when its turn comes, so that
/// only one is gathered at a time.
struct TensorToWrite {
  std::string name;
  DType dtype;
  Shape shape;
  std::function<void(void *)> read;
};

/// What a file has in front of its tensors, and where they lie.
struct SafetensorsHeader {
  std::string text;
  /// Of each tensor, in the file.
  std::vector<int64_t> offsets;
  /// Of the whole file.
  int64_t bytes;
};

/// Tensors of wide elements come first, so that each is aligned for its dtype.
SafetensorsHeader makeHeader(const std::vector<TensorToWrite> &tensors);

/// Writes a whole file, without committing it.
void writeSafetensors(system::FileWriter &file,
                      const std::vector<TensorToWrite> &tensors);

/// Writes a new file beside `path` and renames it: a failure leaves what was
/// there. Throws Error naming the file.
void writeSafetensors(const std::filesystem::path &path,
                      const std::vector<TensorToWrite> &tensors);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_SAFETENSORS_H
