//===- LocalTransport.cpp - Ranks as threads of a process -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// There are no threads beside those of the ranks: a rank moves its own data
// while it is inside `wait` or `test`, that of all its transfers that have
// begun, in the order of its queue. A rank that has to wait for others moves
// the data of those that are outside, at their work, so that no transfer waits
// for an instruction to end. No rank spins: ranks may be many more than cores.
// A rank that changes something takes those transfers out of the queues that
// are done by it, and wakes the ranks that can go on. When no rank is left that
// runs, or has been woken, none will ever go on: that is an error, not a hang.
// With a network, data move as they do without. Each part also has a time at
// which it ends on the links, made from the times of the starts alone, before
// which `wait` does not return.
//
// Cost: elements move from buffer to buffer, once from each source, never under
// the lock. One lock guards all state; under it a rank visits all its peers
// when it reaches a transfer, and in an all-reduce twice more: quadratic in the
// ranks of a group, and before it waits it visits all ranks. A rank that waits
// is woken once for each thing that it can do. `reset`, before each run, visits
// all members of all channels where the run before did not come to its end.
//
//===----------------------------------------------------------------------===//

#include "transport/ChannelNumbers.h"
#include "transport/local/Member.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace whale::runtime {

namespace {
using local::Channel;
using local::Member;
using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

class LocalTransport : public Transport {
public:
  LocalTransport(size_t ranks, const Network &network);

  int64_t addChannels(const Channels &channels, int64_t end) override;
  void dropChannels(int64_t first) override { numbers.drop(first); }
  Ticket start(int64_t rank, int64_t channel,
               std::span<const PartBuffers> parts) override;
  Ticket startMessages(int64_t rank, std::span<const RankMessage> sends,
                       std::span<const RankMessage> receives) override;
  bool test(int64_t rank, const Ticket &ticket) override;
  Traffic wait(int64_t rank, const Ticket &ticket) override;
  void finish(int64_t rank) override;
  void abort() override;
  bool aborted() const override { return stopped; }
  void reset() override;

private:
  enum class State : uint8_t {
    Running,
    Blocked,  ///< in `wait`, and others must do something first
    Sleeping, ///< in `wait`, until a time of the network
    Finished,
  };
  struct Posted {
    Member *member;
    std::vector<PartBuffers> buffers;
    double time; ///< of the network's clock
  };
  struct Rank {
    std::condition_variable wake;
    State state = State::Running;
    /// In `wait` or `test`, and moves its data itself.
    bool isInside = false;
    /// The data of the transfer at the head are being moved.
    bool isMoving = false;
    /// The number of the ticket that it waits for.
    int64_t awaited = 0;
    std::deque<Posted> queue;
    /// Transfers that it has started, and that have left its queue.
    int64_t started = 0, left = 0;
    /// When the last of them ended on the links, and those that it did not wait
    /// for, by number.
    double linksFree = 0;
    std::unordered_map<int64_t, double> ends;
    /// Of transfers without a channel, by number, until they were waited for.
    std::unordered_map<int64_t, Member> exchanges;

    Member *head() const {
      return queue.empty() ? nullptr : queue.front().member;
    }
    /// Whether there are data to be moved.
    bool canMove() const {
      return head() && head()->isActionable() && !isMoving;
    }
  };
  /// While a rank is in `wait` or `test`; the lock is held at both ends.
  struct Inside {
    explicit Inside(Rank &rank) : rank(rank) { rank.isInside = true; }
    ~Inside() { rank.isInside = false; }
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;
    Rank &rank;
  };

  Ticket post(int64_t rank, int64_t channel, Posted posted);
  void reach(Rank &rank);
  void meet(Member &self);
  void leave(Rank &rank);
  void followUp();
  Rank *findHelper(const Rank &rank);
  void wake(Rank &rank);
  void finishStage(Member &member);
  void moveHead(Lock &lock, Rank &rank);
  void progress(Lock &lock, Rank &rank);
  bool help(Lock &lock);
  void block(Lock &lock, Rank &rank);
  void sleep(Lock &lock, Rank &rank, double end);
  [[noreturn]] void failStuck();

  /// Seconds since the start of the run; 0 without a network.
  double now() const {
    if (!network)
      return 0;
    return std::chrono::duration<double>(Clock::now() - origin).count();
  }
  /// When a transfer that has left the queue ends on the links.
  double endOf(const Rank &rank, const Ticket &ticket) const {
    return network ? rank.ends.at(ticket.number) : 0;
  }

  /// The number of a local slice, which waits for nobody and has no place in
  /// the queue.
  static constexpr int64_t atOnce = -1;

  const Network network;
  std::mutex mutex;
  std::atomic<bool> stopped = false;
  /// Whether ranks may have left channels in the middle of a transfer.
  bool isBroken = false;
  Clock::time_point origin;
  ChannelNumbers numbers;
  std::unordered_map<int64_t, Channel> channels;
  std::vector<std::unique_ptr<Rank>> ranks;
  /// Ranks that are running or sleeping.
  size_t awake = 0;
  /// Ranks whose transfer at the head has changed.
  std::vector<Rank *> changed;
};
} // namespace

LocalTransport::LocalTransport(size_t count, const Network &network)
    : network(network) {
  for (size_t i = 0; i < count; ++i)
    ranks.push_back(std::make_unique<Rank>());
  reset();
}

/// The transfer at the front of a queue is the rank's next one.
void LocalTransport::reach(Rank &rank) {
  Posted &posted = rank.queue.front();
  Member &self = *posted.member;
  self.buffers = std::move(posted.buffers);
  ++self.use;
  self.arrived = self.reduced = self.reads = 0;
  self.stage = self.firstStage;
  self.ready = self.begins = std::max(posted.time, rank.linksFree);
  changed.push_back(&rank);
  if (!self.peers)
    return meet(self);
  for (Member *peer : *self.peers) {
    if (peer->use != self.use)
      continue;
    ++self.arrived;
    self.begins = std::max(self.begins, peer->ready);
    if (peer == &self)
      continue;
    ++peer->arrived;
    peer->begins = std::max(peer->begins, self.ready);
    if (peer->hasBegun())
      changed.push_back(ranks[peer->rank].get());
  }
}

/// Finds those who have come before with messages for this one, or from it.
void LocalTransport::meet(Member &self) {
  self.arrived = 1;
  for (auto &[rank, partner] : self.partners) {
    Member *peer = ranks[rank]->head();
    if (!peer || peer->peers)
      continue;
    auto found = peer->partners.find(self.rank);
    // One that is there has been met, and waits for others.
    if (found == peer->partners.end() || found->second)
      continue;
    partner = peer;
    found->second = &self;
    auto add = [](Member &to, Member &from) {
      ++to.arrived;
      to.begins = std::max(to.begins, from.ready);
      if (std::ranges::any_of(to.receives, [&](const RankMessage &message) {
            return message.peer == from.rank;
          }))
        to.sources.push_back(&from);
    };
    add(self, *peer);
    add(*peer, self);
    changed.push_back(ranks[rank].get());
  }
}

void LocalTransport::leave(Rank &rank) {
  const Member &member = *rank.head();
  if (network)
    rank.ends[rank.left] = rank.linksFree = member.begins + member.linkSeconds;
  rank.queue.pop_front();
  ++rank.left;
  if (!rank.queue.empty())
    reach(rank);
}

/// A rank that waits for one that is outside, and can move its data for it.
LocalTransport::Rank *LocalTransport::findHelper(const Rank &rank) {
  if (rank.isInside || !rank.canMove())
    return nullptr;
  const Member &member = *rank.head();
  for (const Member *peer : member.peers ? *member.peers : member.sources)
    if (ranks[peer->rank]->state == State::Blocked)
      return ranks[peer->rank].get();
  return nullptr;
}

void LocalTransport::wake(Rank &rank) {
  awake += rank.state == State::Blocked;
  rank.state = State::Running;
  rank.wake.notify_one();
}

/// Follows up all changes, and wakes the ranks that can go on.
void LocalTransport::followUp() {
  while (!changed.empty()) {
    Rank &rank = *changed.back();
    changed.pop_back();
    if (rank.head() && rank.head()->isDone())
      leave(rank);
    bool isAsleep =
        rank.state == State::Blocked || rank.state == State::Sleeping;
    bool isAwaited = rank.state == State::Blocked && rank.left > rank.awaited;
    if (isAsleep && (isAwaited || rank.canMove()))
      wake(rank);
    else if (Rank *helper = findHelper(rank))
      wake(*helper);
  }
}

/// A member has done what its stage says.
void LocalTransport::finishStage(Member &self) {
  auto isRead = [&](Member *member) {
    ++member->reads;
    changed.push_back(ranks[member->rank].get());
  };
  switch (self.stage) {
  case Member::Stage::Pull:
    self.stage = Member::Stage::Nothing;
    for (Member *source : self.sources)
      isRead(source);
    break;
  case Member::Stage::Reduce:
    self.stage = Member::Stage::Copy;
    for (Member *peer : *self.peers)
      if (++peer->reduced == peer->slices)
        changed.push_back(ranks[peer->rank].get());
    break;
  case Member::Stage::Copy:
    self.stage = Member::Stage::Nothing;
    for (Member *peer : *self.peers)
      if (peer != &self && peer->readers > 0)
        isRead(peer);
    break;
  case Member::Stage::Nothing:
    break;
  }
  changed.push_back(ranks[self.rank].get());
  followUp();
}

/// Moves the data of the transfer at the head of a rank's queue.
void LocalTransport::moveHead(Lock &lock, Rank &rank) {
  Member &member = *rank.head();
  rank.isMoving = true;
  lock.unlock();
  try {
    member.move();
  } catch (...) {
    lock.lock();
    rank.isMoving = false;
    throw;
  }
  lock.lock();
  rank.isMoving = false;
  finishStage(member);
}

void LocalTransport::progress(Lock &lock, Rank &rank) {
  while (true) {
    if (stopped)
      throw Aborted();
    if (!rank.canMove())
      return;
    moveHead(lock, rank);
  }
}

/// Moves data of a rank that is outside; false if there are none.
bool LocalTransport::help(Lock &lock) {
  for (const auto &rank : ranks)
    if (!rank->isInside && rank->canMove()) {
      moveHead(lock, *rank);
      return true;
    }
  return false;
}

void LocalTransport::failStuck() {
  isBroken = true;
  throw Error("the ranks wait for one another and none can go on: they "
              "execute different collectives");
}

/// Returns when another rank has woken this one.
void LocalTransport::block(Lock &lock, Rank &rank) {
  if (awake == 1)
    failStuck();
  --awake;
  rank.state = State::Blocked;
  rank.wake.wait(lock, [&] { return stopped || rank.state != State::Blocked; });
}

/// Returns when the links have ended a transfer, or the rank has been woken.
void LocalTransport::sleep(Lock &lock, Rank &rank, double end) {
  // A clock has no more; the rank asks again then.
  constexpr double longest = 1e6;
  std::chrono::duration<double> left(std::min(end - now(), longest));
  rank.state = State::Sleeping;
  rank.wake.wait_until(
      lock, Clock::now() + std::chrono::duration_cast<Clock::duration>(left),
      [&] { return stopped || rank.state != State::Sleeping; });
  rank.state = State::Running;
}

int64_t LocalTransport::addChannels(const Channels &added, int64_t end) {
  Lock lock(mutex);
  int64_t first = numbers.add(added, end);
  for (const auto &[number, collective] : added)
    channels.try_emplace(first + number, *collective, network);
  return first;
}

Ticket LocalTransport::start(int64_t rank, int64_t channel,
                             std::span<const PartBuffers> parts) {
  Lock lock(mutex);
  Member &member = channels.at(channel).at(rank);
  if (member.collective->isLocalSlice()) {
    lock.unlock();
    member.buffers.assign(parts.begin(), parts.end());
    member.stage = member.firstStage;
    member.move();
    return {channel, atOnce};
  }
  return post(rank, channel, {&member, {parts.begin(), parts.end()}, now()});
}

Ticket LocalTransport::startMessages(int64_t rank,
                                     std::span<const RankMessage> sends,
                                     std::span<const RankMessage> receives) {
  Lock lock(mutex);
  Rank &self = *ranks[rank];
  Member &member = self.exchanges[self.started];
  member = local::messagesOf(rank, sends, receives);
  return post(rank, Ticket::ofMessages, {&member, {}, now()});
}

Ticket LocalTransport::post(int64_t rank, int64_t channel, Posted posted) {
  Rank &self = *ranks[rank];
  if (stopped)
    throw Aborted();
  self.queue.push_back(std::move(posted));
  if (self.queue.size() == 1) {
    reach(self);
    followUp();
  }
  return {channel, self.started++};
}

bool LocalTransport::test(int64_t rank, const Ticket &ticket) {
  if (ticket.number == atOnce)
    return true;
  Rank &self = *ranks[rank];
  Lock lock(mutex);
  Inside inside(self);
  progress(lock, self);
  return self.left > ticket.number && now() >= endOf(self, ticket);
}

Traffic LocalTransport::wait(int64_t rank, const Ticket &ticket) {
  Rank &self = *ranks[rank];
  Lock lock(mutex);
  Inside inside(self);
  bool isExchange = ticket.channel == Ticket::ofMessages;
  Traffic traffic = (isExchange ? self.exchanges.at(ticket.number)
                                : channels.at(ticket.channel).at(rank))
                        .traffic;
  if (ticket.number == atOnce)
    return traffic;
  Clock::duration waited{}, slept{};
  self.awaited = ticket.number;
  while (true) {
    progress(lock, self);
    if (self.left <= ticket.number) {
      auto begin = Clock::now();
      if (!help(lock))
        block(lock, self);
      waited += Clock::now() - begin;
    } else if (double end = endOf(self, ticket); now() < end) {
      auto begin = Clock::now();
      sleep(lock, self, end);
      slept += Clock::now() - begin;
    } else {
      break;
    }
  }
  self.ends.erase(ticket.number);
  if (isExchange)
    self.exchanges.erase(ticket.number);
  traffic.waitedSeconds = std::chrono::duration<double>(waited).count();
  traffic.linkSeconds = std::chrono::duration<double>(slept).count();
  return traffic;
}

void LocalTransport::finish(int64_t rank) {
  Lock lock(mutex);
  ranks[rank]->state = State::Finished;
  // The others wait for this rank, which comes no more; it says so for them.
  if (--awake == 0 && !stopped &&
      std::any_of(ranks.begin(), ranks.end(), [](const auto &other) {
        return other->state == State::Blocked;
      }))
    failStuck();
}

void LocalTransport::abort() {
  Lock lock(mutex);
  stopped = isBroken = true;
  for (const auto &rank : ranks)
    rank->wake.notify_all();
}

void LocalTransport::reset() {
  Lock lock(mutex);
  stopped = false;
  origin = Clock::now();
  awake = ranks.size();
  changed.clear();
  numbers.clean([this](int64_t number) { channels.erase(number); });
  if (std::exchange(isBroken, false))
    for (auto &[number, channel] : channels)
      channel.reset();
  for (const auto &rank : ranks) {
    rank->state = State::Running;
    rank->isInside = rank->isMoving = false;
    rank->queue.clear();
    rank->started = rank->left = 0;
    rank->linksFree = 0;
    rank->ends.clear();
    rank->exchanges.clear();
  }
}

std::unique_ptr<Transport> createLocalTransport(size_t ranks,
                                                const Network &network) {
  return std::make_unique<LocalTransport>(ranks, network);
}

} // namespace whale::runtime
