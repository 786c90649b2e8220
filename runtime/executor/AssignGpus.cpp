//===- AssignGpus.cpp - Which GPU each rank computes on -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/AssignGpus.h"

#include "whale/ProgramFormat/GpuArchitecture.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace whale::runtime {

/// A GPU has a few percent less than its name says: it counts in other units,
/// corrects errors and keeps something for itself. A T4 has 15,109 MiB of 16
/// GiB.
static constexpr double leastShare = 0.9;

static bool serves(const cuda::GpuFacts &gpu, const WantedGpu &wanted) {
  bool isOfArch = wanted.isExact ? gpu.capability == wanted.capability
                                 : gpu.capability >= wanted.capability;
  return isOfArch && static_cast<double>(gpu.memoryBytes) >=
                         leastShare * static_cast<double>(wanted.memoryBytes);
}

static std::string inGiB(int64_t bytes) {
  int64_t tenths = (bytes * 10 + (1 << 29)) >> 30;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
         " GiB";
}

static std::string describe(const WantedGpu &wanted) {
  std::string text = wanted.kind;
  if (wanted.capability)
    text += (text.empty() ? "" : ", ") + format::archOf(wanted.capability) +
            (wanted.isExact ? "" : " or later");
  if (wanted.memoryBytes)
    text += ", " + inGiB(wanted.memoryBytes);
  return text;
}

static std::string describe(const cuda::GpuFacts &gpu) {
  return gpu.name + ", " + format::archOf(gpu.capability) + ", " +
         inGiB(gpu.memoryBytes);
}

/// "0, 1 (H100, sm_90, 80.0 GiB); 2 (...)": neighbours that are alike together.
template <typename Items, typename Number>
static std::string listOf(const Items &items, Number number) {
  std::string text;
  for (size_t i = 0; i < items.size();) {
    std::string what = describe(items[i]);
    text += text.empty() ? "" : "; ";
    for (bool isFirst = true; i < items.size() && describe(items[i]) == what;
         ++i, isFirst = false)
      text += (isFirst ? "" : ", ") + std::to_string(number(items[i]));
    text += " (" + what + ")";
  }
  return text;
}

[[noreturn]] static void fail(const WantedGpu &lacking,
                              std::span<const WantedGpu> wanted,
                              std::span<const cuda::GpuFacts> found) {
  throw Error(
      "no GPU of this machine is what rank " + std::to_string(lacking.rank) +
      " was compiled for: wanted for ranks " +
      listOf(wanted, [](const auto &each) { return each.rank; }) +
      "; found GPUs " +
      listOf(found, [](const auto &each) { return each.number; }) +
      ": compile for a cluster file with the kinds that there are, or with "
      "--gpu-arch");
}

std::vector<int> assignGpus(std::span<const WantedGpu> wanted,
                            std::span<const cuda::GpuFacts> found) {
  // Who can take fewest comes first: what serves him serves those who want less
  // of the same.
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) {
    const WantedGpu &each = wanted[i];
    return std::tuple(each.isExact, each.capability, each.memoryBytes);
  });
  std::vector<int> result(wanted.size(), -1);
  std::vector<int64_t> taken(found.size());
  for (size_t i : order) {
    std::optional<size_t> best;
    auto rank = [&](size_t gpu) {
      int64_t memory = wanted[i].memoryBytes ? found[gpu].memoryBytes : 0;
      return std::tuple(taken[gpu], memory, gpu);
    };
    for (size_t gpu = 0; gpu < found.size(); ++gpu)
      if (serves(found[gpu], wanted[i]) && (!best || rank(gpu) < rank(*best)))
        best = gpu;
    if (!best && wanted[i].isHere)
      fail(wanted[i], wanted, found);
    if (!best)
      continue;
    ++taken[*best];
    result[i] = found[*best].number;
  }
  return result;
}

} // namespace whale::runtime
