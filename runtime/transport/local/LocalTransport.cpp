//===- LocalTransport.cpp - Ranks as threads of a process -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank publishes the address of its source, waits for those that it reads
// from, pulls its boxes out of their buffers and waits for its own readers.
// Nobody spins: ranks may be many more than cores. All state is under one lock
// that is never held while data move; a rank that changes something wakes those
// whose condition became true. A rank that only sends leaves a copy and goes
// on: stages of a pipeline don't wait for those that they feed. When every rank
// that still runs waits for a condition that is false, none will ever go on:
// that is an error, not a hang.
//
//===----------------------------------------------------------------------===//

#include "CopyBox.h"
#include "transport/Reduce.h"
#include "transport/Transport.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

namespace whale::runtime {

namespace {
class LocalTransport : public Transport {
public:
  explicit LocalTransport(const format::Program &program);

  Traffic run(int64_t rank, int64_t channel, const void *src,
              void *dst) override;
  void finish(int64_t rank) override;
  void abort() override;
  bool aborted() const override { return stopped; }
  void reset() override;

private:
  /// What a rank that only sends has left for its readers.
  struct Letter {
    std::vector<char> bytes;
    int64_t readers;
  };
  /// Ranks of one all-reduce.
  struct Group {
    std::vector<int64_t> ranks;
    // Over all its members and times.
    int64_t arrived = 0;
    int64_t reduced = 0;
  };
  /// One participant of a collective.
  struct Member {
    // What the channel's tables say.
    std::vector<int64_t> sources; ///< other ranks that it reads from
    int64_t readers = 0;          ///< other ranks that read from it
    bool receives = false;        ///< from others or from itself
    Traffic traffic;
    Group *group = nullptr;
    int64_t position = 0; ///< in the group

    // This run, under the lock.
    const void *src = nullptr;
    void *dst = nullptr;
    int64_t arrived = 0;               ///< times that it published its source
    int64_t reads = 0;                 ///< by others, of all times
    std::map<int64_t, Letter> letters; ///< by time
  };
  struct Meeting {
    const Collective *collective = nullptr;
    std::unordered_map<int64_t, Member> members;
    std::vector<std::unique_ptr<Group>> groups;
  };
  /// A rank that waits.
  struct Waiter {
    std::condition_variable wake;
    const std::function<bool()> *condition = nullptr;
    bool finished = false;
    /// In the collective at hand.
    std::chrono::duration<double> waited{};
  };

  void addCells(Meeting &meeting);
  void addGroups(Meeting &meeting);
  void wait(std::unique_lock<std::mutex> &lock, int64_t rank,
            const std::function<bool()> &condition);
  void wakeOthers();
  bool isStuck() const;
  void pullCells(int64_t rank, const Collective &collective,
                 const std::map<int64_t, const void *> &sources, void *dst);
  void send(int64_t rank, const Collective &collective, Member &self);
  void exchange(std::unique_lock<std::mutex> &lock, int64_t rank,
                Meeting &meeting, Member &self);
  void allReduce(std::unique_lock<std::mutex> &lock, int64_t rank,
                 Meeting &meeting, Member &self);

  std::mutex mutex;
  std::atomic<bool> stopped = false;
  std::unordered_map<int64_t, Meeting> meetings; ///< by channel
  std::vector<std::unique_ptr<Waiter>> waiters;
};
} // namespace

LocalTransport::LocalTransport(const format::Program &program) {
  for (size_t i = 0; i < program.ranks.size(); ++i)
    waiters.push_back(std::make_unique<Waiter>());
  for (const auto &[number, collective] : program.channels) {
    Meeting &meeting = meetings[number];
    meeting.collective = collective.get();
    for (int64_t rank : collective->participants)
      meeting.members[rank];
    if (collective->groups.empty())
      addCells(meeting);
    else
      addGroups(meeting);
  }
}

void LocalTransport::addCells(Meeting &meeting) {
  int64_t elementBytes = byteSize(meeting.collective->dtype);
  for (const auto &[rank, cells] : meeting.collective->cells) {
    Member &self = meeting.members.at(rank);
    std::set<int64_t> sources;
    for (const Cell &cell : *cells)
      for (const Cell::Contribution &from : cell.from) {
        if (from.peer == rank)
          continue;
        sources.insert(from.peer);
        int64_t bytes = elementCount(cell.size) * elementBytes;
        self.traffic.received += bytes;
        meeting.members.at(from.peer).traffic.sent += bytes;
      }
    self.sources.assign(sources.begin(), sources.end());
    self.receives = !cells->empty();
    for (int64_t peer : sources)
      ++meeting.members.at(peer).readers;
  }
}

/// Elements [begin, end) of an all-reduce that member `position` reduces.
/// Slices begin at cache lines, so that no two ranks write to one.
static std::pair<int64_t, int64_t> sliceOf(int64_t count, int64_t members,
                                           int64_t position) {
  constexpr int64_t grain = 64;
  int64_t grains = (count + grain - 1) / grain;
  auto bound = [&](int64_t i) {
    return std::min(grains / members * i + std::min(grains % members, i),
                    grains) *
           grain;
  };
  return {std::min(bound(position), count),
          std::min(bound(position + 1), count)};
}

void LocalTransport::addGroups(Meeting &meeting) {
  const Collective &collective = *meeting.collective;
  int64_t elementBytes = byteSize(collective.dtype);
  for (const auto &group : collective.groups) {
    auto size = static_cast<int64_t>(group.size());
    meeting.groups.push_back(std::make_unique<Group>());
    meeting.groups.back()->ranks = group;
    for (int64_t position = 0; position < size; ++position) {
      int64_t rank = group[position];
      Member &self = meeting.members.at(rank);
      self.group = meeting.groups.back().get();
      self.position = position;
      int64_t count = elementCount(collective.dstShapes.at(rank));
      auto [begin, end] = sliceOf(count, size, position);
      int64_t own = end - begin;
      // It takes its slice from the others and gives them theirs, then gives
      // them the result and takes theirs.
      int64_t elements = own * (size - 1) + (count - own);
      self.traffic.received = self.traffic.sent = elements * elementBytes;
    }
  }
}

bool LocalTransport::isStuck() const {
  for (const auto &waiter : waiters)
    if (!waiter->finished && (!waiter->condition || (*waiter->condition)()))
      return false;
  return true;
}

void LocalTransport::wait(std::unique_lock<std::mutex> &lock, int64_t rank,
                          const std::function<bool()> &condition) {
  Waiter &self = *waiters[rank];
  if (stopped)
    throw Aborted();
  if (condition())
    return;
  self.condition = &condition;
  if (isStuck()) {
    self.condition = nullptr;
    throw Error("the ranks wait for one another and none can go on: they "
                "execute different collectives");
  }
  auto begin = std::chrono::steady_clock::now();
  self.wake.wait(lock, [&] { return stopped || condition(); });
  self.waited += std::chrono::steady_clock::now() - begin;
  self.condition = nullptr;
  if (stopped)
    throw Aborted();
}

void LocalTransport::wakeOthers() {
  for (const auto &waiter : waiters)
    if (waiter->condition && (*waiter->condition)())
      waiter->wake.notify_one();
}

void LocalTransport::pullCells(int64_t rank, const Collective &collective,
                               const std::map<int64_t, const void *> &given,
                               void *dst) {
  auto it = collective.cells.find(rank);
  if (it == collective.cells.end() || it->second->empty())
    return;
  const Shape &dstShape = collective.dstShapes.at(rank);
  int64_t elementBytes = byteSize(collective.dtype);
  std::vector<BoxSource> sources;
  for (const Cell &cell : *it->second) {
    sources.clear();
    for (const Cell::Contribution &from : cell.from)
      sources.push_back({given.at(from.peer),
                         &collective.srcShapes.at(from.peer), &from.start});
    if (sources.size() == 1)
      copyBox(dst, dstShape, cell.dstStart, sources[0].data, *sources[0].shape,
              *sources[0].start, cell.size, elementBytes);
    else
      reduceBox(collective.dtype, *collective.reduction, dst, dstShape,
                cell.dstStart, cell.size, sources);
  }
}

/// Two phases: each member reduces its slice of all the sources, then copies
/// the others' results. In between nobody writes what another still reads, even
/// where source and destination are one buffer.
void LocalTransport::allReduce(std::unique_lock<std::mutex> &lock, int64_t rank,
                               Meeting &meeting, Member &self) {
  const Collective &collective = *meeting.collective;
  int64_t time = self.arrived;
  Group &group = *self.group;
  auto size = static_cast<int64_t>(group.ranks.size());
  std::vector<Member *> members;
  for (int64_t peer : group.ranks)
    members.push_back(&meeting.members.at(peer));
  // Nobody comes a second time before all have left the first.
  wait(lock, rank, [&] { return group.arrived >= time * size; });
  lock.unlock();
  int64_t elementBytes = byteSize(collective.dtype);
  int64_t count = elementCount(collective.dstShapes.at(rank));
  auto [begin, end] = sliceOf(count, size, self.position);
  std::vector<const void *> sources;
  for (Member *member : members)
    sources.push_back(static_cast<const char *>(member->src) +
                      begin * elementBytes);
  reduce(collective.dtype, *collective.reduction,
         static_cast<char *>(self.dst) + begin * elementBytes, sources,
         end - begin);

  lock.lock();
  ++group.reduced;
  wakeOthers();
  wait(lock, rank, [&] { return group.reduced >= time * size; });
  lock.unlock();
  for (int64_t position = 0; position < size; ++position) {
    if (position == self.position)
      continue;
    auto [first, last] = sliceOf(count, size, position);
    std::copy_n(static_cast<const char *>(members[position]->dst) +
                    first * elementBytes,
                (last - first) * elementBytes,
                static_cast<char *>(self.dst) + first * elementBytes);
  }
  lock.lock();
  for (Member *member : members)
    if (member != &self)
      ++member->reads;
  wakeOthers();
  wait(lock, rank, [&] { return self.reads >= time * (size - 1); });
}

void LocalTransport::send(int64_t rank, const Collective &collective,
                          Member &self) {
  const auto *bytes = static_cast<const char *>(self.src);
  int64_t size =
      elementCount(collective.srcShapes.at(rank)) * byteSize(collective.dtype);
  self.letters[self.arrived] = {{bytes, bytes + size}, self.readers};
}

void LocalTransport::exchange(std::unique_lock<std::mutex> &lock, int64_t rank,
                              Meeting &meeting, Member &self) {
  int64_t time = ++self.arrived;
  if (self.group)
    ++self.group->arrived;
  bool onlySends = self.readers > 0 && !self.receives && !self.group;
  if (onlySends)
    send(rank, *meeting.collective, self);
  wakeOthers();
  if (self.group) {
    allReduce(lock, rank, meeting, self);
    return;
  }
  if (onlySends)
    return;
  std::vector<Member *> sources;
  for (int64_t peer : self.sources)
    sources.push_back(&meeting.members.at(peer));
  wait(lock, rank, [&] {
    return std::all_of(sources.begin(), sources.end(),
                       [&](Member *member) { return member->arrived >= time; });
  });
  std::map<int64_t, const void *> given{{rank, self.src}};
  for (int64_t peer : self.sources) {
    Member &member = meeting.members.at(peer);
    auto letter = member.letters.find(time);
    given[peer] = letter == member.letters.end() ? member.src
                                                 : letter->second.bytes.data();
  }
  lock.unlock();
  pullCells(rank, *meeting.collective, given, self.dst);
  lock.lock();
  for (Member *member : sources) {
    ++member->reads;
    auto letter = member->letters.find(time);
    if (letter != member->letters.end() && --letter->second.readers == 0)
      member->letters.erase(letter);
  }
  wakeOthers();
  wait(lock, rank, [&] { return self.reads >= time * self.readers; });
}

Traffic LocalTransport::run(int64_t rank, int64_t channel, const void *src,
                            void *dst) {
  Meeting &meeting = meetings.at(channel);
  Member &self = meeting.members.at(rank);
  std::unique_lock lock(mutex);
  if (stopped)
    throw Aborted();
  self.src = src;
  self.dst = dst;
  waiters[rank]->waited = {};
  exchange(lock, rank, meeting, self);
  Traffic traffic = self.traffic;
  traffic.waitedSeconds = waiters[rank]->waited.count();
  return traffic;
}

void LocalTransport::finish(int64_t rank) {
  std::lock_guard lock(mutex);
  waiters[rank]->finished = true;
  if (stopped || !isStuck())
    return;
  // The others wait for this rank, which comes no more; one of them says so.
  for (const auto &waiter : waiters)
    if (waiter->condition)
      throw Error("the ranks wait for one another and none can go on: they "
                  "execute different collectives");
}

void LocalTransport::abort() {
  std::lock_guard lock(mutex);
  stopped = true;
  for (const auto &waiter : waiters)
    waiter->wake.notify_all();
}

void LocalTransport::reset() {
  std::lock_guard lock(mutex);
  stopped = false;
  for (const auto &waiter : waiters) {
    waiter->condition = nullptr;
    waiter->finished = false;
  }
  for (auto &[channel, meeting] : meetings) {
    for (auto &[rank, member] : meeting.members) {
      member.arrived = member.reads = 0;
      member.letters.clear();
    }
    for (const auto &group : meeting.groups)
      group->arrived = group->reduced = 0;
  }
}

std::unique_ptr<Transport>
createLocalTransport(const format::Program &program) {
  return std::make_unique<LocalTransport>(program);
}

} // namespace whale::runtime
