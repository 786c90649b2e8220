//===- EmitLoopNest.cpp - The code of one linalg operation ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what LinalgToKernel.cpp has found out about a nest. Out: its loops for a
// processor, and the parts that all targets share: addresses, loads, stores and
// the body at a point.
//
// Loads are in the outermost loop that they can be in. What is accumulated is
// carried in registers or, where the innermost loop is parallel, is in the
// result. Tiles of a transposition are packed on the stack, line by line, and
// read from there.
//
// Cost: the body is written once.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace whale;

Value LoopNest::emitAddress(OpBuilder &b, const Access &access,
                            unsigned depth) {
  Value address = access.start;
  auto addTerm = [&](Value term, int64_t coefficient) {
    if (coefficient == 0)
      return;
    if (coefficient != 1)
      term = arith::MulIOp::create(b, loc, term,
                                   constantIndex(b, loc, coefficient));
    address = address ? arith::AddIOp::create(b, loc, address, term).getResult()
                      : term;
  };
  llvm::SmallBitVector joined(loops.size());
  for (const Group &group : groups)
    if (int64_t stride = getGroupStride(group, access)) {
      addTerm(group.index, stride);
      for (unsigned loop : group.loops)
        joined.set(loop);
    }
  for (unsigned number = 0; number < depth; ++number)
    if (!joined.test(number))
      addTerm(counters[number], access.coefficients[loops[number].lastDim]);
  if (!address)
    return constantIndex(b, loc, access.constant);
  if (access.constant)
    address = arith::AddIOp::create(b, loc, address,
                                    constantIndex(b, loc, access.constant));
  return address;
}

/// What was loaded, as the body sees it: a truth value takes a byte.
Value LoopNest::asElement(OpBuilder &b, Value value, Type type) {
  if (!type.isInteger(1))
    return value;
  return arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ne, value,
      arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0)));
}

Value LoopNest::load(OpBuilder &b, const Access &access, unsigned depth,
                     Type type) {
  return asElement(b,
                   memref::LoadOp::create(b, loc, flat[access.buffer],
                                          emitAddress(b, access, depth)),
                   type);
}

void LoopNest::store(OpBuilder &b, const Access &access, unsigned depth,
                     Value value) {
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  memref::StoreOp::create(b, loc, value, flat[access.buffer],
                          emitAddress(b, access, depth));
}

void LoopNest::hoistLoads(OpBuilder &b, unsigned depth) {
  for (auto [number, access] : llvm::enumerate(reads))
    if (access.buffer != ~0u && !loaded[number] &&
        getDepth(access, loops) <= depth)
      loaded[number] =
          load(b, access, depth, op.getRegionInputArgs()[number].getType());
}

/// Within the clone of an operation of the body, reads of tensors become
/// loads and indices become counters.
void LoopNest::replaceTensorOps(OpBuilder &b, Operation *cloned) {
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
      value = asElement(b,
                        memref::LoadOp::create(
                            b, loc, buffers[inputBuffer(extract.getTensor())],
                            extract.getIndices()),
                        extract.getType());
    }
    inner->getResult(0).replaceAllUsesWith(value);
    inner->erase();
  }
}

SmallVector<Value> LoopNest::emitBody(OpBuilder &b, linalg::GenericOp body,
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
      mapping.map(extract.getResult(), asElement(b, value, extract.getType()));
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
SmallVector<Value> LoopNest::emitInits(OpBuilder &b, unsigned depth) {
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
      results.push_back(makeZero(b, loc, type));
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

/// What the body makes where the counters are; `carried` are the values so far
/// of what it accumulates.
SmallVector<Value> LoopNest::emitPoint(OpBuilder &b, unsigned depth,
                                       ArrayRef<Value> carried) {
  SmallVector<Value> saved(loaded);
  hoistLoads(b, depth);
  SmallVector<Value> arguments(loaded);
  loaded = saved;
  for (unsigned number = 0; number < writes.size(); ++number) {
    Type type = getElementTypeOrSelf(op->getResult(number).getType());
    Value argument;
    if (isAccumulated(number)) {
      argument = carried.front();
      carried = carried.drop_front();
    } else if (readsInit[number]) {
      argument = load(b, initReads[number], depth, type);
    }
    arguments.push_back(argument);
  }
  return emitBody(b, op, arguments);
}

/// One run of the body: stores what is stored in every iteration and returns
/// the new accumulators.
SmallVector<Value> LoopNest::emitElement(OpBuilder &b, unsigned depth,
                                         ArrayRef<Value> carried) {
  SmallVector<Value> accumulated;
  for (auto [number, value] : llvm::enumerate(emitPoint(b, depth, carried))) {
    if (isAccumulated(number))
      accumulated.push_back(value);
    else
      store(b, writes[number], depth, value);
  }
  return accumulated;
}

/// Loops from `level` on carry the accumulators in registers.
void LoopNest::emitReduction(OpBuilder &b, unsigned level) {
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

/// Copies the elements of a tile, whose corner the counters say, line by line.
void LoopNest::emitPack(OpBuilder &b, unsigned read, ValueRange sizes) {
  Access access = reads[across[read]];
  Value corner = emitAddress(b, access, loops.size());
  Value zero = constantIndex(b, loc, 0), one = constantIndex(b, loc, 1);
  OpBuilder::InsertionGuard guard(b);
  auto lines = scf::ForOp::create(b, loc, zero, sizes[1], one);
  b.setInsertionPointToStart(lines.getBody());
  Value line = lines.getInductionVar();
  int64_t stride = access.coefficients[loops.back().lastDim];
  Value from = arith::AddIOp::create(
      b, loc, corner,
      arith::MulIOp::create(b, loc, line, constantIndex(b, loc, stride)));
  Value to = arith::MulIOp::create(b, loc, line, constantIndex(b, loc, tile));
  auto elements = scf::ForOp::create(b, loc, zero, sizes[0], one);
  b.setInsertionPointToStart(elements.getBody());
  Value element = elements.getInductionVar();
  Value value = memref::LoadOp::create(
      b, loc, flat[access.buffer],
      ValueRange{arith::AddIOp::create(b, loc, from, element)});
  memref::StoreOp::create(
      b, loc, value, packed[read],
      ValueRange{arith::AddIOp::create(b, loc, to, element)});
}

/// The last two loops, tile by tile.
void LoopNest::emitTiles(OpBuilder &b) {
  unsigned first = loops.size() - 2, last = loops.size() - 1;
  Value zero = constantIndex(b, loc, 0), one = constantIndex(b, loc, 1);
  Value width = constantIndex(b, loc, tile);
  // The body of a loop over the tiles of one loop gets the size of a tile.
  auto overTiles = [&](unsigned number, int64_t step,
                       function_ref<void(Value)> body) {
    int64_t size = loops[number].size;
    Value side = constantIndex(b, loc, step);
    Value to = constantIndex(b, loc, llvm::divideCeil(size, step));
    auto loop = scf::ForOp::create(b, loc, number == 0 ? begin : zero,
                                   number == 0 ? end : to, one);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    counters[number] =
        arith::MulIOp::create(b, loc, loop.getInductionVar(), side);
    Value count = side;
    if (size % step != 0)
      count = arith::MinUIOp::create(
          b, loc, side,
          arith::SubIOp::create(b, loc, constantIndex(b, loc, size),
                                counters[number]));
    body(count);
  };
  auto within = [&](Value count, function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, loc, zero, count, one);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  };
  overTiles(first, tile, [&](Value rows) {
    overTiles(last, tile * kTileLength, [&](Value columns) {
      for (unsigned read = 0; read < across.size(); ++read)
        emitPack(b, read, {rows, columns});
      SmallVector<Value> corner(counters);
      within(rows, [&](Value row) {
        counters[first] = arith::AddIOp::create(b, loc, corner[first], row);
        within(columns, [&](Value column) {
          counters[last] = arith::AddIOp::create(b, loc, corner[last], column);
          SmallVector<Value> saved(loaded);
          for (auto [read, number] : llvm::enumerate(across)) {
            Value place = arith::AddIOp::create(
                b, loc, arith::MulIOp::create(b, loc, column, width), row);
            loaded[number] = asElement(
                b, memref::LoadOp::create(b, loc, packed[read], place),
                op.getRegionInputArgs()[number].getType());
          }
          emitReduction(b, loops.size());
          loaded = saved;
        });
      });
    });
  });
}

void LoopNest::emitLevel(OpBuilder &b, unsigned level) {
  SmallVector<Value> saved(loaded);
  hoistLoads(b, level);
  auto makeLoop = [&](unsigned number, function_ref<void()> body) {
    bool first = number == ranged ||
                 (numOuter == 0 && innerParallel && number + 1 == loops.size());
    Value from = first ? begin : constantIndex(b, loc, 0);
    Value to = first ? end : constantIndex(b, loc, loops[number].size);
    auto loop = scf::ForOp::create(b, loc, from, to, constantIndex(b, loc, 1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    counters[number] = loop.getInductionVar();
    body();
  };
  if (tile > 0 && level + 2 == loops.size()) {
    emitTiles(b);
  } else if (level < numOuter) {
    makeLoop(level, [&] { emitLevel(b, level + 1); });
  } else if (!sums.empty()) {
    emitSums(b);
  } else if (!innerParallel) {
    emitReduction(b, level);
  } else {
    // The accumulators are in the result: set, then add line by line.
    SmallVector<unsigned> collected;
    for (unsigned number = 0; number < writes.size(); ++number)
      if (isAccumulated(number))
        collected.push_back(number);
    unsigned last = loops.size() - 1;
    makeLoop(last, [&] {
      SmallVector<Value> inits = emitInits(b, loops.size());
      for (auto [number, init] : llvm::zip_equal(collected, inits))
        store(b, writes[number], loops.size(), init);
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
          for (unsigned number : collected)
            carried.push_back(
                load(b, writes[number], loops.size(),
                     getElementTypeOrSelf(op->getResult(number).getType())));
          SmallVector<Value> next = emitElement(b, loops.size(), carried);
          for (auto [number, value] : llvm::zip_equal(collected, next))
            store(b, writes[number], loops.size(), value);
        });
      }
      loaded = savedHere;
    };
    emitFrom(level);
  }
  loaded = saved;
}
