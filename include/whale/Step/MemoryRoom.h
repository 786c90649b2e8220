//===- MemoryRoom.h - How large a share memory allows ------------*- C++ -*===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the memory that each mesh's devices keep, by the share that it is
// proportional to (MeshLoad), and the shares that devices take. Out: the peak
// bytes of a device, and the largest share for which it has enough memory. The
// bytes at each operation are linear in the shares, so a peak costs one pass
// over the operations at which bytes change.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_MEMORYROOM_H
#define WHALE_STEP_MEMORYROOM_H

#include "whale/Cluster/Cluster.h"
#include "whale/Step/MemoryFit.h"
#include "whale/Step/MeshLoad.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace whale {

/// The share of a device of one of the meshes that it belongs to.
struct MeshShare {
  const MeshLoad *load;
  LoadShares parts;
  bool operator<(const MeshShare &other) const {
    return std::tie(load, parts) < std::tie(other.load, other.parts);
  }
};
using MeshShares = std::vector<MeshShare>;
using MemoryLine = MemoryFit::Estimate::Line;

/// Bytes that libraries use on a device in addition to buffers, as a linear
/// function of its part of a mesh's work.
struct ScratchLine {
  double fixed = 0, bytes = 0;
  double at(double part) const { return fixed + bytes * part; }
  /// The line through the bytes of two parts, nowhere below zero.
  static ScratchLine through(double part, double bytes, double otherPart,
                             double otherBytes);
};

/// Bytes that a device needs with its shares.
struct LoopBytes {
  /// The maximum before and after a loop of micro-batches, and during the loop.
  double outside = 0, inside = 0;
  /// The part of `inside` that each micro-batch keeps, by TaskGraph; and sums
  /// over micro-batches.
  std::map<llvm::StringRef, double> kept, sums;
};

/// Computes the bytes that devices need from their shares.
class MemoryRoom {
public:
  /// `shares[d]` are the shares of device d. `scale` corrects, for each device,
  /// the estimate of its bytes other than arguments; `scratch` are bytes that
  /// it needs in addition. Either may be empty. The cluster must outlive this
  /// object.
  MemoryRoom(const Cluster &cluster, std::vector<double> scale,
             std::vector<ScratchLine> scratch, std::vector<MeshShares> shares)
      : cluster(cluster), scale(std::move(scale)), scratch(std::move(scratch)),
        shares(std::move(shares)) {}

  const MeshShares &getShares(int64_t device) const { return shares[device]; }
  /// Returns the largest share of a mesh with this load, of the mini-batch or
  /// inside a group (`inner`), for which a device has enough memory: between 0
  /// and 1.
  double roomFor(int64_t device, const MeshLoad *load, bool inner) const;
  /// Returns the peak bytes of a device with its shares.
  int64_t peakBytes(int64_t device) const;
  /// Returns its part of the work, of the mesh of which it is largest.
  double getPart(int64_t device) const { return partOf(shares[device]); }
  /// Returns the bytes that libraries use with its shares.
  int64_t scratchBytes(int64_t device) const;
  /// Returns the bytes of its arguments alone.
  int64_t argumentBytes(int64_t device) const;
  /// Returns lines of which a device needs the most for any number of samples,
  /// relative to the one that its shares are of.
  std::vector<MemoryLine> linesOf(int64_t device) const;
  /// Returns the bytes of a loop, given the numbers of its first and last
  /// operation.
  LoopBytes loopBytes(int64_t device,
                      std::pair<unsigned, unsigned> range) const;

private:
  /// Bytes before an operation as a linear function of one of the shares of one
  /// mesh.
  struct Slope {
    double fixed = 0, bytes = 0;
  };
  /// The largest number of bytes needed, and the operation before which they
  /// are.
  struct Peak {
    double bytes = 0;
    unsigned at = 0;
  };

  double scaleOf(int64_t device) const {
    return scale.empty() ? 1 : scale[device];
  }
  ScratchLine scratchOf(int64_t device) const {
    return scratch.empty() ? ScratchLine() : scratch[device];
  }
  static double partOf(const MeshShares &shares);
  Peak peakOf(const MeshShares &shares, double scale) const;
  static void forEachChange(const MeshShares &shares, double scale,
                            llvm::function_ref<void(unsigned, double)> visit);
  Slope slopeAt(const MeshShares &shares, double scale, const MeshLoad *load,
                bool inner, unsigned at) const;
  std::vector<MemoryLine> findLines(const MeshShares &shares,
                                    double scale) const;
  double findRoom(const MeshShares &present, double scale, double memory,
                  ScratchLine scratch, const MeshLoad *load, bool inner) const;

  const Cluster &cluster;
  std::vector<double> scale;
  std::vector<ScratchLine> scratch;
  std::vector<MeshShares> shares;
  /// A cache: many devices have the same shares.
  mutable std::map<std::pair<MeshShares, double>, Peak> peaks;
  mutable std::map<std::pair<MeshShares, double>, std::vector<MemoryLine>>
      lines;
  mutable std::map<std::tuple<MeshShares, double, double, double, double,
                              const MeshLoad *, bool>,
                   double>
      rooms;
};

} // namespace whale

#endif // WHALE_STEP_MEMORYROOM_H
