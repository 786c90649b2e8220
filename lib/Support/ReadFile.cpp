//===- ReadFile.cpp - Reading a tool's input --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Support/ReadFile.h"
#include "whale/System/Error.h"
#include "whale/System/InputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace llvm;

namespace whale {

using Buffer = std::unique_ptr<MemoryBuffer>;

static Error fail(const Twine &what) {
  return createStringError(inconvertibleErrorCode(), what);
}

static Error failTooLarge(int64_t limit) {
  return fail("it has more than " + Twine(limit >> 20) + " MiB");
}

/// Reads the rest of the input; `text` holds its beginning.
static Expected<Buffer> readStream(int descriptor, StringRef path,
                                   int64_t limit, SmallString<0> text) {
  constexpr size_t kStep = size_t(1) << 20;
  while (int64_t(text.size()) <= limit) {
    size_t size = text.size();
    text.resize_for_overwrite(size + kStep);
    ssize_t count = ::read(descriptor, text.data() + size, kStep);
    if (count < 0 && errno != EINTR)
      return fail(std::strerror(errno));
    text.truncate(size + size_t(std::max<ssize_t>(count, 0)));
    if (count == 0)
      return std::make_unique<SmallVectorMemoryBuffer>(std::move(text), path);
  }
  return failTooLarge(limit);
}

Expected<Buffer> readTextFile(StringRef path, int64_t limit) {
  try {
    using system::InputFile;
    InputFile file(path.str(), InputFile::Dash::Standard);
    if (!file.getSize())
      return readStream(file.getDescriptor(), path, limit,
                        StringRef(file.getBeginning()));
    if (int64_t(*file.getSize()) > limit)
      return failTooLarge(limit);
    ErrorOr<Buffer> buffer =
        MemoryBuffer::getOpenFile(file.getDescriptor(), path, *file.getSize());
    if (!buffer)
      return errorCodeToError(buffer.getError());
    return std::move(*buffer);
  } catch (const system::Error &error) {
    return fail(error.what());
  }
}

} // namespace whale
