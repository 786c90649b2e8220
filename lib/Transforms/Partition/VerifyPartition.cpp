//===- VerifyPartition.cpp - The invariant of level 4 --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of all rank classes. Out: success, or the error that no
// single operation can see: that taken together they are no program. Each
// collective alone is checked by its own verifier.
//
// Every rank has one class; collectives of one channel are alike in all
// classes; arguments and results have the shapes that their placements give
// them. At last all classes are replayed, to find those that wait for one
// another. Cost: in parallel, arguments times devices and channels times
// devices, for each pair of classes the channels of one: quadratic in the
// classes. The replay is sequential. It sweeps over all classes as long as one
// moves, and where one waits looks at all that take part.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Threading.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_VERIFYPARTITION
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

/// One rank class and its collectives in the order in which it reaches them.
struct RankClass {
  ScheduleOp schedule;
  SmallVector<CollectiveOp> collectives = {};
  /// By channel, which micro-batches use once each.
  llvm::MapVector<int64_t, SmallVector<CollectiveOp>> uses = {};
};

class Verifier {
public:
  explicit Verifier(ModuleOp module) : module(module) {}

  LogicalResult run() {
    for (ScheduleOp schedule : getRankClasses(module))
      classes.push_back({schedule});
    if (classes.empty())
      return module.emitError("has no whale.schedule; run whale-partition "
                              "first");
    if (failed(verifyRanks()) || failed(collectChannels()))
      return failure();
    if (failed(failableParallelForEach(module.getContext(), classes,
                                       [&](const RankClass &rankClass) {
                                         return verifySignature(
                                             rankClass.schedule);
                                       })) ||
        failed(failableParallelForEachN(
            module.getContext(), 0, classes.size(), [&](size_t i) {
              for (RankClass &b : llvm::drop_begin(classes, i + 1))
                if (failed(verifyUses(classes[i], b)))
                  return failure();
              return success();
            })))
      return failure();
    return replay();
  }

private:
  /// Every rank is in one class.
  LogicalResult verifyRanks() {
    for (auto [index, rankClass] : llvm::enumerate(classes))
      for (int64_t rank : rankClass.schedule.getRanks())
        if (!classOf.try_emplace(rank, index).second)
          return rankClass.schedule.emitError("rank ")
                 << rank << " has another schedule too: @"
                 << classes[classOf[rank]].schedule.getSymName();
    for (ClusterOp cluster : module.getOps<ClusterOp>())
      for (size_t rank = 0, end = cluster.getCluster().devices.size();
           rank < end; ++rank)
        if (!classOf.contains(rank))
          return module.emitError("rank ") << rank << " has no schedule";
    return success();
  }

  /// A channel is one exchange: once in each class, alike in all, and in the
  /// class of every rank that takes part.
  LogicalResult collectChannels() {
    parallelForEach(module.getContext(), classes, [](RankClass &rankClass) {
      rankClass.schedule.walk<WalkOrder::PreOrder>([&](CollectiveOp op) {
        rankClass.collectives.push_back(op);
        rankClass.uses[op.getChannel()].push_back(op);
      });
    });
    llvm::MapVector<int64_t, CollectiveOp> firstOf;
    for (RankClass &rankClass : classes)
      for (auto &[channel, ops] : rankClass.uses)
        firstOf.insert({channel, ops.front()});
    if (failed(failableParallelForEach(
            module.getContext(), classes, [&](const RankClass &rankClass) {
              for (const auto &[channel, ops] : rankClass.uses)
                for (CollectiveOp op : ops)
                  if (failed(verifySame(firstOf.lookup(channel), op)))
                    return failure();
              return success();
            })))
      return failure();
    return failableParallelForEach(
        module.getContext(), firstOf, [&](const auto &entry) {
          auto [channel, op] = entry;
          for (PlacementAttr side : {op.getFrom(), op.getTo()})
            for (DeviceId rank : side.getValue().devices())
              if (failed(verifyTakesPart(op, channel, rank,
                                         side.getValue().holds(rank))))
                return failure();
          return success();
        });
  }

  static LogicalResult verifySame(CollectiveOp first, CollectiveOp op) {
    auto elementType = [](CollectiveOp op) {
      Value value = op.getInput() ? op.getInput() : op.getOutput();
      return value ? getElementTypeOrSelf(value) : Type();
    };
    StringRef what;
    if (first->getName() != op->getName())
      what = "another kind";
    else if (first.getFrom() != op.getFrom() || first.getTo() != op.getTo())
      what = "other placements";
    else if (elementType(first) != elementType(op))
      what = "another element type";
    else
      return success();
    InFlightDiagnostic diagnostic = op.emitOpError("channel ");
    diagnostic << int64_t(op.getChannel()) << " has " << what
               << " in another rank class";
    diagnostic.attachNote(first.getLoc()) << "there it is this one";
    return diagnostic;
  }

  LogicalResult verifyTakesPart(CollectiveOp op, int64_t channel, DeviceId rank,
                                bool holds) {
    auto it = classOf.find(rank);
    if (it == classOf.end())
      return op.emitOpError("channel ")
             << channel << " names rank " << rank << ", which has no schedule";
    if (holds && !classes[it->second].uses.contains(channel))
      return op.emitOpError("channel ")
             << channel << " waits for rank " << rank << ", whose schedule @"
             << classes[it->second].schedule.getSymName() << " has none";
    return success();
  }

  /// A value's shard on each rank of the class, as the signature has it.
  LogicalResult verifySignature(ScheduleOp schedule) {
    ScheduleOp first = classes.front().schedule;
    if (schedule.getNumArguments() != first.getNumArguments() ||
        schedule.getNumResults() != first.getNumResults())
      return schedule.emitError("takes ")
             << schedule.getNumArguments() << " arguments and gives "
             << schedule.getNumResults() << " results, and @"
             << first.getSymName() << " " << first.getNumArguments() << " and "
             << first.getNumResults();
    for (unsigned i = 0; i < schedule.getNumArguments(); ++i)
      if (failed(verifyShard(
              schedule, "argument", i, schedule.getArgumentTypes()[i],
              schedule.getArgAttrDict(i), first.getArgAttrDict(i))))
        return failure();
    for (unsigned i = 0; i < schedule.getNumResults(); ++i)
      if (failed(verifyShard(
              schedule, "result", i, schedule.getResultTypes()[i],
              schedule.getResultAttrDict(i), first.getResultAttrDict(i))))
        return failure();
    return success();
  }

  LogicalResult verifyShard(ScheduleOp schedule, StringRef kind, unsigned index,
                            Type local, DictionaryAttr attributes,
                            DictionaryAttr inFirst) {
    auto fail = [&]() -> InFlightDiagnostic {
      return schedule.emitError() << kind << " #" << index << " ";
    };
    auto get = [](DictionaryAttr from, StringRef name) {
      return from ? from.get(name) : Attribute();
    };
    for (StringRef name :
         {StringRef(placementAttrName), StringRef(globalTypeAttrName)}) {
      if (!get(attributes, name))
        return fail() << "has no '" << name << "'";
      if (get(attributes, name) != get(inFirst, name))
        return fail() << "has another '" << name << "' than in @"
                      << classes.front().schedule.getSymName();
    }
    const Placement &placement =
        cast<PlacementAttr>(get(attributes, placementAttrName)).getValue();
    auto typeAttr = dyn_cast<TypeAttr>(get(attributes, globalTypeAttrName));
    auto type = typeAttr ? dyn_cast<RankedTensorType>(typeAttr.getValue())
                         : RankedTensorType();
    if (!type || !type.hasStaticShape())
      return fail() << "has a '" << globalTypeAttrName
                    << "' that is no tensor type";
    std::optional<CommonView> common =
        commonRefinement(type.getShape(), placement.view());
    if (!common || common->extents != placement.view())
      return fail() << "is a " << type << ", of which " << placement.str()
                    << " is no placement";
    if (placement.isPartial())
      return fail() << "is partial";
    for (DeviceId device : placement.devices())
      if (!classOf.contains(device))
        return fail() << "has a part on rank " << device
                      << ", which has no schedule";
    for (int64_t rank : schedule.getRanks()) {
      RankedTensorType expected =
          getLocalType(type, placement, rank).value_or(getAbsentType(type));
      if (local != expected)
        return fail() << "is a " << local << ", but the shard of rank " << rank
                      << " is a " << expected;
    }
    return success();
  }

  /// What two classes both take part in, they do equally often and in the same
  /// loops and branches.
  static LogicalResult verifyUses(RankClass &a, RankClass &b) {
    llvm::DenseMap<Region *, Region *> regionOf;
    for (auto &[channel, ops] : a.uses) {
      auto it = b.uses.find(channel);
      if (it == b.uses.end())
        continue;
      if (ops.size() != it->second.size())
        return ops.front().emitOpError("channel ")
               << channel << " is used " << ops.size() << " times, and "
               << it->second.size() << " times in @" << b.schedule.getSymName();
      for (auto [op, other] : llvm::zip(ops, it->second)) {
        auto fail = [&]() {
          InFlightDiagnostic diagnostic = op.emitOpError("channel ");
          diagnostic << channel << " is in another loop or branch in @"
                     << b.schedule.getSymName();
          diagnostic.attachNote(other.getLoc()) << "there it is this one";
          return diagnostic;
        };
        Region *left = op->getParentRegion();
        Region *right = other->getParentRegion();
        while (left != &a.schedule.getBody() &&
               right != &b.schedule.getBody()) {
          Region *&known = regionOf[left];
          if ((known && known != right) ||
              left->getParentOp()->getName() !=
                  right->getParentOp()->getName() ||
              left->getRegionNumber() != right->getRegionNumber())
            return fail();
          known = right;
          left = left->getParentRegion();
          right = right->getParentRegion();
        }
        if (left != &a.schedule.getBody() || right != &b.schedule.getBody())
          return fail();
      }
    }
    return success();
  }

  /// Lets all classes reach their collectives in turn. One that only sends, or
  /// takes a part of what it has, goes on; any other waits until all that take
  /// part have come as often.
  LogicalResult replay() {
    llvm::DenseMap<int64_t, SmallVector<size_t>> takesPart;
    for (auto [index, rankClass] : llvm::enumerate(classes))
      for (auto &[channel, ops] : rankClass.uses)
        takesPart[channel].push_back(index);
    SmallVector<size_t> next(classes.size(), 0);
    // How often a class has come to a channel, counting the present time.
    std::vector<llvm::DenseMap<int64_t, size_t>> times(classes.size());
    SmallVector<bool> hasCome(classes.size(), false);
    bool moved = true;
    while (moved) {
      moved = false;
      for (auto [index, rankClass] : llvm::enumerate(classes))
        while (next[index] < rankClass.collectives.size()) {
          CollectiveOp op = rankClass.collectives[next[index]];
          int64_t channel = op.getChannel();
          if (!hasCome[index]) {
            ++times[index][channel];
            hasCome[index] = moved = true;
          }
          bool waits = op.getOutput() && !isa<LocalSliceOp>(op.getOperation());
          if (waits && llvm::any_of(takesPart[channel], [&](size_t other) {
                return times[other].lookup(channel) < times[index][channel];
              }))
            break;
          hasCome[index] = false;
          moved = true;
          ++next[index];
        }
    }
    for (auto [index, rankClass] : llvm::enumerate(classes)) {
      if (next[index] == rankClass.collectives.size())
        continue;
      CollectiveOp op = rankClass.collectives[next[index]];
      for (size_t other : takesPart[op.getChannel()]) {
        if (times[other].lookup(op.getChannel()) >=
            times[index].lookup(op.getChannel()))
          continue;
        InFlightDiagnostic diagnostic = op.emitOpError("channel ");
        diagnostic << int64_t(op.getChannel())
                   << " is reached in another order in @"
                   << classes[other].schedule.getSymName();
        if (next[other] < classes[other].collectives.size())
          diagnostic.attachNote(
              classes[other].collectives[next[other]].getLoc())
              << "which waits here";
        return diagnostic;
      }
    }
    return success();
  }

  ModuleOp module;
  SmallVector<RankClass> classes;
  llvm::DenseMap<int64_t, size_t> classOf;
};

struct VerifyPartitionPass : impl::VerifyPartitionBase<VerifyPartitionPass> {
  using VerifyPartitionBase::VerifyPartitionBase;

  void runOnOperation() final {
    markAllAnalysesPreserved();
    if (failed(Verifier(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace whale
