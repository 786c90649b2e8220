//===- Array.h - A tensor stored as shards ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arguments and results of programs: a tensor stored as one shard per rank.
// It is gathered when it is read, and converted when a program needs another
// layout. A tensor of the host is an array with a single whole shard. The
// result of a step that is still running has everything but its elements.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_ARRAY_H
#define WHALE_RUNTIME_ARRAY_H

#include "whale/Runtime/Step.h"
#include "whale/Runtime/Types.h"

#include <memory>
#include <string>
#include <vector>

namespace whale::runtime {

/// Memory of one shard. `writable` is false for memory of another owner, who
/// may change it once Program::submit has returned: the program copies it
/// first.
struct Buffer {
  std::shared_ptr<void> data;
  int64_t bytes = 0;
  bool writable = true;

  /// Allocates 64-byte aligned, uninitialized memory. Throws Error with the
  /// size if memory is exhausted.
  static std::shared_ptr<Buffer> allocate(int64_t bytes);
  /// Returns a copy in separate memory; throws like `allocate`.
  std::shared_ptr<Buffer> copy() const;
};

/// A handle: copies share the shards. Reads don't change it, so several threads
/// may read it; donation invalidates all handles of the array. Functions that
/// read shards wait for the step that computes them, and throw its Error.
class Array {
public:
  /// The empty handle.
  Array() = default;

  /// Returns an array with a copy of `elementCount(shape) * byteSize(dtype)`
  /// bytes.
  static Array fromHost(DType dtype, Shape shape, const void *data);

  /// Returns an array that keeps `data` alive and reads it without a copy. The
  /// owner may change the data after Program::submit has returned: a program
  /// copies it before that.
  static Array adopt(DType dtype, Shape shape,
                     std::shared_ptr<const void> data);

  /// Returns an array of shards by rank; null or empty where the layout has no
  /// box.
  static Array fromShards(DType dtype, Shape shape,
                          std::shared_ptr<const Layout> layout,
                          std::vector<std::shared_ptr<Buffer>> shards);

  /// Returns a result of `step`, which fills it.
  static Array ofStep(DType dtype, Shape shape,
                      std::shared_ptr<const Layout> layout,
                      std::shared_ptr<Step> step);

  /// False for the empty handle.
  explicit operator bool() const { return state != nullptr; }

  /// Returns true after the array was donated to a program: reading it is an
  /// Error.
  bool isDonated() const;
  /// Returns why a donated array is invalid, as in "donated to a program".
  std::string fate() const;

  /// Returns the step that computes this array, or null; throws when donated.
  std::shared_ptr<Step> step() const;
  /// Whether it can be read without waiting.
  bool isReady() const;
  /// See Step::wait.
  void wait(const AskInterrupted &interrupted = nullptr) const;

  DType dtype() const;
  const Shape &shape() const;
  const Layout &layout() const;
  /// Returns the bytes of the whole tensor.
  int64_t bytes() const;

  /// Returns the shard of a rank (null if it holds none); throws when donated.
  std::shared_ptr<Buffer> shard(size_t rank) const;

  /// Returns the whole tensor in memory if some rank holds all of it, else
  /// null. Valid as long as the array.
  const void *wholeData() const;

  /// Gathers the tensor, row-major, into `bytes()` bytes at `out`. Throws Error
  /// where other processes have parts of it.
  void toHost(void *out) const;

  /// Returns the tensor in another layout; this array if it has that layout.
  Array relayout(const std::shared_ptr<const Layout> &layout) const;

  /// Drops the shards for all handles. Reading then throws an Error that
  /// contains `fate`.
  void donate(std::string fate = "donated to a program") const;

  // For the code that runs steps.

  /// Returns another array of these shards, which a donation of this one
  /// doesn't affect; for borrowed memory, a copy in a layout.
  Array share(const std::shared_ptr<const Layout> &layout) const;
  /// Releases the shards. Those that no other array shares belong to the
  /// caller.
  std::vector<std::shared_ptr<Buffer>> release();
  /// Sets the shards of a result, before its step is known to have ended.
  void fill(std::vector<std::shared_ptr<Buffer>> shards) const;

private:
  struct Value;
  struct State;
  static Array make(DType dtype, Shape shape,
                    std::shared_ptr<const Layout> layout,
                    std::shared_ptr<Value> value);
  std::shared_ptr<State> state;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_ARRAY_H
