//===- FuseKernels.cpp - whale-fuse-kernels -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: linalg operations, about one for each operation of the program. Out:
// fewer of them, each of which becomes one loop nest. In the order of a block,
// an operation takes in those that make what it reads. The rewrite itself is
// linalg's; what to fuse, and what to compute twice, is decided as follows:
//
// - what one operation alone reads, each element once, is computed there;
// - what is cheaper to compute again than to read is computed by each reader;
// - what several read becomes a further result of the first of them.
//
// FusionRule.h says which of these it is; this tells it what it must know of
// linalg operations. Not fused are what windows that overlap read, bodies of
// more than kMostFusedBody operations, and loops with more than
// kMostFusedBuffers buffers.
//
// Cost: what a fusion looks at is the operands and the users of two operations;
// the body of a fused one is copied.
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseKernels.h"
#include "Kernel/StoredScalars.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Transforms/CSE.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/FusionRule.h"
#include "llvm/Support/MathExtras.h"

#include <utility>

namespace whale {
#define GEN_PASS_DEF_FUSEKERNELS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using linalg::GenericOp;
using whale::Fusion, whale::LoopRead, whale::LoopWork;

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

bool whale::isParallel(GenericOp op) {
  return op.getNumReductionLoops() == 0 &&
         llvm::all_of(op.getRegionOutputArgs(),
                      [](Value init) { return init.use_empty(); });
}

/// The operations of a body, without constants.
static unsigned getBodySize(GenericOp op) {
  unsigned size = 0;
  op.getRegion().walk([&](Operation *inner) {
    if (!isa<arith::ConstantOp, linalg::YieldOp>(inner))
      ++size;
  });
  return size;
}

/// A slice of a tensor at a place that is the same for all points.
static bool isSlice(GenericOp op) {
  unsigned reads = 0, others = 0;
  for (Operation &inner : op.getRegion().front().without_terminator()) {
    reads += isa<tensor::ExtractOp>(inner);
    others += !isa<tensor::ExtractOp, linalg::IndexOp>(inner) &&
              !inner.getResult(0).getType().isIndex();
  }
  return reads == 1 && others == 0 &&
         llvm::all_of(op.getInputs(), [](Value input) {
           return cast<ShapedType>(input.getType()).getNumElements() == 1;
         });
}

/// Constants, counters of loops, and conversions between what is stored and
/// what is computed in.
static bool isFree(Operation *op) {
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    AffineExpr expr = apply.getAffineMap().getResult(0);
    return isa<AffineDimExpr, AffineConstantExpr>(expr);
  }
  return isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp,
             linalg::IndexOp>(op);
}

/// How much arithmetic a point takes; nothing if some of it takes long.
static std::optional<unsigned> countArithmetic(GenericOp op) {
  unsigned count = 0;
  for (Operation &inner : op.getRegion().front().without_terminator()) {
    bool heavy =
        isa<arith::DivFOp, arith::RemFOp, arith::DivSIOp, arith::DivUIOp,
            arith::RemSIOp, arith::RemUIOp, tensor::ExtractOp>(inner) ||
        inner.getNumRegions() != 0 ||
        (isa_and_nonnull<math::MathDialect>(inner.getDialect()) &&
         !isa<math::AbsFOp, math::CopySignOp>(inner));
    if (heavy)
      return std::nullopt;
    if (isa<arith::IndexCastOp>(inner))
      count += whale::kCounterArithmetic;
    else
      count += !isFree(&inner);
  }
  return count;
}

/// The operands that are not far smaller than the result.
static SmallVector<Value> getLargeInputs(GenericOp op) {
  auto countElements = [](Value value) {
    return cast<ShapedType>(value.getType()).getNumElements();
  };
  SmallVector<Value> large;
  for (Value input : op.getInputs())
    if (!whale::isFarSmaller(countElements(input),
                             countElements(op->getResult(0))))
      large.push_back(input);
  return large;
}

static LoopWork describe(GenericOp op) {
  return {.arithmetic = countArithmetic(op),
          .largeInputs = unsigned(getLargeInputs(op).size()),
          .isSlice = isSlice(op)};
}

static bool isCheapLoop(GenericOp op) { return whale::isCheap(describe(op)); }

/// What the consumer would read in the place of the producer's result, beside
/// what it reads anyway.
static LoopRead::Bytes countBytes(GenericOp producer, GenericOp consumer) {
  auto bytesOf = [](Value value) -> int64_t {
    auto type = cast<ShapedType>(value.getType());
    return type.getNumElements() * whale::getStoredBytes(type);
  };
  LoopRead::Bytes bytes = {.result = bytesOf(producer->getResult(0))};
  llvm::SmallPtrSet<Value, 8> seen(consumer.getInputs().begin(),
                                   consumer.getInputs().end());
  for (Value input : getLargeInputs(producer))
    if (seen.insert(input).second)
      bytes.instead += bytesOf(input);
  return bytes;
}

using Users = llvm::SmallSetVector<Operation *, 8>;

/// The operations, in the same block, that use a result of `op`; null stands
/// for users elsewhere.
static Users getUsers(GenericOp op) {
  Users users;
  for (Operation *user : op->getUsers())
    users.insert(op->getBlock()->findAncestorOpInBlock(*user));
  return users;
}

namespace {

/// What is asked of operations again and again while others are fused.
class Properties : public RewriterBase::Listener {
public:
  bool isParallel(GenericOp op) { return get(op).parallel; }
  bool isCheap(GenericOp op) { return whale::isCheap(get(op).work); }
  const LoopWork &getWork(GenericOp op) { return get(op).work; }
  unsigned getBodySize(GenericOp op) { return get(op).bodySize; }

  /// For an operation whose body has changed.
  void forget(Operation *op) { known.erase(op); }
  void notifyOperationErased(Operation *op) override { forget(op); }

private:
  struct Entry {
    bool parallel;
    LoopWork work;
    unsigned bodySize;
  };

  const Entry &get(GenericOp op) {
    auto [it, isNew] = known.try_emplace(op);
    if (isNew)
      it->second = {whale::isParallel(op), describe(op), ::getBodySize(op)};
    return it->second;
  }

  llvm::DenseMap<Operation *, Entry> known;
};

} // namespace

/// The users of a producer, without the cheap operations among them that all
/// their own users will compute for themselves: of these, the users count.
/// `passed` gets these operations. Who reads elements of a tensor that it
/// captures can't compute that tensor for itself.
static void addLastingUsers(GenericOp op, Properties &properties, Users &users,
                            Users &passed) {
  Users direct = getUsers(op);
  SmallVector<Operation *> next(llvm::reverse(direct));
  while (!next.empty()) {
    Operation *user = next.pop_back_val();
    auto generic = dyn_cast_or_null<GenericOp>(user);
    bool passes =
        generic && properties.isParallel(generic) &&
        properties.isCheap(generic) && generic->getBlock() == op->getBlock() &&
        llvm::all_of(generic->getUsers(), [&](Operation *next) {
          return isa<GenericOp>(next) && next->getBlock() == op->getBlock();
        });
    if (!passes) {
      users.insert(user);
    } else if (passed.insert(user)) {
      Users further = getUsers(generic);
      llvm::append_range(next, llvm::reverse(further));
    }
  }
}

/// Each loop of the consumer appears in the map, so no element of the operand
/// is read twice.
static bool readsOnce(AffineMap map) {
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
    if (!map.isFunctionOfDim(dim))
      return false;
  return true;
}

/// The operand is read in windows that overlap: what is computed from an
/// element would be computed again in each.
static bool overlaps(GenericOp op, OpOperand *input) {
  AffineMap map = op.getMatchingIndexingMap(input);
  if (map.isProjectedPermutation())
    return false;
  int64_t reads = 1;
  for (auto [dim, size] : llvm::enumerate(op.getStaticLoopRanges()))
    if (map.isFunctionOfDim(dim) && llvm::MulOverflow(reads, size, reads))
      return true;
  return reads > cast<ShapedType>(input->get().getType()).getNumElements();
}

/// The operand varies with the outer loops only: what is computed from it is
/// computed outside of the inner loops.
static bool isPrefix(AffineMap map) {
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    if (expr != getAffineDimExpr(position, map.getContext()))
      return false;
  return true;
}

/// The buffers of a loop that does what both do.
static unsigned countBuffers(GenericOp producer, GenericOp consumer) {
  llvm::SmallPtrSet<Value, 32> buffers;
  for (GenericOp op : {producer, consumer})
    for (Value input : op.getInputs())
      if (input.getDefiningOp() != producer)
        buffers.insert(input);
  return buffers.size() + producer.getNumDpsInits() + consumer.getNumDpsInits();
}

namespace {

/// Which of two operations of a block comes first, while they are replaced and
/// moved. MLIR would number the whole block again each time.
class BlockOrder {
public:
  void number(Block &block) {
    places.clear();
    for (auto [place, op] : llvm::enumerate(block))
      places[&op] = place;
  }
  unsigned getPlace(Operation *op) const { return places.lookup(op); }
  /// For an operation that has come right before or after one of this place.
  void setPlace(Operation *op, unsigned place) { places[op] = place; }
  bool isBefore(Operation *first, Operation *second) const {
    unsigned place = getPlace(first);
    if (place != getPlace(second))
      return place < getPlace(second);
    for (Operation *op = first->getNextNode(); op && getPlace(op) == place;
         op = op->getNextNode())
      if (op == second)
        return true;
    return false;
  }

private:
  /// Never descends along the block.
  llvm::DenseMap<Operation *, unsigned> places;
};

} // namespace

//===----------------------------------------------------------------------===//
// Rewrites
//===----------------------------------------------------------------------===//

namespace {

class Fuser {
public:
  Fuser(MLIRContext *context, const Target &target)
      : rewriter(context, &properties), target(target) {}

  void run(Block &block) {
    order.number(block);
    SmallVector<GenericOp> generics(block.getOps<GenericOp>());
    for (GenericOp op : generics)
      run(op);
  }

private:
  /// Fuses producers into `op` as long as there are any.
  void run(GenericOp op) {
    unsigned place = order.getPlace(op);
    op = whale::mergeInputs(rewriter, op);
    while (true) {
      order.setPlace(op, place);
      GenericOp fused;
      for (OpOperand *input : op.getDpsInputOperands())
        if ((fused = tryFuse(op, input)))
          break;
      if (!fused)
        break;
      op = whale::mergeInputs(rewriter, fused);
      isSimple = false;
    }
    simplify(op);
  }

  /// Computes once what `op` has taken in twice. This walks over the whole
  /// body, so not after each fusion, but only where the size of the body counts
  /// and at the end.
  void simplify(GenericOp op) {
    if (std::exchange(isSimple, true))
      return;
    DominanceInfo dominance;
    eliminateCommonSubExpressions(rewriter, dominance, op);
    properties.forget(op);
  }

  /// The size of the body of a loop that does what both do.
  unsigned getFusedSize(GenericOp producer, GenericOp consumer) {
    auto getSize = [&] {
      return properties.getBodySize(producer) +
             properties.getBodySize(consumer);
    };
    if (getSize() > whale::kMostFusedBody)
      simplify(consumer);
    return getSize();
  }

  /// How `consumer` reads what it could take in.
  LoopRead describeRead(GenericOp producer, GenericOp consumer,
                        OpOperand *input) {
    AffineMap map = consumer.getMatchingIndexingMap(input);
    LoopRead read = {.overlaps = overlaps(consumer, input),
                     .readsOnce = readsOnce(map),
                     .isPermutation = map.isPermutation(),
                     .isPrefix = isPrefix(map)};
    read.readers = getUsers(producer).size();
    read.isInOneWay = llvm::all_of(producer->getUses(), [&](OpOperand &use) {
      if (!consumer->isAncestor(use.getOwner()))
        return true;
      return use.getOwner() == consumer && consumer.isDpsInput(&use) &&
             consumer.getMatchingIndexingMap(&use) == map;
    });
    read.buffers = countBuffers(producer, consumer);
    read.bodySize = getFusedSize(producer, consumer);
    if (target.isGpu() && producer->getNumResults() == 1)
      read.gpu = countBytes(producer, consumer);
    return read;
  }

  GenericOp tryFuse(GenericOp consumer, OpOperand *input) {
    auto producer = input->get().getDefiningOp<GenericOp>();
    if (!producer || producer->getBlock() != consumer->getBlock() ||
        !properties.isParallel(producer) ||
        !linalg::areElementwiseOpsFusable(input))
      return {};
    LoopRead read = describeRead(producer, consumer, input);
    switch (willFuse(properties.getWork(producer), read)) {
    case Fusion::None:
      return {};
    case Fusion::Again:
      return fuseCopy(consumer, input);
    case Fusion::Alone:
      return fuse(consumer, input);
    case Fusion::Kept:
      return fuseAndKeep(consumer, input);
    }
    llvm_unreachable("unknown fusion");
  }

  /// The producer becomes a part of its first user, before all others need what
  /// it gives; cheap users go with those that they will become a part of.
  GenericOp fuseAndKeep(GenericOp consumer, OpOperand *input) {
    auto producer = input->get().getDefiningOp<GenericOp>();
    Users users, passed;
    addLastingUsers(producer, properties, users, passed);
    bool isFirst = llvm::all_of(users, [&](Operation *user) {
      return user && (user == consumer || order.isBefore(consumer, user));
    });
    // What the consumer reads through them it must have taken in before.
    auto isPassed = [&](Value value) {
      return passed.contains(value.getDefiningOp());
    };
    if (passed.contains(consumer) || !isFirst ||
        llvm::any_of(whale::getReads(consumer), isPassed))
      return {};
    SmallVector<Operation *> earlier;
    for (Operation *user : passed)
      if (order.isBefore(user, consumer))
        earlier.push_back(user);
    llvm::sort(earlier, [&](Operation *a, Operation *b) {
      return order.isBefore(a, b);
    });
    unsigned place = order.getPlace(consumer);
    GenericOp fused = fuse(consumer, input);
    if (!fused)
      return {};
    for (Operation *user : llvm::reverse(earlier)) {
      user->moveAfter(fused);
      order.setPlace(user, place);
    }
    return fused;
  }

  GenericOp fuseCopy(GenericOp consumer, OpOperand *input) {
    auto producer = input->get().getDefiningOp<GenericOp>();
    unsigned number = cast<OpResult>(input->get()).getResultNumber();
    rewriter.setInsertionPoint(consumer);
    auto copy = cast<GenericOp>(rewriter.clone(*producer));
    rewriter.modifyOpInPlace(consumer,
                             [&] { input->set(copy->getResult(number)); });
    GenericOp fused = fuse(consumer, input);
    if (!fused) {
      rewriter.modifyOpInPlace(
          consumer, [&] { input->set(producer->getResult(number)); });
      rewriter.eraseOp(copy);
    }
    return fused;
  }

  /// What others use of the producer becomes a result of the fused operation.
  GenericOp fuse(GenericOp consumer, OpOperand *input) {
    auto producer = input->get().getDefiningOp<GenericOp>();
    rewriter.setInsertionPoint(consumer);
    auto result = linalg::fuseElementwiseOps(rewriter, input);
    if (failed(result))
      return {};
    for (auto [from, to] : result->replacements)
      rewriter.replaceUsesWithIf(from, to, [&](OpOperand &use) {
        return use.getOwner() != producer && use.getOwner() != result->fusedOp;
      });
    rewriter.eraseOp(consumer);
    if (producer->use_empty())
      rewriter.eraseOp(producer);
    auto fused = cast<GenericOp>(result->fusedOp);
    auto maps =
        llvm::map_to_vector(fused.getIndexingMapsArray(), simplifyLinear);
    fused.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    return fused;
  }

  /// A long row of reversals would leave an expression as long. The remainders
  /// that slices take would become quotients, which kernels don't read.
  static AffineMap simplifyLinear(AffineMap map) {
    if (map.isProjectedPermutation())
      return map;
    bool isLinear = true;
    map.walkExprs([&](AffineExpr expr) {
      isLinear &= expr.getKind() != AffineExprKind::Mod;
    });
    return isLinear ? simplifyAffineMap(map) : map;
  }

  Properties properties;
  IRRewriter rewriter;
  BlockOrder order;
  Target target;
  /// Whether nothing is computed twice in the operation that takes in others.
  bool isSimple = true;
};

struct FuseKernels : whale::impl::FuseKernelsBase<FuseKernels> {
  using FuseKernelsBase::FuseKernelsBase;

  void runOnOperation() override {
    SmallVector<Block *> found;
    // Not those within loops, which come and go with them.
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<GenericOp, whale::KernelOp>(op))
        return WalkResult::skip();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          found.push_back(&block);
      return WalkResult::advance();
    });
    Fuser fuser(&getContext(), target);
    IRRewriter rewriter(&getContext());
    for (Block *block : found) {
      whale::absorbUnitReshapes(rewriter, *block, isCheapLoop);
      fuser.run(*block);
    }
    for (Block *block : found)
      whale::joinStores(rewriter, *block);
    // Producers that every user has computed for itself.
    getOperation()->walk<WalkOrder::PostOrder, mlir::ReverseIterator>(
        [&](Operation *op) {
          if (isOpTriviallyDead(op))
            op->erase();
        });
    SmallVector<GenericOp> generics;
    getOperation().walk([&](GenericOp op) { generics.push_back(op); });
    for (GenericOp op : generics) {
      op = whale::mergeInputs(rewriter, op);
      whale::dropUnusedResults(rewriter, op);
    }
  }
};

} // namespace
