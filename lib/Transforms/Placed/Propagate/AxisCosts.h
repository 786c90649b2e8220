//===- AxisCosts.h - What layouts cost on a mesh ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The questions of AxisPropagation, asked of the cost model. Propagation runs
// many times over one program, so answers are kept.
//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_AXISCOSTS_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_AXISCOSTS_H

#include "whale/Sharding/AxisPropagation.h"
#include "whale/Sharding/Mesh.h"
#include "whale/Step/CostModel.h"
#include "llvm/ADT/DenseMap.h"

namespace whale {

class AxisCosts {
public:
  /// The cluster must outlive this.
  explicit AxisCosts(const Cluster &cluster);

  /// Seconds of one run of an operation on the first devices along an axis of
  /// the mesh.
  AxisWork work(mlir::Operation *op, const Mesh &mesh, unsigned axis);
  /// Seconds of an exchange of a value of this size between them.
  double exchange(Exchange::Kind kind, double bytes, const Mesh &mesh,
                  unsigned axis);
  /// Seconds until each of them, which hold parts of so many bytes in their
  /// order, has `haloBytes` of its neighbours' as well.
  double halo(double partBytes, double haloBytes, const Mesh &mesh,
              unsigned axis);
  /// How often a step runs an operation: the trips of the counted loops around
  /// it, and the moments of the micro-batches.
  double repeats(mlir::Operation *op);

private:
  const Cluster &cluster;
  std::unique_ptr<CostModel> model;
  llvm::DenseMap<std::tuple<mlir::Operation *, const Mesh *, unsigned>,
                 AxisWork>
      works;
  /// Seconds before the first byte, and for each one, by mesh, axis and kind.
  std::map<std::tuple<const Mesh *, unsigned, Exchange::Kind>,
           std::pair<double, double>>
      exchanges;
  llvm::DenseMap<mlir::Region *, double> regionRepeats;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_AXISCOSTS_H
