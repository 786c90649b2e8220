//===- Array.cpp - A tensor that is in shards -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A handle shares a State with its copies; the State holds a Value, the shards
// and the step that makes them. Donation takes the Value out of the State, for
// all handles; what runs a step keeps only the Value. Gathering copies each
// distinct box once. A new layout is pieced together shard by shard; one of
// another view in the refinement of both (CommonView.h).
//
// Cost: copying a handle copies a pointer; reading, sharing or donating takes
// the State's lock once and, to read a shard, copies the pointers to all. Only
// gathering, a new layout and memory of the caller's copy bytes: each element
// once. A new layout compares each box of this process with the boxes of all
// ranks that have a shard.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Array.h"

#include "CopyBox.h"
#include "LargeMemory.h"
#include "whale/ProgramFormat/Exchange.h"
#include "whale/ProgramFormat/Pieces.h"
#include "whale/Runtime/Types.h"
#include "whale/System/Checksum.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace whale::runtime {

static constexpr size_t alignment = 64;

std::shared_ptr<Buffer> Buffer::allocate(int64_t bytes) {
  constexpr int64_t large = 1 << 20;
  // A zero-size buffer still has an address.
  size_t rounded = static_cast<size_t>(bytes) + alignment;
  auto buffer = std::make_shared<Buffer>();
  if (bytes >= large) {
    rounded -= rounded % alignment;
    buffer->data = LargeMemory::get().allocate(rounded);
  } else if (void *block = std::malloc(rounded)) {
    // The C library keeps what is freed for the next one, but for what was
    // allocated with an alignment.
    void *data = block;
    std::align(alignment, 0, data, rounded);
    buffer->data =
        std::shared_ptr<void>(data, [block](void *) { std::free(block); });
  }
  if (!buffer->data)
    throw Error("cannot allocate " + std::to_string(bytes) + " bytes");
  buffer->bytes = bytes;
  return buffer;
}

void *Buffer::host(int64_t begin, int64_t end) const {
  if (std::shared_ptr<Backing> source = std::atomic_load(&backing))
    source->bring(data.get(), begin, end);
  return data.get();
}

std::shared_ptr<Buffer> Buffer::copy() const {
  auto other = allocate(bytes);
  if (bytes)
    std::memcpy(other->data.get(), host(), static_cast<size_t>(bytes));
  return other;
}

/// What arrays share. Complete once `step` has ended, and not changed then.
struct Array::Value {
  std::shared_ptr<Step> step;
  std::vector<std::shared_ptr<Buffer>> shards;
};

struct Array::State {
  State(std::shared_ptr<const ArrayType> type, std::shared_ptr<Value> value)
      : type(std::move(type)), value(std::move(value)) {}

  const std::shared_ptr<const ArrayType> type;

  /// Guards `value` and `fate`: another handle may donate at any time.
  std::mutex mutex;
  std::shared_ptr<Value> value;
  /// A literal, null until it is donated.
  const char *fate = nullptr;

  const Layout &layout() const { return *type->layout; }
  std::shared_ptr<Value> getValue() {
    std::lock_guard lock(mutex);
    if (fate)
      throw Error("the array was " + std::string(fate) + " and cannot be read");
    return value;
  }
  /// Once it is computed.
  std::shared_ptr<Value> readValue() {
    std::shared_ptr<Value> value = getValue();
    if (value->step)
      value->step->wait();
    return value;
  }
  std::vector<std::shared_ptr<Buffer>> readShards() {
    return readValue()->shards;
  }
};

Array Array::make(std::shared_ptr<const ArrayType> type,
                  std::shared_ptr<Value> value) {
  Array array;
  array.state = std::make_shared<State>(std::move(type), std::move(value));
  return array;
}

Array Array::fromShards(DType dtype, Shape shape,
                        std::shared_ptr<const Layout> layout,
                        std::vector<std::shared_ptr<Buffer>> shards,
                        std::shared_ptr<const RankMap> ranks) {
  return fromShards(
      std::make_shared<ArrayType>(ArrayType{
          dtype, std::move(shape), std::move(layout), std::move(ranks)}),
      std::move(shards));
}

Array Array::fromShards(std::shared_ptr<const ArrayType> type,
                        std::vector<std::shared_ptr<Buffer>> shards) {
  assert(shards.size() == type->layout->boxes.size() && "one shard per box");
  return make(std::move(type),
              std::make_shared<Value>(Value{nullptr, std::move(shards)}));
}

Array Array::fromFiles(DType dtype, Shape shape,
                       std::shared_ptr<const Layout> layout,
                       std::vector<std::shared_ptr<Buffer>> pieces) {
  assert(pieces.size() == layout->boxes.size() && "one piece per box");
  auto type = std::make_shared<ArrayType>(
      ArrayType{dtype, std::move(shape), std::move(layout)});
  type->isInFiles = true;
  return make(std::move(type),
              std::make_shared<Value>(Value{nullptr, std::move(pieces)}));
}

Array Array::ofStep(std::shared_ptr<const ArrayType> type,
                    std::shared_ptr<Step> step) {
  return make(std::move(type),
              std::make_shared<Value>(Value{std::move(step), {}}));
}

Array Array::fromHost(DType dtype, Shape shape, const void *data) {
  auto layout = std::make_shared<Layout>(Layout::whole(shape));
  return fromHost(std::make_shared<ArrayType>(
                      ArrayType{dtype, std::move(shape), std::move(layout)}),
                  data);
}

Array Array::fromHost(std::shared_ptr<const ArrayType> type, const void *data) {
  assert(type->layout->boxes.size() == 1 && "one shard");
  int64_t bytes = elementCount(type->shape) * byteSize(type->dtype);
  auto buffer = Buffer::allocate(bytes);
  if (bytes)
    std::memcpy(buffer->data.get(), data, bytes);
  auto value = std::make_shared<Value>();
  value->shards.push_back(std::move(buffer));
  return make(std::move(type), std::move(value));
}

Array Array::adopt(DType dtype, Shape shape, std::shared_ptr<const void> data) {
  auto buffer = std::make_shared<Buffer>();
  buffer->data = std::const_pointer_cast<void>(std::move(data));
  buffer->bytes = elementCount(shape) * byteSize(dtype);
  buffer->writable = false;
  auto layout = std::make_shared<Layout>(Layout::whole(shape));
  return fromShards(dtype, std::move(shape), std::move(layout), {buffer});
}

/// Whether the shards of this process cover the tensor.
static bool hasAll(const Layout &layout,
                   const std::vector<std::shared_ptr<Buffer>> &shards) {
  std::vector<std::optional<Box>> boxes = layout.boxes;
  bool isLacking = false;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (boxes[i] && !shards[i]) {
      boxes[i].reset();
      isLacking = true;
    }
  return !isLacking || covers(layout.view, boxes);
}

static void checkAll(const Layout &layout,
                     const std::vector<std::shared_ptr<Buffer>> &shards) {
  if (!hasAll(layout, shards))
    throw Error("other processes have parts of the array: gather it first "
                "(wh.gather)");
}

bool Array::isDonated() const {
  std::lock_guard lock(state->mutex);
  return state->fate;
}

std::string Array::fate() const {
  std::lock_guard lock(state->mutex);
  return state->fate ? state->fate : "";
}

std::shared_ptr<Step> Array::step() const { return state->getValue()->step; }

bool Array::isReady() const {
  std::shared_ptr<Step> step = this->step();
  return !step || step->hasEnded();
}

bool Array::isDone() const {
  std::shared_ptr<Step> step = this->step();
  return !step || step->hasDoneWell();
}

void Array::wait(const AskInterrupted &interrupted) const {
  if (std::shared_ptr<Step> step = this->step())
    step->wait(interrupted);
}

const std::shared_ptr<const ArrayType> &Array::sharedType() const {
  return state->type;
}

std::string Array::layoutChecksum() const {
  // Of one list: pieces of a few bytes take longer than all of them.
  std::vector<int64_t> all = {static_cast<int64_t>(dtype()), isInFiles()};
  auto add = [&](const Shape &list) {
    all.push_back(std::ssize(list));
    all.insert(all.end(), list.begin(), list.end());
  };
  add(shape());
  add(layout().view);
  for (const std::optional<Box> &box : layout().boxes) {
    all.push_back(box.has_value());
    if (box) {
      add(box->start);
      add(box->size);
    }
  }
  if (ranks())
    add(ranks()->processOf);
  return system::Checksum::of({reinterpret_cast<const char *>(all.data()),
                               all.size() * sizeof(all[0])});
}

int64_t Array::bytes() const {
  return elementCount(shape()) * byteSize(dtype());
}

std::vector<std::shared_ptr<Buffer>> Array::heldShards() const {
  return state->readValue()->shards;
}

std::shared_ptr<Buffer> Array::shard(size_t rank) const {
  std::shared_ptr<Buffer> shard = heldShards().at(rank);
  if (shard)
    shard->host();
  return shard;
}

const void *Array::wholeData() const {
  auto shards = state->readShards();
  int64_t elements = elementCount(shape());
  for (size_t i = 0; i < shards.size(); ++i)
    if (const std::optional<Box> &box = state->layout().boxes[i];
        box && shards[i] && box->elements() == elements)
      return shards[i]->host();
  return nullptr;
}

bool Array::isComplete() const {
  auto shards = state->readShards();
  return hasAll(state->layout(), shards);
}

/// Copies a box of the tensor from shards that have it, in elements of so many
/// bytes.
static void copyTo(void *out, const Box &box, const Layout &layout,
                   const std::vector<std::shared_ptr<Buffer>> &shards,
                   int64_t bytes) {
  std::vector<size_t> holders;
  for (size_t i = 0; i < shards.size(); ++i)
    if (shards[i])
      holders.push_back(i);
  auto first = [](const Box &, std::span<const size_t> having) {
    return having.front();
  };
  for (const auto &[holder, part] : piecesOf(box, layout, holders, first)) {
    const Box &from = *layout.boxes[holder];
    auto [begin, end] = rangeIn(from, part);
    copyBox(out, box.size, startIn(box, part),
            shards[holder]->host(begin * bytes, end * bytes), from.size,
            startIn(from, part), part.size, bytes);
  }
}

void Array::toHost(void *out) const {
  auto shards = state->readShards();
  checkAll(state->layout(), shards);
  copyTo(out, Box::whole(state->layout().view), state->layout(), shards,
         byteSize(dtype()));
}

/// Copies boxes of another view from shards of this process.
static void copyUnlike(const std::vector<std::shared_ptr<Buffer>> &to,
                       const Layout &toLayout,
                       const std::vector<std::shared_ptr<Buffer>> &from,
                       Layout fromLayout, int64_t bytes) {
  for (size_t i = 0; i < from.size(); ++i)
    if (!from[i])
      fromLayout.boxes[i].reset();
  Layout wanted = toLayout;
  for (size_t i = 0; i < to.size(); ++i)
    if (!to[i])
      wanted.boxes[i].reset();
  format::Move move{
      bytes, fromLayout, wanted, {}, std::vector<int64_t>(to.size())};
  for (const format::MovedPiece &piece :
       format::exchangeOf({&move, 1}, std::vector<unsigned>{0})) {
    int64_t begin = piece.fromOffset;
    auto *source = static_cast<char *>(
        from[piece.owner]->host(begin * bytes, piece.fromEnd() * bytes));
    auto *target = static_cast<char *>(to[piece.receiver]->data.get());
    copyStrided(target + piece.toOffset * bytes, piece.toStrides,
                source + begin * bytes, piece.fromStrides, piece.size, bytes);
  }
}

Array Array::relayout(const std::shared_ptr<const Layout> &layout,
                      const std::shared_ptr<const RankMap> &ranks) const {
  if (isLaidOutAs(layout, ranks))
    return *this;
  auto shards = state->readShards();
  checkAll(state->layout(), shards);
  bool isUnlike = state->layout().view != layout->view;
  // Replicas on ranks of one process still get memory of their own: a program
  // may take a shard over and write to it.
  std::vector<std::shared_ptr<Buffer>> result(layout->boxes.size());
  for (size_t i = 0; i < result.size(); ++i)
    if (const std::optional<Box> &box = layout->boxes[i];
        box && (!ranks || ranks->isLocal(i))) {
      result[i] = Buffer::allocate(box->elements() * byteSize(dtype()));
      if (!isUnlike)
        copyTo(result[i]->data.get(), *box, state->layout(), shards,
               byteSize(dtype()));
    }
  if (isUnlike)
    copyUnlike(result, *layout, shards, state->layout(), byteSize(dtype()));
  return fromShards(dtype(), shape(), layout, std::move(result), ranks);
}

void Array::donate(const char *fate) const {
  std::shared_ptr<Value> unused; // It goes after the lock.
  std::lock_guard lock(state->mutex);
  state->fate = fate;
  unused.swap(state->value);
}

ArrayContents Array::contents() const {
  ArrayContents contents;
  contents.type = state->type;
  contents.value = state->getValue();
  return contents;
}

ArrayContents Array::share(const std::shared_ptr<const Layout> &layout,
                           const std::shared_ptr<const RankMap> &ranks,
                           bool readsNow) const {
  ArrayContents own = contents();
  auto isCopied = [readsNow](const std::shared_ptr<Buffer> &shard) {
    auto address = reinterpret_cast<uintptr_t>(shard ? shard->data.get() : 0);
    return shard && !shard->writable && !(readsNow && address % alignment == 0);
  };
  // What a step computes is never borrowed.
  if (own.value->step || std::ranges::none_of(own.value->shards, isCopied))
    return own;
  Array laidOut = relayout(layout, ranks);
  if (laidOut.state != state)
    return laidOut.contents();
  std::vector<std::shared_ptr<Buffer>> copies;
  for (const std::shared_ptr<Buffer> &shard : own.value->shards)
    copies.push_back(shard ? shard->copy() : nullptr);
  own.value = std::make_shared<Value>(Value{nullptr, std::move(copies)});
  return own;
}

const std::shared_ptr<Step> &ArrayContents::step() const { return value->step; }

void ArrayContents::wait(const AskInterrupted &interrupted) const {
  if (value->step)
    value->step->wait(interrupted);
}

Array ArrayContents::array() const { return Array::make(type, value); }

std::vector<std::shared_ptr<Buffer>> ArrayContents::release() {
  std::shared_ptr<Array::Value> last = std::move(value);
  if (last.use_count() > 1)
    return last->shards;
  // Reads through other handles come before.
  std::atomic_thread_fence(std::memory_order_acquire);
  return std::move(last->shards);
}

void ArrayContents::fill(std::vector<std::shared_ptr<Buffer>> shards) const {
  value->shards = std::move(shards);
}

} // namespace whale::runtime
