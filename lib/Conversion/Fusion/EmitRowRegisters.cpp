//===- EmitRowRegisters.cpp - Rows in the registers of threads ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The quick form of a kernel of rows for a GPU. In: nests that walk a row each
// in the same order, element by element, or compute one value of it. Out: each
// thread has the same elements of the row in all nests, `rowElements` of them
// in runs of `width` neighbours, which are one access. What a nest makes of
// them is a value of the thread for the next one: it is in no memory, and no
// barrier is needed. A row's one values are computed by all of its threads; its
// first thread stores what others need.
//
// Each row is read once, before anything else, so that many bytes are on their
// way. Up to 1,024 elements are one warp's, which combines sums by shuffles
// alone; their order follows from the length of a row and from how many
// operands there are.
//
// Cost: registers, kLineBytes of a thread at most, and unrolled code.
//
//===----------------------------------------------------------------------===//

#include "Fusion/RowKernel.h"
#include "Kernel/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace whale;
using linalg::GenericOp;

/// Elements of a row that a thread has at most, what it keeps of them in bytes,
/// and how many operations are unrolled for them.
static constexpr int64_t kMaxElements = 32, kLineBytes = 512,
                         kMaxOperations = 4096;
/// Threads of a row: fewer read scattered memory.
static constexpr int64_t kMinThreads = 4, kMaxThreads = 512;

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

/// Whether an access goes through a row element by element.
bool RowKernel::isLine(const LoopNest &nest, const Access &access) const {
  int64_t stride = 1;
  for (const Loop &loop :
       llvm::reverse(ArrayRef(nest.loops).drop_front(numRowLoops))) {
    if (access.coefficients[loop.lastDim] != stride)
      return false;
    stride *= loop.size;
  }
  return stride > 1 && !access.start && access.constant == 0;
}

SmallVector<int64_t> RowKernel::getStrides(const LoopNest &nest,
                                           const Access &access) const {
  SmallVector<int64_t> strides;
  for (const Loop &loop : ArrayRef(nest.loops).take_front(numRowLoops))
    strides.push_back(access.coefficients[loop.lastDim]);
  return strides;
}

/// Whether a read is of the kernel's operands, for each row another line.
bool RowKernel::isLoadedLine(const LoopNest &nest, const Access &read) const {
  return read.buffer != ~0u &&
         !isMember(nest.inputs[read.buffer].getDefiningOp()) &&
         isLine(nest, read) &&
         llvm::any_of(getStrides(nest, read),
                      [](int64_t stride) { return stride != 0; });
}

/// Whether of an operand each thread reads but its own elements, before it
/// writes any.
bool RowKernel::readsLinesAlone(Value tensor) const {
  return llvm::all_of(nests, [&](const LoopNest &nest) {
    auto isOther = [&](const Access &access) {
      return access.buffer != ~0u && nest.inputs[access.buffer] == tensor &&
             !isLoadedLine(nest, access);
    };
    for (unsigned number = 0; number < nest.writes.size(); ++number)
      if ((nest.readsInit[number] &&
           nest.inputs[nest.initReads[number].buffer] == tensor) ||
          llvm::any_of(nest.fillReads[number], isOther))
        return false;
    return !nest.captures.contains(tensor) &&
           llvm::none_of(nest.reads, isOther);
  });
}

/// Whether what the nest makes, and needs of other nests, is of the thread.
bool RowKernel::canBeInRegisters(LoopNest &nest) {
  auto isMade = [&](Value tensor) { return isMember(tensor.getDefiningOp()); };
  auto isMadeBuffer = [&](const Access &access) {
    return access.buffer != ~0u && isMade(nest.inputs[access.buffer]);
  };
  size_t accumulated = 0;
  for (unsigned number = 0; number < nest.writes.size(); ++number) {
    if (nest.stores[number] ||
        (nest.readsInit[number] && isMadeBuffer(nest.initReads[number])) ||
        llvm::any_of(nest.fillReads[number], isMadeBuffer))
      return false;
    if (!walksRow(nest))
      continue;
    if (nest.isAccumulated(number))
      ++accumulated;
    else if (!isLine(nest, nest.writes[number]))
      return false;
  }
  // All inner loops are reduced, or none.
  if (walksRow(nest) &&
      (nest.sums.size() != accumulated ||
       (accumulated > 0) != (nest.blocks.terms > 1) ||
       (accumulated > 0 && nest.blocks.results != countRows(rows)) ||
       llvm::any_of(nest.sums, [](const LoopNest::Sum &sum) {
         return !isShuffled(sum.combiner->getResult(0).getType());
       })))
    return false;
  if (llvm::any_of(nest.captures, isMade))
    return false;
  return llvm::all_of(nest.reads, [&](const Access &read) {
    if (!isMadeBuffer(read))
      return true;
    Value tensor = nest.inputs[read.buffer];
    return findLine(nest, read) || (getDepth(read, nest.loops) <= numRowLoops &&
                                    rowValues.contains(tensor));
  });
}

/// Notes what a nest that walks a row reads and makes of it; what a thread
/// keeps of an element grows by bytes, the widest element in memory is
/// `widest`.
void RowKernel::addLines(LoopNest &nest, int64_t &bytes, int64_t &widest) {
  auto add = [&](Value tensor, const Access &access) {
    lines.push_back({tensor, getStrides(nest, access), {}});
  };
  auto getBytes = [](Value tensor) { return getStoredBytes(tensor.getType()); };
  for (const Access &read : nest.reads) {
    if (!isLoadedLine(nest, read) || findLine(nest, read))
      continue;
    Value tensor = nest.inputs[read.buffer];
    add(tensor, read);
    bytes += getBytes(tensor);
    widest = std::max(widest, getBytes(tensor));
  }
  for (auto [number, write] : llvm::enumerate(nest.writes)) {
    Value result = nest.op->getResult(number);
    if (nest.isAccumulated(number)) {
      rowValues[result] = {};
      continue;
    }
    add(result, write);
    bytes += 4; // A register.
    if (results.contains(result))
      widest = std::max(widest, getBytes(result));
  }
}

/// How threads share a row of so many points, if it can be in registers.
bool RowKernel::findRegisters(int64_t points) {
  int64_t count = countRows(rows), operations = 0, bytes = 0, widest = 1;
  auto isInRegisters = [&] {
    for (LoopNest &nest : nests) {
      int64_t own = nest.blocks.results / count * nest.blocks.terms;
      if ((walksRow(nest) && own != points) || !canBeInRegisters(nest))
        return false;
      if (walksRow(nest)) {
        addLines(nest, bytes, widest);
        nest.op.getRegion().walk([&](Operation *) { ++operations; });
      } else {
        for (Value result : nest.op->getResults())
          rowValues[result] = {};
      }
    }
    return points > 1;
  };
  auto fits = [&](int64_t threads, int64_t neighbours) {
    if (points % (threads * neighbours) != 0)
      return false;
    int64_t elements = points / threads;
    // No block is less than a warp.
    return elements <= kMaxElements && elements * bytes <= kLineBytes &&
           elements * operations <= kMaxOperations &&
           (threads >= kWarp || count % (kWarp / threads) == 0);
  };
  if (isInRegisters()) {
    SmallVector<int64_t> choices;
    for (int64_t threads = kWarp; threads >= kMinThreads; threads /= 2)
      choices.push_back(threads);
    for (int64_t threads = 2 * kWarp; threads <= kMaxThreads; threads *= 2)
      choices.push_back(threads);
    for (width = kVectorBytes / std::min(widest, kVectorBytes); width > 0;
         width /= 2)
      for (int64_t threads : choices)
        if (fits(threads, width)) {
          rowThreads = threads;
          rowElements = points / threads;
          return true;
        }
  }
  width = 0;
  lines.clear();
  rowValues.clear();
  return false;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

RowKernel::Line *RowKernel::findLine(const LoopNest &nest,
                                     const Access &access) {
  Value tensor = nest.inputs[access.buffer];
  auto found = llvm::find_if(lines, [&](const Line &line) {
    return line.tensor == tensor && line.strides == getStrides(nest, access);
  });
  return found == lines.end() || !isLine(nest, access) ? nullptr : &*found;
}

/// Sets the counters to an element of the thread.
void RowKernel::setElement(OpBuilder &b, LoopNest &nest, Value thread,
                           int64_t element) {
  auto index = [&](int64_t value) { return constantIndex(b, nest.loc, value); };
  int64_t place = element / width * width * rowThreads + element % width;
  Value at = arith::AddIOp::create(
      b, nest.loc, arith::MulIOp::create(b, nest.loc, thread, index(width)),
      index(place));
  nest.setLoops(
      b, llvm::to_vector(llvm::seq<unsigned>(numRowLoops, nest.loops.size())),
      at);
}

/// Loads the thread's elements of all lines that a nest is the first to read.
void RowKernel::loadLines(OpBuilder &b, LoopNest &nest, Value thread) {
  for (auto [number, read] : llvm::enumerate(nest.reads)) {
    if (!isLoadedLine(nest, read))
      continue;
    Line *line = findLine(nest, read);
    if (!line->elements.empty())
      continue;
    Type type = nest.op.getRegionInputArgs()[number].getType();
    int64_t step = nest.isVector(read, width) ? width : 1;
    for (int64_t element = 0; element < rowElements; element += step) {
      setElement(b, nest, thread, element);
      llvm::append_range(line->elements, nest.loadVector(b, read, step, type));
    }
  }
}

/// Keeps a row's value, which all of its threads have; one of them stores it if
/// it is a result of the kernel.
void RowKernel::setRowValue(OpBuilder &b, LoopNest &nest, unsigned number,
                            Value value, Value thread) {
  Value result = nest.op->getResult(number);
  rowValues[result] = value;
  if (!results.contains(result))
    return;
  Location loc = nest.loc;
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        thread, constantIndex(b, loc, 0));
  auto branch = scf::IfOp::create(b, loc, isFirst, false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  nest.store(b, nest.writes[number], numRowLoops, value);
}

/// A nest that walks a row.
void RowKernel::emitLines(OpBuilder &b, LoopNest &nest, Value place,
                          Value thread) {
  SmallVector<Value> saved(nest.loaded), sums;
  for (LoopNest::Sum &sum : nest.sums)
    sums.push_back(nest.makeNeutral(b, sum.combiner));
  SmallVector<SmallVector<Value>> made(nest.writes.size());
  // Those that all rows read are in a cache.
  auto isWide = [&](const Access &read) {
    return nest.isVector(read, width) && nest.loops.back().size % width == 0;
  };
  SmallVector<SmallVector<Value>> wide(nest.reads.size());
  for (int64_t element = 0; element < rowElements; ++element) {
    setElement(b, nest, thread, element);
    nest.loaded = saved;
    for (auto [number, read] : llvm::enumerate(nest.reads)) {
      if (read.buffer == ~0u || nest.loaded[number])
        continue;
      if (Line *line = findLine(nest, read)) {
        nest.loaded[number] = line->elements[element];
      } else if (isWide(read)) {
        if (element % width == 0)
          wide[number] = nest.loadVector(
              b, read, width, nest.op.getRegionInputArgs()[number].getType());
        nest.loaded[number] = wide[number][element % width];
      }
    }
    SmallVector<Value> values = nest.emitPoint(b, nest.loops.size(), sums);
    sums.clear();
    for (auto [number, value] : llvm::enumerate(values))
      if (nest.isAccumulated(number))
        sums.push_back(value);
      else
        made[number].push_back(value);
  }
  nest.loaded = saved;
  for (auto [number, elements] : llvm::enumerate(made)) {
    const Access &write = nest.writes[number];
    Value result = nest.op->getResult(number);
    if (elements.empty())
      continue;
    if (results.contains(result)) {
      int64_t step = nest.isVector(write, width) ? width : 1;
      for (int64_t element = 0; element < rowElements; element += step) {
        setElement(b, nest, thread, element);
        nest.storeVector(b, write, ArrayRef(elements).slice(element, step));
      }
    }
    auto line = llvm::find_if(
        lines, [&](const Line &line) { return line.tensor == result; });
    line->elements = std::move(elements);
  }
  if (nest.sums.empty())
    return;
  nest.emitAcrossThreads(b, sums, place, thread);
  SmallVector<Value> inits = nest.emitInits(b, numRowLoops);
  for (auto [sum, init, value] : llvm::zip_equal(nest.sums, inits, sums))
    setRowValue(b, nest, sum.result,
                LoopNest::combine(b, sum.combiner, init, value), thread);
}

void RowKernel::emitRegisters(OpBuilder &b, Value row, Value place,
                              Value thread) {
  for (LoopNest &nest : nests)
    nest.setLoops(b, llvm::to_vector(llvm::seq<unsigned>(0, numRowLoops)), row);
  for (LoopNest &nest : nests)
    if (walksRow(nest))
      loadLines(b, nest, thread);
  for (LoopNest &nest : nests) {
    for (auto [number, read] : llvm::enumerate(nest.reads))
      if (read.buffer != ~0u)
        nest.loaded[number] = rowValues.lookup(nest.inputs[read.buffer]);
    nest.hoistLoads(b, numRowLoops);
    if (walksRow(nest)) {
      emitLines(b, nest, place, thread);
      continue;
    }
    SmallVector<Value> inits = nest.emitInits(b, numRowLoops);
    for (auto [number, value] :
         llvm::enumerate(nest.emitPoint(b, numRowLoops, inits)))
      setRowValue(b, nest, number, value, thread);
  }
}
