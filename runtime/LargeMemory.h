//===- LargeMemory.h - Memory of large buffers ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LARGEMEMORY_H
#define WHALE_RUNTIME_LARGEMEMORY_H

#include <cstddef>
#include <memory>

namespace whale::runtime {

/// `bytes` of memory, of any contents, at an address that is a multiple of 64;
/// null if there is none. May be called by several threads at once, as may the
/// memory be given back.
std::shared_ptr<void> allocateLarge(size_t bytes);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LARGEMEMORY_H
