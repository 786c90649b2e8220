//===- MessageTransport.cpp - Ranks in several processes ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: posts of the local ranks' parts of channels. Out: messages to and from
// the ranks that they exchange data with, wherever those are.
//
// Each rank has a queue; only its head has messages on their way. The parts of
// a rank at both ends of a message are derived from the program alone (Part.h),
// so nothing is negotiated.
//
// One thread at a time, the driver, uses the mover and all transfers. A rank
// drives in `start`, as long as something moves, and in `wait`, until its
// transfer is done; if another thread drives it hands its post to that one, and
// sleeps. While no rank drives, the communication thread does whenever the
// mover says that there is something to move. It is not woken while no local
// rank has a transfer: what others send waits for the next start. With a mover
// that cannot say so it is always the driver.
//
// With a network, data move as they do without, and each transfer also has a
// time at which it ends on the links (LinkClock.h), before which `wait` does
// not return.
//
// Costs: those of transfers (Transfer.cpp); a hand-over between two threads
// for each start and each wait of a rank that does not drive.
//
//===----------------------------------------------------------------------===//

#include "transport/message/MessageTransport.h"

#include "transport/ChannelNumbers.h"
#include "transport/LinkTimes.h"
#include "transport/message/LinkClock.h"
#include "transport/message/Transfer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace whale::runtime {

namespace {
using message::Addresses;
using message::LinkClock;
using message::Part;
using message::Transfer;
using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

class MessageTransport : public Transport {
public:
  MessageTransport(const RankMap &map, std::unique_ptr<Mover> mover,
                   const Network &network);
  ~MessageTransport() override;

  int64_t addChannels(const Channels &channels, int64_t end) override {
    return numbers.add(channels, end);
  }
  void dropChannels(int64_t first) override { numbers.drop(first); }
  Ticket start(int64_t rank, int64_t channel,
               std::span<const PartBuffers> parts) override;
  Ticket startMessages(int64_t rank, std::span<const RankMessage> sends,
                       std::span<const RankMessage> receives) override;
  bool test(int64_t rank, const Ticket &ticket) override;
  Traffic wait(int64_t rank, const Ticket &ticket) override;
  void finish(int64_t) override {}
  void abort() override;
  bool aborted() const override { return isStopped; }
  bool settle() override;
  void reset() override;

private:
  struct Posted {
    const Part *part;
    std::vector<PartBuffers> buffers;
    double time;
  };
  struct Rank {
    Rank(Mover &mover, const Addresses &addresses)
        : head(mover, addresses), links(mover, addresses) {}
    // Guarded by the mutex.
    std::condition_variable wake;
    std::vector<Posted> posts;
    int64_t started = 0, left = 0;
    /// Whether it sleeps in `wait`, with a transfer to be driven.
    bool isWaiting = false;
    /// When those that were not waited for end on the links, by number.
    std::unordered_map<int64_t, double> ends;
    // Of the driver.
    std::deque<Posted> queue;
    /// What `head` and `links` are at; null for nothing.
    const Part *part = nullptr;
    Transfer head;
    LinkClock links;
    std::vector<char> staging;
    // Of the rank's thread.
    std::unordered_map<int64_t, std::unique_ptr<Part>> parts;
    /// Of transfers without a channel, by number, until they were waited for.
    std::unordered_map<int64_t, std::unique_ptr<Part>> exchanges;
  };

  const Part &partOf(int64_t rank, int64_t channel);
  Ticket post(int64_t rank, const Part &part, Part::Buffers buffers);
  void work();
  template <typename IsEnough>
  void drive(Lock &lock, const IsEnough &isEnough);
  bool moveAll();
  bool takePosts();
  bool advance();
  bool isUnderWay() const;
  void leave(Rank &rank);
  bool isOver(const Rank &rank, const Ticket &ticket) const;
  std::string nameOf(const Part &part) const;
  void checkPeers(const Part &part);
  void fail(const std::string &what);

  ChannelNumbers numbers;
  const Network network;
  const std::unique_ptr<Mover> mover;
  const Addresses addresses;

  std::mutex mutex;
  /// Whether some thread is the driver; the communication thread learns of an
  /// end by `free`.
  bool isDriven;
  std::condition_variable free, settled;
  /// By rank; null for those of other processes.
  std::vector<std::unique_ptr<Rank>> ranks;
  /// Whether some rank has posts.
  std::atomic<bool> hasPosts = false;
  std::atomic<bool> isStopped = false, isEnding = false;
  /// After an abort: whether messages use no rank's memory any more; unset
  /// until that is known.
  std::optional<bool> isSettled;
  /// Why no transfer can go on; empty while they can.
  std::string error;
  /// When a peer was first seen to be lost; of the driver.
  std::optional<Clock::time_point> lossSeen;
  // Last: it uses all others.
  std::thread thread;
};
} // namespace

MessageTransport::MessageTransport(const RankMap &map,
                                   std::unique_ptr<Mover> givenMover,
                                   const Network &network)
    : network(network), mover(std::move(givenMover)),
      addresses(map.processOf, mover->maxTag()),
      isDriven(!mover->isWatchable()) {
  for (size_t rank = 0; rank < map.processOf.size(); ++rank)
    ranks.push_back(map.isLocal(rank)
                        ? std::make_unique<Rank>(*mover, addresses)
                        : nullptr);
  thread = std::thread([this] { work(); });
}

MessageTransport::~MessageTransport() {
  {
    Lock lock(mutex);
    isEnding = true;
    free.notify_all();
  }
  mover->wake();
  mover->wakeWatch();
  thread.join();
}

const Part &MessageTransport::partOf(int64_t rank, int64_t channel) {
  std::unique_ptr<Part> &part = ranks[rank]->parts[channel];
  if (!part) {
    const Collective &collective = numbers.at(channel);
    part = std::make_unique<Part>(collective, channel, rank);
    if (network)
      part->linkSeconds = linkSeconds(collective, network).at(rank);
  }
  return *part;
}

Ticket MessageTransport::start(int64_t rank, int64_t channel,
                               std::span<const PartBuffers> parts) {
  return post(rank, partOf(rank, channel), parts);
}

Ticket MessageTransport::startMessages(int64_t rank,
                                       std::span<const RankMessage> sends,
                                       std::span<const RankMessage> receives) {
  // It is the next to be started: only the rank's thread starts any.
  Rank &self = *ranks[rank];
  std::unique_ptr<Part> &part = self.exchanges[self.started];
  part = std::make_unique<Part>(rank, sends, receives);
  return post(rank, *part, {});
}

Ticket MessageTransport::post(int64_t rank, const Part &part,
                              Part::Buffers buffers) {
  Rank &self = *ranks[rank];
  Lock lock(mutex);
  if (isStopped)
    throw Aborted();
  double time = network ? LinkClock::now() : 0;
  self.posts.push_back({&part, {buffers.begin(), buffers.end()}, time});
  Ticket ticket{part.channel, self.started++};
  hasPosts = true;
  if (isDriven) {
    lock.unlock();
    mover->wake();
  } else {
    drive(lock, [] { return true; });
  }
  return ticket;
}

/// Of a transfer that has left the queue: whether it has on the links, too.
bool MessageTransport::isOver(const Rank &rank, const Ticket &ticket) const {
  auto end = rank.ends.find(ticket.number);
  return end == rank.ends.end() || LinkClock::now() >= end->second;
}

bool MessageTransport::test(int64_t rank, const Ticket &ticket) {
  Lock lock(mutex);
  if (isStopped)
    throw Aborted();
  if (!error.empty())
    throw Error(error);
  const Rank &self = *ranks[rank];
  return self.left > ticket.number && isOver(self, ticket);
}

Traffic MessageTransport::wait(int64_t rank, const Ticket &ticket) {
  Rank &self = *ranks[rank];
  bool isExchange = ticket.channel == Ticket::ofMessages;
  Traffic traffic = (isExchange ? *self.exchanges.at(ticket.number)
                                : partOf(rank, ticket.channel))
                        .traffic;
  auto begin = Clock::now();
  Lock lock(mutex);
  auto isDone = [&] { return self.left > ticket.number; };
  while (!isStopped && error.empty() && !isDone()) {
    if (!isDriven) {
      drive(lock, isDone);
      continue;
    }
    self.isWaiting = true;
    self.wake.wait(lock);
    self.isWaiting = false;
  }
  if (isStopped)
    throw Aborted();
  if (!isDone())
    throw Error(error);
  if (isExchange)
    self.exchanges.erase(ticket.number);
  auto moved = Clock::now();
  traffic.waitedSeconds = std::chrono::duration<double>(moved - begin).count();
  while (!isOver(self, ticket)) {
    // A clock has no more; it is asked again then.
    constexpr double longest = 1e6;
    std::chrono::duration<double> left(
        std::min(self.ends[ticket.number] - LinkClock::now(), longest));
    self.wake.wait_for(lock, left, [&] { return isStopped.load(); });
    if (isStopped)
      throw Aborted();
  }
  traffic.linkSeconds =
      std::chrono::duration<double>(Clock::now() - moved).count();
  self.ends.erase(ticket.number);
  return traffic;
}

void MessageTransport::abort() {
  {
    Lock lock(mutex);
    isStopped = true;
    for (const auto &rank : ranks)
      if (rank)
        rank->wake.notify_all();
    free.notify_all();
  }
  mover->wake();
  mover->wakeWatch();
}

bool MessageTransport::settle() {
  Lock lock(mutex);
  if (!isStopped)
    return true;
  settled.wait(lock, [&] { return isSettled.has_value(); });
  return *isSettled;
}

void MessageTransport::reset() {
  Lock lock(mutex);
  if (isStopped || !error.empty())
    throw Error("the processes have stopped together: they must be started "
                "anew");
  for (const auto &rank : ranks)
    if (rank) {
      rank->started = rank->left = 0;
      rank->ends.clear();
      rank->exchanges.clear();
    }
  numbers.clean([this](int64_t number) {
    for (const auto &rank : ranks)
      if (rank)
        rank->parts.erase(number);
  });
}

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

bool MessageTransport::takePosts() {
  if (!hasPosts.exchange(false))
    return false;
  Lock lock(mutex);
  for (const auto &rank : ranks) {
    if (!rank)
      continue;
    std::ranges::move(rank->posts, std::back_inserter(rank->queue));
    rank->posts.clear();
  }
  return true;
}

/// "all_reduce 3", by the number in the program.
std::string MessageTransport::nameOf(const Part &part) const {
  const std::string &kind = part.collective.kind;
  return part.hasChannel()
             ? kind + " " + std::to_string(numbers.givenOf(part.channel))
             : kind;
}

/// Throws where no message can come from a rank that a part waits for. Whoever
/// watches the processes knows more about why one ended, and is given the time
/// to say so first.
void MessageTransport::checkPeers(const Part &part) {
  constexpr std::chrono::seconds patience(2);
  for (int64_t peer : part.peers) {
    const std::string &loss = mover->lossOf(addresses.processOf(peer));
    if (loss.empty())
      continue;
    if (!lossSeen)
      lossSeen = Clock::now();
    if (Clock::now() - *lossSeen > patience)
      throw Error("rank " + std::to_string(part.rank) + " waits in " +
                  nameOf(part) + " for rank " + std::to_string(peer) +
                  " of process " + std::to_string(addresses.processOf(peer)) +
                  ", which cannot be reached any more: " + loss);
  }
}

bool MessageTransport::advance() {
  bool isMoved = false;
  for (const auto &rank : ranks) {
    if (!rank)
      continue;
    while (true) {
      if (!rank->part) {
        if (rank->queue.empty())
          break;
        Posted next = std::move(rank->queue.front());
        rank->queue.pop_front();
        auto needed = static_cast<size_t>(next.part->stagingBytes);
        if (rank->staging.size() < needed)
          rank->staging.resize(needed);
        rank->part = next.part;
        rank->head.begin(*next.part, next.buffers, rank->staging.data());
        if (next.part->linkSeconds)
          rank->links.begin(*next.part, next.time);
        isMoved = true;
      }
      isMoved |= rank->head.advance();
      bool isKnown = rank->links.isKnown();
      if (!rank->head.isDone() || !isKnown) {
        checkPeers(*rank->part);
        break;
      }
      leave(*rank);
    }
  }
  return isMoved;
}

/// The transfer at the head has ended, but for its time on the links.
void MessageTransport::leave(Rank &rank) {
  const Part &part = *std::exchange(rank.part, nullptr);
  Lock lock(mutex);
  if (part.linkSeconds)
    rank.ends[rank.left] = rank.links.end(part);
  ++rank.left;
  rank.wake.notify_all();
}

void MessageTransport::fail(const std::string &what) {
  Lock lock(mutex);
  if (error.empty())
    error = what;
  for (const auto &rank : ranks)
    if (rank)
      rank->wake.notify_all();
  mover->wakeWatch();
}

bool MessageTransport::moveAll() {
  bool isMoved = takePosts();
  isMoved |= mover->progress();
  isMoved |= advance();
  return isMoved;
}

/// Whether a message of a local rank may still have to be moved.
bool MessageTransport::isUnderWay() const {
  return std::ranges::any_of(
      ranks, [](const auto &rank) { return rank && rank->part; });
}

/// Makes this thread the driver until `isEnough`. With the lock, which is open
/// meanwhile.
template <typename IsEnough>
void MessageTransport::drive(Lock &lock, const IsEnough &isEnough) {
  // How often to look for more before the communication thread goes on.
  constexpr int mostLooks = 4;
  // How often to let others have the processor before a sleep: where processes
  // share cores, they may be who sends; a sleep and its end cost more.
  constexpr int mostYields = 100;
  isDriven = true;
  do {
    lock.unlock();
    try {
      mover->disarm();
      for (int looks = 0, yields = 0; !isStopped && looks < mostLooks;) {
        bool isMoved = moveAll();
        if (isMoved)
          yields = 0;
        if (!isEnough()) {
          if (!isMoved && yields < mostYields) {
            ++yields;
            std::this_thread::yield();
          } else if (!isMoved) {
            mover->sleep();
          }
          continue;
        }
        if (!isUnderWay() || (!isMoved && mover->arm()))
          break;
        if (++looks == mostLooks)
          mover->wakeWatch();
      }
    } catch (const std::exception &exception) {
      fail(exception.what());
    }
    lock.lock();
  } while (hasPosts && !isStopped && error.empty());
  isDriven = false;
  free.notify_one();
  for (const auto &rank : ranks)
    if (rank && rank->isWaiting)
      return rank->wake.notify_one();
}

//===----------------------------------------------------------------------===//
// The communication thread
//===----------------------------------------------------------------------===//

void MessageTransport::work() {
  Lock lock(mutex);
  auto isOver = [&] { return isStopped || isEnding || !error.empty(); };
  if (!mover->isWatchable())
    drive(lock, [&] { return isEnding.load(); });
  while (!isOver()) {
    lock.unlock();
    mover->watch();
    lock.lock();
    free.wait(lock, [&] { return !isDriven || isOver(); });
    if (!isOver())
      drive(lock, [] { return true; });
  }
  // From here on it drives to the end.
  free.wait(lock, [&] { return !isDriven && (isStopped || isEnding); });
  isDriven = true;
  lock.unlock();
  try {
    if (!isStopped && error.empty())
      return mover->flush();
  } catch (const std::exception &exception) {
    return fail(exception.what());
  }
  bool isCancelled = mover->cancel();
  lock.lock();
  isSettled = isCancelled;
  settled.notify_all();
}

std::unique_ptr<Transport> createMessageTransport(const RankMap &map,
                                                  std::unique_ptr<Mover> mover,
                                                  const Network &network) {
  return std::make_unique<MessageTransport>(map, std::move(mover), network);
}

} // namespace whale::runtime
