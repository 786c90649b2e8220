//===- MemoryRoom.h - How large a share memory allows ------------*- C++ -*===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes in: what each mesh's devices keep in memory, by what it is proportional
// to (MeshLoad), and the shares that devices take. Comes out: the bytes that a
// device needs at most, and the largest share that it has memory for. All is
// linear in the shares at each operation, so that a peak costs one pass over
// the operations at which bytes change.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_MEMORYROOM_H
#define WHALE_STEP_MEMORYROOM_H

#include "whale/Cluster/Cluster.h"
#include "whale/Step/MeshLoad.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace whale {

/// What a device does on one of the meshes that it belongs to.
struct MeshShare {
  const MeshLoad *load;
  LoadShares parts;
  bool operator<(const MeshShare &other) const {
    return std::tie(load, parts) < std::tie(other.load, other.parts);
  }
};
using MeshShares = std::vector<MeshShare>;

/// Bytes that a device needs with the shares that it has.
struct LoopBytes {
  /// At most, before and after a loop of micro-batches, and meanwhile.
  double outside = 0, inside = 0;
  /// Of the latter, what each micro-batch keeps, by TaskGraph.
  std::map<llvm::StringRef, double> kept;
};

/// Bytes that devices need, by the shares that they take.
class MemoryRoom {
public:
  /// `shares[d]` is what device d does. `scale` corrects, for each device, the
  /// estimate of what it needs besides its arguments; `scratch` are bytes that
  /// it needs besides all this. Empty for none. The cluster must outlive this.
  MemoryRoom(const Cluster &cluster, std::vector<double> scale,
             llvm::ArrayRef<int64_t> scratch, std::vector<MeshShares> shares)
      : cluster(cluster), scale(std::move(scale)), scratch(scratch),
        shares(std::move(shares)) {}

  const MeshShares &getShares(int64_t device) const { return shares[device]; }
  /// The largest share of a mesh with this load, of the mini-batch or inside of
  /// a group, that a device has memory for: between 0 and 1.
  double roomFor(int64_t device, const MeshLoad *load, bool inner) const;
  /// Bytes that a device needs with the shares that it has.
  int64_t peakBytes(int64_t device) const;
  /// Those of its arguments and scratch alone.
  int64_t argumentBytes(int64_t device) const;
  /// Those of a loop, by the numbers of its first and last operation.
  LoopBytes loopBytes(int64_t device,
                      std::pair<unsigned, unsigned> range) const;

private:
  /// A peak, as it depends on one of the shares of one mesh.
  struct Slope {
    double fixed = 0, bytes = 0;
  };
  /// The most bytes that are needed, and before which operation.
  struct Peak {
    double bytes = 0;
    unsigned at = 0;
  };

  double scaleOf(int64_t device) const {
    return scale.empty() ? 1 : scale[device];
  }
  int64_t scratchOf(int64_t device) const {
    return scratch.empty() ? 0 : scratch[device];
  }
  Peak peakOf(const MeshShares &shares, double scale) const;
  static void forEachMoment(const MeshShares &shares, double scale,
                            llvm::function_ref<void(unsigned, double)> visit);
  Slope slopeAt(const MeshShares &shares, double scale, const MeshLoad *load,
                bool inner, unsigned at) const;
  double findRoom(const MeshShares &present, double scale, double memory,
                  const MeshLoad *load, bool inner) const;

  const Cluster &cluster;
  std::vector<double> scale;
  std::vector<int64_t> scratch;
  std::vector<MeshShares> shares;
  /// Many devices do the same.
  mutable std::map<std::pair<MeshShares, double>, Peak> peaks;
  mutable std::map<
      std::tuple<MeshShares, double, double, const MeshLoad *, bool>, double>
      rooms;
};

} // namespace whale

#endif // WHALE_STEP_MEMORYROOM_H
