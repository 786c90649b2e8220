//===- VirtualDevices.cpp - Devices of TaskGraphs -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assigns the devices of a cluster to TaskGraphs. In: the requests and the
// devices. Out: for each TaskGraph one list of devices for each repetition of
// the group, or an error that lists the sizes that fit. Cost: linear in devices
// times TaskGraphs.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/VirtualDevices.h"
#include "Fail.h"
#include "whale/Cluster/Cluster.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <numeric>

using namespace whale;

/// Assigns the devices of `group` consecutively and wrapping round, wants[i] to
/// the i-th TaskGraph.
static void handOut(llvm::ArrayRef<int64_t> wants,
                    llvm::ArrayRef<int64_t> group,
                    std::vector<VirtualDevice> &result) {
  size_t next = 0;
  for (auto [want, virtualDevice] : llvm::zip_equal(wants, result)) {
    std::vector<int64_t> &list = virtualDevice.emplace_back();
    for (int64_t i = 0; i < want; ++i, next = (next + 1) % group.size())
      list.push_back(group[next]);
  }
}

/// Takes the devices of one TaskGraph from the remaining devices of its group.
static std::vector<int64_t> takeNear(int64_t want, std::vector<int64_t> &left,
                                     const Cluster &cluster, bool sameMemory) {
  auto memoryOf = [&](int64_t device) {
    return cluster.kindOf(device).memoryBytes;
  };
  // The next ones in order, unless one node has as many with as much memory.
  std::vector<int64_t> taken(left.begin(), left.begin() + want);
  auto inOneNode = [&](llvm::ArrayRef<int64_t> devices) {
    return llvm::all_of(devices, [&](int64_t device) {
      return cluster.sameNode(device, devices.front());
    });
  };
  int64_t least = memoryOf(taken.front());
  for (int64_t device : taken)
    least = std::min(least, memoryOf(device));
  if (!inOneNode(taken)) {
    llvm::DenseMap<unsigned, std::vector<int64_t>> ofNode;
    for (int64_t device : left)
      if (!sameMemory || memoryOf(device) >= least)
        ofNode[cluster.devices[device].node].push_back(device);
    for (int64_t first : left) {
      std::vector<int64_t> &near = ofNode[cluster.devices[first].node];
      if (int64_t(near.size()) < want)
        continue;
      near.resize(want);
      taken = near;
      break;
    }
  }
  llvm::sort(taken);
  llvm::erase_if(left, [&](int64_t device) {
    return std::binary_search(taken.begin(), taken.end(), device);
  });
  return taken;
}

/// Assigns a group's devices to TaskGraphs that don't share them.
static void handOutNear(llvm::ArrayRef<int64_t> wants,
                        llvm::ArrayRef<int64_t> group, const Cluster &cluster,
                        const VirtualDeviceOptions &options,
                        std::vector<VirtualDevice> &result) {
  std::vector<int64_t> left(group.begin(), group.end());
  std::vector<size_t> stages(wants.size());
  std::iota(stages.begin(), stages.end(), 0);
  if (options.pipeline && wants.size() > 1) {
    llvm::sort(left, [&](int64_t a, int64_t b) {
      int64_t first = cluster.kindOf(a).memoryBytes;
      int64_t second = cluster.kindOf(b).memoryBytes;
      return first != second ? first > second : a < b;
    });
    if (options.stageBytes.size() == wants.size())
      llvm::sort(stages, [&](size_t a, size_t b) {
        int64_t first = options.stageBytes[a], second = options.stageBytes[b];
        return first != second ? first > second : a < b;
      });
  }
  for (size_t stage : stages)
    result[stage].push_back(
        takeNear(wants[stage], left, cluster, options.pipeline));
}

/// Returns how many of `rest` devices each TaskGraph gets, in proportion to its
/// part of a whole group of `size`.
static llvm::SmallVector<int64_t>
scale(llvm::ArrayRef<int64_t> wants, int64_t size, int64_t rest, bool shared) {
  llvm::SmallVector<int64_t> scaled;
  for (int64_t want : wants)
    scaled.push_back(std::max<int64_t>(1, want * rest / size));
  if (shared)
    return scaled;
  // Devices that rounding leaves go to the largest remainders, the first of
  // equals.
  int64_t left =
      rest - std::accumulate(scaled.begin(), scaled.end(), int64_t(0));
  // One device for each TaskGraph may exceed the shares of the small ones.
  for (; left < 0; ++left)
    --*llvm::max_element(scaled);
  llvm::SmallVector<size_t> order(wants.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    int64_t first = wants[a] * rest - scaled[a] * size;
    int64_t second = wants[b] * rest - scaled[b] * size;
    return first != second ? first > second : a < b;
  });
  for (size_t i = 0; left > 0; ++i, --left)
    ++scaled[order[i % order.size()]];
  return scaled;
}

/// Returns the error for a group that isn't repeated a whole number of times.
static llvm::Error doesNotDivide(llvm::ArrayRef<DeviceRequest> requests,
                                 llvm::ArrayRef<int64_t> wants, int64_t size,
                                 int64_t count, bool shared) {
  std::string asked;
  for (auto [request, want] : llvm::zip_equal(requests, wants))
    asked += (asked.empty() ? "'" : ", '") + request.name + "' asks for " +
             std::to_string(want);
  llvm::SmallVector<std::string> sizes;
  for (int64_t divisor = 1; divisor <= count; ++divisor)
    if (count % divisor == 0)
      sizes.push_back(std::to_string(divisor));
  int64_t below = count / size * size;
  return fail("a group of " + llvm::Twine(size) + " devices (" + asked +
              (shared ? ", shared" : "") + ") doesn't divide the cluster's " +
              llvm::Twine(count) + " devices; group sizes that fit are " +
              llvm::join(sizes, ", ") + ", and numbers of devices that fit " +
              "this group are " + llvm::Twine(below) + " and " +
              llvm::Twine(below + size) + "; or set cluster.uneven_replicas");
}

static llvm::Expected<std::vector<VirtualDevice>>
group(llvm::ArrayRef<DeviceRequest> requests, llvm::ArrayRef<int64_t> devices,
      const VirtualDeviceOptions &options, const Cluster *cluster) {
  int64_t count = devices.size();
  if (count == 0)
    return fail("the cluster has no devices");
  llvm::SmallVector<int64_t> wants;
  int64_t sum = 0, largest = 0;
  for (const DeviceRequest &request : requests) {
    int64_t want = request.devices.value_or(count);
    if (want < 1)
      return fail("task graph '" + llvm::Twine(request.name) + "' asks for " +
                  llvm::Twine(want) + " devices, at least 1 is needed");
    if (want > count)
      return fail("task graph '" + llvm::Twine(request.name) + "' asks for " +
                  llvm::Twine(want) + " devices, the cluster has " +
                  llvm::Twine(count) + "; ask for that many at most");
    wants.push_back(want);
    sum += want;
    largest = std::max(largest, want);
  }
  std::vector<VirtualDevice> result(requests.size());
  if (requests.empty())
    return result;

  bool shared = sum > count;
  int64_t size = !shared ? sum : options.wholeCluster ? count : largest;
  int64_t rest = count % size;
  if (rest != 0 && !options.unevenReplicas)
    return doesNotDivide(requests, wants, size, count, shared);
  auto add = [&](llvm::ArrayRef<int64_t> wants, llvm::ArrayRef<int64_t> group,
                 bool shared) {
    if (cluster && !shared)
      handOutNear(wants, group, *cluster, options, result);
    else
      handOut(wants, group, result);
  };
  for (int64_t start = 0; start + size <= count; start += size)
    add(wants, devices.slice(start, size), shared);
  if (rest != 0) {
    // With fewer remaining devices than TaskGraphs, these must share them.
    bool sharedRest = shared || rest < int64_t(wants.size());
    add(scale(wants, size, rest, sharedRest), devices.take_back(rest),
        sharedRest);
  }
  return result;
}

llvm::Expected<std::vector<VirtualDevice>>
whale::virtualDevices(llvm::ArrayRef<DeviceRequest> requests,
                      llvm::ArrayRef<int64_t> devices,
                      const VirtualDeviceOptions &options) {
  return group(requests, devices, options, nullptr);
}

llvm::Expected<std::vector<VirtualDevice>>
whale::virtualDevices(llvm::ArrayRef<DeviceRequest> requests,
                      const Cluster &cluster,
                      const VirtualDeviceOptions &options) {
  std::vector<int64_t> devices(cluster.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  return group(requests, devices, options, &cluster);
}

/// Adds one list to a TaskGraph, which may already have others.
static llvm::Error addList(const DeviceRequest &request, size_t index,
                           const std::vector<int64_t> &list, int64_t count,
                           VirtualDevice &result) {
  auto failHere = [&](const llvm::Twine &what) {
    return fail("virtual device " + llvm::Twine(index) + " " + what);
  };
  if (list.empty())
    return failHere("has no devices");
  if (request.devices && *request.devices != int64_t(list.size()))
    return failHere("has " + llvm::Twine(list.size()) +
                    " devices, but task graph '" + request.name +
                    "' asks for " + llvm::Twine(*request.devices));
  result.emplace_back();
  for (int64_t device : list) {
    if (device < 0 || device >= count)
      return failHere("names device " + llvm::Twine(device) +
                      ", the cluster has " + llvm::Twine(count));
    for (const std::vector<int64_t> &other : result)
      if (llvm::is_contained(other, device))
        return failHere("gives device " + llvm::Twine(device) +
                        " to task graph '" + request.name + "' twice");
    result.back().push_back(device);
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<VirtualDevice>>
whale::ownVirtualDevices(llvm::ArrayRef<DeviceRequest> requests,
                         llvm::ArrayRef<std::vector<int64_t>> lists,
                         int64_t count) {
  std::vector<VirtualDevice> result(requests.size());
  size_t step = requests.size();
  if (lists.empty())
    return fail("there are no virtual devices");
  if (lists.size() > step && step > 0 && lists.size() % step != 0)
    return fail(llvm::Twine(lists.size()) + " virtual devices don't fit " +
                llvm::Twine(step) +
                " task graphs; give a multiple of these, or fewer");
  for (size_t i = 0; i < step; ++i)
    for (size_t index = lists.size() < step ? i % lists.size() : i;
         index < lists.size(); index += step)
      if (llvm::Error error =
              addList(requests[i], index, lists[index], count, result[i]))
        return error;
  return result;
}
