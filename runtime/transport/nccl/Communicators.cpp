//===- Communicators.cpp - NCCL's communicators of ranks ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: groups of ranks, and groups of sends and receives between them. Out:
// calls of NCCL. A communicator is known by its group, and made once, whichever
// transports need it. Processes tell each other, as text, which GPU each of
// their ranks is on, and the names of the communicators whose first rank they
// have. Each call of NCCL returns at once; how far a communicator is has to be
// asked for (ready).
//
// Cost: connecting exchanges two texts between all processes, and makes one
// communicator after the other, each of which waits for its ranks. A group of
// messages is a call for each, and a wait until NCCL has taken them; each peer
// is searched in the group, which is quadratic in it where all send to all.
// Asking for errors asks each communicator of the rank.
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/Communicators.h"

#include "cuda/Backoff.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <utility>

namespace whale::runtime::nccl {

static std::string hexOf(std::span<const char> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (char each : bytes) {
    auto byte = static_cast<unsigned char>(each);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

/// Calls `visit` with the two words of each line of all processes.
static void forEachLine(const std::vector<std::string> &texts,
                        const std::function<void(const std::string &,
                                                 const std::string &)> &visit) {
  for (const std::string &text : texts) {
    std::istringstream words(text);
    for (std::string first, second; words >> first >> second;)
      visit(first, second);
  }
}

static std::string nameOf(const Group &group) {
  std::string name;
  for (int64_t rank : group)
    name += (name.empty() ? "" : ",") + std::to_string(rank);
  return name;
}

/// Makes a communicator.
template <typename Make>
static void nameErrors(const Group &group, const Make &make) {
  try {
    make();
  } catch (const Error &error) {
    throw Error("the communicator of the ranks " + nameOf(group) +
                " cannot be made: " + error.what());
  }
}

static void keepFirstError(cuda::NcclStatus &status, cuda::NcclStatus next) {
  if (next && (!status || status == cuda::kNcclInProgress))
    status = next;
}

Communicators::Communicators(const cuda::Libraries &libraries,
                             std::vector<std::shared_ptr<cuda::Gpu>> given,
                             Exchange givenExchange)
    : libraries(libraries), gpus(std::move(given)),
      exchange(std::move(givenExchange)), gpuOfRank(gpus.size()),
      ofRank(gpus.size()) {
  // NCCL takes processes that are told different ones for different hosts, so
  // that they may share a GPU.
  std::string_view host;
  if (const char *given = std::getenv("NCCL_HOSTID"))
    host = given;
  std::ostringstream mine;
  for (size_t rank = 0; rank < gpus.size(); ++rank)
    if (gpus[rank])
      mine << rank << ' ' << hexOf(gpus[rank]->id().bytes) << '-' << hexOf(host)
           << '\n';
  forEachLine(exchange(mine.str()),
              [&](const std::string &rank, const std::string &id) {
                gpuOfRank.at(std::stoul(rank)) = id;
              });
}

/// Begins with what a process says that cannot go on.
static constexpr char refusalMark = '!';

/// What each process says: the lines that `make` puts, or why it cannot. Sets
/// `refusal` to the first reason of all.
template <typename Make>
static std::vector<std::string>
sayTogether(const Exchange &exchange, std::string &refusal, const Make &make) {
  std::ostringstream mine;
  std::string failure;
  try {
    make(mine);
  } catch (const Error &error) {
    failure = refusalMark + std::string(error.what());
  }
  std::vector<std::string> all =
      exchange(failure.empty() ? mine.str() : failure);
  for (const std::string &each : all)
    if (refusal.empty() && each.starts_with(refusalMark))
      refusal = each.substr(1);
  return all;
}

std::string Communicators::connect(const Groups &wanted) {
  Groups groups;
  std::ranges::set_difference(wanted, connected,
                              std::inserter(groups, groups.end()));
  std::string refusal;
  std::vector<std::string> all =
      sayTogether(exchange, refusal, [&](std::ostream &mine) {
        if (!groups.empty() && std::ranges::any_of(gpus, [](const auto &gpu) {
              return gpu != nullptr;
            }))
          nccl = &cuda::openNccl(libraries);
        for (const Group &group : groups) {
          if (!gpus[group[0]])
            continue;
          cuda::CommunicatorId id;
          check(nccl->getUniqueId.symbol, nccl->getUniqueId.function(&id));
          mine << nameOf(group) << ' ' << hexOf(id.bytes) << '\n';
        }
      });
  if (!refusal.empty())
    return refusal;
  std::map<std::string, cuda::CommunicatorId> ids;
  forEachLine(all, [&](const std::string &name, const std::string &id) {
    for (size_t i = 0; i < sizeof(cuda::CommunicatorId); ++i)
      ids[name].bytes[i] =
          static_cast<char>(std::stoi(id.substr(2 * i, 2), nullptr, 16));
  });
  std::vector<Group> own;
  std::ranges::copy_if(groups, std::back_inserter(own), [&](const Group &each) {
    return std::ranges::any_of(
        each, [&](int64_t rank) { return gpus[rank] != nullptr; });
  });
  // None is ready before all have come: whoever cannot says so before.
  sayTogether(exchange, refusal, [&](std::ostream &) {
    if (!own.empty())
      nameErrors(own.front(), [&] { begin(own.front(), ids); });
  });
  if (!refusal.empty()) {
    if (!own.empty())
      drop(own.front());
    return refusal;
  }
  // Also those that are not complete have to be ended.
  connected.insert(groups.begin(), groups.end());
  wereEnded = false;
  for (const Group &group : own)
    nameErrors(group, [&] {
      if (group != own.front())
        begin(group, ids);
      for (int64_t rank : group)
        if (gpus[rank])
          ready(ofRank[rank].at(group));
    });
  return {};
}

void Communicators::begin(
    const Group &group,
    const std::map<std::string, cuda::CommunicatorId> &ids) {
  auto own = ids.find(nameOf(group));
  if (own == ids.end())
    throw Error("the process of rank " + std::to_string(group[0]) +
                " makes no communicator of the ranks " + nameOf(group));
  cuda::NcclStatus status = nccl->groupStart.function();
  for (size_t i = 0; i < group.size(); ++i) {
    if (!gpus[group[i]])
      continue;
    gpus[group[i]]->attach();
    cuda::CommunicatorConfig config;
    keepFirstError(status,
                   nccl->commInitRankConfig.function(
                       &ofRank[group[i]][group], static_cast<int>(group.size()),
                       own->second, static_cast<int>(i), &config));
  }
  keepFirstError(status, nccl->groupEnd.function());
  check(nccl->commInitRankConfig.symbol, status);
}

/// Whether several are aborted at once, as one may have to wait for another
/// one.
bool Communicators::abortsInGroups() const {
  constexpr int groupsAborts = 22200;
  int version = 0;
  if (nccl)
    nccl->getVersion.function(&version);
  return version >= groupsAborts;
}

/// Aborts what `begin` has made of a group.
void Communicators::drop(const Group &group) {
  bool isGroup = abortsInGroups();
  if (isGroup)
    nccl->groupStart.function();
  for (int64_t rank : group) {
    if (!gpus[rank])
      continue;
    auto made = ofRank[rank].find(group);
    if (made == ofRank[rank].end())
      continue;
    gpus[rank]->attach();
    if (made->second)
      nccl->commAbort.function(made->second);
    ofRank[rank].erase(made);
  }
  if (isGroup)
    nccl->groupEnd.function();
}

void Communicators::check(const char *function, cuda::NcclStatus status,
                          cuda::Communicator communicator,
                          std::optional<int64_t> channel) const {
  if (!status || status == cuda::kNcclInProgress)
    return;
  const char *last = nccl->getLastError.function(communicator);
  std::string what = std::string("NCCL: ") + function + ": " +
                     nccl->getErrorString.function(status) +
                     (last && *last ? " (" + std::string(last) + ")" : "");
  if (channel)
    throw TransferError(*channel, what);
  throw Error(what);
}

/// Throws where the communicator has failed.
bool Communicators::isReady(cuda::Communicator communicator,
                            std::optional<int64_t> channel) const {
  cuda::NcclStatus status = 0;
  check(nccl->commGetAsyncError.symbol,
        nccl->commGetAsyncError.function(communicator, &status), communicator,
        channel);
  check("a communicator", status, communicator, channel);
  return !status;
}

/// Returns when the communicator may be used.
void Communicators::ready(cuda::Communicator communicator,
                          std::optional<int64_t> channel) const {
  throwIfStopped();
  cuda::Backoff backoff;
  while (!isReady(communicator, channel)) {
    backoff.pause();
    throwIfStopped();
  }
}

void Communicators::check(int64_t rank, std::optional<int64_t> channel) const {
  for (const auto &[group, communicator] : ofRank[rank])
    isReady(communicator, channel);
}

void Communicators::put(int64_t rank, const Group &group,
                        std::optional<int64_t> channel,
                        std::vector<Message> sends,
                        std::vector<Message> receives) {
  for (std::vector<Message> *list : {&sends, &receives})
    std::erase_if(*list, [](const Message &each) { return each.bytes == 0; });
  if (sends.empty() && receives.empty())
    return;
  cuda::Communicator communicator = ofRank[rank].at(group);
  cuda::Stream stream = gpus[rank]->communication;
  auto memberOf = [&](int64_t peer) {
    return static_cast<int>(std::ranges::find(group, peer) - group.begin());
  };
  cuda::NcclStatus status = nccl->groupStart.function();
  for (const Message &each : sends)
    keepFirstError(status, nccl->send.function(
                               each.data, size_t(each.bytes), cuda::kNcclBytes,
                               memberOf(each.peer), communicator, stream));
  for (const Message &each : receives)
    keepFirstError(
        status, nccl->recv.function(const_cast<void *>(each.data),
                                    size_t(each.bytes), cuda::kNcclBytes,
                                    memberOf(each.peer), communicator, stream));
  // Also where a call has failed: a group is ended.
  keepFirstError(status, nccl->groupEnd.function());
  check("a group of sends and receives", status, communicator, channel);
  ready(communicator, channel);
}

void Communicators::abandon(std::span<const int64_t> ranks) {
  bool isGroup = abortsInGroups();
  if (isGroup)
    nccl->groupStart.function();
  for (int64_t rank : ranks)
    if (gpus[rank]->tryAttach())
      for (const auto &[group, communicator] : std::exchange(ofRank[rank], {}))
        if (communicator)
          nccl->commAbort.function(communicator);
  if (isGroup)
    nccl->groupEnd.function();
  for (int64_t rank : ranks)
    if (gpus[rank]->tryAttach())
      gpus[rank]->driver.streamSynchronize.function(gpus[rank]->communication);
}

cuda::NcclStatus Communicators::state() const {
  cuda::NcclStatus all = 0;
  forEach([&](cuda::Communicator communicator) {
    cuda::NcclStatus own = 0;
    keepFirstError(all, nccl->commGetAsyncError.function(communicator, &own));
    keepFirstError(all, own);
  });
  return all;
}

void Communicators::end() {
  connected.clear();
  wereEnded = true;
  constexpr std::chrono::seconds patience(5);
  if (!stop && !state()) {
    // All of them, before one is waited for: a rank's ends with its peers'.
    forEach([&](cuda::Communicator communicator) {
      nccl->commFinalize.function(communicator);
    });
    cuda::Backoff backoff;
    while (state() == cuda::kNcclInProgress && backoff.waited() < patience)
      backoff.pause();
    if (!state()) {
      forEach([&](cuda::Communicator communicator) {
        nccl->commDestroy.function(communicator);
      });
      std::ranges::fill(ofRank, decltype(ofRank)::value_type());
    }
  }
  std::vector<int64_t> here;
  for (size_t rank = 0; rank < gpus.size(); ++rank)
    if (gpus[rank])
      here.push_back(static_cast<int64_t>(rank));
  abandon(here);
}

} // namespace whale::runtime::nccl
