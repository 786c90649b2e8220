//===- LoadBalance.cpp - Shares for unequal devices -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes shares as described in LoadBalance.h. Assigning grains one by one,
// each to the device that would finish it first, minimizes the largest finish
// time for any nondecreasing costs. When all grains that finish by a time T are
// assigned, device i has the largest number of grains that it finishes by T; so
// a binary search over T replaces all but the last round. Cost: some 64 steps
// of the search over T, each with a binary search over the grains for each
// device.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/LoadBalance.h"
#include "Fail.h"
#include "llvm/ADT/STLExtras.h"
#include <bit>
#include <cmath>

using namespace whale;

namespace {
/// The devices' costs and limits, counted in grains.
struct Problem {
  int64_t grains;
  std::vector<int64_t> caps;
  llvm::function_ref<double(size_t, int64_t)> seconds;

  /// Returns the largest number of grains of device i that finish by `time`.
  int64_t within(size_t i, double time) const {
    int64_t low = 0, high = std::min(caps[i], grains);
    while (low < high) {
      int64_t middle = low + (high - low + 1) / 2;
      if (seconds(i, middle) <= time)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  std::vector<int64_t> within(double time) const {
    std::vector<int64_t> counts(caps.size());
    for (size_t i = 0; i < counts.size(); ++i)
      counts[i] = within(i, time);
    return counts;
  }

  /// Returns when the last of these grains finishes.
  double last(llvm::ArrayRef<int64_t> counts) const {
    double time = 0;
    for (auto [i, count] : llvm::enumerate(counts))
      if (count > 0)
        time = std::max(time, seconds(i, count));
    return time;
  }

  /// Returns when the first of the remaining grains finishes; infinity if none
  /// remain.
  double next(llvm::ArrayRef<int64_t> counts) const {
    double time = std::numeric_limits<double>::infinity();
    for (auto [i, count] : llvm::enumerate(counts))
      if (count < std::min(caps[i], grains))
        time = std::min(time, seconds(i, count + 1));
    return time;
  }
};
} // namespace

/// Returns the sum, but at most `limit`.
static int64_t sumUpTo(llvm::ArrayRef<int64_t> counts, int64_t limit) {
  int64_t sum = 0;
  for (int64_t count : counts)
    sum = count > limit - sum ? limit : sum + count;
  return sum;
}

/// Assigns `rest` grains that all finish at the same time: one in turn to each
/// device below its limit, repeatedly.
static void handOutTies(std::vector<int64_t> &counts,
                        llvm::ArrayRef<int64_t> most, int64_t rest) {
  auto room = [&](size_t i) { return most[i] - counts[i]; };
  int64_t low = 0, high = rest;
  while (low < high) { // the most full rounds
    int64_t rounds = low + (high - low + 1) / 2, sum = 0;
    for (size_t i = 0; i < counts.size() && sum <= rest; ++i)
      sum += std::min(room(i), rounds);
    if (sum <= rest)
      low = rounds;
    else
      high = rounds - 1;
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t more = std::min(room(i), low);
    counts[i] += more;
    rest -= more;
  }
  for (size_t i = 0; i < counts.size() && rest > 0; ++i)
    if (room(i) > 0) {
      ++counts[i];
      --rest;
    }
}

static std::vector<int64_t> solve(const Problem &problem) {
  // Non-negative doubles are ordered like their bits. Invariant: at time
  // `late`, when a grain finishes, the `most` grains are done, which are
  // enough; at `early` the `counts` are done, which are too few, and one double
  // later more.
  auto bitsOf = [](double time) {
    return std::bit_cast<int64_t>(std::abs(time)); // no negative zero
  };
  std::vector<int64_t> counts(problem.caps.size(), 0);
  std::vector<int64_t> most =
      problem.within(std::numeric_limits<double>::infinity());
  int64_t late = bitsOf(problem.last(most));
  int64_t early = bitsOf(problem.next(counts)) - 1;
  while (late - early > 1 &&
         sumUpTo(most, problem.grains + 1) > problem.grains) {
    int64_t middle = early + (late - early) / 2;
    std::vector<int64_t> tried = problem.within(std::bit_cast<double>(middle));
    if (sumUpTo(tried, problem.grains) >= problem.grains) {
      most = std::move(tried);
      late = bitsOf(problem.last(most));
    } else {
      counts = std::move(tried);
      early = bitsOf(problem.next(counts)) - 1;
    }
  }
  int64_t rest = problem.grains - sumUpTo(counts, problem.grains);
  handOutTies(counts, most, rest);
  return counts;
}

/// Returns the largest number of grains that fits a device's memory, at most
/// `grains`.
static int64_t capOf(const ShareDevice &device, int64_t grain, int64_t grains) {
  if (device.bytesPerUnit == 0)
    return grains;
  double bytesPerGrain = device.bytesPerUnit * double(grain);
  double room = double(device.memoryBytes) - double(device.fixedBytes);
  double cap = std::floor(room / bytesPerGrain);
  return cap >= double(grains) ? grains : int64_t(cap);
}

static llvm::Error check(int64_t total, int64_t grain,
                         llvm::ArrayRef<ShareDevice> devices) {
  if (total < 0)
    return fail("can't share out " + llvm::Twine(total) + " units");
  if (grain < 1 || total % grain != 0)
    return fail("can't share out " + llvm::Twine(total) +
                " units in grains of " + llvm::Twine(grain));
  if (devices.empty())
    return fail("no device to share out to");
  for (const ShareDevice &device : devices) {
    if (!(device.secondsPerUnit >= 0) || !(device.fixedSeconds >= 0))
      return fail("device " + llvm::Twine(device.id) +
                  ": a time is negative or not a number");
    if (device.fixedBytes < 0 || device.memoryBytes < 0 ||
        !(device.bytesPerUnit >= 0) || std::isinf(device.bytesPerUnit))
      return fail("device " + llvm::Twine(device.id) +
                  ": an amount of memory is negative or not finite");
    if (device.fixedBytes > device.memoryBytes)
      return fail("device " + llvm::Twine(device.id) + " lacks " +
                  llvm::Twine(device.fixedBytes - device.memoryBytes) +
                  " bytes of memory: it has " +
                  llvm::Twine(device.memoryBytes) + " and needs " +
                  llvm::Twine(device.fixedBytes) + " besides any share");
  }
  return llvm::Error::success();
}

/// Returns an error that names the device whose memory limits it furthest below
/// its balanced share, and the memory that it would need to take all grains
/// that the others can't.
static llvm::Error outOfMemory(const Problem &problem, int64_t grain,
                               llvm::ArrayRef<ShareDevice> devices) {
  Problem unlimited = problem;
  unlimited.caps.assign(devices.size(), problem.grains);
  std::vector<int64_t> wanted = solve(unlimited);
  size_t worst = 0;
  for (size_t i = 1; i < devices.size(); ++i)
    if (wanted[i] - problem.caps[i] > wanted[worst] - problem.caps[worst])
      worst = i;
  int64_t held = sumUpTo(problem.caps, problem.grains);
  const ShareDevice &device = devices[worst];
  double need = double(device.fixedBytes) +
                device.bytesPerUnit *
                    double(problem.caps[worst] + problem.grains - held) *
                    double(grain);
  int64_t lacks = std::ceil(need - double(device.memoryBytes));
  return fail("device " + llvm::Twine(device.id) + " lacks " +
              llvm::Twine(lacks) + " bytes of memory: with all devices full, " +
              llvm::Twine((problem.grains - held) * grain) + " of " +
              llvm::Twine(problem.grains * grain) + " units are left; it has " +
              llvm::Twine(device.memoryBytes) + " bytes, of which " +
              llvm::Twine(device.fixedBytes) + " are taken besides its share");
}

llvm::Expected<std::vector<int64_t>>
whale::shares(int64_t total, int64_t grain, llvm::ArrayRef<ShareDevice> devices,
              llvm::function_ref<double(size_t, int64_t)> seconds) {
  if (llvm::Error error = check(total, grain, devices))
    return error;
  auto grainSeconds = [&](size_t i, int64_t grains) {
    return seconds(i, grains * grain);
  };
  Problem problem{total / grain, {}, grainSeconds};
  for (const ShareDevice &device : devices)
    problem.caps.push_back(capOf(device, grain, problem.grains));
  if (sumUpTo(problem.caps, problem.grains) < problem.grains)
    return outOfMemory(problem, grain, devices);
  std::vector<int64_t> result = solve(problem);
  for (int64_t &share : result)
    share *= grain;
  return result;
}

llvm::Expected<std::vector<int64_t>>
whale::shares(int64_t total, int64_t grain,
              llvm::ArrayRef<ShareDevice> devices) {
  return shares(total, grain, devices, [&](size_t i, int64_t units) {
    return devices[i].fixedSeconds + double(units) * devices[i].secondsPerUnit;
  });
}

llvm::Expected<std::vector<std::vector<int64_t>>>
whale::sharesOfMoments(llvm::ArrayRef<int64_t> totals, int64_t period,
                       llvm::ArrayRef<ShareDevice> devices) {
  assert(period >= 1 && "a period is at least one moment");
  std::vector<std::vector<int64_t>> result;
  std::vector<int64_t> taken(devices.size(), 0);
  for (size_t moment = 0; moment < totals.size(); ++moment) {
    if (int64_t(moment) % period == 0)
      taken.assign(devices.size(), 0);
    llvm::Expected<std::vector<int64_t>> next = shares(
        totals[moment], /*grain=*/1, devices, [&](size_t i, int64_t units) {
          return double(taken[i] + units) * devices[i].secondsPerUnit +
                 double(moment % period + 1) * devices[i].fixedSeconds;
        });
    if (!next)
      return next.takeError();
    for (size_t i = 0; i < taken.size(); ++i)
      taken[i] += (*next)[i];
    result.push_back(std::move(*next));
  }
  return result;
}
