//===- ExplainBalance.cpp - Remarks on the load balance -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BalanceMeshes.h"
#include "whale/Report/TextTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;

namespace whale {

static double sumOf(ArrayRef<int64_t> numbers) {
  return double(std::accumulate(numbers.begin(), numbers.end(), int64_t(0)));
}

/// What one device takes, how long that takes, and what it needs.
std::string MeshBalancer::describe(const Mesh &mesh, const MeshLoad &load,
                                   size_t group, size_t index,
                                   ArrayRef<Extents> samples,
                                   double groupSamples) const {
  DeviceId device = mesh.getGroups()[group][index];
  ArrayRef<int64_t> moments = loads.getMoments();
  const LoadAmounts &work = load.seconds[loads.getSpeedClass(device)];
  LoadShares taken = {0, 0, 1};
  SmallVector<std::string> parts;
  if (work.ofSamples() > 0) {
    double all = std::max(sumOf(moments), 1.0);
    taken.batch = double(samples[group][index]) / all;
    taken.group = groupSamples / all;
    std::string text = llvm::formatv("{0} of {1} samples",
                                     samples[group][index] * loads.getGrain(),
                                     int64_t(all) * loads.getGrain());
    if (!mesh.getBalance().moments.empty()) {
      SmallVector<std::string> each;
      for (auto [moment, extent] : llvm::enumerate(moments))
        each.push_back(std::to_string(
            mesh.batchShares(extent, moment)[group][index] * loads.getGrain()));
      text += " (" + llvm::join(each, " ") + ")";
    }
    parts.push_back(text);
  }
  if (mesh.getGroups()[group].size() > 1)
    for (const auto &[pieces, seconds] : load.innerSeconds)
      parts.push_back(llvm::formatv(
          "{0} of {1} grains", mesh.innerShares(pieces, group)[index], pieces));
  for (const MeshShare &share : room->getShares(device))
    if (share.load == &load)
      taken.inner = share.parts.inner;
  const DeviceKind &kind = cluster.kindOf(device);
  parts.push_back(describeSeconds(taken.of(work)));
  parts.push_back(describeBytes(double(room->peakBytes(device))) + " of " +
                  describeBytes(double(kind.memoryBytes)) + " (" + kind.name +
                  ")");
  return llvm::join(parts, ", ");
}

void MeshBalancer::explain(
    Location loc, ArrayRef<Mesh *> meshes,
    llvm::function_ref<std::string(const Mesh *)> nameOf) const {
  for (auto [mesh, load] : llvm::zip(meshes, loadOf)) {
    if (!load)
      continue;
    std::vector<Extents> samples = samplesOf(*mesh);
    // Devices in a row that do the same are named together.
    struct Run {
      DeviceId first, last;
      std::string text;
    };
    std::vector<Run> runs;
    for (auto [g, group] : llvm::enumerate(mesh->getGroups())) {
      double groupSamples = sumOf(samples[g]);
      for (auto [i, device] : llvm::enumerate(group)) {
        std::string text = describe(*mesh, *load, g, i, samples, groupSamples);
        if (!runs.empty() && runs.back().text == text &&
            device == runs.back().last + 1)
          runs.back().last = device;
        else
          runs.push_back({device, device, text});
      }
    }
    std::string text;
    for (const Run &run : runs) {
      text += text.empty() ? "" : "; ";
      text += "device" + std::string(run.first == run.last ? "" : "s") + " " +
              std::to_string(run.first);
      if (run.first != run.last)
        text += " to " + std::to_string(run.last);
      text += ": " + run.text;
    }
    emitRemark(loc) << "load balance" << nameOf(mesh) << ": " << text;
  }
}

} // namespace whale
