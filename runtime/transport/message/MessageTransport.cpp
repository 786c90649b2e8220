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
// One thread, the communication thread, owns the mover and all transfers. Ranks
// hand their posts to it and sleep in `wait`. Each rank has a queue; only its
// head has messages on their way. The parts of a rank at both ends of a message
// are derived from the program alone (Part.h), so nothing is negotiated.
//
// An all-reduce moves the bytes that its lower bound names: each member reduces
// a slice. It receives the others' parts of it chunk by chunk, reduces a chunk
// in the group's order (the same bits as in one process) while the next one
// arrives, and sends the result to the others. Other channels send to each
// peer one message, straight from and to the buffers where these have its
// elements in one run. Such messages are synchronous: a sender does not run
// ahead of its receivers. In an all-reduce the results of the others are the
// proof that they have begun.
//
// Costs: staging memory for two chunks from each peer, or for one use of the
// channel of other kinds that needs most; one hand-over between two threads
// for each start and each wait.
//
//===----------------------------------------------------------------------===//

#include "transport/message/MessageTransport.h"

#include "CopyBox.h"
#include "transport/Reduce.h"
#include "transport/message/Part.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace whale::runtime {

namespace {
using message::chunkBytes;
using message::chunksAtOnce;
using message::Part;
using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

/// Where ranks are, and what names a message between two of them in one use of
/// a channel.
class Addresses {
public:
  /// Throws Error where `maxTag` is too small for `channels`.
  Addresses(std::vector<int64_t> processOfRank, int64_t channels,
            Mover::Tag maxTag);

  int64_t processOf(int64_t rank) const { return process[rank]; }
  /// Of a channel from 0, and less than the number of them.
  Mover::Tag tagOf(int64_t channel, bool isResult, int64_t from,
                   int64_t to) const {
    auto tag = static_cast<Mover::Tag>(channel) << 1 | Mover::Tag(isResult);
    tag = tag << rankBits | local[from];
    return tag << rankBits | local[to];
  }
  bool hasTags(int64_t channels) const { return channels <= mostChannels; }

private:
  /// By rank; and its number among the ranks of its process.
  std::vector<int64_t> process;
  std::vector<Mover::Tag> local;
  int rankBits = 0;
  int64_t mostChannels = 0;
};

/// The transfer at the head of a rank's queue.
class Transfer {
public:
  Transfer(Mover &mover, const Addresses &addresses)
      : mover(mover), addresses(addresses) {}

  /// `memory`: as many bytes of staging memory as the part needs.
  void begin(const Part &part, const void *src, void *dst, char *memory);
  /// Does what the messages that have ended allow; false where that is nothing.
  bool advance();
  bool isDone() const { return !part; }
  const Part *get() const { return part; }
  void drop() { part = nullptr; }

private:
  /// Of an all-reduce, one other member.
  struct Member {
    int64_t rank;
    size_t position;
    /// Messages with its slice of the source.
    int64_t toIt = 0;
    bool isAwaited = false;
  };

  void beginCells();
  bool finishCells();
  void beginReduction();
  bool advanceReduction();
  void receiveChunk(int64_t chunk);
  void reduceChunk(int64_t chunk);
  Slice chunkOf(const Slice &slice, int64_t chunk) const;
  int64_t chunksIn(const Slice &slice) const;
  char *slotOf(int64_t chunk, size_t member) const;

  void send(int64_t to, bool isResult, const void *data, int64_t bytes,
            bool isSynchronous, int64_t &count);
  void receive(int64_t from, bool isResult, void *data, int64_t bytes,
               int64_t &count);
  Mover &mover;
  const Addresses &addresses;
  const Part *part = nullptr;
  const char *src = nullptr;
  char *dst = nullptr;
  char *staging = nullptr;
  int64_t elementBytes = 0;
  /// Messages that have not ended: sends, and receives apart from those of
  /// chunks, which are counted by slot.
  int64_t sending = 0, receiving = 0;
  std::array<int64_t, chunksAtOnce> chunks = {};
  /// A deque: messages count at their addresses.
  std::deque<Member> members;
  int64_t reduced = 0;
};
} // namespace

Addresses::Addresses(std::vector<int64_t> processOfRank, int64_t channels,
                     Mover::Tag maxTag)
    : process(std::move(processOfRank)) {
  std::map<int64_t, Mover::Tag> counts;
  Mover::Tag most = 0;
  for (int64_t each : process)
    most = std::max(most, local.emplace_back(counts[each]++));
  rankBits = std::bit_width(most);
  mostChannels = (int64_t(maxTag) + 1) >> (2 * rankBits + 1);
  if (!hasTags(channels))
    throw Error("the program has " + std::to_string(channels) +
                " channels, more than messages can name (" +
                std::to_string(mostChannels) + " with " +
                std::to_string(most + 1) + " ranks in a process)");
}

void Transfer::send(int64_t to, bool isResult, const void *data, int64_t bytes,
                    bool isSynchronous, int64_t &count) {
  mover.send(addresses.processOf(to),
             addresses.tagOf(part->channel, isResult, part->rank, to), data,
             bytes, isSynchronous, count);
}

void Transfer::receive(int64_t from, bool isResult, void *data, int64_t bytes,
                       int64_t &count) {
  mover.receive(addresses.processOf(from),
                addresses.tagOf(part->channel, isResult, from, part->rank),
                data, bytes, count);
}

void Transfer::begin(const Part &given, const void *from, void *to,
                     char *memory) {
  part = &given;
  src = static_cast<const char *>(from);
  dst = static_cast<char *>(to);
  staging = memory;
  elementBytes = byteSize(part->collective.dtype);
  sending = receiving = 0;
  if (part->collective.isAllReduce())
    beginReduction();
  else
    beginCells();
}

bool Transfer::advance() {
  if (!part)
    return false;
  return part->collective.isAllReduce() ? advanceReduction() : finishCells();
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

void Transfer::beginCells() {
  for (const Part::Message &message : part->receives)
    receive(message.peer, false,
            message.direct ? dst + *message.direct : staging + message.staging,
            message.bytes, receiving);
  for (const Part::Message &message : part->sends) {
    const char *data = staging + message.staging;
    if (message.direct) {
      data = src + *message.direct;
    } else {
      const Shape &extents = part->collective.srcShapes.at(part->rank);
      for (const Part::Piece &piece : message.pieces)
        copyBox(staging + message.staging + piece.offset, *piece.size,
                Shape(extents.size(), 0), src, extents, *piece.start,
                *piece.size, elementBytes);
    }
    send(message.peer, false, data, message.bytes, /*isSynchronous=*/true,
         sending);
  }
}

bool Transfer::finishCells() {
  if (sending || receiving)
    return false;
  const Collective &collective = part->collective;
  std::vector<BoxSource> boxes;
  for (const Part::Assembly &assembly : part->assemblies) {
    const Cell &cell = *assembly.cell;
    const Shape &dstShape = collective.dstShapes.at(part->rank);
    Shape origin(cell.size.size(), 0);
    boxes.clear();
    for (const Part::Source &source : assembly.sources) {
      if (const Part::Message *message = source.message)
        boxes.push_back(
            {staging + message->staging + source.offset, &cell.size, &origin});
      else
        boxes.push_back(
            {src, &collective.srcShapes.at(part->rank), source.start});
    }
    if (boxes.size() == 1)
      copyBox(dst, dstShape, cell.dstStart, boxes[0].data, *boxes[0].shape,
              *boxes[0].start, cell.size, elementBytes);
    else
      reduceBox(collective.dtype, *collective.reduction, dst, dstShape,
                cell.dstStart, cell.size, boxes);
  }
  part = nullptr;
  return true;
}

//===----------------------------------------------------------------------===//
// All-reduces
//===----------------------------------------------------------------------===//

int64_t Transfer::chunksIn(const Slice &slice) const {
  return (slice.size() * elementBytes + chunkBytes - 1) / chunkBytes;
}

Slice Transfer::chunkOf(const Slice &slice, int64_t chunk) const {
  int64_t elements = chunkBytes / elementBytes;
  int64_t begin = slice.begin + chunk * elements;
  return {begin, std::min(begin + elements, slice.end)};
}

char *Transfer::slotOf(int64_t chunk, size_t member) const {
  int64_t slots = part->stagingBytes / chunksAtOnce;
  return staging + chunk % chunksAtOnce * slots +
         static_cast<int64_t>(member) *
             (slots / static_cast<int64_t>(members.size()));
}

void Transfer::receiveChunk(int64_t chunk) {
  const Slice &own = part->slices[part->position];
  if (chunk >= chunksIn(own))
    return;
  int64_t bytes = chunkOf(own, chunk).size() * elementBytes;
  for (size_t i = 0; i < members.size(); ++i)
    receive(members[i].rank, false, slotOf(chunk, i), bytes,
            chunks[chunk % chunksAtOnce]);
}

void Transfer::beginReduction() {
  chunks = {};
  reduced = 0;
  members.clear();
  for (size_t i = 0; i < part->group.size(); ++i)
    if (i != part->position)
      members.push_back({part->group[i], i});
  for (int64_t chunk = 0; chunk < chunksAtOnce; ++chunk)
    receiveChunk(chunk);
  for (Member &member : members) {
    const Slice &slice = part->slices[member.position];
    for (int64_t chunk = 0; chunk < chunksIn(slice); ++chunk) {
      Slice piece = chunkOf(slice, chunk);
      send(member.rank, false, src + piece.begin * elementBytes,
           piece.size() * elementBytes, /*isSynchronous=*/false, member.toIt);
    }
  }
}

/// Reduces a chunk of the rank's own slice and sends it to all others.
void Transfer::reduceChunk(int64_t chunk) {
  Slice piece = chunkOf(part->slices[part->position], chunk);
  int64_t offset = piece.begin * elementBytes;
  std::vector<const void *> sources(part->group.size());
  sources[part->position] = src + offset;
  for (size_t i = 0; i < members.size(); ++i)
    sources[members[i].position] = slotOf(chunk, i);
  const Collective &collective = part->collective;
  reduce(collective.dtype, *collective.reduction, dst + offset, sources,
         piece.size());
  for (const Member &member : members)
    send(member.rank, true, dst + offset, piece.size() * elementBytes,
         /*isSynchronous=*/false, sending);
}

bool Transfer::advanceReduction() {
  bool isMoved = false;
  int64_t count = chunksIn(part->slices[part->position]);
  while (reduced < count && chunks[reduced % chunksAtOnce] == 0) {
    reduceChunk(reduced);
    receiveChunk(reduced + chunksAtOnce);
    ++reduced;
    isMoved = true;
  }
  // The result may lie where the source did: it is received once that is sent.
  bool isComplete = reduced == count && sending == 0;
  for (Member &member : members) {
    if (!member.isAwaited && member.toIt == 0) {
      const Slice &slice = part->slices[member.position];
      for (int64_t chunk = 0; chunk < chunksIn(slice); ++chunk) {
        Slice piece = chunkOf(slice, chunk);
        receive(member.rank, true, dst + piece.begin * elementBytes,
                piece.size() * elementBytes, receiving);
      }
      member.isAwaited = isMoved = true;
    }
    isComplete &= member.isAwaited;
  }
  if (!isComplete || receiving)
    return isMoved;
  if (members.empty() && dst != src)
    std::copy_n(src, part->slices[0].size() * elementBytes, dst);
  part = nullptr;
  return true;
}

//===----------------------------------------------------------------------===//
// The transport
//===----------------------------------------------------------------------===//

namespace {
class MessageTransport : public Transport {
public:
  MessageTransport(const format::Program &program,
                   const std::vector<int64_t> &processOfRank, int64_t process,
                   std::unique_ptr<Mover> mover);
  ~MessageTransport() override;

  int64_t addChannel(std::shared_ptr<const Collective> collective) override;
  Ticket start(int64_t rank, int64_t channel, const void *src,
               void *dst) override;
  bool test(int64_t rank, const Ticket &ticket) override;
  Traffic wait(int64_t rank, const Ticket &ticket) override;
  void finish(int64_t) override {}
  void abort() override;
  bool aborted() const override { return isStopped; }
  void settle() override;
  void reset() override;

private:
  struct Posted {
    const Part *part;
    const void *src;
    void *dst;
  };
  struct Rank {
    Rank(Mover &mover, const Addresses &addresses) : head(mover, addresses) {}
    // Guarded by the mutex.
    std::condition_variable wake;
    std::vector<Posted> posts;
    int64_t started = 0, left = 0;
    // Of the communication thread.
    std::deque<Posted> queue;
    Transfer head;
    std::vector<char> staging;
    // Of the rank's thread.
    std::unordered_map<int64_t, std::unique_ptr<Part>> parts;
  };

  const Part &partOf(int64_t rank, int64_t channel);
  void work();
  bool takePosts();
  bool advance();
  void checkPeers(const Part &part);
  void fail(const std::string &what);

  const format::Program &program;
  /// Channels that the program does not have.
  std::vector<std::shared_ptr<const Collective>> added;
  const std::unique_ptr<Mover> mover;
  const Addresses addresses;

  std::mutex mutex;
  std::condition_variable settled;
  /// By rank; null for those of other processes.
  std::vector<std::unique_ptr<Rank>> ranks;
  /// Whether some rank has posts.
  std::atomic<bool> hasPosts = false;
  std::atomic<bool> isStopped = false, isEnding = false;
  /// After an abort: whether no message uses a rank's memory any more.
  bool isSettled = false;
  /// Why no transfer can go on; empty while they can.
  std::string error;
  /// When a peer was first seen to be lost; of the communication thread.
  std::optional<Clock::time_point> lossSeen;
  // Last: it uses all others.
  std::thread thread;
};
} // namespace

MessageTransport::MessageTransport(const format::Program &program,
                                   const std::vector<int64_t> &given,
                                   int64_t process,
                                   std::unique_ptr<Mover> givenMover)
    : program(program), mover(std::move(givenMover)),
      addresses(given, firstFree(program), mover->maxTag()) {
  for (int64_t where : given)
    ranks.push_back(where == process ? std::make_unique<Rank>(*mover, addresses)
                                     : nullptr);
  thread = std::thread([this] { work(); });
}

MessageTransport::~MessageTransport() {
  isEnding = true;
  mover->wake();
  thread.join();
}

const Part &MessageTransport::partOf(int64_t rank, int64_t channel) {
  std::unique_ptr<Part> &part = ranks[rank]->parts[channel];
  if (!part) {
    int64_t other = channel - firstFree(program);
    const Collective &collective =
        other < 0 ? *program.channels.at(channel) : *added.at(other);
    part = std::make_unique<Part>(collective, channel, rank);
  }
  return *part;
}

int64_t
MessageTransport::addChannel(std::shared_ptr<const Collective> collective) {
  added.push_back(std::move(collective));
  int64_t last = firstFree(program) + static_cast<int64_t>(added.size()) - 1;
  if (!addresses.hasTags(last + 1))
    throw Error("there are more channels than messages can name");
  return last;
}

Ticket MessageTransport::start(int64_t rank, int64_t channel, const void *src,
                               void *dst) {
  const Part &part = partOf(rank, channel);
  Rank &self = *ranks[rank];
  Ticket ticket{channel, 0};
  {
    Lock lock(mutex);
    if (isStopped)
      throw Aborted();
    self.posts.push_back({&part, src, dst});
    ticket.number = self.started++;
    hasPosts = true;
  }
  mover->wake();
  return ticket;
}

bool MessageTransport::test(int64_t rank, const Ticket &ticket) {
  Lock lock(mutex);
  if (isStopped)
    throw Aborted();
  if (!error.empty())
    throw Error(error);
  return ranks[rank]->left > ticket.number;
}

Traffic MessageTransport::wait(int64_t rank, const Ticket &ticket) {
  Rank &self = *ranks[rank];
  Traffic traffic = partOf(rank, ticket.channel).traffic;
  auto begin = Clock::now();
  Lock lock(mutex);
  self.wake.wait(lock, [&] {
    return isStopped || !error.empty() || self.left > ticket.number;
  });
  if (isStopped)
    throw Aborted();
  if (self.left <= ticket.number)
    throw Error(error);
  traffic.waitedSeconds =
      std::chrono::duration<double>(Clock::now() - begin).count();
  return traffic;
}

void MessageTransport::abort() {
  {
    Lock lock(mutex);
    isStopped = true;
    for (const auto &rank : ranks)
      if (rank)
        rank->wake.notify_all();
  }
  mover->wake();
}

void MessageTransport::settle() {
  Lock lock(mutex);
  if (isStopped)
    settled.wait(lock, [&] { return isSettled; });
}

void MessageTransport::reset() {
  Lock lock(mutex);
  if (isStopped || !error.empty())
    throw Error("the processes have stopped together: they must be started "
                "anew");
  for (const auto &rank : ranks)
    if (rank)
      rank->started = rank->left = 0;
}

//===----------------------------------------------------------------------===//
// The communication thread
//===----------------------------------------------------------------------===//

bool MessageTransport::takePosts() {
  if (!hasPosts.exchange(false))
    return false;
  Lock lock(mutex);
  for (const auto &rank : ranks) {
    if (!rank)
      continue;
    rank->queue.insert(rank->queue.end(), rank->posts.begin(),
                       rank->posts.end());
    rank->posts.clear();
  }
  return true;
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
                  part.collective.kind + " " + std::to_string(part.channel) +
                  " for rank " + std::to_string(peer) + " of process " +
                  std::to_string(addresses.processOf(peer)) +
                  ", which cannot be reached any more: " + loss);
  }
}

bool MessageTransport::advance() {
  bool isMoved = false;
  for (const auto &rank : ranks) {
    if (!rank)
      continue;
    while (true) {
      if (rank->head.isDone()) {
        if (rank->queue.empty())
          break;
        Posted next = rank->queue.front();
        rank->queue.pop_front();
        auto needed = static_cast<size_t>(next.part->stagingBytes);
        if (rank->staging.size() < needed)
          rank->staging.resize(needed);
        rank->head.begin(*next.part, next.src, next.dst, rank->staging.data());
        isMoved = true;
      }
      isMoved |= rank->head.advance();
      if (!rank->head.isDone()) {
        checkPeers(*rank->head.get());
        break;
      }
      Lock lock(mutex);
      ++rank->left;
      rank->wake.notify_all();
    }
  }
  return isMoved;
}

void MessageTransport::fail(const std::string &what) {
  Lock lock(mutex);
  if (error.empty())
    error = what;
  for (const auto &rank : ranks)
    if (rank)
      rank->wake.notify_all();
}

void MessageTransport::work() {
  try {
    while (!isEnding && !isStopped) {
      bool isMoved = takePosts();
      isMoved |= mover->progress();
      isMoved |= advance();
      if (!isMoved)
        mover->sleep();
    }
    if (!isStopped)
      mover->flush();
  } catch (const std::exception &exception) {
    fail(exception.what());
  }
  // Later posts are not begun.
  if (isEnding && !isStopped)
    return;
  while (!isStopped && !isEnding)
    mover->sleep();
  mover->cancel();
  Lock lock(mutex);
  isSettled = true;
  settled.notify_all();
}

std::unique_ptr<Transport>
createMessageTransport(const format::Program &program,
                       const std::vector<int64_t> &processOfRank,
                       int64_t process, std::unique_ptr<Mover> mover) {
  return std::make_unique<MessageTransport>(program, processOfRank, process,
                                            std::move(mover));
}

} // namespace whale::runtime
