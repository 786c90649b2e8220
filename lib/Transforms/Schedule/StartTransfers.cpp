//===- StartTransfers.cpp - whale-start-transfers -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the functions of the rank classes, instructions in the order in which
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

#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/StepCost.h"
#include "whale/Step/TransferOrder.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_STARTTRANSFERS
#include "whale/Transforms/Schedule/Passes.h.inc"

namespace {

/// What the instructions of a program take, by the model of the cluster.
class InstructionCosts {
public:
  InstructionCosts(ModuleOp module, int64_t numRanks) {
    for (ClusterOp op : module.getOps<ClusterOp>())
      cluster = op.getCluster();
    // A module without a cluster is one of equal ranks.
    if (cluster.devices.empty())
      cluster = Cluster::ofRanks(numRanks);
    topology = Topology::of(cluster);
    model = createRooflineModel(cluster);
  }

  double secondsOf(Operation *op, int64_t device) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto [known, isNew] =
          segmentSeconds.try_emplace({call.getCallee(), device});
      if (isNew)
        known->second = secondsOf(
            symbols
                .lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr())
                .getBody(),
            device);
      return known->second;
    }
    if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
      return repeatCost(double(tripCount(loop).value_or(1)),
                        secondsOf(loop.getCond(), device) +
                            secondsOf(loop.getBody(), device));
    double most = 0;
    for (Region &region : op->getRegions())
      most = std::max(most, secondsOf(region, device));
    if (op->getNumRegions() > 0)
      return most;
    OpCost cost;
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      cost.opClass = OpClass::Elementwise;
      if (func::FuncOp kernel = launch.getKernelFunc(symbols)) {
        cost.flops = numberOf(kernel, kFlopsAttrName);
        cost.bytes = numberOf(kernel, kBytesAttrName);
      }
    } else if (auto matmul = dyn_cast<MatmulOp>(op)) {
      cost.opClass = OpClass::Matmul;
      cost.flops = double(matmul.getFlops());
      cost.bytes = operandBytes(op);
    } else if (auto convolution = dyn_cast<ConvolutionOp>(op)) {
      cost.opClass = OpClass::Convolution;
      cost.flops = double(convolution.getFlops());
      cost.bytes = operandBytes(op);
    } else if (isa<LibraryCallOp>(op)) {
      // Of attention, which consists of products, the arithmetic is known.
      cost.flops = numberOf(op, kFlopsAttrName);
      cost.opClass = cost.flops > 0 ? OpClass::Matmul : cost.opClass;
      cost.bytes = operandBytes(op);
    } else {
      return 0;
    }
    std::string dtype;
    if (op->getNumResults() > 0)
      dtype = getDTypeName(getElementTypeOrSelf(op->getResult(0).getType()));
    cost.dtype = dtype;
    return model->opSeconds(cost, device);
  }

  double secondsOf(CollectiveOp op) {
    Value value = op.getInput() ? op.getInput() : op.getOutput();
    StepKind kind = stepKindOf(op);
    int64_t bytes = getElementBytes(getElementTypeOrSelf(value.getType()));
    auto [known, isNew] = transferSeconds.try_emplace(
        {kind, bytes, op.getFrom().getAsOpaquePointer(),
         op.getTo().getAsOpaquePointer()});
    if (isNew)
      known->second = stepSeconds(
          *model, {kind, op.getFrom().getValue(), op.getTo().getValue()}, bytes,
          topology);
    return known->second;
  }

private:
  double secondsOf(Region &region, int64_t device) {
    double sum = 0;
    for (Operation &op : region.front().without_terminator())
      sum += secondsOf(&op, device);
    return sum;
  }

  static double numberOf(Operation *kernel, StringRef name) {
    auto number = kernel->getAttrOfType<IntegerAttr>(name);
    return number ? double(number.getInt()) : 0;
  }

  static double operandBytes(Operation *op) {
    double bytes = 0;
    for (Type type :
         llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                  SmallVector<Type>(op->getResultTypes())))
      bytes += double(getTensorBytes(type));
    return bytes;
  }

  Cluster cluster;
  Topology topology;
  std::unique_ptr<CostModel> model;
  SymbolTableCollection symbols;
  std::map<std::tuple<StepKind, int64_t, const void *, const void *>, double>
      transferSeconds;
  /// By segment and device.
  std::map<std::pair<llvm::StringRef, int64_t>, double> segmentSeconds;
};

/// All transfers of a program: each use of a channel by itself.
class Transfers {
public:
  explicit Transfers(InstructionCosts &costs) : costs(costs) {}

  /// That of the class's next use of a channel; `uses` counts them.
  size_t numberOf(CollectiveOp op, llvm::DenseMap<uint64_t, size_t> &uses) {
    uint64_t channel = op.getChannel();
    auto [it, isNew] =
        numbers.try_emplace({channel, uses[channel]++}, seconds.size());
    if (isNew)
      seconds.push_back(costs.secondsOf(op));
    return it->second;
  }

  std::vector<double> seconds;

private:
  InstructionCosts &costs;
  llvm::DenseMap<std::pair<uint64_t, size_t>, size_t> numbers;
};

/// What takes memory before it is needed.
enum class Ahead : uint8_t { Nothing, Receives, Gathers };

/// The instructions of a rank class, and which of them become starts.
class ClassSchedule {
public:
  ClassSchedule(func::FuncOp function)
      : block(&function.front()), device(getRanks(function)->front()) {}

  /// What may be moved.
  void read(InstructionCosts &costs, Transfers &transfers, Ahead ahead);
  void write(const std::vector<size_t> &rank,
             const std::vector<TransferTimes> &times);

  ClassTimeline timeline;
  /// Whether any gather starts ahead.
  bool hasAhead = false;

private:
  void joinStarts();
  void joinReshapes();
  void joinPacks();
  void moveToFirstUse(Operation *op);
  std::optional<TransferUse> findUse(CollectiveOp op, bool &isGather);
  size_t firstUseOf(Value value);

  Block *block;
  int64_t device;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, size_t> positions;
  /// Of each of the timeline's uses: what becomes a start, or null.
  SmallVector<Operation *> started;
};

} // namespace

/// What was started and waited for is one collective again, where it was waited
/// for; what no instruction uses where it was started. What is only sent is
/// where it can be sent: a start may have been held back for the order that is
/// given up.
void ClassSchedule::joinStarts() {
  for (auto wait : llvm::make_early_inc_range(block->getOps<WaitOp>())) {
    Operation *start = wait.getToken().getDefiningOp();
    OpBuilder builder(wait);
    if (wait.getReceived() &&
        llvm::all_of(wait->getUsers(), [](Operation *user) {
          return user->hasTrait<OpTrait::IsTerminator>();
        })) {
      builder.setInsertionPoint(start);
    } else if (!wait.getReceived()) {
      Value sent = cast<CollectiveOp>(start).getInput();
      if (sent.getParentBlock() != block || isa<BlockArgument>(sent))
        builder.setInsertionPointToStart(block);
      else
        builder.setInsertionPointAfterValue(sent);
    }
    OperationState state(start->getLoc(), start->getName());
    state.addOperands(start->getOperands());
    state.addAttributes(start->getAttrs());
    state.addTypes(TypeRange(start->getResultTypes()).drop_back());
    Operation *op = builder.create(state);
    wait->replaceAllUsesWith(op->getResults());
    wait->erase();
    start->erase();
  }
}

/// Reshapes are no instructions: what is sent under another shape is there when
/// its operand is, and what is received under one is used where that is.
void ClassSchedule::joinReshapes() {
  for (auto op :
       llvm::make_early_inc_range(block->getOps<stablehlo::ReshapeOp>())) {
    bool isSent = llvm::any_of(op->getUsers(), llvm::IsaPred<CollectiveOp>);
    Operation *producer = op.getOperand().getDefiningOp();
    if (isSent && producer && producer->getBlock() == block) {
      op->moveAfter(producer);
    } else if (!isSent && isa_and_nonnull<CollectiveOp>(producer)) {
      moveToFirstUse(op);
    }
  }
}

void ClassSchedule::moveToFirstUse(Operation *op) {
  Operation *first = block->getTerminator();
  for (Operation *user : op->getUsers()) {
    Operation *here = block->findAncestorOpInBlock(*user);
    if (here->isBeforeInBlock(first))
      first = here;
  }
  op->moveBefore(first);
}

/// A pack is there with the last of its parts, an unpack where the first of its
/// parts is needed.
void ClassSchedule::joinPacks() {
  for (auto op : llvm::make_early_inc_range(block->getOps<PackOp>())) {
    Operation *last = nullptr;
    for (Value part : op.getParts()) {
      Operation *producer = part.getDefiningOp();
      if (producer && producer->getBlock() == block &&
          (!last || last->isBeforeInBlock(producer)))
        last = producer;
    }
    if (last)
      op->moveAfter(last);
  }
  for (auto op : llvm::make_early_inc_range(block->getOps<UnpackOp>()))
    moveToFirstUse(op);
}

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

void ClassSchedule::read(InstructionCosts &costs, Transfers &transfers,
                         Ahead ahead) {
  if (ops.empty()) {
    joinStarts();
    joinReshapes();
    joinPacks();
    for (Operation &op : block->without_terminator()) {
      positions[&op] = ops.size();
      ops.push_back(&op);
      timeline.seconds.push_back(costs.secondsOf(&op, device));
    }
  }
  timeline.uses.clear();
  started.clear();
  llvm::DenseMap<uint64_t, size_t> uses;
  struct Found {
    TransferUse use;
    Operation *started;
    size_t number;
    bool isGather;
  };
  SmallVector<Found> found;
  for (auto [position, op] : llvm::enumerate(ops))
    op->walk<WalkOrder::PreOrder>(
        [&, position = position, op = op](CollectiveOp collective) {
          // A rank takes from itself alone.
          if (isa<LocalSliceOp>(collective.getOperation()))
            return;
          std::optional<TransferUse> use;
          bool isGather = false;
          if (collective == op)
            use = findUse(collective, isGather);
          if (isGather && ahead != Ahead::Gathers)
            use.reset();
          if (use && !use->ready && ahead == Ahead::Nothing) {
            use->isFixed = true;
            // What no instruction uses.
            if (use->needed == ops.size())
              use->needed = position;
          }
          bool isStarted = bool(use);
          if (!use) {
            use.emplace();
            use->isFixed = true;
            use->needed = position;
          }
          use->channel = collective.getChannel();
          use->transfer = transfers.numberOf(collective, uses);
          found.push_back({*use, isStarted ? op : nullptr, found.size(),
                           isStarted && isGather});
        });
  // What an instruction needs is there before its own exchange.
  llvm::sort(found, [](const Found &a, const Found &b) {
    return std::tuple(a.use.needed, a.use.isFixed, a.number) <
           std::tuple(b.use.needed, b.use.isFixed, b.number);
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

/// Memory is taken for what makes a step faster than this: the model of a step
/// is no more exact.
constexpr double kWorthMemory = 0.98;

std::optional<TransferOrder> orderAll(InstructionCosts &costs,
                                      std::vector<ClassSchedule> &schedules,
                                      Ahead ahead) {
  Transfers transfers(costs);
  std::vector<ClassTimeline> timelines;
  for (ClassSchedule &schedule : schedules) {
    schedule.read(costs, transfers, ahead);
    timelines.push_back(schedule.timeline);
  }
  return orderTransfers(timelines, transfers.seconds);
}

struct StartTransfersPass : impl::StartTransfersBase<StartTransfersPass> {
  using Base::Base;

  void runOnOperation() final {
    SmallVector<func::FuncOp> functions = getRankClasses(getOperation());
    int64_t numRanks = 0;
    for (func::FuncOp function : functions)
      numRanks = std::max(numRanks, getRanks(function)->back() + 1);
    if (functions.empty())
      return;
    InstructionCosts costs(getOperation(), numRanks);
    std::vector<ClassSchedule> schedules(functions.begin(), functions.end());
    std::optional<TransferOrder> order =
        orderAll(costs, schedules, late ? Ahead::Nothing : Ahead::Gathers);
    // Ranks may need what they receive together at different times.
    if (!order && late)
      order = orderAll(costs, schedules, Ahead::Receives);
    if (llvm::any_of(schedules,
                     [](const ClassSchedule &it) { return it.hasAhead; })) {
      std::optional<TransferOrder> plain =
          orderAll(costs, schedules, Ahead::Receives);
      if (plain && order && order->seconds < kWorthMemory * plain->seconds)
        order = orderAll(costs, schedules, Ahead::Gathers);
      else
        order = std::move(plain);
    }
    if (!order) {
      functions.front().emitError(
          "the rank classes wait for one another's transfers in a circle");
      return signalPassFailure();
    }
    std::vector<size_t> rank(order->order.size());
    for (auto [position, transfer] : llvm::enumerate(order->order))
      rank[transfer] = position;
    for (auto [schedule, times] : llvm::zip_equal(schedules, order->times))
      schedule.write(rank, times);
  }
};

} // namespace
} // namespace whale
