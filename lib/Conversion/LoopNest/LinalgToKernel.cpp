//===- LinalgToKernel.cpp - One linalg operation as a loop nest -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a linalg operation. Out: the whale.kernel in its place, with code
// by EmitLoopNest.cpp and EmitSums.cpp for a processor, by EmitBlocks.cpp for a
// GPU, or that of an equal nest (KernelCache.h).
//
// Each operand and result becomes an access, a linear function of the loop
// counters. From these follows what the loops are: dimensions that all accesses
// step through as one merge; parallel loops are outside of reductions, but one
// is innermost if most of what is read is in memory along it; where operands
// and results are in memory along different dimensions, as in a transposition,
// both are walked in tiles. A result that is only stored in a slice is written
// there.
//
// Cost: for each loop a walk over all accesses.
//
//===----------------------------------------------------------------------===//

#include "LoopNest/LinalgToKernel.h"
#include "Kernel/KernelBuilder.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

static bool isReduction(utils::IteratorType iterator) {
  return iterator == utils::IteratorType::reduction;
}

/// Adds the linear function `expr` times `scale` to `access`.
static void addExpr(Access &access, AffineExpr expr, int64_t scale) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    access.coefficients[dim.getPosition()] += scale;
    return;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    access.constant += constant.getValue() * scale;
    return;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (binary.getKind() == AffineExprKind::Add) {
    addExpr(access, binary.getLHS(), scale);
    addExpr(access, binary.getRHS(), scale);
    return;
  }
  // Slices take the remainder by the size, which changes nothing.
  if (binary.getKind() == AffineExprKind::Mod)
    return addExpr(access, binary.getLHS(), scale);
  assert(binary.getKind() == AffineExprKind::Mul && "map is not linear");
  addExpr(access, binary.getLHS(),
          scale * cast<AffineConstantExpr>(binary.getRHS()).getValue());
}

bool whale::isAccumulated(linalg::GenericOp op, unsigned number) {
  if (op.getNumReductionLoops() == 0)
    return op.payloadUsesValueFromOperand(op.getDpsInitOperand(number));
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(number));
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (isReduction(op.getIteratorTypesArray()[dim]) &&
        map.isFunctionOfDim(dim))
      return false;
  return true;
}

unsigned LoopNest::inputBuffer(Value tensor) {
  inputs.insert(tensor);
  return std::distance(inputs.begin(), llvm::find(inputs, tensor));
}

Access LoopNest::makeAccess(Value tensor, AffineMap map) {
  Access access;
  access.coefficients.assign(sizes.size(), 0);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  int64_t stride = 1;
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    addExpr(access, map.getResult(dim), stride);
    stride *= shape[dim];
  }
  return access;
}

bool whale::canStoreAt(stablehlo::DynamicUpdateSliceOp store,
                       Operation *place) {
  Block *block = place->getBlock();
  SmallVector<Value> needed = {store.getOperand()};
  for (Value start : store.getStartIndices())
    if (!matchSplat(start))
      needed.push_back(start);
  for (Value value : needed)
    if (Operation *maker = value.getDefiningOp())
      if (maker->getBlock() == block && !maker->isBeforeInBlock(place))
        return false;
  // A read of the tensor in between would see the update too early.
  return llvm::none_of(store.getOperand().getUsers(), [&](Operation *user) {
    Operation *here = block->findAncestorOpInBlock(*user);
    return here && here != store && !here->isBeforeInBlock(place) &&
           here->isBeforeInBlock(store);
  });
}

stablehlo::DynamicUpdateSliceOp whale::findStore(linalg::GenericOp op,
                                                 unsigned number) {
  OpResult result = op->getResult(number);
  if (op.getNumReductionLoops() != 0 || !result.hasOneUse() ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(number)))
    return {};
  auto store =
      dyn_cast<stablehlo::DynamicUpdateSliceOp>(*result.getUsers().begin());
  if (!store || store->getBlock() != op->getBlock() ||
      store.getUpdate() != result || !canStoreAt(store, op))
    return {};
  return store;
}

/// The operation that computes all of an initial value, if it does so
/// elementwise and for this use alone.
static linalg::GenericOp findFill(Value init) {
  auto fill = init.getDefiningOp<linalg::GenericOp>();
  if (!fill || !init.hasOneUse() || fill->getNumResults() != 1 ||
      fill.getNumReductionLoops() != 0 ||
      !fill.getMatchingIndexingMap(fill.getDpsInitOperand(0)).isIdentity() ||
      fill.payloadUsesValueFromOperand(fill.getDpsInitOperand(0)))
    return {};
  // Its counters are not those of the nest.
  bool usesIndex = false;
  fill.getRegion().walk([&](linalg::IndexOp) { usesIndex = true; });
  return usesIndex ? linalg::GenericOp() : fill;
}

void LoopNest::collectInputs() {
  auto addCaptured = [&](linalg::GenericOp generic) {
    for (Value value : getCaptures(generic.getRegion()))
      if (isa<RankedTensorType>(value.getType())) {
        captures.insert(value);
        inputBuffer(value);
      }
  };
  for (OpOperand *operand : op.getDpsInputOperands()) {
    Access access =
        makeAccess(operand->get(), op.getMatchingIndexingMap(operand));
    // An operand whose elements the body does not use gives only sizes.
    if (op.payloadUsesValueFromOperand(operand))
      access.buffer = inputBuffer(operand->get());
    else
      access.buffer = ~0u;
    reads.push_back(access);
  }
  addCaptured(op);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    writes.push_back(makeAccess(init.get(), map));
    fills.push_back({});
    fillReads.emplace_back();
    readsInit.push_back(false);
    initReads.emplace_back();
    bool used = op.payloadUsesValueFromOperand(&init);
    if (!used || init.get().getDefiningOp<tensor::EmptyOp>())
      continue;
    if (linalg::GenericOp fill = findFill(init.get())) {
      fills.back() = fill;
      for (OpOperand *operand : fill.getDpsInputOperands()) {
        AffineMap inner = fill.getMatchingIndexingMap(operand);
        Access access = makeAccess(operand->get(), inner.compose(map));
        access.buffer = inputBuffer(operand->get());
        fillReads.back().push_back(access);
      }
      addCaptured(fill);
      continue;
    }
    readsInit.back() = true;
    initReads.back() = writes.back();
    initReads.back().buffer = inputBuffer(init.get());
  }
}

/// Results that are stored in a slice are in the tensor that it is of.
void LoopNest::collectStores() {
  for (unsigned number = 0; number < writes.size(); ++number) {
    stores.push_back(findStore(op, number));
    startBuffers.emplace_back();
    stablehlo::DynamicUpdateSliceOp store = stores.back();
    if (!store)
      continue;
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(number));
    writes[number] = makeAccess(store.getOperand(), map);
    inputBuffer(store.getOperand());
    for (Value start : store.getStartIndices())
      startBuffers.back().push_back(
          matchSplat(start) ? ~0u : inputBuffer(stored(rewriter, start)));
  }
}

/// Where the slice begins in the flat buffer, forced to be inside.
Value LoopNest::emitStart(OpBuilder &b, unsigned result) {
  stablehlo::DynamicUpdateSliceOp store = stores[result];
  ArrayRef<int64_t> whole =
      cast<ShapedType>(store.getOperand().getType()).getShape();
  ArrayRef<int64_t> slice =
      cast<ShapedType>(store.getUpdate().getType()).getShape();
  Value address = constantIndex(b, loc, 0);
  int64_t stride = 1;
  for (int64_t dim = whole.size(); dim-- > 0;) {
    Value start = store.getStartIndices()[dim];
    Type type = getElementTypeOrSelf(start.getType());
    int64_t room = whole[dim] - slice[dim];
    Value inside;
    if (auto constant = dyn_cast_or_null<IntegerAttr>(matchSplat(start))) {
      inside =
          constantIndex(b, loc, clampConstant(constant.getValue(), type, room));
    } else {
      Value number = memref::LoadOp::create(
          b, loc, buffers[startBuffers[result][dim]], ValueRange());
      inside = clampIndex(b, loc, toIndex(b, loc, number, type), 0, room);
    }
    address = arith::AddIOp::create(
        b, loc, address,
        arith::MulIOp::create(b, loc, inside, constantIndex(b, loc, stride)));
    stride *= whole[dim];
  }
  return address;
}

/// The dimensions whose counters bodies use.
llvm::SmallDenseSet<unsigned> LoopNest::findIndexed() {
  llvm::SmallDenseSet<unsigned> indexed;
  op.getRegion().walk(
      [&](linalg::IndexOp index) { indexed.insert(index.getDim()); });
  return indexed;
}

/// All accesses that decide which dimensions merge.
SmallVector<const Access *> LoopNest::getAccesses() const {
  SmallVector<const Access *> accesses;
  for (const Access &access : reads)
    if (access.buffer != ~0u)
      accesses.push_back(&access);
  for (const Access &access : writes)
    accesses.push_back(&access);
  for (auto &list : fillReads)
    for (const Access &access : list)
      accesses.push_back(&access);
  return accesses;
}

/// Merges neighbouring dimensions that every access steps through as one, and
/// leaves out those of size one.
void LoopNest::findLoops() {
  llvm::SmallDenseSet<unsigned> indexed = findIndexed();
  SmallVector<const Access *> accesses = getAccesses();
  auto iterators = op.getIteratorTypesArray();
  std::optional<unsigned> previous;
  size_t number = 0;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 1)
      continue;
    bool parallel = !isReduction(iterators[dim]);
    bool merge =
        previous && loops.back().parallel == parallel &&
        !indexed.contains(*previous) && !indexed.contains(dim) &&
        (order.chunks.empty() || order.groups[*previous] == order.groups[dim]);
    for (const Access *access : accesses)
      merge &= merge && access->coefficients[*previous] ==
                            sizes[dim] * access->coefficients[dim];
    if (number < rowMerges.size())
      merge = rowMerges[number];
    else if (number == rowMerges.size())
      merge &= rowMerges.empty();
    ++number;
    if (merge) {
      loops.back().size *= sizes[dim];
      loops.back().lastDim = dim;
    } else {
      loops.push_back({sizes[dim], parallel, dim});
    }
    previous = dim;
    if (number == rowMerges.size())
      numRowLoops = loops.size();
  }
}

/// Parallel loops outside, reductions inside; but where the input is in
/// memory along a parallel dimension, that one goes innermost.
void LoopNest::orderLoops() {
  llvm::sort(loops, [](const Loop &a, const Loop &b) {
    return std::pair(!a.parallel, a.lastDim) <
           std::pair(!b.parallel, b.lastDim);
  });
  numOuter = llvm::count_if(loops, [](const Loop &l) { return l.parallel; });
  if (numOuter == loops.size() || numOuter == 0)
    return;
  // What is read, or stored in each iteration, votes with the number of its
  // elements.
  auto votesOf = [&](const Access &access, Type type, const Loop &loop) {
    bool whole = llvm::all_of(loops, [&](const Loop &other) {
      return other.parallel || access.coefficients[other.lastDim] != 0;
    });
    return whole && access.coefficients[loop.lastDim] == 1
               ? cast<ShapedType>(type).getNumElements()
               : 0;
  };
  auto votes = [&](const Loop &loop) {
    int64_t votes = 0;
    for (auto [number, access] : llvm::enumerate(reads))
      if (access.buffer != ~0u)
        votes += votesOf(access, op.getDpsInputs()[number].getType(), loop);
    for (auto [number, access] : llvm::enumerate(writes))
      if (!isAccumulated(number))
        votes += votesOf(access, op->getResult(number).getType(), loop);
    return votes;
  };
  const Loop *best = nullptr;
  int64_t bestVotes = 0;
  for (const Loop &loop : loops)
    if (int64_t count = votes(loop); count > bestVotes) {
      best = &loop;
      bestVotes = count;
    }
  // Sums without lanes are several at a time only where they are columns, and
  // so are chains of functions.
  if (isChain || (!sums.empty() && order.lanes == 1))
    best = &loops[numOuter - 1];
  if (!best || !best->parallel || best->size < 4 ||
      best < loops.begin() + numRowLoops)
    return;
  for (const Access &access : writes)
    if (access.coefficients[best->lastDim] != 1)
      return;
  // The accumulators are in the result's buffer: only for what it can hold.
  innerParallel = true;
  auto it = loops.begin() + (best - loops.data());
  std::rotate(it, it + 1, loops.end());
  --numOuter;
}

/// Where results are written along one dimension and operands are along
/// another, as in a transposition, both are walked in tiles: each line of
/// memory is then touched while it is in the cache.
void LoopNest::findTiles(int64_t minSize) {
  constexpr int64_t kLine = 64;
  if (numOuter != loops.size() || loops.size() < 2 + numRowLoops ||
      loops.back().size < minSize)
    return;
  unsigned along = loops.back().lastDim;
  for (const Access &write : writes)
    if (write.coefficients[along] != 1)
      return;
  auto readsAcross = [&](const Access &access, unsigned dim) {
    return access.buffer != ~0u && access.coefficients[along] > 1 &&
           access.coefficients[dim] == 1;
  };
  unsigned best = 0;
  int64_t bestCount = 0;
  for (auto [number, loop] : llvm::enumerate(ArrayRef(loops).drop_back())) {
    if (number < numRowLoops)
      continue;
    int64_t count = llvm::count_if(reads, [&](const Access &access) {
      return readsAcross(access, loop.lastDim);
    });
    if (count > bestCount && loop.size >= minSize) {
      best = number;
      bestCount = count;
    }
  }
  if (bestCount == 0)
    return;
  std::rotate(loops.begin() + best, loops.begin() + best + 1, loops.end() - 1);
  unsigned dim = loops[loops.size() - 2].lastDim;
  for (auto [number, access] : llvm::enumerate(reads))
    if (readsAcross(access, dim)) {
      across.push_back(number);
      auto type = getBufferType(op.getDpsInputOperand(number)->get().getType());
      tile = std::max(tile, kLine / getStoredBytes(type));
    }
}

unsigned whale::getDepth(const Access &access, ArrayRef<Loop> loops) {
  unsigned depth = 0;
  for (auto [number, loop] : llvm::enumerate(loops))
    if (access.coefficients[loop.lastDim] != 0)
      depth = number + 1;
  return depth;
}

/// Writes the loops.
void LoopNest::emit(KernelOp kernel) {
  Block *block = rewriter.createBlock(&kernel.getBody());
  OpBuilder b = OpBuilder::atBlockBegin(block);
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(kernel.getOperandTypes()),
                                SmallVector<Type>(kernel.getResultTypes())))
    buffers.push_back(block->addArgument(getBufferType(type), loc));
  begin = block->addArgument(b.getIndexType(), loc);
  end = block->addArgument(b.getIndexType(), loc);
  for (Value buffer : buffers)
    flat.push_back(flatten(b, loc, buffer));
  for (auto [number, store] : llvm::enumerate(stores))
    if (store)
      writes[number].start = emitStart(b, number);
  allocate(b);
  if (forBlocks)
    emitBlocks(b);
  else
    emitLevel(b, 0);
}

/// What the loops need before the first of them.
void LoopNest::allocate(OpBuilder &b) {
  counters.resize(loops.size());
  loaded.resize(reads.size());
  if (forBlocks)
    return;
  for (unsigned number : across) {
    Type element = cast<MemRefType>(buffers[reads[number].buffer].getType())
                       .getElementType();
    packed.push_back(memref::AllocaOp::create(
        b, loc, MemRefType::get({tile * tile * kTileLength}, element),
        b.getI64IntegerAttr(64)));
  }
  allocateSums(b);
}

KernelOp LoopNest::build(KernelCache &cache) {
  rewriter.setInsertionPoint(op);
  collectInputs();
  collectStores();
  findSums();
  findLoops();
  orderLoops();
  groupLoops();
  findRuns();
  findTiles();
  int64_t extent = 1;
  if (tile > 0 && loops.size() == 2)
    extent = llvm::divideCeil(loops[0].size, tile);
  else if (numOuter > 0)
    extent = loops[0].size;
  else if (innerParallel)
    extent = loops.back().size;
  return makeNestKernel(cache, SmallVector<Type>(op->getResultTypes()), extent);
}

/// The kernel that `op` becomes, with results of these types where these are
/// not stored in slices.
KernelOp LoopNest::makeNestKernel(KernelCache &cache, ArrayRef<Type> results,
                                  int64_t extent) {
  for (auto [number, write] : llvm::enumerate(writes))
    write.buffer = inputs.size() + number;
  SmallVector<Type> types(results);
  SmallVector<int64_t> updates(writes.size(), -1);
  for (auto [number, store] : llvm::enumerate(stores))
    if (store) {
      types[number] = store.getType();
      updates[number] = inputBuffer(store.getOperand());
    }
  auto kernel =
      KernelOp::create(rewriter, loc, types, inputs.getArrayRef(), extent,
                       /*inplace=*/nullptr, /*updates=*/nullptr);
  std::optional<KernelCache::Key> key = KernelCache::getKey(*this);
  bool isNew = !key || !cache.findEqual(*key, *this, kernel);
  if (isNew)
    emit(kernel);
  findInplace(kernel);
  countCosts(kernel);
  // Sums are carried in registers, or each element of the inner loop has its
  // own.
  kernel->setAttr(kParallelAttrName, rewriter.getUnitAttr());
  if (llvm::any_of(updates, [](int64_t operand) { return operand >= 0; }))
    kernel.setUpdates(updates);
  for (auto [number, store] : llvm::enumerate(stores)) {
    Value replaced = op->getResult(number);
    if (store)
      replaced = store.getResult();
    rewriter.replaceAllUsesWith(replaced, kernel.getResult(number));
  }
  for (stablehlo::DynamicUpdateSliceOp store : stores)
    if (store)
      rewriter.eraseOp(store);
  if (isNew && key)
    cache.add(std::move(*key), *this, kernel);
  rewriter.eraseOp(op);
  return kernel;
}

Location whale::getAllLocations(linalg::GenericOp op) {
  SmallVector<Location> locations = {op.getLoc()};
  for (Operation &inner : op.getRegion().front())
    locations.push_back(inner.getLoc());
  return FusedLoc::get(op.getContext(), locations);
}

KernelOp whale::convertToLoops(RewriterBase &rewriter, linalg::GenericOp op,
                               KernelCache &cache) {
  return LoopNest(rewriter, op).build(cache);
}
