//===- Array.h - A tensor that is in shards ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What programs take and return: a tensor left where it is, one shard per rank,
// gathered when read and laid out anew when a program takes another layout. A
// tensor of the host is an array with a single whole shard. The result of a
// step that has not ended knows all of itself but its elements.
//
// Cost: a copy of a handle copies a pointer. Reading, sharing and donating take
// a lock once. Only gathering, another layout and memory that the caller keeps
// copy bytes: each element once.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_ARRAY_H
#define WHALE_RUNTIME_ARRAY_H

#include "whale/Runtime/RankMap.h"
#include "whale/Runtime/Step.h"
#include "whale/Runtime/Types.h"

#include <memory>
#include <string>
#include <vector>

namespace whale::runtime {

/// Where the bytes of a shard are, or come from: the memory of a device, or a
/// file.
class Backing {
public:
  virtual ~Backing() = default;
  /// Brings the bytes from `begin` to `end` to the host's memory, unless that
  /// has the same; perhaps others, too. From any thread.
  virtual void bring(void *host, int64_t begin, int64_t end) = 0;
};

/// Memory of one shard. `writable` is false for memory that somebody else owns,
/// and may change once a program has been given it: the program copies it
/// first.
struct Buffer {
  std::shared_ptr<void> data;
  int64_t bytes = 0;
  bool writable = true;
  /// Set where the bytes here may not be the shard's yet. Read and changed
  /// atomically: several programs may take one array.
  mutable std::shared_ptr<Backing> backing = nullptr;

  /// `data`, once it has the shard's bytes.
  void *host() const { return host(0, bytes); }
  /// `data`, once it has these of them.
  void *host(int64_t begin, int64_t end) const;

  /// 64-byte aligned, uninitialized; throws Error naming the size when there is
  /// no memory.
  static std::shared_ptr<Buffer> allocate(int64_t bytes);
  /// In memory of its own; throws as `allocate`.
  std::shared_ptr<Buffer> copy() const;
};

/// What arrays that a program gives have in common, step after step.
struct ArrayType {
  DType dtype;
  Shape shape;
  std::shared_ptr<const Layout> layout;
  /// Where the boxes are those of ranks: which process has those of each. Null
  /// where every process has all: there is one, or each was given the whole.
  std::shared_ptr<const RankMap> ranks = nullptr;
  /// Whether the boxes are those of files, which every process sees.
  bool isInFiles = false;

  bool isLaidOutAs(const std::shared_ptr<const Layout> &other,
                   const std::shared_ptr<const RankMap> &otherRanks) const {
    return !isInFiles && (layout == other || *layout == *other) &&
           (ranks == otherRanks || !ranks || !otherRanks ||
            *ranks == *otherRanks);
  }
};

class ArrayContents;

/// A handle: copies share the shards. Not changed by reads, hence safe to read
/// from several threads; donation invalidates all handles of the array. What
/// reads shards waits for the step that computes them, and throws its Error.
class Array {
public:
  /// The empty handle.
  Array() = default;

  /// Copies `elementCount(shape) * byteSize(dtype)` bytes.
  static Array fromHost(DType dtype, Shape shape, const void *data);
  /// The same of a type whose layout has one box, the whole tensor.
  static Array fromHost(std::shared_ptr<const ArrayType> type,
                        const void *data);

  /// Keeps `data` alive and reads it in place, without a copy. A program copies
  /// it before it may change: until Program::submit returns.
  static Array adopt(DType dtype, Shape shape,
                     std::shared_ptr<const void> data);

  /// `shards` by rank; null or empty where the layout has no box, or the rank
  /// is another process's.
  static Array fromShards(DType dtype, Shape shape,
                          std::shared_ptr<const Layout> layout,
                          std::vector<std::shared_ptr<Buffer>> shards,
                          std::shared_ptr<const RankMap> ranks = nullptr);

  static Array fromShards(std::shared_ptr<const ArrayType> type,
                          std::vector<std::shared_ptr<Buffer>> shards);

  /// The same of pieces of files that every process sees.
  static Array fromFiles(DType dtype, Shape shape,
                         std::shared_ptr<const Layout> layout,
                         std::vector<std::shared_ptr<Buffer>> pieces);

  /// A result of `step`, which fills it.
  static Array ofStep(std::shared_ptr<const ArrayType> type,
                      std::shared_ptr<Step> step);

  /// False for the empty handle.
  explicit operator bool() const { return state != nullptr; }

  /// True once a program has taken the array over: reading it is an Error.
  bool isDonated() const;
  /// What has become of a donated array, as in "donated to a program".
  std::string fate() const;

  /// The step that it is a result of, null if none; throws when donated.
  std::shared_ptr<Step> step() const;
  /// Whether reading it does not wait.
  bool isReady() const;
  /// Whether its elements are there.
  bool isDone() const;
  /// See Step::wait.
  void wait(const AskInterrupted &interrupted = nullptr) const;

  const ArrayType &type() const { return *sharedType(); }
  const std::shared_ptr<const ArrayType> &sharedType() const;
  DType dtype() const { return type().dtype; }
  const Shape &shape() const { return type().shape; }
  const Layout &layout() const { return *type().layout; }
  /// See ArrayType.
  const std::shared_ptr<const RankMap> &ranks() const { return type().ranks; }
  bool isInFiles() const { return type().isInFiles; }
  bool
  isLaidOutAs(const std::shared_ptr<const Layout> &layout,
              const std::shared_ptr<const RankMap> &ranks = nullptr) const {
    return type().isLaidOutAs(layout, ranks);
  }
  /// Of type, shape and layout: what processes compare.
  std::string layoutChecksum() const;
  /// Bytes of the whole tensor.
  int64_t bytes() const;

  /// The shard of a rank (null where it holds none), all of it in the host's
  /// memory; throws when donated.
  std::shared_ptr<Buffer> shard(size_t rank) const;
  /// The shards by rank, of which the caller brings what it reads
  /// (Buffer::host); throws when donated.
  std::vector<std::shared_ptr<Buffer>> heldShards() const;

  /// Whether this process has all of it.
  bool isComplete() const;

  /// The whole tensor in memory if some rank holds all of it, else null. Valid
  /// while the array is.
  const void *wholeData() const;

  /// Gathers the tensor, row-major, into `bytes()` bytes at `out`. Throws Error
  /// where other processes have parts of it.
  void toHost(void *out) const;

  /// The same tensor in another layout: itself if it is so already. Else only
  /// this process's ranks get shards, where there are others. Throws as
  /// `toHost`.
  Array relayout(const std::shared_ptr<const Layout> &layout,
                 const std::shared_ptr<const RankMap> &ranks = nullptr) const;

  /// Drops the shards for all handles; reading is an Error from then on, which
  /// says what has become of the array. `fate` is a literal.
  void donate(const char *fate = "donated to a program") const;

  /// What it has now; a donation of the array leaves that as it is. Throws when
  /// donated.
  ArrayContents contents() const;

  /// The same, for a step that runs later: memory that is borrowed is copied,
  /// in a layout, as in `relayout`. With `readsNow` only what is
  /// not aligned as a program's memory: the step ends before the owner goes on.
  ArrayContents share(const std::shared_ptr<const Layout> &layout,
                      const std::shared_ptr<const RankMap> &ranks = nullptr,
                      bool readsNow = false) const;

private:
  friend class ArrayContents;
  struct Value;
  struct State;
  static Array make(std::shared_ptr<const ArrayType> type,
                    std::shared_ptr<Value> value);
  std::shared_ptr<State> state;
};

/// What an array has, apart from its handles: what runs steps keeps this.
class ArrayContents {
public:
  bool isLaidOutAs(const std::shared_ptr<const Layout> &layout,
                   const std::shared_ptr<const RankMap> &ranks) const {
    return type->isLaidOutAs(layout, ranks);
  }
  /// As those of an array.
  const std::shared_ptr<const ArrayType> &arrayType() const { return type; }
  const std::shared_ptr<Step> &step() const;
  void wait(const AskInterrupted &interrupted = nullptr) const;

  /// Another array of these shards.
  Array array() const;
  /// Gives up the shards: those that no other array has are the caller's alone.
  /// They are there: the step has ended, or the caller has filled them.
  std::vector<std::shared_ptr<Buffer>> release();
  /// Gives a result its shards, before its step is known to have ended.
  void fill(std::vector<std::shared_ptr<Buffer>> shards) const;

private:
  friend class Array;
  std::shared_ptr<const ArrayType> type;
  std::shared_ptr<Array::Value> value;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_ARRAY_H
