//===- Reader.h - Decode a manifest part by part ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_READER_H
#define WHALE_RUNTIME_PROGRAM_READER_H

#include "program/Field.h"
#include "program/Manifest.h"

#include <set>

namespace whale::runtime {

/// What a kernel expects, from "kernel_signatures".
struct KernelSignature {
  size_t inputs;
  std::vector<int64_t> bytes;
  int64_t extent;
};

/// State of reading one manifest.
struct ManifestReader {
  const ManifestContext &context;
  Manifest &manifest;
  const KernelLibrary *kernels = nullptr;
  int64_t constantsSize = 0;
  std::optional<std::map<std::string, KernelSignature>> signatures = {};

  /// Shapes, boxes and roles of "arguments" and "results".
  void readParameters(const Field &root);
  /// "channels", without what depends on the buffers of their users.
  void readChannels(const Field &root);
  /// One of "classes".
  void readClass(const Field &field, RankClass &rankClass);
  /// After all classes: that each channel has its participants, and its cells
  /// lie in their buffers.
  void checkChannels(const Field &root);

  /// The `comm` instruction of each channel's participants: buffers' shapes.
  struct Use {
    std::optional<Shape> src, dst;
    bool overlap = false;
    bool operator==(const Use &) const = default;
  };
  std::map<int64_t, std::map<int64_t, Use>> uses = {};
  /// Where a channel is described, if that is at another one.
  std::map<int64_t, int64_t> describedAt = {};
};

/// Reads the instructions of one class.
class InstructionReader {
public:
  InstructionReader(ManifestReader &reader, const RankClass &rankClass)
      : reader(reader), rankClass(rankClass) {}

  std::vector<Instruction> readList(const Field &list);

private:
  Instruction read(const Field &field);
  KernelLaunch readKernel(const Field &field);
  Copy readCopy(const Field &field);
  Matmul readMatmul(const Field &field);
  Convolution readConvolution(const Field &field);
  Call readCall(const Field &field);
  Comm readComm(const Field &field);
  While readWhile(const Field &field);
  Case readCase(const Field &field);

  BufferIndex readBuffer(const Field &field) const;
  /// A buffer that may be written, apart from all of `inputs`.
  BufferIndex readOutput(const Field &field,
                         const std::vector<BufferIndex> &inputs) const;
  const BufferInfo &info(BufferIndex index) const {
    return rankClass.buffers[index];
  }
  double bytesOf(const std::vector<BufferIndex> &buffers) const {
    double bytes = 0;
    for (BufferIndex buffer : buffers)
      bytes += static_cast<double>(info(buffer).bytes);
    return bytes;
  }
  void checkWritable(const Field &field, BufferIndex index) const;

  ManifestReader &reader;
  const RankClass &rankClass;
  int depth = 0;
};

/// Whether two buffers share memory; results do with the arguments that they
/// are aliases of.
bool overlap(const Manifest &manifest, const BufferInfo &a,
             const BufferInfo &b);

/// Checks that there are products of elements of these types.
void checkProduct(const Field &field, const BufferInfo &lhs,
                  const BufferInfo &rhs, const BufferInfo &out);

/// Decodes a convolution and checks that the shapes fit (ReadConvolution.cpp).
Convolution decodeConvolution(const Field &field, const BufferInfo &lhs,
                              const BufferInfo &rhs, const BufferInfo &out);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_READER_H
