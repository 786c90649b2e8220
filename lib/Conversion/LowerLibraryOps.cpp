//===- LowerLibraryOps.cpp - whale-lower-library-ops ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions and convolutions that the library computes. Of the dimensions of
// a contraction only their strides matter: transpositions before and after it
// disappear in them, and a copy is made only where a group of dimensions has no
// single stride.
//
//===----------------------------------------------------------------------===//

#include "LowerLinearAlgebra.h"
#include "Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Limits.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace whale {
#define GEN_PASS_DEF_LOWERLIBRARYOPS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// A matrix product in the library costs a call: below this many rows, a group
/// of dimensions that has no single stride is copied instead of looped over.
static constexpr int64_t kMinRows = 32;
/// Pieces of this many rows are as quick as one product of all.
static constexpr int64_t kManyRows = 128;

/// The types that the library multiplies.
static bool isLibraryType(Type type) {
  return type.isF32() || type.isBF16() || type.isF16();
}

static SmallVector<int64_t> getStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

namespace {

/// Dimensions that are walked together, with a stride in each of two buffers.
struct Group {
  int64_t size = 1, first = 0, second = 0;
};

/// Merges neighbours of `dims` (outermost first) that one stride covers in both
/// buffers.
SmallVector<Group> collapse(ArrayRef<Group> dims) {
  SmallVector<Group> result;
  for (Group dim : dims) {
    if (dim.size == 1)
      continue;
    if (!result.empty() && result.back().first == dim.size * dim.first &&
        result.back().second == dim.size * dim.second)
      result.back() = {result.back().size * dim.size, dim.first, dim.second};
    else
      result.push_back(dim);
  }
  if (result.empty())
    result.push_back({1, 0, 0});
  return result;
}

/// One operand of a contraction.
struct Side {
  Value value;
  /// Of the operand; they are those of `value` in another order (`from`: its
  /// dimensions) where `value` is what the operand was transposed from.
  SmallVector<int64_t> shape, strides, from;
  SmallVector<int64_t> batch, contracting, free;

  void set(Value operand) {
    value = operand;
    shape =
        llvm::to_vector(cast<RankedTensorType>(operand.getType()).getShape());
    strides = getStrides(shape);
    from.resize(shape.size());
    std::iota(from.begin(), from.end(), 0);
  }

  /// Reads the operand where it was before it was transposed.
  void skipTranspose() {
    auto transpose = value.getDefiningOp<stablehlo::TransposeOp>();
    if (!transpose)
      return;
    value = transpose.getOperand();
    from = llvm::to_vector(transpose.getPermutation());
    SmallVector<int64_t> old =
        getStrides(cast<RankedTensorType>(value.getType()).getShape());
    for (auto [dim, source] : llvm::enumerate(from))
      strides[dim] = old[source];
  }

  void findFree() {
    for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim)
      if (!llvm::is_contained(batch, dim) &&
          !llvm::is_contained(contracting, dim))
        free.push_back(dim);
  }

  int64_t countFree() const {
    int64_t count = 1;
    for (int64_t dim : free)
      count *= shape[dim];
    return count;
  }

  /// Copies the operand to the order batch, free, contracting; or contracting
  /// before free, if then lines of memory stay lines.
  void transpose(OpBuilder &b, Location loc) {
    bool freeLast = llvm::any_of(
        free, [&](int64_t dim) { return strides[dim] == 1 && shape[dim] > 1; });
    SmallVector<int64_t> order(batch);
    llvm::append_range(order, freeLast ? contracting : free);
    llvm::append_range(order, freeLast ? free : contracting);
    SmallVector<int64_t> to, permutation;
    for (int64_t dim : order) {
      to.push_back(shape[dim]);
      permutation.push_back(from[dim]);
    }
    auto type = cast<RankedTensorType>(value.getType());
    stablehlo::TransposeOp copy = findCopy(b, permutation);
    if (!copy)
      copy = stablehlo::TransposeOp::create(
          b, loc, RankedTensorType::get(to, type.getElementType()), value,
          b.getDenseI64ArrayAttr(permutation));
    set(copy);
    auto count = [&](SmallVector<int64_t> &dims, int64_t from) {
      for (int64_t &dim : dims)
        dim = from++;
    };
    count(batch, 0);
    count(freeLast ? contracting : free, batch.size());
    count(freeLast ? free : contracting,
          order.size() - (freeLast ? free : contracting).size());
  }

  /// A copy in this order that another contraction needed before.
  stablehlo::TransposeOp findCopy(OpBuilder &b,
                                  ArrayRef<int64_t> permutation) const {
    for (Operation *user : value.getUsers()) {
      auto copy = dyn_cast<stablehlo::TransposeOp>(user);
      if (copy && copy.getPermutation() == permutation &&
          copy->getBlock() == b.getInsertionBlock() &&
          b.getInsertionPoint() != b.getInsertionBlock()->end() &&
          copy->isBeforeInBlock(&*b.getInsertionPoint()))
        return copy;
    }
    return {};
  }

  SmallVector<Group> groups(ArrayRef<int64_t> dims,
                            ArrayRef<int64_t> other) const {
    SmallVector<Group> result;
    for (auto [dim, stride] : llvm::zip_equal(dims, other))
      result.push_back({shape[dim], strides[dim], stride});
    return result;
  }

  /// True if one stride covers the contracted dimensions in their order.
  bool contractsInOneStride() const {
    SmallVector<Group> dims;
    for (int64_t dim : contracting)
      dims.push_back({shape[dim], strides[dim], strides[dim]});
    return collapse(dims).size() == 1;
  }

  /// True if the library can walk the operand as it lies, its free dimensions
  /// in these groups.
  bool fits(ArrayRef<Group> groups) const {
    if (!contractsInOneStride() ||
        (groups.size() > 1 && groups.back().size < kMinRows))
      return false;
    // The library needs a stride of one in each matrix.
    bool unit = groups.back().size == 1 || groups.back().first == 1;
    for (int64_t dim : contracting)
      unit |= strides[dim] == 1;
    return unit;
  }
};
/// Converts 8-bit floats, and the narrower of two unlike types, to a type of
/// the library; false if there is none.
bool makeLibraryTypes(RewriterBase &rewriter, Operation *op, Value &lhs,
                      Value &rhs) {
  auto wanted = [](Type type) -> Type {
    if (isLibraryType(type))
      return type;
    auto floating = dyn_cast<FloatType>(type);
    if (floating && floating.getWidth() == 8)
      return Float32Type::get(type.getContext());
    return {};
  };
  Type left = wanted(getElementTypeOrSelf(lhs.getType()));
  Type right = wanted(getElementTypeOrSelf(rhs.getType()));
  if (!left || !right)
    return false;
  Type common = left == right ? left : rewriter.getF32Type();
  for (Value *value : {&lhs, &rhs}) {
    auto type = cast<RankedTensorType>(value->getType());
    if (type.getElementType() != common)
      *value = stablehlo::ConvertOp::create(rewriter, op->getLoc(),
                                            type.clone(common), *value);
  }
  return true;
}

/// A contraction on its way to the library: where its operands and its result
/// lie.
class Contraction {
public:
  Contraction(RewriterBase &rewriter, stablehlo::DotGeneralOp op);

  /// Replaces the operation; failure if the library has no such product, or
  /// loops are as quick.
  LogicalResult lower(int64_t fewProducts);

private:
  SmallVector<Group> rows() const {
    return collapse(lhs.groups(
        lhs.free, ArrayRef(out).slice(lhs.batch.size(), lhs.free.size())));
  }
  SmallVector<Group> columns() const {
    return collapse(
        rhs.groups(rhs.free, ArrayRef(out).take_back(rhs.free.size())));
  }
  bool isForLoops(int64_t contracted, int64_t fewProducts) const;
  void orderContracted();
  /// Finds a place of the operand that the library can walk.
  void place(Side &side, function_ref<SmallVector<Group>()> groups);
  void placeResult();
  void replace();

  RewriterBase &rewriter;
  stablehlo::DotGeneralOp op;
  Side lhs, rhs;
  RankedTensorType type;    // Of the buffer that is written.
  SmallVector<int64_t> out; // Strides in it, by dimension of the result.
  /// The only use of the result, if it is written as that one has it.
  stablehlo::TransposeOp transposed;
};

Contraction::Contraction(RewriterBase &rewriter, stablehlo::DotGeneralOp op)
    : rewriter(rewriter), op(op), type(cast<RankedTensorType>(op.getType())),
      out(getStrides(type.getShape())) {
  auto numbers = op.getDotDimensionNumbers();
  llvm::append_range(lhs.batch, numbers.getLhsBatchingDimensions());
  llvm::append_range(lhs.contracting, numbers.getLhsContractingDimensions());
  llvm::append_range(rhs.batch, numbers.getRhsBatchingDimensions());
  llvm::append_range(rhs.contracting, numbers.getRhsContractingDimensions());
}

/// Whether loops are as quick as a call: they form sums in blocks, which is
/// more exact. That is so for vectors, which are read once, and for so few
/// pairs of elements that the call takes longer than their product.
bool Contraction::isForLoops(int64_t contracted, int64_t fewProducts) const {
  int64_t rows = lhs.countFree(), columns = rhs.countFree();
  return rows == 1 || columns == 1 ||
         (rows <= fewProducts / contracted &&
          columns <= fewProducts / contracted / rows);
}

/// Contracts in the order in which the right operand is in memory.
void Contraction::orderContracted() {
  SmallVector<int64_t> order(rhs.contracting.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](int64_t a, int64_t b) {
    return std::pair(-rhs.strides[rhs.contracting[a]], a) <
           std::pair(-rhs.strides[rhs.contracting[b]], b);
  });
  for (Side *side : {&lhs, &rhs}) {
    SmallVector<int64_t> old(side->contracting);
    for (auto [to, from] : llvm::enumerate(order))
      side->contracting[to] = old[from];
  }
}

void Contraction::place(Side &side, function_ref<SmallVector<Group>()> groups) {
  auto reorder = [&] {
    if (&side == &rhs)
      orderContracted();
  };
  Value operand = side.value;
  reorder();
  size_t before = groups().size();
  side.skipTranspose();
  if (side.value != operand) {
    reorder();
    SmallVector<Group> skipped = groups();
    if (side.fits(skipped) &&
        (skipped.size() <= before || skipped.back().size >= kManyRows))
      return;
    // Another order of the copy may keep lines of memory lines.
    bool keepsLines = side.from.back() == int64_t(side.from.size()) - 1;
    bool isForContractions =
        llvm::all_of(operand.getUsers(), [](Operation *user) {
          return isa<stablehlo::DotGeneralOp>(user);
        });
    if (!keepsLines && isForContractions && !side.fits(skipped)) {
      side.transpose(rewriter, op.getLoc());
      return;
    }
    side.set(operand);
    reorder();
  }
  if (!side.fits(groups()))
    side.transpose(rewriter, op.getLoc());
}

/// Writes the result as its only user needs it, if that is not in smaller
/// pieces.
void Contraction::placeResult() {
  if (!op->hasOneUse())
    return;
  auto user = dyn_cast<stablehlo::TransposeOp>(*op->user_begin());
  if (!user)
    return;
  SmallVector<Group> rowsBefore = rows(), columnsBefore = columns();
  SmallVector<int64_t> before(out), to = getStrides(user.getType().getShape());
  for (auto [dim, source] : llvm::enumerate(user.getPermutation()))
    out[source] = to[dim];
  SmallVector<Group> rowsNow = rows(), columnsNow = columns();
  auto isAsGood = [](ArrayRef<Group> old, ArrayRef<Group> now) {
    return now.size() <= old.size() || now.back().size >= kManyRows;
  };
  Group row = rowsNow.back(), column = columnsNow.back();
  bool unit = row.second == 1 || column.second == 1 || row.size == 1 ||
              column.size == 1;
  if (unit && lhs.fits(rowsNow) && rhs.fits(columnsNow) &&
      isAsGood(rowsBefore, rowsNow) && isAsGood(columnsBefore, columnsNow)) {
    transposed = user;
    type = user.getType();
  } else {
    out = before;
  }
}

LogicalResult Contraction::lower(int64_t fewProducts) {
  Value left = op.getLhs(), right = op.getRhs();
  auto leftType = cast<RankedTensorType>(left.getType());
  int64_t contracted = 1;
  for (int64_t dim : lhs.contracting)
    contracted *= leftType.getDimSize(dim);
  if (contracted == 0) {
    rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(op, makeZeros(type));
    return success();
  }
  lhs.set(left);
  rhs.set(right);
  lhs.findFree();
  rhs.findFree();
  if (!isLibraryType(type.getElementType()) ||
      isForLoops(contracted, fewProducts) ||
      !makeLibraryTypes(rewriter, op, left, right))
    return failure();
  lhs.set(left);
  rhs.set(right);
  place(rhs, [&] { return columns(); });
  place(lhs, [&] { return rows(); });
  placeResult();
  replace();
  return success();
}

void Contraction::replace() {
  SmallVector<int64_t> batch;
  auto addBatch = [&](int64_t size, int64_t left, int64_t right,
                      int64_t result) {
    if (size == 1)
      return;
    size_t last = batch.size();
    if (last && batch[last - 3] == size * left &&
        batch[last - 2] == size * right && batch[last - 1] == size * result) {
      batch[last - 4] *= size;
      batch[last - 3] = left;
      batch[last - 2] = right;
      batch[last - 1] = result;
      return;
    }
    batch.append({size, left, right, result});
  };
  for (auto [number, dims] :
       llvm::enumerate(llvm::zip_equal(lhs.batch, rhs.batch))) {
    auto [left, right] = dims;
    addBatch(lhs.shape[left], lhs.strides[left], rhs.strides[right],
             out[number]);
  }
  SmallVector<Group> lines = rows(), across = columns();
  for (Group group : ArrayRef(lines).drop_back())
    addBatch(group.size, group.first, 0, group.second);
  for (Group group : ArrayRef(across).drop_back())
    addBatch(group.size, 0, group.first, group.second);

  SmallVector<int64_t> strides;
  for (int64_t dim : rhs.contracting)
    strides.push_back(rhs.strides[dim]);
  Group inner = collapse(lhs.groups(lhs.contracting, strides)).back();
  Group row = lines.back(), column = across.back();
  auto matmul = MatmulOp::create(
      rewriter, op.getLoc(), type, lhs.value, rhs.value, batch,
      ArrayRef<int64_t>{row.size, row.first, row.second},
      ArrayRef<int64_t>{column.size, column.first, column.second},
      ArrayRef<int64_t>{inner.size, inner.first, inner.second},
      mayRoundToTf32(op), /*addend=*/Value());
  if (transposed) {
    rewriter.replaceOp(transposed, matmul);
    rewriter.eraseOp(op);
  } else {
    rewriter.replaceOp(op, matmul);
  }
}

/// Whether the runtime takes such windows; what is larger is a kernel.
bool isLibraryWindow(ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                     ArrayRef<int64_t> lhsDilation,
                     ArrayRef<int64_t> rhsDilation,
                     stablehlo::ConvolutionOp op) {
  constexpr int64_t most = format::mostWindow;
  auto isSmall = [](int64_t number) {
    return number >= -most && number <= most;
  };
  auto numbers = op.getDimensionNumbers();
  auto mayDilate = [](Value value, ArrayRef<int64_t> dims,
                      ArrayRef<int64_t> dilation) {
    auto shape = cast<ShapedType>(value.getType()).getShape();
    return llvm::all_of_zip(dims, dilation, [&](int64_t dim, int64_t factor) {
      int64_t extent;
      return !llvm::MulOverflow(shape[dim] - 1, factor, extent) &&
             extent < format::mostDilated;
    });
  };
  return llvm::all_of(strides, isSmall) && llvm::all_of(padding, isSmall) &&
         llvm::all_of(lhsDilation, isSmall) &&
         llvm::all_of(rhsDilation, isSmall) &&
         mayDilate(op.getLhs(), numbers.getInputSpatialDimensions(),
                   lhsDilation) &&
         mayDilate(op.getRhs(), numbers.getKernelSpatialDimensions(),
                   rhsDilation);
}

/// Replaces a convolution by a whale.convolution; failure if the library has
/// no such one.
LogicalResult lowerConvolution(RewriterBase &rewriter,
                               stablehlo::ConvolutionOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Value lhs = op.getLhs(), rhs = op.getRhs();
  if (type.getNumElements() == 0)
    return failure();
  if (cast<ShapedType>(lhs.getType()).getNumElements() == 0 ||
      cast<ShapedType>(rhs.getType()).getNumElements() == 0) {
    rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(op, makeZeros(type));
    return success();
  }
  auto numbers = op.getDimensionNumbers();
  size_t rank = numbers.getInputSpatialDimensions().size();
  auto orOnes = [&](std::optional<ArrayRef<int64_t>> values) {
    return values ? SmallVector<int64_t>(*values)
                  : SmallVector<int64_t>(rank, 1);
  };
  SmallVector<int64_t> padding(2 * rank, 0);
  if (auto attribute = op.getPadding())
    padding = llvm::to_vector(attribute->getValues<int64_t>());
  if (!isLibraryWindow(orOnes(op.getWindowStrides()), padding,
                       orOnes(op.getLhsDilation()), orOnes(op.getRhsDilation()),
                       op) ||
      !isLibraryType(type.getElementType()) ||
      !makeLibraryTypes(rewriter, op, lhs, rhs))
    return failure();
  SmallVector<bool> reversal(rank, false);
  if (auto attribute = op.getWindowReversal())
    reversal.assign(attribute->begin(), attribute->end());
  rewriter.replaceOpWithNewOp<ConvolutionOp>(
      op, type, lhs, rhs, orOnes(op.getWindowStrides()), padding,
      orOnes(op.getLhsDilation()), orOnes(op.getRhsDilation()), reversal,
      numbers.getInputBatchDimension(), numbers.getInputFeatureDimension(),
      numbers.getInputSpatialDimensions(),
      numbers.getKernelInputFeatureDimension(),
      numbers.getKernelOutputFeatureDimension(),
      numbers.getKernelSpatialDimensions(), numbers.getOutputBatchDimension(),
      numbers.getOutputFeatureDimension(), numbers.getOutputSpatialDimensions(),
      op.getFeatureGroupCount(), op.getBatchGroupCount(), mayRoundToTf32(op));
  return success();
}

/// Whether the argument is a sum that a loop carries, or one over micro-batches
/// up to this one.
bool isTakenOver(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<func::FuncOp>(parent))
    return function.getArgAttr(argument.getArgNumber(), kLastUseAttr) !=
           nullptr;
  return isa<stablehlo::WhileOp>(parent);
}

/// Pattern: add(x, matmul(a, b)) -> matmul(a, b) plus x
/// where x is in memory and is not needed after: a sum that is taken over,
/// or another product. Half precision would be rounded once less.
void addToOperand(RewriterBase &rewriter, stablehlo::AddOp op) {
  if (!cast<ShapedType>(op.getType()).getElementType().isF32())
    return;
  MatmulOp product;
  Value addend;
  for (auto [value, other] :
       {std::pair<Value, Value>{op.getLhs(), op.getRhs()},
        std::pair<Value, Value>{op.getRhs(), op.getLhs()}}) {
    auto matmul = value.getDefiningOp<MatmulOp>();
    auto before = other.getDefiningOp<MatmulOp>();
    bool carried =
        isTakenOver(other) && other.getParentBlock() == op->getBlock();
    if (!matmul || matmul.getAddend() || !value.hasOneUse() ||
        !other.hasOneUse() || matmul->getBlock() != op->getBlock() ||
        (!carried && !(before && before->getBlock() == op->getBlock() &&
                       before->isBeforeInBlock(matmul))))
      continue;
    product = matmul;
    addend = other;
  }
  if (!product)
    return;
  rewriter.modifyOpInPlace(product,
                           [&] { product.getAddendMutable().assign(addend); });
  rewriter.replaceOp(op, product.getResult());
}

struct LowerLibraryOps : whale::impl::LowerLibraryOpsBase<LowerLibraryOps> {
  using LowerLibraryOpsBase::LowerLibraryOpsBase;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<Operation *> found;
    getOperation().walk([&](Operation *op) {
      if (isa<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp>(op))
        found.push_back(op);
    });
    for (Operation *op : found) {
      rewriter.setInsertionPoint(op);
      // What the library cannot do is left to kernels.
      if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op))
        (void)Contraction(rewriter, dot).lower(fewProducts);
      else
        (void)lowerConvolution(rewriter, cast<stablehlo::ConvolutionOp>(op));
    }
    SmallVector<stablehlo::AddOp> sums;
    getOperation().walk([&](stablehlo::AddOp op) { sums.push_back(op); });
    for (stablehlo::AddOp op : sums)
      addToOperand(rewriter, op);
    RewritePatternSet patterns(&getContext());
    populateLinearAlgebraPatterns(patterns);
    populateAttentionPatterns(patterns);
    if (blocks)
      populateAttentionBlockPatterns(patterns);
    if (capability > 0)
      populateFusedAttentionPatterns(patterns, capability);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    SmallVector<stablehlo::TransposeOp> transposes;
    getOperation().walk(
        [&](stablehlo::TransposeOp op) { transposes.push_back(op); });
    for (stablehlo::TransposeOp op : transposes)
      if (op->use_empty())
        rewriter.eraseOp(op);
  }
};

} // namespace
