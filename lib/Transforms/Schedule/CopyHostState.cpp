//===- CopyHostState.cpp - whale-copy-host-state --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: schedules some of whose arguments and results are in the memory of hosts.
// Out: the same with copies, so that instructions use the memory of devices
// alone: of an argument before its first reader, of a result behind its maker.
// An argument is fetched again where others of at least its size were read
// since: its memory is free for them. whale-start-copies has copies begin
// earlier and end later. Cost: linear in arguments, results and uses, but for
// the reads between two of one argument, which end where it is fetched again.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Threading.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_COPYHOSTSTATE
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

/// Adds the copies of one class. Those of a tensor have one channel in all
/// classes.
class StateCopier {
public:
  StateCopier(ScheduleOp schedule, uint64_t firstChannel)
      : schedule(schedule), block(&schedule.front()),
        firstChannel(firstChannel) {}

  LogicalResult run();

private:
  bool isResultInHost(unsigned result) {
    return bool(schedule.getResultAttr(result, kInHostAttr));
  }
  struct Read {
    size_t position;
    OpOperand *use;
  };

  std::optional<unsigned> resultOf(BlockArgument argument);
  void findReads();
  bool isDroppedBetween(size_t from, size_t to, BlockArgument argument) const;
  LogicalResult fetch(BlockArgument argument);
  LogicalResult bringBack(unsigned result);

  ScheduleOp schedule;
  Block *block;
  uint64_t firstChannel;
  /// By argument in the host's memory: who reads it, in order, and the last
  /// instruction that it can be fetched for.
  llvm::DenseMap<unsigned, SmallVector<Read>> reads;
  llvm::DenseMap<unsigned, size_t> lastFetch;
  /// Instructions, by position, and the arguments that they read of these.
  std::vector<std::pair<size_t, unsigned>> readers;
};

} // namespace

/// The result in the host's memory that is the argument's next value.
std::optional<unsigned> StateCopier::resultOf(BlockArgument argument) {
  auto fed = schedule.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                    kFedByAttr);
  if (!fed || !isResultInHost(fed.getInt()))
    return std::nullopt;
  return fed.getInt();
}

/// The placement of a tensor, which whoever writes the text may have left out.
static PlacementAttr placementOf(ScheduleOp schedule, Attribute attribute) {
  auto placement = dyn_cast_or_null<PlacementAttr>(attribute);
  if (!placement)
    schedule.emitError("what is '")
        << kInHostAttr << "' has no whale.placement";
  return placement;
}

/// Notes which instructions read what is in the host's memory.
void StateCopier::findReads() {
  llvm::DenseMap<Operation *, size_t> positions;
  for (auto [position, op] : llvm::enumerate(*block))
    positions[&op] = position;
  for (BlockArgument argument : block->getArguments()) {
    unsigned number = argument.getArgNumber();
    if (!schedule.getArgAttr(number, kInHostAttr) ||
        getTensorBytes(argument.getType()) == 0)
      continue;
    SmallVector<Read> &own = reads[number];
    for (OpOperand &use : argument.getUses()) {
      // A state that stays as it is, stays where it is.
      if (use.getOwner() == block->getTerminator() &&
          use.getOperandNumber() == resultOf(argument))
        continue;
      size_t position =
          positions.at(block->findAncestorOpInBlock(*use.getOwner()));
      own.push_back({position, &use});
      readers.push_back({position, number});
    }
    llvm::stable_sort(own, [](const Read &a, const Read &b) {
      return a.position < b.position;
    });
    // The old value is not there once the new one has come back.
    size_t &last = lastFetch[number];
    last = positions.size();
    if (std::optional<unsigned> result = resultOf(argument))
      if (auto maker = positions.find(
              block->getTerminator()->getOperand(*result).getDefiningOp());
          maker != positions.end())
        last = maker->second;
  }
  llvm::sort(readers);
  readers.erase(llvm::unique(readers), readers.end());
}

/// Whether so much else of the host's memory is read between two instructions
/// that an argument is fetched again for the second one.
bool StateCopier::isDroppedBetween(size_t from, size_t to,
                                   BlockArgument argument) const {
  int64_t room = getTensorBytes(argument.getType());
  llvm::SmallDenseSet<unsigned> seen = {argument.getArgNumber()};
  for (auto it = llvm::upper_bound(readers, std::pair(from, ~0u));
       it != readers.end() && it->first < to && room > 0; ++it)
    if (seen.insert(it->second).second)
      room -= getTensorBytes(block->getArgument(it->second).getType());
  return room <= 0;
}

LogicalResult StateCopier::fetch(BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  ArrayRef<Read> own = reads[number];
  if (own.empty())
    return success();
  PlacementAttr placement =
      placementOf(schedule, schedule.getArgAttr(number, placementAttrName));
  if (!placement)
    return failure();
  Value copy;
  size_t before = 0;
  for (const Read &read : own) {
    if (!copy || (read.position <= lastFetch[number] &&
                  isDroppedBetween(before, read.position, argument))) {
      OpBuilder builder(block->findAncestorOpInBlock(*read.use->getOwner()));
      copy = HostToDeviceOp::create(
                 builder, argument.getLoc(), TypeRange(argument.getType()),
                 argument,
                 builder.getI64IntegerAttr(int64_t(firstChannel + number)),
                 placement)
                 .getResult(0);
    }
    read.use->set(copy);
    before = read.position;
  }
  return success();
}

LogicalResult StateCopier::bringBack(unsigned result) {
  OpOperand &operand = block->getTerminator()->getOpOperand(result);
  Value value = operand.get();
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && resultOf(argument) == result &&
      schedule.getArgAttr(argument.getArgNumber(), kInHostAttr))
    return success();
  PlacementAttr placement =
      placementOf(schedule, schedule.getResultAttr(result, placementAttrName));
  if (!placement)
    return failure();
  OpBuilder builder(schedule.getContext());
  if (value.getDefiningOp())
    builder.setInsertionPointAfterValue(value);
  else
    builder.setInsertionPointToStart(block);
  uint64_t channel = firstChannel + schedule.getNumArguments() + result;
  auto copy = DeviceToHostOp::create(
      builder, value.getLoc(), TypeRange(value.getType()), value,
      builder.getI64IntegerAttr(int64_t(channel)), placement);
  operand.set(copy.getResult(0));
  return success();
}

LogicalResult StateCopier::run() {
  findReads();
  for (BlockArgument argument : block->getArguments())
    if (failed(fetch(argument)))
      return failure();
  for (unsigned result = 0; result < schedule.getNumResults(); ++result)
    if (isResultInHost(result) &&
        getTensorBytes(schedule.getResultTypes()[result]) > 0 &&
        failed(bringBack(result)))
      return failure();
  return success();
}

namespace {

struct CopyHostStatePass : impl::CopyHostStateBase<CopyHostStatePass> {
  using Base::Base;

  void runOnOperation() final {
    SmallVector<ScheduleOp> classes = getRankClasses(getOperation());
    if (llvm::none_of(classes, isOffloaded))
      return;
    uint64_t firstChannel = 0;
    getOperation().walk([&](CollectiveOp op) {
      firstChannel = std::max(firstChannel, op.getChannel() + 1);
    });
    if (failed(failableParallelForEach(
            &getContext(), classes, [&](ScheduleOp schedule) {
              return StateCopier(schedule, firstChannel).run();
            })))
      signalPassFailure();
  }

  static bool isOffloaded(ScheduleOp schedule) {
    for (unsigned i = 0; i < schedule.getNumArguments(); ++i)
      if (schedule.getArgAttr(i, kInHostAttr))
        return true;
    for (unsigned i = 0; i < schedule.getNumResults(); ++i)
      if (schedule.getResultAttr(i, kInHostAttr))
        return true;
    return false;
  }
};

} // namespace
} // namespace whale
