//===- ShapeToLinalg.cpp - Operations that move elements ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: broadcast, transpose, slice, reverse, iota, pad and concatenate. Out: a
// parallel linalg operation that reads through an index map, so that fusion
// makes it disappear; padding and concatenations choose by a branch what an
// element is. A concatenation of many pieces, on a processor also one that is
// needed in memory, is kernels that copy pieces.
//
// Cost: what is not fused reads and writes each element of the result once. An
// element of a concatenation compares with up to 3 ends of pieces; where pieces
// are copied on a GPU, with up to 5. To lower: quadratic in the rank, linear in
// pieces: a kernel has at most 32 of them, or 256 in one loop.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "Kernel/KernelWork.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"

using namespace mlir;
using namespace whale;

/// Replaces `op` by a copy of its first operand read through `map`.
static LogicalResult replaceByMap(PatternRewriter &rewriter, Operation *op,
                                  ArrayRef<AffineExpr> exprs) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  RankedTensorType storage = getStorageType(type);
  if (!storage)
    return failure();
  Input input{stored(rewriter, op->getOperand(0)),
              AffineMap::get(type.getRank(), 0, exprs, rewriter.getContext())};
  auto generic =
      makeParallel(rewriter, op->getLoc(), storage.getShape(),
                   storage.getElementType(), input,
                   [](OpBuilder &, Location,
                      ValueRange elements) -> FailureOr<SmallVector<Value>> {
                     return SmallVector<Value>(elements);
                   });
  if (failed(generic))
    return failure();
  replaceWithStored(rewriter, op, generic->getResults());
  return success();
}

/// Replaces `op` by a constant if its first operand is the same everywhere.
static LogicalResult replaceBySplat(PatternRewriter &rewriter, Operation *op) {
  Attribute splat = matchSplat(op->getOperand(0));
  if (!splat)
    return failure();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
      op, DenseElementsAttr::get(type, splat));
  return success();
}

/// Branches, not clamped indices: the vectorizer makes masked loads of them.
FailureOr<Value> whale::lowerPad(PatternRewriter &rewriter,
                                 stablehlo::PadOp op) {
  auto from = cast<RankedTensorType>(op.getOperand().getType());
  auto to = cast<RankedTensorType>(op.getType());
  RankedTensorType storage = getStorageType(to);
  Value source = stored(rewriter, op.getOperand());
  if (!storage || !source)
    return failure();
  Attribute constant = matchSplat(op.getPaddingValue());
  SmallVector<Input> inputs;
  if (!constant)
    inputs.push_back({stored(rewriter, op.getPaddingValue()),
                      AffineMap::get(to.getRank(), 0, rewriter.getContext())});
  auto generic = makeParallel(
      rewriter, op.getLoc(), storage.getShape(), storage.getElementType(),
      inputs,
      [&](OpBuilder &b, Location loc,
          ValueRange elements) -> FailureOr<SmallVector<Value>> {
        Value padding =
            constant ? makeConstant(b, loc, constant, to.getElementType())
                     : elements[0];
        if (from.getNumElements() == 0)
          return SmallVector<Value>{padding};
        Value inside;
        SmallVector<Value> indices;
        auto require = [&](Value condition) {
          inside =
              inside
                  ? arith::AndIOp::create(b, loc, inside, condition).getResult()
                  : condition;
        };
        for (int64_t dim = 0; dim < to.getRank(); ++dim) {
          int64_t low = op.getEdgePaddingLow()[dim];
          int64_t high = op.getEdgePaddingHigh()[dim];
          int64_t step = op.getInteriorPadding()[dim] + 1;
          int64_t size = from.getDimSize(dim);
          Value index = linalg::IndexOp::create(b, loc, dim);
          if (low != 0)
            index = arith::SubIOp::create(b, loc, index,
                                          constantIndex(b, loc, low));
          int64_t span = (size - 1) * step + 1;
          if (low > 0 || high > 0)
            require(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                          index, constantIndex(b, loc, span)));
          if (step > 1) {
            Value stepValue = constantIndex(b, loc, step);
            Value rest = arith::RemUIOp::create(b, loc, index, stepValue);
            require(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          rest, constantIndex(b, loc, 0)));
            index = arith::DivUIOp::create(b, loc, index, stepValue);
          }
          indices.push_back(index);
        }
        if (!inside)
          return SmallVector<Value>{
              tensor::ExtractOp::create(b, loc, source, indices)};
        auto branch = scf::IfOp::create(
            b, loc, inside,
            [&](OpBuilder &b, Location loc) {
              Value value = tensor::ExtractOp::create(b, loc, source, indices);
              scf::YieldOp::create(b, loc, value);
            },
            [&](OpBuilder &b, Location loc) {
              scf::YieldOp::create(b, loc, padding);
            });
        return SmallVector<Value>{branch.getResult(0)};
      });
  if (failed(generic))
    return failure();
  return generic->getResult(0);
}

namespace {

struct BroadcastToLinalg : OpRewritePattern<stablehlo::BroadcastInDimOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::BroadcastInDimOp op,
                                PatternRewriter &rewriter) const override {
    if (succeeded(replaceBySplat(rewriter, op)))
      return success();
    auto from = cast<RankedTensorType>(op.getOperand().getType());
    auto to = cast<RankedTensorType>(op.getType());
    // What reads whole pieces reads them where they are.
    bool isPiece = llvm::all_of(op->getUsers(), [](Operation *user) {
      return isa<stablehlo::ConcatenateOp, stablehlo::PadOp>(user);
    });
    if (isPiece && from.getNumElements() == to.getNumElements() &&
        llvm::is_sorted(op.getBroadcastDimensions())) {
      rewriter.replaceOpWithNewOp<stablehlo::ReshapeOp>(op, to,
                                                        op.getOperand());
      return success();
    }
    SmallVector<AffineExpr> exprs;
    for (auto [dim, target] : llvm::enumerate(op.getBroadcastDimensions()))
      exprs.push_back(from.getDimSize(dim) == to.getDimSize(target)
                          ? rewriter.getAffineDimExpr(target)
                          : rewriter.getAffineConstantExpr(0));
    return replaceByMap(rewriter, op, exprs);
  }
};

struct TransposeToLinalg : OpRewritePattern<stablehlo::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    if (succeeded(replaceBySplat(rewriter, op)))
      return success();
    SmallVector<AffineExpr> exprs(op.getPermutation().size());
    for (auto [dim, source] : llvm::enumerate(op.getPermutation()))
      exprs[source] = rewriter.getAffineDimExpr(dim);
    return replaceByMap(rewriter, op, exprs);
  }
};

struct SliceToLinalg : OpRewritePattern<stablehlo::SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::SliceOp op,
                                PatternRewriter &rewriter) const override {
    if (succeeded(replaceBySplat(rewriter, op)))
      return success();
    ArrayRef<int64_t> from =
        cast<RankedTensorType>(op.getOperand().getType()).getShape();
    ArrayRef<int64_t> to = cast<RankedTensorType>(op.getType()).getShape();
    SmallVector<AffineExpr> exprs;
    for (auto [dim, start, stride] :
         llvm::enumerate(op.getStartIndices(), op.getStrides())) {
      AffineExpr expr = rewriter.getAffineDimExpr(dim) * stride + start;
      // A plain counter would have to run over all of the operand.
      if (expr.getKind() == AffineExprKind::DimId && from[dim] != to[dim])
        expr = expr % from[dim];
      exprs.push_back(expr);
    }
    return replaceByMap(rewriter, op, exprs);
  }
};

struct ReverseToLinalg : OpRewritePattern<stablehlo::ReverseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ReverseOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    SmallVector<AffineExpr> exprs;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      AffineExpr expr = rewriter.getAffineDimExpr(dim);
      if (llvm::is_contained(op.getDimensions(), dim))
        expr = -expr + (type.getDimSize(dim) - 1);
      exprs.push_back(expr);
    }
    return replaceByMap(rewriter, op, exprs);
  }
};

struct IotaToLinalg : OpRewritePattern<stablehlo::IotaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::IotaOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    RankedTensorType storage = getStorageType(type);
    if (!storage)
      return failure();
    auto generic = makeParallel(
        rewriter, op.getLoc(), storage.getShape(), storage.getElementType(), {},
        [&](OpBuilder &b, Location loc,
            ValueRange) -> FailureOr<SmallVector<Value>> {
          Value index = linalg::IndexOp::create(b, loc, op.getIotaDimension());
          Value number = arith::IndexCastOp::create(
              b, loc,
              type.getElementType().isF64() ? b.getI64Type() : b.getI32Type(),
              index);
          Type element = type.getElementType();
          if (isa<IntegerType>(element) &&
              element.getIntOrFloatBitWidth() == 64)
            return SmallVector<Value>{arith::IndexCastOp::create(
                b, loc, storage.getElementType(), index)};
          return SmallVector<Value>{
              convertScalar(b, loc, number, number.getType(), element)};
        });
    if (failed(generic))
      return failure();
    replaceWithStored(rewriter, op, generic->getResults());
    return success();
  }
};

/// Pattern: pad(x, v) -> if inside { x[...] } else { v }
struct PadToLinalg : OpRewritePattern<stablehlo::PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::PadOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<Value> result = lowerPad(rewriter, op);
    if (failed(result))
      return failure();
    replaceWithStored(rewriter, op, *result);
    return success();
  }
};

/// Pattern: concatenate(a, b) -> if i < size(a) { a[i] } else { b[i - size] }
struct ConcatenateToLinalg : OpRewritePattern<stablehlo::ConcatenateOp> {
  ConcatenateToLinalg(MLIRContext *context, const Target &target)
      : OpRewritePattern(context), target(target) {}

  /// More than these are copied one after the other.
  static constexpr size_t kMaxBranches = 4;
  /// More than these are copied in kernels of many pieces each.
  static constexpr size_t kMostLoops = 32;

  LogicalResult matchAndRewrite(stablehlo::ConcatenateOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    RankedTensorType storage = getStorageType(type);
    if (!storage)
      return failure();
    SmallVector<Value> sources;
    for (Value input : op.getInputs())
      if (cast<ShapedType>(input.getType()).getNumElements() != 0)
        sources.push_back(stored(rewriter, input));
    int64_t dim = op.getDimension();
    if (target.isGpu() && sources.size() > kMaxBranches)
      return copyByElement(op, storage, sources, dim, rewriter);
    if (!target.isGpu() &&
        (sources.size() > kMaxBranches || (dim != 0 && isWanted(op))))
      return copyEach(op, storage, sources, dim, rewriter);
    auto generic = makeParallel(
        rewriter, op.getLoc(), storage.getShape(), storage.getElementType(), {},
        [&](OpBuilder &b, Location loc,
            ValueRange) -> FailureOr<SmallVector<Value>> {
          SmallVector<Value> indices;
          for (int64_t d = 0; d < type.getRank(); ++d)
            indices.push_back(linalg::IndexOp::create(b, loc, d));
          return SmallVector<Value>{
              choose(b, loc, sources, indices, dim, /*offset=*/0)};
        });
    if (failed(generic))
      return failure();
    replaceWithStored(rewriter, op, generic->getResults());
    return success();
  }

  /// Whether someone needs all of the result in memory: no loop can compute its
  /// elements where it uses them, and copies of whole pieces are faster than
  /// choices.
  static bool isWanted(Operation *op) {
    SmallVector<Operation *> users(op->getUsers());
    while (!users.empty()) {
      Operation *user = users.pop_back_val();
      if (isa<stablehlo::ReshapeOp>(user))
        llvm::append_range(users, user->getUsers());
      else if (user->hasTrait<OpTrait::IsTerminator>() ||
               isa_and_nonnull<WhaleDialect>(user->getDialect()))
        return true;
    }
    return false;
  }

  /// The element of the first source that reaches beyond the index.
  static Value choose(OpBuilder &b, Location loc, ArrayRef<Value> sources,
                      ArrayRef<Value> indices, int64_t dim, int64_t offset) {
    auto extract = [&](OpBuilder &b, Location loc) -> Value {
      SmallVector<Value> local(indices);
      local[dim] = arith::SubIOp::create(b, loc, indices[dim],
                                         constantIndex(b, loc, offset));
      return tensor::ExtractOp::create(b, loc, sources[0], local);
    };
    if (sources.size() == 1)
      return extract(b, loc);
    int64_t next =
        offset + cast<ShapedType>(sources[0].getType()).getDimSize(dim);
    Value here =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, indices[dim],
                              constantIndex(b, loc, next));
    auto branch = scf::IfOp::create(
        b, loc, here,
        [&](OpBuilder &b, Location loc) {
          scf::YieldOp::create(b, loc, extract(b, loc));
        },
        [&](OpBuilder &b, Location loc) {
          scf::YieldOp::create(
              b, loc, choose(b, loc, sources.drop_front(), indices, dim, next));
        });
    return branch.getResult(0);
  }

  /// The element at `at` of these pieces, one after the other.
  static Value pick(KernelBuilder &k, ArrayRef<Value> pieces,
                    ArrayRef<Value> at, int64_t dim) {
    if (pieces.size() == 1)
      return memref::LoadOp::create(k.b, k.loc, pieces[0], at);
    ArrayRef<Value> left = pieces.take_front(pieces.size() / 2);
    ArrayRef<Value> right = pieces.drop_front(left.size());
    int64_t size = 0;
    for (Value piece : left)
      size += cast<MemRefType>(piece.getType()).getDimSize(dim);
    auto branch = scf::IfOp::create(
        k.b, k.loc, cast<MemRefType>(pieces[0].getType()).getElementType(),
        k.inside(at[dim], size), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(k.b, k.loc, pick(k, left, at, dim));
    k.b.setInsertionPointToStart(branch.elseBlock());
    SmallVector<Value> local(at);
    local[dim] = arith::SubIOp::create(k.b, k.loc, at[dim], k.index(size));
    scf::YieldOp::create(k.b, k.loc, pick(k, right, local, dim));
    return branch.getResult(0);
  }

  /// For a GPU: kernels whose threads copy an element each, the next ones after
  /// what those before have copied.
  static LogicalResult copyByElement(stablehlo::ConcatenateOp op,
                                     RankedTensorType type,
                                     ArrayRef<Value> sources, int64_t dim,
                                     PatternRewriter &rewriter) {
    Value result;
    int64_t offset = 0;
    while (!sources.empty()) {
      SmallVector<Value> pieces(sources.take_front(kMostLoops));
      size_t count = pieces.size();
      sources = sources.drop_front(count);
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] = 0;
      for (Value piece : pieces)
        shape[dim] += cast<ShapedType>(piece.getType()).getDimSize(dim);
      if (result)
        pieces.push_back(result);
      auto kernel =
          makeKernel(rewriter, op.getLoc(), /*blocks=*/true, type, pieces,
                     [&](KernelBuilder &k) {
                       k.parallel(shape, [&](ValueRange element) {
                         SmallVector<Value> at(element);
                         Value value = pick(
                             k, ArrayRef(k.buffers).take_front(count), at, dim);
                         at[dim] = k.add(at[dim], k.index(offset));
                         k.store(value, k.buffers.size() - 1, at);
                       });
                       return success();
                     });
      if (failed(kernel))
        return failure();
      if (result)
        kernel->setUpdates({static_cast<int64_t>(count)});
      noteWork(*kernel, op);
      result = kernel->getResult(0);
      offset += shape[dim];
    }
    replaceWithStored(rewriter, op, result);
    return success();
  }

  static LogicalResult copyEach(stablehlo::ConcatenateOp op,
                                RankedTensorType type, ArrayRef<Value> sources,
                                int64_t dim, PatternRewriter &rewriter) {
    if (sources.size() > kMostLoops)
      return copyManyEach(op, type, sources, dim, rewriter);
    auto kernel = makeKernel(rewriter, op.getLoc(), /*blocks=*/false, type,
                             sources, [&](KernelBuilder &k) {
                               copyInTurn(k, dim);
                               return success();
                             });
    if (failed(kernel))
      return failure();
    (*kernel)->setAttr(kParallelAttrName, rewriter.getUnitAttr());
    noteWork(*kernel, op);
    replaceWithStored(rewriter, op, kernel->getResults());
    return success();
  }

  /// Kernels that copy many pieces each, the next ones after what those before
  /// have copied: the time to compile a loop for each piece, or one kernel for
  /// all of them, would grow by more than their number.
  static LogicalResult copyManyEach(stablehlo::ConcatenateOp op,
                                    RankedTensorType type,
                                    ArrayRef<Value> sources, int64_t dim,
                                    PatternRewriter &rewriter) {
    constexpr size_t mostChoices = 256;
    Value result;
    int64_t offset = 0;
    while (!sources.empty()) {
      SmallVector<Value> pieces(sources.take_front(mostChoices));
      size_t count = pieces.size();
      sources = sources.drop_front(count);
      if (result)
        pieces.push_back(result);
      auto kernel = makeKernel(rewriter, op.getLoc(), /*blocks=*/false, type,
                               pieces, [&](KernelBuilder &k) {
                                 offset = copyInOneLoop(
                                     k, ArrayRef(k.buffers).take_front(count),
                                     offset, dim);
                                 return success();
                               });
      if (failed(kernel))
        return failure();
      (*kernel)->setAttr(kParallelAttrName, rewriter.getUnitAttr());
      if (result)
        kernel->setUpdates({static_cast<int64_t>(count)});
      noteWork(*kernel, op);
      result = kernel->getResult(0);
    }
    replaceWithStored(rewriter, op, result);
    return success();
  }

  /// A loop for each piece.
  static void copyInTurn(KernelBuilder &k, int64_t dim) {
    int64_t offset = 0;
    for (Value piece : ArrayRef(k.buffers).drop_back()) {
      copyPiece(k, piece, k.index(offset), dim);
      offset += cast<MemRefType>(piece.getType()).getDimSize(dim);
    }
  }

  /// A loop over these pieces, of which each turn chooses one. The first begins
  /// at an offset in the result; returns where the last ends.
  static int64_t copyInOneLoop(KernelBuilder &k, ArrayRef<Value> pieces,
                               int64_t offset, int64_t dim) {
    auto type = cast<MemRefType>(pieces.front().getType());
    if (!llvm::all_equal(ValueRange(pieces).getTypes())) {
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] = ShapedType::kDynamic;
      type = MemRefType::Builder(type).setShape(shape);
    }
    auto cases = llvm::to_vector(llvm::seq<int64_t>(0, pieces.size() - 1));
    k.loop(k.index(0), k.index(pieces.size()), [&](Value turn) {
      auto chosen = scf::IndexSwitchOp::create(
          k.b, k.loc, TypeRange{type, k.b.getIndexType()}, turn, cases,
          cases.size());
      for (auto [number, piece] : llvm::enumerate(pieces)) {
        OpBuilder::InsertionGuard guard(k.b);
        k.b.createBlock(number < cases.size() ? &chosen.getCaseRegions()[number]
                                              : &chosen.getDefaultRegion());
        Value same = piece;
        if (piece.getType() != type)
          same = memref::CastOp::create(k.b, k.loc, type, piece);
        scf::YieldOp::create(k.b, k.loc, ValueRange{same, k.index(offset)});
        offset += cast<MemRefType>(piece.getType()).getDimSize(dim);
      }
      copyPiece(k, chosen.getResult(0), chosen.getResult(1), dim);
    });
    return offset;
  }

  /// Copies a piece to where it begins in the last buffer. The rows of the
  /// first dimension are those of this call if another one is concatenated.
  static void copyPiece(KernelBuilder &k, Value piece, Value offset,
                        int64_t dim) {
    auto type = cast<MemRefType>(piece.getType());
    SmallVector<Value> from;
    std::function<void()> nest = [&] {
      int64_t d = from.size();
      if (d == type.getRank()) {
        SmallVector<Value> to(from);
        to[dim] = k.add(to[dim], offset);
        k.store(memref::LoadOp::create(k.b, k.loc, piece, from),
                k.buffers.size() - 1, to);
        return;
      }
      auto inside = [&](Value counter) {
        from.push_back(counter);
        nest();
      };
      if (d == 0 && dim != 0)
        return k.share(type.getDimSize(d), inside);
      Value end = type.isDynamicDim(d)
                      ? memref::DimOp::create(k.b, k.loc, piece, d).getResult()
                      : k.index(type.getDimSize(d));
      k.loop(k.index(0), end, inside);
    };
    nest();
  }

  Target target;
};

/// Pattern: a reshape of what is the same everywhere is a constant.
struct ReshapeOfSplat : OpRewritePattern<stablehlo::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    return replaceBySplat(rewriter, op);
  }
};

} // namespace

void whale::populateShapePatterns(RewritePatternSet &patterns,
                                  const Target &target) {
  patterns.add<BroadcastToLinalg, TransposeToLinalg, SliceToLinalg,
               ReverseToLinalg, IotaToLinalg, PadToLinalg, ReshapeOfSplat>(
      patterns.getContext());
  patterns.add<ConcatenateToLinalg>(patterns.getContext(), target);
}
