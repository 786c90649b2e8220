//===- NoMover.cpp - Processes that cannot send messages ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/message/Mover.h"
#include "whale/Runtime/Types.h"

#include <condition_variable>
#include <limits>
#include <mutex>
#include <utility>

namespace whale::runtime {
namespace {

class NoMover : public Mover {
public:
  explicit NoMover(std::string why) : why(std::move(why)) {}

  Tag maxTag() const override { return std::numeric_limits<Tag>::max(); }
  void send(int64_t, Tag, const void *, size_t, bool, int64_t &) override {
    throw Error(why);
  }
  void receive(int64_t, Tag, void *, size_t, int64_t &) override {
    throw Error(why);
  }
  bool progress() override { return false; }
  void sleep() override {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return std::exchange(isAwake, false); });
  }
  void wake() override {
    std::lock_guard lock(mutex);
    isAwake = true;
    changed.notify_all();
  }
  const std::string &lossOf(int64_t) const override { return none; }
  void flush() override {}
  bool cancel() override { return true; }

private:
  const std::string why, none;
  std::mutex mutex;
  std::condition_variable changed;
  bool isAwake = false;
};

} // namespace

std::unique_ptr<Mover> createNoMover(std::string why) {
  return std::make_unique<NoMover>(std::move(why));
}

} // namespace whale::runtime
