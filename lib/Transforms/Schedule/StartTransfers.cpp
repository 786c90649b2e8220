//===- StartTransfers.cpp - whale-start-transfers -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of the rank classes, instructions in the order in which
// they are computed, with collectives that are over where they are. Out: the
// same with starts and waits, where that costs no memory or is what a transfer
// between two stages needs. The planner's orderTransfers says when; this says
// what may be moved, and moves it.
//
// A reduction starts when its operand is there: it works in its operand's
// buffer, or gives back memory when it is over. What is only sent starts where
// it is, and what is only received with it. What gives every rank more than
// it had (a gather) takes memory from its start on: it starts one ahead, where
// the model of the step says that this is worth it. All else stays one.
//
//===----------------------------------------------------------------------===//

#include "ApplyGradients.h"
#include "InstructionCosts.h"
#include "JoinTransfers.h"
#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/TransferOrder.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_STARTTRANSFERS
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

/// All transfers of a program: each use of a channel by itself.
class Transfers {
public:
  /// That of the class's next use of a channel; `uses` counts them.
  size_t numberOf(CollectiveOp op, llvm::DenseMap<uint64_t, size_t> &uses) {
    uint64_t channel = op.getChannel();
    auto [it, isNew] =
        numbers.try_emplace({channel, uses[channel]++}, firsts.size());
    if (isNew)
      firsts.push_back(op);
    return it->second;
  }

  /// By number: what some class has of it.
  ArrayRef<CollectiveOp> getFirsts() const { return firsts; }

private:
  SmallVector<CollectiveOp> firsts;
  llvm::DenseMap<std::pair<uint64_t, size_t>, size_t> numbers;
};

/// What starts before it is needed: nothing, what takes no memory for that,
/// what is received, too, and gathers, too.
enum class Ahead : uint8_t { Nothing, Sends, Receives, Gathers };

/// The instructions of a rank class, and which of them become starts.
class ClassSchedule {
public:
  ClassSchedule(ScheduleOp schedule)
      : block(&schedule.front()), device(schedule.getRanks().front()) {}

  /// Undoes what was decided before, and reads what instructions take.
  void prepare(ProgramCosts &costs);
  void number(Transfers &transfers);
  /// What may be moved.
  void read(Ahead ahead);
  void write(const std::vector<size_t> &rank,
             const std::vector<TransferTimes> &times);

  ClassTimeline timeline;
  /// Whether any gather starts ahead.
  bool hasAhead = false;

private:
  std::optional<TransferUse> findUse(CollectiveOp op, bool &isGather);
  bool isNextArgument(CollectiveOp op, TransferUse &use) const;
  size_t firstUseOf(Value value);

  Block *block;
  int64_t device;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, size_t> positions;
  /// The collectives, each with its number among the program's transfers.
  SmallVector<std::pair<CollectiveOp, size_t>> collectives;
  /// Of each of the timeline's uses: what becomes a start, or null.
  SmallVector<Operation *> started;
};

} // namespace

size_t ClassSchedule::firstUseOf(Value value) {
  size_t first = ops.size();
  for (Operation *user : value.getUsers()) {
    auto it = positions.find(block->findAncestorOpInBlock(*user));
    if (it != positions.end())
      first = std::min(first, it->second);
  }
  return first;
}

/// How the collective can be divided in start and wait; nothing if it stays
/// one.
std::optional<TransferUse> ClassSchedule::findUse(CollectiveOp op,
                                                  bool &isGather) {
  Value sent = op.getInput(), received = op.getOutput();
  TransferUse use;
  use.needed = received ? firstUseOf(received) : ops.size();
  if (!sent)
    return use;
  Value root = sent;
  bool isOnlyUse = true;
  while (true) {
    isOnlyUse &= root.hasOneUse();
    auto reshape = root.getDefiningOp<stablehlo::ReshapeOp>();
    if (!reshape)
      break;
    root = reshape.getOperand();
  }
  // What has only just been received is there at an instruction, not before it.
  Operation *producer = root.getDefiningOp();
  if (isa_and_nonnull<CollectiveOp>(producer))
    return std::nullopt;
  use.keepsSource = true;
  if (!received) {
    use.ready = positions.at(op);
    return use;
  }
  bool isInPlace = isa<AllReduceOp>(op.getOperation());
  isGather = !isInPlace && !isa<ReduceScatterOp>(op.getOperation());
  auto here = positions.find(sent.getDefiningOp());
  size_t ready = here == positions.end() ? 0 : here->second + 1;
  if (isGather) {
    use.ready = ready;
    return use;
  }
  // What nothing else reads need not be there behind it.
  if (!isOnlyUse || !producer || producer->getBlock() != block ||
      isa<stablehlo::ConstantOp, ShardOffsetOp>(producer))
    return std::nullopt;
  use.ready = ready;
  use.keepsSource = !isInPlace;
  return use;
}

/// Whether what a gather gives is an argument of the next step alone, whose
/// memory is there all the time: it starts early, but behind what reads the
/// argument of this step.
bool ClassSchedule::isNextArgument(CollectiveOp op, TransferUse &use) const {
  if (!op.getOutput() || !op.getOutput().hasOneUse() ||
      use.needed != ops.size())
    return false;
  OpOperand &result = *op.getOutput().use_begin();
  if (result.getOwner() != block->getTerminator())
    return false;
  auto schedule = cast<ScheduleOp>(block->getParentOp());
  for (BlockArgument argument : block->getArguments()) {
    auto fed = schedule.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                      kFedByAttr);
    if (!fed || fed.getInt() != result.getOperandNumber())
      continue;
    for (Operation *user : argument.getUsers())
      if (auto it = positions.find(block->findAncestorOpInBlock(*user));
          it != positions.end())
        use.ready = std::max(*use.ready, it->second + 1);
    return true;
  }
  return false;
}

void ClassSchedule::prepare(ProgramCosts &program) {
  joinTransfers(block);
  InstructionCosts costs(program, device);
  for (Operation &op : block->without_terminator()) {
    positions[&op] = ops.size();
    ops.push_back(&op);
    timeline.seconds.push_back(costs.secondsOf(&op));
  }
}

void ClassSchedule::number(Transfers &transfers) {
  llvm::DenseMap<uint64_t, size_t> uses;
  block->walk<WalkOrder::PreOrder>([&](CollectiveOp op) {
    // A rank takes from itself alone, and copies in another queue.
    if (!isa<LocalSliceOp>(op.getOperation()) && !isHostCopy(op))
      collectives.push_back({op, transfers.numberOf(op, uses)});
  });
}

void ClassSchedule::read(Ahead ahead) {
  timeline.uses.clear();
  started.clear();
  struct Found {
    TransferUse use;
    Operation *started;
    size_t number;
    bool isGather;
  };
  SmallVector<Found> found;
  for (auto [collective, number] : collectives) {
    Operation *op = block->findAncestorOpInBlock(*collective);
    size_t position = positions.at(op);
    std::optional<TransferUse> use;
    bool isGather = false;
    if (collective == op)
      use = findUse(collective, isGather);
    if (isGather && use && isNextArgument(collective, *use))
      isGather = false;
    if (ahead == Ahead::Nothing || (isGather && ahead != Ahead::Gathers))
      use.reset();
    // An empty share takes no memory, wherever it is received.
    if (use && !use->ready && ahead == Ahead::Sends &&
        getTensorBytes(collective.getOutput().getType()) > 0) {
      use->start = TransferStart::Fixed;
      // What no instruction uses.
      if (use->needed == ops.size())
        use->needed = position;
    }
    bool isStarted = bool(use);
    if (!use) {
      use.emplace();
      use->start = TransferStart::Inside;
      use->needed = position;
    }
    use->channel = collective.getChannel();
    use->transfer = number;
    found.push_back(
        {*use, isStarted ? op : nullptr, found.size(), isStarted && isGather});
  }
  // What an instruction needs is there before its own exchange.
  llvm::sort(found, [](const Found &a, const Found &b) {
    return std::tuple(a.use.needed, a.use.isFixed(), a.number) <
           std::tuple(b.use.needed, b.use.isFixed(), b.number);
  });
  // One ahead: from the first use of the gather before it.
  size_t earliest = 0;
  hasAhead = false;
  for (Found &one : found) {
    if (one.isGather) {
      one.use.ready = std::max(*one.use.ready, earliest);
      hasAhead |= *one.use.ready < one.use.needed;
      earliest = one.use.needed;
    }
    timeline.uses.push_back(one.use);
    started.push_back(one.started);
  }
}

/// The same collective, with a token.
static Operation *createStart(OpBuilder &builder, Operation *op) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addAttributes(op->getAttrs());
  state.addTypes(op->getResultTypes());
  state.addTypes(TokenType::get(op->getContext()));
  return builder.create(state);
}

static Operation *createWait(OpBuilder &builder, Operation *op,
                             CollectiveOp start, const TransferUse &use) {
  Value received = start.getOutput();
  auto wait = WaitOp::create(
      builder, op->getLoc(), received ? received.getType() : Type(),
      start.getToken(), received, use.keepsSource ? start.getInput() : Value());
  if (received)
    op->getResult(0).replaceAllUsesWith(wait.getResult());
  return wait;
}

void ClassSchedule::write(const std::vector<size_t> &rank,
                          const std::vector<TransferTimes> &times) {
  SmallVector<size_t> uses;
  for (size_t i = 0; i < started.size(); ++i)
    if (started[i])
      uses.push_back(i);
  llvm::sort(uses, [&](size_t a, size_t b) {
    return rank[timeline.uses[a].transfer] < rank[timeline.uses[b].transfer];
  });
  // What comes before each instruction: starts, then waits.
  std::vector<SmallVector<Operation *, 0>> starts(ops.size() + 1),
      waits(ops.size() + 1);
  OpBuilder builder = OpBuilder::atBlockTerminator(block);
  llvm::SmallPtrSet<Operation *, 16> replaced;
  for (size_t use : uses) {
    Operation *op = started[use];
    Operation *start = createStart(builder, op);
    starts[times[use].start].push_back(start);
    waits[times[use].wait].push_back(
        createWait(builder, op, cast<CollectiveOp>(start), timeline.uses[use]));
    replaced.insert(op);
  }
  for (size_t position = 0; position <= ops.size(); ++position) {
    for (auto *list : {&starts[position], &waits[position]})
      for (Operation *op : *list)
        op->moveBefore(block->getTerminator());
    if (position == ops.size())
      break;
    if (replaced.contains(ops[position]))
      ops[position]->erase();
    else
      ops[position]->moveBefore(block->getTerminator());
  }
}

namespace {

/// The order of all transfers, as far as classes may move them.
std::optional<TransferOrder> orderAll(std::vector<ClassSchedule> &schedules,
                                      const std::vector<double> &seconds) {
  std::vector<ClassTimeline> timelines;
  for (ClassSchedule &schedule : schedules)
    timelines.push_back(std::move(schedule.timeline));
  std::optional<TransferOrder> order = orderTransfers(timelines, seconds);
  for (auto [schedule, timeline] : llvm::zip_equal(schedules, timelines))
    schedule.timeline = std::move(timeline);
  return order;
}

/// Memory is taken for what makes a step faster than this: the model of a step
/// is no more exact.
constexpr double kWorthMemory = 0.98;

struct StartTransfersPass : impl::StartTransfersBase<StartTransfersPass> {
  using Base::Base;

  void runOnOperation() final {
    SmallVector<ScheduleOp> classes = getRankClasses(getOperation());
    int64_t numRanks = 0;
    for (ScheduleOp schedule : classes)
      numRanks = std::max(numRanks, schedule.getRanks().back() + 1);
    if (classes.empty())
      return;
    ProgramCosts costs(getOperation(), numRanks);
    std::vector<std::unique_ptr<GradientApplication>> updates(classes.size());
    GradientApplication::Options options = {
        Config(getOperation()).getNumApplyGroups().value_or(0), late};
    parallelFor(&getContext(), 0, classes.size(), [&](size_t i) {
      joinTransfers(&classes[i].front());
      updates[i] =
          std::make_unique<GradientApplication>(classes[i], costs, options);
      updates[i]->apply();
    });
    bool isOrdered = order(classes, costs);
    if (isOrdered) {
      explain(classes, updates);
      return;
    }
    // Exchanges between updates may be in a circle with others.
    for (auto &update : updates)
      update->undo();
    if (!order(classes, costs)) {
      classes.front().emitError(
          "the rank classes wait for one another's transfers in a circle");
      return signalPassFailure();
    }
  }

  /// Says what keeps updates from standing behind their gradients.
  void explain(ArrayRef<ScheduleOp> classes,
               ArrayRef<std::unique_ptr<GradientApplication>> updates) {
    for (auto [schedule, update] :
         llvm::zip_equal(llvm::to_vector(classes), updates))
      if (int64_t bytes = update->getHeldBytes()) {
        emitRemark(schedule.getLoc())
            << "apply: on device " << schedule.getRanks().front() << " "
            << bytes
            << " bytes of gradients wait for a value that is computed of "
               "several, such as their norm";
        return;
      }
  }

  /// Decides when transfers start and end; false if ranks would wait for one
  /// another in a circle.
  bool order(ArrayRef<ScheduleOp> classes, ProgramCosts &costs) {
    std::vector<ClassSchedule> schedules(classes.begin(), classes.end());
    parallelForEach(&getContext(), schedules,
                    [&](ClassSchedule &it) { it.prepare(costs); });
    Transfers transfers;
    for (ClassSchedule &schedule : schedules)
      schedule.number(transfers);
    std::vector<double> seconds = costs.secondsOf(transfers.getFirsts());
    auto readAll = [&](std::vector<ClassSchedule> &all, Ahead ahead) {
      parallelForEach(&getContext(), all,
                      [&](ClassSchedule &it) { it.read(ahead); });
    };
    std::optional<TransferOrder> order;
    readAll(schedules, late ? Ahead::Sends : Ahead::Gathers);
    if (llvm::none_of(schedules,
                      [](const ClassSchedule &it) { return it.hasAhead; })) {
      order = orderAll(schedules, seconds);
    } else {
      std::vector<ClassSchedule> ahead = schedules;
      readAll(schedules, Ahead::Receives);
      std::optional<TransferOrder> orderAhead;
      parallelFor(&getContext(), 0, 2, [&](size_t i) {
        (i == 0 ? order : orderAhead) =
            orderAll(i == 0 ? schedules : ahead, seconds);
      });
      if (orderAhead &&
          (!order || orderAhead->seconds < kWorthMemory * order->seconds)) {
        schedules = std::move(ahead);
        order = std::move(orderAhead);
      }
    }
    // Ranks may need what they receive together at different times, or another
    // rank may need what one has to hold back for a loop.
    for (Ahead other : {Ahead::Receives, Ahead::Nothing})
      if (!order) {
        readAll(schedules, other);
        order = orderAll(schedules, seconds);
      }
    if (!order)
      return false;
    std::vector<size_t> rank(order->order.size());
    for (auto [position, transfer] : llvm::enumerate(order->order))
      rank[transfer] = position;
    parallelFor(&getContext(), 0, schedules.size(),
                [&](size_t i) { schedules[i].write(rank, order->times[i]); });
    return true;
  }
};

} // namespace
} // namespace whale
