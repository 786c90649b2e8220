//===- LinalgToKernel.cpp - One linalg operation as a loop nest -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every access is a linear function of the loop counters on a flat buffer, so
// what the loops are (which dimensions merge, which is innermost, where a load
// can stand) follows from coefficients alone.
//
//===----------------------------------------------------------------------===//

#include "LinalgToKernel.h"
#include "Lowering.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace whale;

namespace {

/// Where an element lies in a flat buffer: constant + sum of coefficient *
/// counter.
struct Access {
  unsigned buffer = 0;
  int64_t constant = 0;
  SmallVector<int64_t> coefficients;

  bool operator==(const Access &other) const {
    return constant == other.constant && coefficients == other.coefficients;
  }
};

/// A loop of the nest: a run of dimensions of the operation that every access
/// sees as one.
struct Loop {
  int64_t size;
  bool parallel;
  unsigned lastDim; // Coefficients are those of the innermost dimension.
};

bool isReduction(utils::IteratorType iterator) {
  return iterator == utils::IteratorType::reduction;
}

/// Adds the linear function `expr` times `scale` to `access`.
void addExpr(Access &access, AffineExpr expr, int64_t scale) {
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

class Nest {
public:
  Nest(RewriterBase &rewriter, linalg::GenericOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()),
        sizes(op.getStaticLoopRanges()) {}

  KernelOp build();

private:
  Access makeAccess(Value tensor, AffineMap map);
  unsigned inputBuffer(Value tensor);
  void collectInputs();
  void findLoops();
  void orderLoops();
  void findInplace(KernelOp kernel);
  void countCosts(KernelOp kernel);

  void emit(KernelOp kernel);
  void emitLevel(OpBuilder &b, unsigned level);
  void emitReduction(OpBuilder &b, unsigned level);
  Value emitAddress(OpBuilder &b, const Access &access, unsigned depth);
  Value load(OpBuilder &b, const Access &access, unsigned depth, Type type);
  void store(OpBuilder &b, const Access &access, unsigned depth, Value value);
  /// Loads that need no counters beyond `depth`.
  void hoistLoads(OpBuilder &b, unsigned depth);
  SmallVector<Value> emitBody(OpBuilder &b, linalg::GenericOp body,
                              ArrayRef<Value> arguments);
  SmallVector<Value> emitInits(OpBuilder &b, unsigned depth);
  SmallVector<Value> emitElement(OpBuilder &b, unsigned depth,
                                 ArrayRef<Value> carried);
  void replaceTensorOps(OpBuilder &b, Operation *cloned);

  /// True if result `number` collects over the reduction loops; another one is
  /// stored in every iteration.
  bool isAccumulated(unsigned number) {
    if (op.getNumReductionLoops() == 0)
      return op.payloadUsesValueFromOperand(op.getDpsInitOperand(number));
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(number));
    for (unsigned dim = 0; dim < sizes.size(); ++dim)
      if (isReduction(op.getIteratorTypesArray()[dim]) &&
          map.isFunctionOfDim(dim))
        return false;
    return true;
  }

  RewriterBase &rewriter;
  linalg::GenericOp op;
  Location loc;
  SmallVector<int64_t> sizes;

  llvm::SetVector<Value> inputs;
  SmallVector<Access> reads;            // Of op's inputs.
  SmallVector<Access> writes;           // Of its results.
  SmallVector<linalg::GenericOp> fills; // By result, or null.
  SmallVector<SmallVector<Access>> fillReads;
  SmallVector<bool> readsInit; // The initial value is an input buffer.
  SmallVector<Access> initReads;

  SmallVector<Loop> loops;
  unsigned numOuter = 0;      // Parallel loops outside of all reductions.
  bool innerParallel = false; // The innermost loop is parallel, inside them.

  // While emitting.
  SmallVector<Value> flat; // Buffers seen in one dimension.
  SmallVector<Value> buffers;
  SmallVector<Value> counters; // By loop.
  Value begin, end;
  SmallVector<Value> loaded; // By input of op, once hoisted.
};

unsigned Nest::inputBuffer(Value tensor) {
  inputs.insert(tensor);
  return std::distance(inputs.begin(), llvm::find(inputs, tensor));
}

Access Nest::makeAccess(Value tensor, AffineMap map) {
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

void Nest::collectInputs() {
  auto addCaptured = [&](linalg::GenericOp generic) {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(generic.getRegion(), captured);
    for (Value value : captured)
      if (isa<RankedTensorType>(value.getType()))
        inputBuffer(value);
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

/// Merges neighbouring dimensions that every access steps through as one, and
/// leaves out those of size one.
void Nest::findLoops() {
  llvm::SmallDenseSet<unsigned> indexed;
  auto collectIndexed = [&](linalg::GenericOp generic) {
    generic.getRegion().walk(
        [&](linalg::IndexOp index) { indexed.insert(index.getDim()); });
  };
  collectIndexed(op);
  SmallVector<const Access *> accesses;
  for (Access &access : reads)
    if (access.buffer != ~0u)
      accesses.push_back(&access);
  for (Access &access : writes)
    accesses.push_back(&access);
  for (auto [number, fill] : llvm::enumerate(fills))
    for (Access &access : fillReads[number])
      accesses.push_back(&access);
  auto iterators = op.getIteratorTypesArray();
  std::optional<unsigned> previous;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 1)
      continue;
    bool parallel = !isReduction(iterators[dim]);
    bool merge = previous && loops.back().parallel == parallel &&
                 !indexed.contains(*previous) && !indexed.contains(dim);
    for (const Access *access : accesses)
      merge &= merge && access->coefficients[*previous] ==
                            sizes[dim] * access->coefficients[dim];
    if (merge) {
      loops.back().size *= sizes[dim];
      loops.back().lastDim = dim;
    } else {
      loops.push_back({sizes[dim], parallel, dim});
    }
    previous = dim;
  }
}

/// Parallel loops outside, reductions inside; but where the input lies in
/// memory along a parallel dimension, that one goes innermost.
void Nest::orderLoops() {
  llvm::stable_sort(loops, [](const Loop &a, const Loop &b) {
    return a.parallel && !b.parallel;
  });
  numOuter = llvm::count_if(loops, [](const Loop &l) { return l.parallel; });
  if (numOuter == loops.size() || numOuter == 0)
    return;
  // Bodies with their own idea of order keep the accumulators in registers.
  for (unsigned result = 0; result < writes.size(); ++result)
    if (!isAccumulated(result))
      return;
  auto votes = [&](const Loop &loop) {
    int64_t votes = 0;
    for (const Access &access : reads) {
      if (access.buffer == ~0u)
        continue;
      bool whole = llvm::all_of(loops, [&](const Loop &other) {
        return other.parallel || access.coefficients[other.lastDim] != 0;
      });
      if (whole && access.coefficients[loop.lastDim] == 1)
        ++votes;
    }
    return votes;
  };
  const Loop *best = nullptr;
  int64_t bestVotes = 0;
  for (const Loop &loop : loops)
    if (int64_t count = votes(loop); count > bestVotes) {
      best = &loop;
      bestVotes = count;
    }
  if (!best || !best->parallel || best->size < 4)
    return;
  for (const Access &access : writes)
    if (access.coefficients[best->lastDim] != 1)
      return;
  // The accumulators lie in the result's buffer: only for what it can hold.
  innerParallel = true;
  auto it = loops.begin() + (best - loops.data());
  std::rotate(it, it + 1, loops.end());
  --numOuter;
}

/// The number of counters that are known where `access` can be loaded.
static unsigned getDepth(const Access &access, ArrayRef<Loop> loops) {
  unsigned depth = 0;
  for (auto [number, loop] : llvm::enumerate(loops))
    if (access.coefficients[loop.lastDim] != 0)
      depth = number + 1;
  return depth;
}

void Nest::findInplace(KernelOp kernel) {
  if (innerParallel)
    return;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  SmallVector<int64_t> inplace(writes.size(), -1);
  bool any = false;
  for (auto [result, write] : llvm::enumerate(writes)) {
    for (const Access &read : reads) {
      if (read.buffer == ~0u || !(read == write))
        continue;
      Value tensor = inputs[read.buffer];
      auto from = cast<RankedTensorType>(tensor.getType());
      auto to = cast<RankedTensorType>(op->getResult(result).getType());
      if (from.getNumElements() != to.getNumElements() ||
          getBufferType(from).getElementTypeBitWidth() !=
              getBufferType(to).getElementTypeBitWidth() ||
          captured.contains(tensor) || llvm::is_contained(inplace, read.buffer))
        continue;
      // No other access may see the element overwritten.
      auto conflicts = [&](const Access &other) {
        return other.buffer == read.buffer && !(other == write);
      };
      bool conflict = llvm::any_of(reads, conflicts);
      for (auto &list : fillReads)
        conflict |= llvm::any_of(list, conflicts);
      for (auto [number, initRead] : llvm::enumerate(initReads))
        conflict |= readsInit[number] && conflicts(initRead);
      if (conflict)
        continue;
      inplace[result] = read.buffer;
      any = true;
      break;
    }
  }
  if (any)
    kernel.setInplace(inplace);
}

void Nest::countCosts(KernelOp kernel) {
  int64_t iterations = 1;
  for (int64_t size : sizes)
    iterations *= size;
  int64_t operations = 0;
  op.getRegion().walk([&](Operation *inner) {
    if (isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
            inner->getDialect()) &&
        !isa<arith::ConstantOp>(inner))
      ++operations;
  });
  int64_t bytes = 0;
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(kernel.getOperandTypes()),
                                SmallVector<Type>(kernel.getResultTypes()))) {
    MemRefType buffer = getBufferType(type);
    bytes += buffer.getNumElements() * buffer.getElementTypeBitWidth() / 8;
  }
  kernel->setAttr(kFlopsAttrName,
                  rewriter.getI64IntegerAttr(operations * iterations));
  kernel->setAttr(kBytesAttrName, rewriter.getI64IntegerAttr(bytes));
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

Value Nest::emitAddress(OpBuilder &b, const Access &access, unsigned depth) {
  Value address;
  for (unsigned number = 0; number < depth; ++number) {
    int64_t coefficient = access.coefficients[loops[number].lastDim];
    if (coefficient == 0)
      continue;
    Value term = counters[number];
    if (coefficient != 1)
      term = arith::MulIOp::create(b, loc, term,
                                   constantIndex(b, loc, coefficient));
    address = address ? arith::AddIOp::create(b, loc, address, term).getResult()
                      : term;
  }
  if (!address)
    return constantIndex(b, loc, access.constant);
  if (access.constant)
    address = arith::AddIOp::create(b, loc, address,
                                    constantIndex(b, loc, access.constant));
  return address;
}

Value Nest::load(OpBuilder &b, const Access &access, unsigned depth,
                 Type type) {
  Value value = memref::LoadOp::create(b, loc, flat[access.buffer],
                                       emitAddress(b, access, depth));
  if (type.isInteger(1))
    value = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ne, value,
        arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0)));
  return value;
}

void Nest::store(OpBuilder &b, const Access &access, unsigned depth,
                 Value value) {
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  memref::StoreOp::create(b, loc, value, flat[access.buffer],
                          emitAddress(b, access, depth));
}

void Nest::hoistLoads(OpBuilder &b, unsigned depth) {
  for (auto [number, access] : llvm::enumerate(reads))
    if (access.buffer != ~0u && !loaded[number] &&
        getDepth(access, loops) <= depth)
      loaded[number] =
          load(b, access, depth, op.getRegionInputArgs()[number].getType());
}

/// Within the clone of an operation of the body, reads of tensors become
/// loads and indices become counters.
void Nest::replaceTensorOps(OpBuilder &b, Operation *cloned) {
  SmallVector<Operation *> found;
  cloned->walk([&](Operation *inner) {
    if (isa<linalg::IndexOp, tensor::ExtractOp>(inner))
      found.push_back(inner);
  });
  for (Operation *inner : found) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(inner);
    Value value;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      for (auto [number, loop] : llvm::enumerate(loops))
        if (loop.lastDim == index.getDim())
          value = counters[number];
      if (!value) // Of size one.
        value = constantIndex(b, loc, 0);
    } else {
      auto extract = cast<tensor::ExtractOp>(inner);
      value = memref::LoadOp::create(b, loc,
                                     buffers[inputBuffer(extract.getTensor())],
                                     extract.getIndices());
      if (extract.getType().isInteger(1))
        value = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::ne, value,
            arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0)));
    }
    inner->getResult(0).replaceAllUsesWith(value);
    inner->erase();
  }
}

SmallVector<Value> Nest::emitBody(OpBuilder &b, linalg::GenericOp body,
                                  ArrayRef<Value> arguments) {
  IRMapping mapping;
  Block &block = body.getRegion().front();
  for (auto [argument, value] :
       llvm::zip_equal(block.getArguments(), arguments))
    if (value)
      mapping.map(argument, value);
  for (Operation &inner : block.without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      Value value;
      for (auto [number, loop] : llvm::enumerate(loops))
        if (loop.lastDim == index.getDim())
          value = counters[number];
      mapping.map(index.getResult(), value ? value : constantIndex(b, loc, 0));
      continue;
    }
    // Fusion writes the index of a producer as a map of the consumer's.
    if (auto apply = dyn_cast<affine::AffineApplyOp>(inner)) {
      SmallVector<Value> operands;
      for (Value operand : apply.getMapOperands())
        operands.push_back(mapping.lookupOrDefault(operand));
      AffineMap map = apply.getAffineMap();
      mapping.map(apply.getResult(),
                  affine::expandAffineExpr(
                      b, loc, map.getResult(0),
                      ArrayRef(operands).take_front(map.getNumDims()),
                      ArrayRef(operands).drop_front(map.getNumDims())));
      continue;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Value> indices;
      for (Value index : extract.getIndices())
        indices.push_back(mapping.lookupOrDefault(index));
      Value value = memref::LoadOp::create(
          b, loc, buffers[inputBuffer(extract.getTensor())], indices);
      if (extract.getType().isInteger(1))
        value = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::ne, value,
            arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0)));
      mapping.map(extract.getResult(), value);
      continue;
    }
    Operation *cloned = b.clone(inner, mapping);
    if (cloned->getNumRegions() != 0)
      replaceTensorOps(b, cloned);
  }
  SmallVector<Value> results;
  for (Value value : block.getTerminator()->getOperands()) {
    Value result = mapping.lookupOrDefault(value);
    assert(result.getParentRegion() != &body.getRegion() &&
           "a value of the body was not cloned");
    results.push_back(result);
  }
  return results;
}

/// What is accumulated at the start, for each accumulated result.
SmallVector<Value> Nest::emitInits(OpBuilder &b, unsigned depth) {
  SmallVector<Value> results;
  for (unsigned number = 0; number < writes.size(); ++number) {
    if (!isAccumulated(number))
      continue;
    Type type = getElementTypeOrSelf(op->getResult(number).getType());
    if (readsInit[number]) {
      results.push_back(load(b, initReads[number], depth, type));
      continue;
    }
    linalg::GenericOp fill = fills[number];
    if (!fill) {
      // Uninitialized: any value will do.
      results.push_back(arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
      continue;
    }
    SmallVector<Value> arguments;
    for (auto [input, access] :
         llvm::zip(fill.getRegionInputArgs(), fillReads[number]))
      arguments.push_back(load(b, access, depth, input.getType()));
    arguments.push_back({});
    results.push_back(emitBody(b, fill, arguments)[0]);
  }
  return results;
}

/// One run of the body: stores what is stored in every iteration and returns
/// the new accumulators.
SmallVector<Value> Nest::emitElement(OpBuilder &b, unsigned depth,
                                     ArrayRef<Value> carried) {
  SmallVector<Value> saved(loaded);
  hoistLoads(b, depth);
  SmallVector<Value> arguments(loaded);
  unsigned next = 0;
  for (unsigned number = 0; number < writes.size(); ++number) {
    Type type = getElementTypeOrSelf(op->getResult(number).getType());
    if (isAccumulated(number))
      arguments.push_back(carried[next++]);
    else if (readsInit[number])
      arguments.push_back(load(b, initReads[number], depth, type));
    else
      arguments.push_back({});
  }
  SmallVector<Value> results = emitBody(b, op, arguments), accumulated;
  for (auto [number, value] : llvm::enumerate(results)) {
    if (isAccumulated(number))
      accumulated.push_back(value);
    else
      store(b, writes[number], depth, value);
  }
  loaded = saved;
  return accumulated;
}

/// Loops from `level` on carry the accumulators in registers.
void Nest::emitReduction(OpBuilder &b, unsigned level) {
  SmallVector<Value> inits = emitInits(b, level);
  std::function<SmallVector<Value>(unsigned, ValueRange)> emitFrom =
      [&](unsigned at, ValueRange carried) -> SmallVector<Value> {
    if (at == loops.size())
      return emitElement(b, at, SmallVector<Value>(carried));
    SmallVector<Value> saved(loaded);
    hoistLoads(b, at);
    auto loop = scf::ForOp::create(b, loc, constantIndex(b, loc, 0),
                                   constantIndex(b, loc, loops[at].size),
                                   constantIndex(b, loc, 1), carried);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      counters[at] = loop.getInductionVar();
      SmallVector<Value> next = emitFrom(at + 1, loop.getRegionIterArgs());
      if (!carried.empty() || loop.getBody()->empty() ||
          !loop.getBody()->back().hasTrait<OpTrait::IsTerminator>())
        scf::YieldOp::create(b, loc, next);
    }
    loaded = saved;
    return SmallVector<Value>(loop.getResults());
  };
  SmallVector<Value> results = emitFrom(level, inits);
  unsigned next = 0;
  for (unsigned number = 0; number < writes.size(); ++number)
    if (isAccumulated(number))
      store(b, writes[number], level, results[next++]);
}

void Nest::emitLevel(OpBuilder &b, unsigned level) {
  SmallVector<Value> saved(loaded);
  hoistLoads(b, level);
  auto makeLoop = [&](unsigned number, function_ref<void()> body) {
    bool first = number == 0 ||
                 (numOuter == 0 && innerParallel && number + 1 == loops.size());
    Value from = first ? begin : constantIndex(b, loc, 0);
    Value to = first ? end : constantIndex(b, loc, loops[number].size);
    auto loop = scf::ForOp::create(b, loc, from, to, constantIndex(b, loc, 1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    counters[number] = loop.getInductionVar();
    body();
  };
  if (level < numOuter) {
    makeLoop(level, [&] { emitLevel(b, level + 1); });
  } else if (!innerParallel) {
    emitReduction(b, level);
  } else {
    // The accumulators lie in the result: set, then add line by line.
    unsigned last = loops.size() - 1;
    makeLoop(last, [&] {
      SmallVector<Value> inits = emitInits(b, loops.size());
      for (auto [write, init] : llvm::zip_equal(writes, inits))
        store(b, write, loops.size(), init);
    });
    std::function<void(unsigned)> emitFrom = [&](unsigned at) {
      SmallVector<Value> savedHere(loaded);
      hoistLoads(b, at);
      if (at < last) {
        auto loop = scf::ForOp::create(b, loc, constantIndex(b, loc, 0),
                                       constantIndex(b, loc, loops[at].size),
                                       constantIndex(b, loc, 1));
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(loop.getBody());
        counters[at] = loop.getInductionVar();
        emitFrom(at + 1);
      } else {
        makeLoop(last, [&] {
          SmallVector<Value> carried;
          for (auto [number, write] : llvm::enumerate(writes))
            carried.push_back(
                load(b, write, loops.size(),
                     getElementTypeOrSelf(op->getResult(number).getType())));
          SmallVector<Value> next = emitElement(b, loops.size(), carried);
          for (auto [write, value] : llvm::zip_equal(writes, next))
            store(b, write, loops.size(), value);
        });
      }
      loaded = savedHere;
    };
    emitFrom(level);
  }
  loaded = saved;
}

KernelOp Nest::build() {
  collectInputs();
  findLoops();
  orderLoops();
  for (auto [number, write] : llvm::enumerate(writes))
    write.buffer = inputs.size() + number;
  int64_t extent = 1;
  if (numOuter > 0)
    extent = loops[0].size;
  else if (innerParallel)
    extent = loops.back().size;
  rewriter.setInsertionPoint(op);
  auto kernel = KernelOp::create(rewriter, loc, op->getResultTypes(),
                                 inputs.getArrayRef(), extent,
                                 /*inplace=*/nullptr, /*updates=*/nullptr);
  Block *block = rewriter.createBlock(&kernel.getBody());
  OpBuilder b = OpBuilder::atBlockBegin(block);
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(kernel.getOperandTypes()),
                                SmallVector<Type>(kernel.getResultTypes())))
    buffers.push_back(block->addArgument(getBufferType(type), loc));
  begin = block->addArgument(b.getIndexType(), loc);
  end = block->addArgument(b.getIndexType(), loc);
  for (Value buffer : buffers) {
    auto type = cast<MemRefType>(buffer.getType());
    if (type.getRank() == 1) {
      flat.push_back(buffer);
      continue;
    }
    int64_t count = type.getNumElements();
    flat.push_back(memref::ReinterpretCastOp::create(
        b, loc, MemRefType::get({count}, type.getElementType()), buffer,
        /*offset=*/int64_t(0), ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1}));
  }
  counters.resize(loops.size());
  loaded.resize(reads.size());
  emitLevel(b, 0);
  findInplace(kernel);
  countCosts(kernel);
  // Sums are carried in registers, or each element of the inner loop has its
  // own.
  kernel->setAttr(kParallelAttrName, rewriter.getUnitAttr());
  rewriter.replaceOp(op, kernel.getResults());
  return kernel;
}

} // namespace

KernelOp whale::convertToKernel(RewriterBase &rewriter, linalg::GenericOp op) {
  return Nest(rewriter, op).build();
}
