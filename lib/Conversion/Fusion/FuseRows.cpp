//===- FuseRows.cpp - whale-fuse-rows -------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what whale-fuse-kernels has left. Out: a whale.kernel in the place of
// linalg operations that follow from each other and run over the same rows.
//
// A reduction of rows begins a group. In the order of the block, an operation
// that reads what a group has made joins it (and joins the groups of which it
// reads) if the rules of findFault allow it. Groups in which a row is walked
// at least twice become kernels, if what they need and what needs them can
// still be put before and after them.
//
// Cost: for each operation that reads of a group, a walk over the operations
// from the group's first member on, at most kMaxWindow.
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseRows.h"
#include "Kernel/KernelBuilder.h"
#include "LoopNest/LinalgToKernel.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Iterators.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "llvm/Support/MathExtras.h"

#include <deque>
#include <unordered_map>

namespace whale {
#define GEN_PASS_DEF_FUSEROWS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;
using linalg::GenericOp;

/// All that a kernel reads and writes of one row. Up to half of the smallest
/// second level of a cache (512 KiB) it wins whatever the number of rows.
/// Beyond, a row is read again from a cache that others share, and fewer rows
/// than that would leave some of a GPU, or of a processor's cores, without
/// work.
static constexpr int64_t kShortRowBytes = 256 * 1024,
                         kMaxRowBytes = 4 * 1024 * 1024, kManyRows = 128;
/// What all operations walk of a row: a GPU's block has 512 threads for it, of
/// 4,096 elements at most.
static constexpr int64_t kMaxWalked = 512 * 4096;
/// Of a thread of a processor, whose stack is mostly of 8 MiB.
static constexpr int64_t kMaxStackBytes = 1024 * 1024;
/// Shorter rows are summed several at a time, which a loop over all rows alone
/// can do.
static constexpr int64_t kMinRow = 32;
/// Beyond these a kernel runs out of registers for addresses.
static constexpr size_t kMaxBuffers = 48;
/// Operations of the block from the first member of a group to the last.
static constexpr unsigned kMaxWindow = 256;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

std::optional<SmallVector<unsigned>>
whale::findRowDims(GenericOp op, ArrayRef<int64_t> rows) {
  SmallVector<unsigned> dims;
  auto iterators = op.getIteratorTypesArray();
  for (auto [dim, size] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (dims.size() == rows.size())
      break;
    if (size == 1)
      continue;
    if (size != rows[dims.size()] ||
        iterators[dim] != utils::IteratorType::parallel)
      return {};
    dims.push_back(dim);
  }
  if (dims.size() != rows.size())
    return {};
  return dims;
}

static bool dependsOnAny(AffineExpr expr, ArrayRef<unsigned> dims) {
  return llvm::any_of(dims,
                      [&](unsigned dim) { return expr.isFunctionOfDim(dim); });
}

bool whale::isRowAligned(AffineMap map, ArrayRef<int64_t> shape,
                         ArrayRef<unsigned> rowDims) {
  size_t next = 0;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    if (size == 1)
      continue;
    if (next == rowDims.size()) {
      if (dependsOnAny(expr, rowDims))
        return false;
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || dim.getPosition() != rowDims[next++])
      return false;
  }
  return next == rowDims.size();
}

bool whale::readsRowAligned(GenericOp op, Value tensor,
                            ArrayRef<unsigned> rowDims) {
  auto isCaptured = [&](Operation *user) { return op->isProperAncestor(user); };
  if (llvm::any_of(tensor.getUsers(), isCaptured))
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (operand.get() != tensor)
      continue;
    if (op.isDpsInit(&operand) ||
        !isRowAligned(op.getMatchingIndexingMap(&operand), getShape(tensor),
                      rowDims))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static bool isReduced(GenericOp op, unsigned dim) {
  return op.getIteratorTypesArray()[dim] == utils::IteratorType::reduction;
}

/// Whether the operation accumulates by one operation alone, term by term: what
/// its order is does not depend on the loops around it.
static bool isSimple(GenericOp op) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    unsigned number = init.getOperandNumber() - op.getNumDpsInputs();
    if (isAccumulated(op, number) && !LoopNest::findCombiner(op, number))
      return false;
  }
  return true;
}

/// The rows that a reduction reduces: all its parallel dimensions, if they come
/// first. Empty if it is none.
static SmallVector<int64_t> findReducedRows(GenericOp op) {
  SmallVector<int64_t> rows;
  bool isInside = false;
  for (auto [dim, size] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (size == 1)
      continue;
    if (isReduced(op, dim))
      isInside = true;
    else if (isInside)
      return {};
    else
      rows.push_back(size);
  }
  return isInside ? rows : SmallVector<int64_t>();
}

/// The points of all parallel loops.
static int64_t countResults(GenericOp op) {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(op.getStaticLoopRanges()))
    if (!isReduced(op, dim))
      count *= size;
  return count;
}

/// The points of a row.
static int64_t getRowSize(GenericOp op, ArrayRef<int64_t> rows) {
  int64_t size = 1;
  for (int64_t range : op.getStaticLoopRanges())
    size *= range;
  return size / countRows(rows);
}

/// Whether what the operation sees through `map` is in memory row after row.
static bool isOrdered(GenericOp op, AffineMap map, ArrayRef<unsigned> rowDims) {
  SmallVector<unsigned> inner;
  for (auto [dim, size] : llvm::enumerate(op.getStaticLoopRanges()))
    if (size != 1 && !llvm::is_contained(rowDims, dim))
      inner.push_back(dim);
  bool isInside = false;
  for (AffineExpr expr : map.getResults()) {
    isInside |= dependsOnAny(expr, inner);
    if (isInside && dependsOnAny(expr, rowDims))
      return false;
  }
  return true;
}

/// Why the operation can't be one over these rows; empty if it can.
static StringRef findOwnFault(GenericOp op, ArrayRef<int64_t> rows,
                              const Target &target) {
  if (llvm::is_contained(op.getStaticLoopRanges(), 0))
    return "it has no elements";
  std::optional<SmallVector<unsigned>> dims = findRowDims(op, rows);
  if (!dims)
    return "its first loops are not those rows";
  int64_t size = getRowSize(op, rows);
  if (size != 1 && size < kMinRow)
    return "its rows are short";
  // A sum over a dimension of size one has a term.
  if (op.getNumReductionLoops() != 0 && !isSimple(op))
    return "it reduces by more than one operation";
  if (op.getNumReductionLoops() != 0 && size != 1) {
    unsigned last = op.getNumLoops() - 1;
    while (op.getStaticLoopRanges()[last] == 1)
      --last;
    if (!isReduced(op, last))
      return "it reduces columns";
    if (target.isGpu() && countResults(op) != countRows(rows))
      return "it reduces parts of rows";
  }
  for (OpOperand &operand : op->getOpOperands())
    if (!isOrdered(op, op.getMatchingIndexingMap(&operand), *dims))
      return "it walks across the rows in memory";
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    if (findStore(op, number))
      return "it stores in a slice";
  return {};
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {

struct Group {
  SmallVector<int64_t> rows;
  SmallVector<GenericOp> members; // In order.

  bool contains(Operation *op) const {
    auto generic = dyn_cast_or_null<GenericOp>(op);
    return generic && llvm::is_contained(members, generic);
  }
};

/// Operations that may run after others that do not need them.
bool isMovable(Operation *op) {
  return isa<GenericOp, KernelOp, tensor::EmptyOp, stablehlo::ReshapeOp,
             stablehlo::ConstantOp, UnrealizedConversionCastOp>(op);
}

/// What is asked of operations again and again while groups grow, and these
/// stay as they are.
class RowFacts {
public:
  explicit RowFacts(const Target &target) : target(target) {}

  /// What an operation is over rows.
  struct Own {
    SmallVector<int64_t> rows;
    StringRef fault;
    /// Its loops over the rows, without a fault.
    SmallVector<unsigned> dims;
  };
  const Own &findOwn(GenericOp op, ArrayRef<int64_t> rows) {
    std::deque<Own> &known = own[op];
    auto found = llvm::find_if(
        known, [&](const Own &one) { return ArrayRef(one.rows) == rows; });
    if (found != known.end())
      return *found;
    Own &one = known.emplace_back();
    one.rows.assign(rows.begin(), rows.end());
    one.fault = findOwnFault(op, rows, target);
    if (one.fault.empty())
      one.dims = *findRowDims(op, rows);
    return one;
  }
  ArrayRef<Value> getReads(Operation *op) {
    auto [it, isNew] = reads.try_emplace(op);
    if (isNew)
      it->second = whale::getReads(op).takeVector();
    return it->second;
  }

private:
  Target target;
  std::unordered_map<Operation *, std::deque<Own>> own;
  std::unordered_map<Operation *, SmallVector<Value>> reads;
};

/// What needs a group and is before its last member: to go after it. A fault if
/// the group needs it, or it can't move.
StringRef findLater(const Group &group, RowFacts &facts,
                    SmallVectorImpl<Operation *> &later) {
  llvm::SmallPtrSet<Operation *, 16> members, tainted;
  for (GenericOp op : group.members)
    members.insert(op);
  unsigned count = 0;
  bool isStuck = false;
  Operation *last = group.members.back();
  for (Operation *op = group.members.front(); op != last->getNextNode();
       op = op->getNextNode()) {
    if (++count > kMaxWindow)
      return "it is far from those";
    bool needsMember = false, needsLater = false;
    for (Value value : facts.getReads(op)) {
      needsMember |= members.contains(value.getDefiningOp());
      needsLater |= tainted.contains(value.getDefiningOp());
    }
    if (members.contains(op)) {
      if (needsLater)
        return "it needs what another operation makes of theirs";
      continue;
    }
    if (!needsMember && !needsLater)
      continue;
    isStuck |= !isMovable(op);
    tainted.insert(op);
    later.push_back(op);
  }
  return isStuck ? "an operation between them can't move" : "";
}

/// Why rows are too large for a kernel; empty if they are not.
StringRef findSizeFault(const Group &group, const Target &target) {
  int64_t bytes = countRowBytes(group.members, group.rows);
  if (bytes > kMaxRowBytes)
    return "a row does not fit a cache";
  bool isFew = countRows(group.rows) < kManyRows;
  if (bytes > kShortRowBytes && isFew)
    return "its rows are long, and few";
  int64_t lines = countLocalLineBytes(group.members, group.rows);
  if (!target.isGpu())
    return lines > kMaxStackBytes ? "a row does not fit the stack" : "";
  int64_t walked = 0;
  for (GenericOp op : group.members)
    walked += getRowSize(op, group.rows);
  if (walked > kMaxWalked)
    return "a row is too long for a block of threads";
  int64_t shared = countSharedBytes(group.members, group.rows, 1);
  if (shared > kMaxSharedBytes && (isFew || shared - lines > kMaxSharedBytes ||
                                   !canRecompute(group.members, group.rows)))
    return "a row does not fit shared memory";
  return "";
}

/// Why these are not one kernel; empty if they can be.
StringRef findFault(const Group &group, RowFacts &facts, const Target &target) {
  llvm::SetVector<Value> buffers;
  for (GenericOp op : group.members) {
    const RowFacts::Own &own = facts.findOwn(op, group.rows);
    if (!own.fault.empty())
      return own.fault;
    ArrayRef<Value> reads = facts.getReads(op);
    buffers.insert_range(reads);
    buffers.insert_range(op->getResults());
    for (Value value : reads) {
      if (!group.contains(value.getDefiningOp()))
        continue;
      auto maker = value.getDefiningOp<GenericOp>();
      AffineMap map = maker.getIndexingMapMatchingResult(cast<OpResult>(value));
      // It comes first, and has no fault.
      ArrayRef<unsigned> dims = facts.findOwn(maker, group.rows).dims;
      if (!readsRowAligned(op, value, own.dims) ||
          !isRowAligned(map, getShape(value), dims))
        return "it needs more than its row of theirs";
    }
  }
  if (buffers.size() > kMaxBuffers)
    return "they have too many operands";
  if (StringRef fault = findSizeFault(group, target); !fault.empty())
    return fault;
  SmallVector<Operation *> later;
  return findLater(group, facts, later);
}

/// Whether a row is walked again after it has been reduced.
bool isWorth(const Group &group) {
  auto walksRow = [&](GenericOp op) { return getRowSize(op, group.rows) > 1; };
  return llvm::count_if(group.members, walksRow) >= 2;
}

class RowFuser {
public:
  RowFuser(MLIRContext *context, bool remarks, const Target &target)
      : rewriter(context), remarks(remarks), target(target) {}

  void run(Block &block) {
    groups.clear();
    groupOf.clear();
    SmallVector<GenericOp> generics(block.getOps<GenericOp>());
    for (GenericOp &op : generics)
      op = readThroughReshapes(rewriter, op);
    facts.emplace(target);
    for (GenericOp op : generics)
      if (!join(op))
        begin(op);
    for (std::unique_ptr<Group> &group : groups)
      if (group && isWorth(*group))
        convert(*group);
  }

private:
  /// Adds `op` to the groups that it reads of, which become one: the nearest
  /// first, and each other one that the rules allow.
  bool join(GenericOp op) {
    llvm::SetVector<Group *> read;
    for (Value value : facts->getReads(op))
      if (Group *group = groupOf.lookup(value.getDefiningOp()))
        read.insert(group);
    SmallVector<Group *> sources(read.begin(), read.end());
    llvm::sort(sources, [](Group *a, Group *b) {
      return b->members.back()->isBeforeInBlock(a->members.back());
    });
    Group joined;
    joined.members = {op};
    StringRef first;
    SmallVector<Group *> accepted;
    for (Group *source : sources) {
      if (!accepted.empty() && source->rows != joined.rows)
        continue;
      Group both;
      both.rows = source->rows;
      both.members = joined.members;
      llvm::append_range(both.members, source->members);
      llvm::sort(both.members, [](GenericOp a, GenericOp b) {
        return a->isBeforeInBlock(b);
      });
      StringRef fault = findFault(both, *facts, target);
      if (fault.empty()) {
        joined = std::move(both);
        accepted.push_back(source);
      } else if (first.empty()) {
        first = fault;
      }
    }
    if (accepted.empty()) {
      if (remarks && !sources.empty())
        op.emitRemark() << "not one kernel with the rows that it reads: "
                        << first;
      return false;
    }
    for (std::unique_ptr<Group> &group : groups)
      if (group && llvm::is_contained(accepted, group.get()))
        group.reset();
    add(std::move(joined));
    return true;
  }

  void begin(GenericOp op) {
    Group group;
    group.rows = findReducedRows(op);
    if (group.rows.empty() || !facts->findOwn(op, group.rows).fault.empty())
      return;
    group.members = {op};
    if (findFault(group, *facts, target).empty())
      add(std::move(group));
  }

  void add(Group group) {
    groups.push_back(std::make_unique<Group>(std::move(group)));
    for (GenericOp op : groups.back()->members)
      groupOf[op] = groups.back().get();
  }

  void convert(const Group &group) {
    // Other groups have become kernels since it was found.
    facts.emplace(target);
    SmallVector<Operation *> later;
    if (!findLater(group, *facts, later).empty())
      return;
    Operation *last = group.members.back();
    for (Operation *op : later) {
      op->moveAfter(last);
      last = op;
    }
    if (remarks)
      emitRemark(group.members.back()->getLoc())
          << "one kernel for " << group.members.size() << " loops over rows";
    convertRows(rewriter, group.members, group.rows, target);
  }

  IRRewriter rewriter;
  bool remarks;
  Target target;
  /// Of the operations as they are now.
  std::optional<RowFacts> facts;
  std::vector<std::unique_ptr<Group>> groups; // Null where joined.
  llvm::DenseMap<Operation *, Group *> groupOf;
};

struct FuseRows : whale::impl::FuseRowsBase<FuseRows> {
  using FuseRowsBase::FuseRowsBase;

  void runOnOperation() override {
    SmallVector<Block *> found;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<GenericOp, KernelOp>(op))
        return WalkResult::skip();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          found.push_back(&block);
      return WalkResult::advance();
    });
    RowFuser fuser(&getContext(), remarks, target);
    for (Block *block : found)
      fuser.run(*block);
    // Reshapes and initial values that nothing reads any more.
    getOperation()->walk<WalkOrder::PostOrder, mlir::ReverseIterator>(
        [&](Operation *op) {
          if (isOpTriviallyDead(op))
            op->erase();
        });
  }
};

} // namespace
