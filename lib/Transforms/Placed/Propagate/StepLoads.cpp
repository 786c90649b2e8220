//===- StepLoads.cpp - What a step asks of each device --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the step, with the layouts along both axes of its meshes. Out: for each
// mesh, seconds by speed class, and bytes that begin and end at positions in
// the step.
//
// Positions are in the order in which the program will run operations. A value
// is held from where it is made to its last use (of a use in a loop, the loop's
// end); what will be fused into its user's kernel is not held, but keeps what
// it reads. Cost: linear in operations and uses, times the speed classes.
//
//===----------------------------------------------------------------------===//

#include "StepLoads.h"

#include "StoredValues.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/Reducers.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/FusedLoops.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// The phase of the TaskGraph around an operation.
static std::optional<Phase> graphPhaseOf(Operation *op) {
  TaskGraphOp graph = graphOf(op);
  return graph ? graph.getPhase() : std::optional<Phase>();
}

StepLoads::StepLoads(func::FuncOp function, const Cluster &cluster,
                     const StepMeshes &stepMeshes, const StepLayouts &layouts,
                     llvm::function_ref<int64_t(Operation *)> inFlight)
    : function(function), cluster(cluster), stepMeshes(stepMeshes),
      batch(*layouts.getAxes()[0]), inner(*layouts.getAxes()[1]),
      inFlight(inFlight),
      gathersParameters(
          Config(function->getParentOfType<ModuleOp>()).getZeroLevel() ==
          ZeroLevel::Parameters) {
  findSpeedClasses();
  findMoments();
  number();
  addWork();
  addMemory();
}

void StepLoads::findSpeedClasses() {
  std::map<std::pair<unsigned, double>, unsigned> known;
  for (auto [id, device] : llvm::enumerate(cluster.devices)) {
    auto [it, isNew] = known.try_emplace({device.kind, device.slowdown},
                                         unsigned(speedClasses.size()));
    if (isNew)
      speedClasses.push_back(id);
    classOf.push_back(it->second);
  }
}

void StepLoads::findMoments() {
  auto add = [&](Value value, int64_t dim) {
    int64_t samples = cast<ShapedType>(value.getType()).getDimSize(dim);
    AxisState state = batch.getState(value);
    moments.push_back(state.isSingle()  ? 1
                      : state.isSplit() ? state.piece.extent
                                        : samples);
    grain = samples / std::max<int64_t>(moments.back(), 1);
  };
  for (auto loop : function.getOps<MicroBatchesOp>())
    for (auto [index, dim] : llvm::enumerate(loop.getBatchDims()))
      if (dim >= 0 && moments.empty())
        for (int64_t moment = 0; moment < loop.getNumMoments(); ++moment)
          add(loop.getBody(moment).getArgument(index), dim);
  for (BlockArgument argument : function.getArguments())
    if (auto dim = function.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), kBatchDimAttr);
        dim && moments.empty())
      add(argument, dim.getInt());
}

/// Whether a loop's micro-batches are divided within the backward: where
/// gradients are exchanged as they are there. Stages compute cheap values again
/// (whale-recompute-cheap-values), so what they are divided at doesn't matter.
bool StepLoads::isDivided(MicroBatchesOp loop) const {
  llvm::SmallPtrSet<const Mesh *, 4> stages;
  for (auto graph : loop.getBody(0).getOps<TaskGraphOp>())
    stages.insert(stepMeshes.meshOf(graph));
  return stages.size() == 1 && llvm::any_of(loop.getResults(), [&](Value sum) {
           return isSummedUp(sum, stepMeshes.meshOfValue(sum));
         });
}

/// Whether a value is terms that the devices of its mesh sum up.
bool StepLoads::isSummedUp(Value value, const Mesh *mesh) const {
  return (batch.getState(value).isPartial() && mesh->getNumParts(0) > 1) ||
         (inner.getState(value).isPartial() && mesh->getNumParts(1) > 1);
}

/// Finds what is written to memory. What is computed element by element becomes
/// part of the kernel that uses it, as long as that doesn't read too much.
void StepLoads::findStored() {
  llvm::DenseMap<Operation *, Computed> unstored;
  llvm::SmallPtrSet<Operation *, 2> divided;
  for (auto loop : function.getOps<MicroBatchesOp>())
    if (isDivided(loop))
      divided.insert(loop);
  auto isUsedInBackward = [](Operation *op) {
    return graphPhaseOf(op) == Phase::Forward &&
           llvm::any_of(op->getUsers(), llvm::IsaPred<YieldOp>);
  };
  for (Operation *op : ops) {
    if (op == function || isa<TaskGraphOp>(op))
      continue;
    Computed own = {countArithmetic(op), {}};
    for (Value operand : op->getOperands()) {
      Value value = lookThroughTaskGraph(operand);
      auto source = unstored.find(value.getDefiningOp());
      // What is one value for a row of results is not computed for each.
      if (source == unstored.end() || isFarSmaller(value, op)) {
        own.reads.insert(value);
        continue;
      }
      own.reads.insert(source->second.reads.begin(),
                       source->second.reads.end());
      if (own.arithmetic && source->second.arithmetic)
        *own.arithmetic += *source->second.arithmetic;
      else
        own.arithmetic.reset();
    }
    // No kernel of another segment computes it again.
    auto loop = op->getParentOfType<MicroBatchesOp>();
    bool isElsewhere = loop && divided.contains(loop) && isUsedInBackward(op);
    if (op->hasTrait<OpTrait::IsTerminator>() ||
        isStored(op, stepMeshes, own, isElsewhere))
      stored.insert(op);
    else
      unstored[op] = std::move(own);
  }
}

void StepLoads::number() {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != function && !hasPlacedRegions(op->getParentOp()))
      return WalkResult::skip();
    ops.push_back(op);
    return WalkResult::advance();
  });
  findStored();
  orderUpdates();
  for (auto [position, op] : llvm::enumerate(ops))
    positions[op] = position;
  for (Operation *op : llvm::reverse(ops)) {
    unsigned &end = ends.try_emplace(op, positions[op]).first->second;
    unsigned last = end;
    if (op != function) {
      unsigned &outer = ends.try_emplace(op->getParentOp(), last).first->second;
      outer = std::max(outer, last);
    }
  }
}

LoadKind StepLoads::kindOf(const Mesh *mesh, const AxisState &outer,
                           const AxisState &inner) const {
  bool splitsOuter =
      (outer.isSplit() || outer.isSingle()) && mesh->getNumParts(0) > 1;
  bool splitsInner = inner.isSplit() && mesh->getNumParts(1) > 1;
  if (outer.isSingle() && inner.isSingle())
    return LoadKind::Batch;
  if (splitsInner && outer.isSplit() && outer.piece == inner.piece)
    return LoadKind::Batch;
  if (splitsOuter && splitsInner)
    return LoadKind::GroupInner;
  if (splitsOuter)
    return mesh->getNumParts(1) > 1 ? LoadKind::Group : LoadKind::Batch;
  return splitsInner ? LoadKind::Inner : LoadKind::Whole;
}

/// The layout in which a value is made.
LoadKind StepLoads::ownKind(Value value, const Mesh *mesh) const {
  return kindOf(mesh, batch.getState(value), inner.getState(value));
}

void StepLoads::addWork() {
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  // How often each operation is computed.
  llvm::DenseMap<Operation *, double> times;
  llvm::DenseMap<Operation *, Region *> branches;
  for (Operation *op : ops) {
    double count = 1;
    if (op != function) {
      Operation *parent = op->getParentOp();
      count = times.lookup(parent);
      if (auto loop = dyn_cast<hlo::WhileOp>(parent))
        count = repeatCost(double(tripCount(loop).value_or(1)), count);
      if (hlo::isBranch(parent)) {
        Region *&branch = branches[parent];
        if (!branch)
          branch = &longestBranch(parent, *model, speedClasses.front());
        count *= op->getParentRegion() == branch;
      }
      if (auto loop = dyn_cast<MicroBatchesOp>(parent))
        count *= double(loop.getNumMoments(op->getParentRegion()));
    }
    times[op] = count;
    // After the gradients are there, everybody has waited for everybody.
    if (hasPlacedRegions(op) || op->getNumResults() == 0 ||
        graphPhaseOf(op) == Phase::Apply)
      continue;
    const Mesh *mesh = stepMeshes.meshOf(op);
    LoadKind kind = LoadKind::Whole;
    int64_t pieces = 0;
    auto look = [&](const AxisState &outer, const AxisState &inner) {
      LoadKind own = kindOf(mesh, outer, inner);
      if (own == LoadKind::Inner || own == LoadKind::GroupInner)
        pieces = inner.piece.extent;
      bool both = (own == LoadKind::Group && kind == LoadKind::Inner) ||
                  (own == LoadKind::Inner && kind == LoadKind::Group);
      if (both)
        kind = LoadKind::GroupInner;
      else if (kind != LoadKind::Batch)
        kind = own == LoadKind::Batch ? own : std::max(kind, own);
    };
    for (Value result : op->getResults())
      look(batch.getState(result), inner.getState(result));
    for (OpOperand &operand : op->getOpOperands())
      look(batch.getRequired(operand), inner.getRequired(operand));
    MeshLoad &load = meshes[mesh];
    load.seconds.resize(speedClasses.size());
    for (auto [index, device] : llvm::enumerate(speedClasses)) {
      double seconds = count * opSeconds(op, *model, device);
      load.seconds[index][kind] += seconds;
      if (kind == LoadKind::Inner || kind == LoadKind::GroupInner) {
        std::vector<double> &inner = load.innerSeconds[pieces];
        inner.resize(speedClasses.size());
        inner[index] += seconds;
      }
    }
  }
}

/// The last position at which a user reads a value from outside of its loops.
unsigned StepLoads::useOf(Operation *user, Value value) const {
  unsigned last = positions.lookup(user);
  Region *region = value.getParentRegion();
  while (region && isa<TaskGraphOp>(region->getParentOp()))
    region = region->getParentRegion();
  for (Operation *outer = user->getParentOp(); outer;
       outer = outer->getParentOp()) {
    if (region && outer == region->getParentOp())
      break;
    if (isLoop(outer))
      last = ends.lookup(outer);
  }
  return last;
}

void StepLoads::addBytes(const Mesh *mesh, LoadKind kind, double bytes,
                         unsigned first, unsigned last) {
  MeshLoad &load = meshes[mesh];
  load.changes[first][kind] += bytes;
  load.changes[last + 1][kind] -= bytes;
}

/// The region of a loop that an operation is in.
static Region *bodyOf(MicroBatchesOp loop, Operation *op) {
  while (op->getParentOp() != loop)
    op = op->getParentOp();
  return op->getParentRegion();
}

void StepLoads::LiveRange::extend(unsigned position) {
  first = std::min(first, position);
  last = std::max(last, position);
}

/// Whether devices must be sent parts of a value to have it in the layout
/// `read`: of what they have whole along an axis they take their part.
static bool isMoved(LoadKind read, LoadKind own) {
  bool isPart = own == LoadKind::Whole ||
                (own == LoadKind::Group &&
                 (read == LoadKind::GroupInner || read == LoadKind::Batch)) ||
                (own == LoadKind::Inner && read == LoadKind::GroupInner);
  return read != own && !isPart;
}

/// The layout in which the devices of a mesh hold a value that `operand` reads:
/// as it was made there, unless it is sent, gathered or summed up.
LoadKind StepLoads::heldAs(OpOperand &operand, Value value,
                           const Mesh *reader) const {
  LoadKind read =
      kindOf(reader, batch.getRequired(operand), inner.getRequired(operand));
  auto argument = dyn_cast<BlockArgument>(value);
  bool isRegionArgument =
      argument && argument.getOwner()->getParentOp() != function;
  if (reader != stepMeshes.meshOfValue(value) || isRegionArgument)
    return read;
  LoadKind own = ownKind(value, reader);
  return !argument && (isSummedUp(value, reader) || isMoved(read, own)) ? read
                                                                        : own;
}

/// Notes that a TaskGraph gathers a parameter which replicas share out, and has
/// it until position `last`.
void StepLoads::addGather(OpOperand &operand, Value value, unsigned last) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner()->getParentOp() != function)
    return;
  Operation *op = operand.getOwner();
  const Mesh *mesh = stepMeshes.meshOf(op);
  LoadKind read =
      kindOf(mesh, batch.getRequired(operand), inner.getRequired(operand));
  if (stepMeshes.meshOfValue(value) != mesh ||
      !isMoved(read, ownKind(value, mesh)))
    return;
  LiveRange &range = gathers[{value, graphOf(op).getOperation(), read}];
  range.extend(last);
  range.extend(positions.at(op));
}

/// Extends the ranges of what `op` reads and makes. Operations come last to
/// first: how long its results are needed is known.
void StepLoads::addUses(Operation *op, LiveRanges &ranges) {
  unsigned position = positions.at(op);
  bool isMoments = isa<MicroBatchesOp>(op);
  // What leaves the step or a micro-batch stays where it was made.
  bool isEdge = isMoments || isa<YieldOp, func::ReturnOp>(op);
  // What micro-batches add up is added as it is made.
  if (isa<YieldOp>(op) && isa<MicroBatchesOp>(op->getParentOp()))
    return;
  const Mesh *mesh = stepMeshes.meshOf(op);
  // A value that isn't stored keeps what it is computed from.
  bool isWritten = stored.contains(op);
  unsigned last = isMoments ? ends.at(op) : position;
  if (!isWritten)
    for (Value result : op->getResults())
      if (auto it = ranges.find({result, mesh, ownKind(result, mesh)});
          it != ranges.end())
        last = std::max(last, it->second.last);
  for (OpOperand &operand : op->getOpOperands()) {
    if (isa<func::ReturnOp>(op) &&
        updatedInPlace.contains(operand.getOperandNumber()))
      continue;
    Value value = lookThroughTaskGraph(operand.get());
    if (gathersParameters && !isEdge)
      addGather(operand, value, std::max(useOf(op, value), last));
    const Mesh *reader = isEdge ? stepMeshes.meshOfValue(value) : mesh;
    LoadKind kind =
        isEdge ? ownKind(value, reader) : heldAs(operand, value, reader);
    LiveRange &range = ranges[{value, reader, kind}];
    range.extend(std::max(useOf(op, value), last));
    range.first = std::min(range.first, position);
  }
  if (isWritten)
    for (Value result : op->getResults()) {
      const Mesh *maker = stepMeshes.meshOfValue(result);
      LiveRange &range = ranges[{result, maker, ownKind(result, maker)}];
      range.extend(position);
      // Sums over micro-batches are there until the last one.
      if (isMoments)
        range.extend(ends.at(op));
    }
}

/// Whether `op` changes a part of what a loop carries, which the buffers of the
/// loop's results hold.
static bool updatesCarried(Operation *op) {
  if (!isa<hlo::DynamicUpdateSliceOp, hlo::ScatterOp>(op) ||
      op->getNumResults() != 1 || !op->hasOneUse())
    return false;
  auto carried = dyn_cast<BlockArgument>(op->getOperand(0));
  return carried && isa<hlo::WhileOp>(carried.getOwner()->getParentOp()) &&
         *op->user_begin() == carried.getOwner()->getTerminator();
}

/// Whether `value` is an f32 product, perhaps transposed.
static bool isProduct(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<hlo::TransposeOp>(op) && op->getOperand(0).hasOneUse())
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<hlo::DotGeneralOp>(op) &&
         getElementTypeOrSelf(value.getType()).isF32();
}

/// Whether `value` is the term of a sum over micro-batches that is added to it
/// where it is computed: a product (whale-lower-library-ops), or updates of a
/// table (whale-partition). What devices exchange before they add it is not.
bool StepLoads::isAddedInPlace(Value value) const {
  bool isScatter = isSumOfUpdates(value);
  if (!isScatter && !isProduct(value))
    return false;
  // What is added is then the transposed product.
  if (value.hasOneUse() && isa<hlo::TransposeOp>(*value.user_begin()) &&
      !isScatter)
    return isAddedInPlace(value.user_begin()->getResult(0));
  const AxisState outer = batch.getState(value), within = inner.getState(value);
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    Operation *user = use.getOwner(), *parent = user->getParentOp();
    if (!isa<YieldOp>(user))
      return false;
    if (auto loop = dyn_cast<MicroBatchesOp>(parent))
      return use.getOperandNumber() < loop.getNumReduced() &&
             cast<ReductionAttr>(loop.getReductions()[use.getOperandNumber()])
                     .getValue() == Reduction::Sum &&
             batch.getRequired(use) == outer &&
             inner.getRequired(use) == within;
    if (!isa<TaskGraphOp>(parent))
      return false;
    value = parent->getResult(use.getOperandNumber());
  }
  return false;
}

/// Whether the operation that reads a value last can put a result in its place:
/// element by element, and of as many bytes.
bool StepLoads::isTakenOver(Value value, const LiveRange &range) {
  if (range.last >= ops.size() || isa<BlockArgument>(value))
    return false;
  Operation *reader = ops[range.last];
  return opClassOf(reader) == OpClass::Elementwise && !isLoop(reader) &&
         reader->getNumResults() == 1 && stored.contains(reader) &&
         getTensorBytes(reader->getResult(0).getType()) ==
             getTensorBytes(value.getType()) &&
         takers.insert(reader).second;
}

/// Adds the bytes of a value on a mesh that holds it in one layout.
void StepLoads::addRange(Value value, const Mesh *mesh, LoadKind kind,
                         const LiveRange &range) {
  auto bytes = double(getTensorBytes(value.getType()));
  auto argument = dyn_cast<BlockArgument>(value);
  bool isMadeHere =
      stepMeshes.meshOfValue(value) == mesh && kind == ownKind(value, mesh);
  if (argument && argument.getOwner()->getParentOp() == function &&
      isMadeHere) {
    if (!function.getArgAttr(argument.getArgNumber(), kInHostAttr))
      meshes[mesh].argumentBytes[kind] += bytes;
    return;
  }
  // What a region is given is stored outside.
  if (argument && !isStoredSlice(argument))
    return;
  Operation *op = argument ? ops[range.first] : value.getDefiningOp();
  if (op && !argument && isMadeHere &&
      (!stored.contains(op) || updatesCarried(op) || isAddedInPlace(value)))
    return;
  // What readers want gathered is gathered where it is made.
  bool isFromHere = stepMeshes.meshOfValue(value) == mesh && op && !argument;
  unsigned first = isFromHere ? positions[op] : range.first;
  // What is exchanged of a sum over micro-batches is there behind the last one.
  if (isFromHere && !isMadeHere && isa<MicroBatchesOp>(op))
    first = ends.at(op);
  unsigned last = std::max(first, range.last);
  addBytes(mesh, kind, bytes, first,
           last > first && isTakenOver(value, range) ? last - 1 : last);
  if (op)
    addInFlight(op, isFromHere, mesh, kind, bytes, range.last);
  if (isMadeHere)
    addSum(value, mesh, kind, bytes);
}

/// Notes that `value`, if it is one, is a loop's sum over micro-batches.
void StepLoads::addSum(Value value, const Mesh *mesh, LoadKind kind,
                       double bytes) {
  auto loop = value.getDefiningOp<MicroBatchesOp>();
  auto result = dyn_cast<OpResult>(value);
  if (!loop || result.getResultNumber() >= loop.getNumReduced())
    return;
  Value term = loop.getYield(0).getOperand(result.getResultNumber());
  if (auto graph = term.getDefiningOp<TaskGraphOp>())
    meshes[mesh].sums[positions[loop]][graph.getName()][kind] += bytes;
}

/// Adds what `op` makes for the backward of its micro-batch, up to position
/// `last`: every micro-batch in flight keeps its own. What isn't made on the
/// mesh is received there, by the TaskGraph that reads it.
void StepLoads::addInFlight(Operation *op, bool isMadeHere, const Mesh *mesh,
                            LoadKind kind, double bytes, unsigned last) {
  auto loop = op->getParentOfType<MicroBatchesOp>();
  Operation *reader = ops[std::min<size_t>(last, ops.size() - 1)];
  if (!loop || graphPhaseOf(op) != Phase::Forward ||
      graphPhaseOf(reader) != Phase::Backward)
    return;
  // Micro-batches of each region in their proportion.
  bytes *= double(loop.getNumMoments(bodyOf(loop, op))) /
           double(loop.getNumMoments());
  Operation *keeper = isMadeHere ? op : reader;
  meshes[mesh].kept[positions[loop]][graphOf(keeper).getName()][kind] += bytes;
  if (int64_t more = inFlight(keeper) - 1; more > 0)
    addBytes(mesh, kind, bytes * double(more), positions[loop], ends[loop]);
}

/// Adds what is fetched of the host's memory, and goes back there, at a time:
/// about three times the tensors of the largest parameter, from the first
/// backward on.
void StepLoads::addCopies() {
  constexpr double kUnderWay = 3;
  std::map<std::tuple<const Mesh *, LoadKind, const void *>, double> bytes;
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), kInHostAttr))
      if (const Mesh *mesh = stepMeshes.meshOfValue(argument))
        bytes[{mesh, ownKind(argument, mesh),
               argument.getType().getAsOpaquePointer()}] +=
            double(getTensorBytes(argument.getType()));
  std::map<const Mesh *, std::pair<double, LoadKind>> largest;
  for (const auto &[key, sum] : bytes) {
    auto &most = largest[std::get<0>(key)];
    most = std::max(most, {sum, std::get<1>(key)});
  }
  unsigned first = 0, last = ops.empty() ? 0 : unsigned(ops.size()) - 1;
  auto isBehind = [](std::optional<Phase> phase) {
    return phase == Phase::Backward || phase == Phase::Apply;
  };
  while (first < last && !isBehind(graphPhaseOf(ops[first])))
    ++first;
  for (const auto &[mesh, most] : largest)
    addBytes(mesh, most.second, kUnderWay * most.first, first, last);
}

void StepLoads::addMemory() {
  for (auto [argument, result] : llvm::enumerate(findFeedback(function)))
    if (result && (isDonated(function, argument) ||
                   function.getArgAttr(argument, kInHostAttr)))
      updatedInPlace.insert(*result);
  LiveRanges ranges;
  for (Operation *op : llvm::reverse(ops)) {
    auto yield = dyn_cast<YieldOp>(op);
    if (op != function && !isa<TaskGraphOp>(op) &&
        !(yield && isa<TaskGraphOp>(yield->getParentOp())))
      addUses(op, ranges);
  }
  for (auto &[key, range] : ranges)
    addRange(std::get<0>(key), std::get<1>(key), std::get<2>(key), range);
  for (auto &[key, range] : gathers) {
    auto [value, graph, kind] = key;
    addBytes(stepMeshes.meshOfValue(value), kind,
             double(getTensorBytes(value.getType())), range.first, range.last);
  }
  addCopies();
  // Arguments without readers.
  for (BlockArgument argument : function.getArguments())
    if (argument.use_empty())
      if (const Mesh *mesh = stepMeshes.meshOfValue(argument))
        meshes[mesh].argumentBytes[ownKind(argument, mesh)] +=
            double(getTensorBytes(argument.getType()));
  for (auto &[mesh, load] : meshes)
    load.seconds.resize(speedClasses.size());
}

} // namespace whale
