//===- LowerLibraryOps.cpp - whale-lower-library-ops ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: contractions, convolutions, linear algebra and attention. Out: operations
// and calls of the library, as far as it has them. Of the dimensions of a
// contraction only their strides matter: transpositions before and after it
// disappear in them, and a copy is made only where a group of dimensions has no
// single stride. A sum of a product and what is not needed after becomes a
// product that adds to memory.
//
// Cost: linear in operations, and for each contraction in its rank and in the
// users of its operands, among which copies that fit are searched for:
// quadratic in the contractions of one value. At run time: the copies, of which
// contractions that need the same one have one.
//
//===----------------------------------------------------------------------===//

#include "Gpu/AttentionKernels.h"
#include "Kernel/KernelBuilder.h"
#include "Kernel/Windows.h"
#include "Library/ContractionSide.h"
#include "Library/LowerLinearAlgebra.h"
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
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/ProgramFormat/Limits.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OperationWork.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace whale {
#define GEN_PASS_DEF_LOWERLIBRARYOPS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// Pieces of this many rows are as quick as one product of all.
static constexpr int64_t kManyRows = 128;

/// The types that the library multiplies.
static bool isLibraryType(Type type) {
  return type.isF32() || type.isBF16() || type.isF16();
}

namespace {

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
  /// loops are as quick. `hasIntegers` says whether it has those of i8,
  /// `complexProducts` how many pairs of complex numbers of f32 it multiplies.
  LogicalResult lower(int64_t fewProducts, bool hasIntegers,
                      int64_t complexProducts);

  /// The same for products of 8-bit elements as cuBLASLt has them on GPUs, with
  /// a remark where it lacks one.
  LogicalResult lowerBytes(int64_t fewProducts, const Target &target);

private:
  SmallVector<Group> rows() const {
    return collapse(lhs.groups(
        lhs.free, ArrayRef(out).slice(lhs.batch.size(), lhs.free.size())));
  }
  SmallVector<Group> columns() const {
    return collapse(
        rhs.groups(rhs.free, ArrayRef(out).take_back(rhs.free.size())));
  }
  int64_t countContracted();
  bool isForLoops(int64_t contracted, int64_t fewProducts) const {
    int64_t batch = 1;
    for (int64_t dim : lhs.batch)
      batch *= lhs.shape[dim];
    return whale::isForLoops(std::max<int64_t>(batch, 1), lhs.countFree(),
                             rhs.countFree(), contracted, fewProducts);
  }
  void placeAll();
  void orderContracted();
  /// Finds an order in memory of the operand that the library can walk.
  void place(Side &side, function_ref<SmallVector<Group>()> groups);
  void placeResult();
  void exchangeSides(stablehlo::TransposeOp user);
  MatmulOp makeProduct();
  void replace(MatmulOp matmul);

  RewriterBase &rewriter;
  stablehlo::DotGeneralOp op;
  Side lhs, rhs;
  RankedTensorType type;    // Of the buffer that is written.
  SmallVector<int64_t> out; // Strides in it, by dimension of the result.
  /// The only use of the result, if it is written as that one has it.
  stablehlo::TransposeOp transposed;
  /// Or if that one transposes it so from where it is written.
  std::optional<SmallVector<int64_t>> permutation;
};

Contraction::Contraction(RewriterBase &rewriter, stablehlo::DotGeneralOp op)
    : rewriter(rewriter), op(op), type(cast<RankedTensorType>(op.getType())),
      out(getDenseStrides(type.getShape())) {
  auto numbers = op.getDotDimensionNumbers();
  llvm::append_range(lhs.batch, numbers.getLhsBatchingDimensions());
  llvm::append_range(lhs.contracting, numbers.getLhsContractingDimensions());
  llvm::append_range(rhs.batch, numbers.getRhsBatchingDimensions());
  llvm::append_range(rhs.contracting, numbers.getRhsContractingDimensions());
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
    // Another order of the copy may keep neighbours in memory neighbours.
    bool keepsLines = side.from.back() == int64_t(side.from.size()) - 1;
    bool isForContractions =
        llvm::all_of(operand.getUsers(), [](Operation *user) {
          return isa<stablehlo::DotGeneralOp>(user);
        });
    if (!keepsLines && isForContractions) {
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
  SmallVector<int64_t> before(out),
      to = getDenseStrides(user.getType().getShape());
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
    exchangeSides(user);
  }
}

/// Writes columns before rows where the result's only user, a copy, has rows
/// innermost: it copies runs of neighbours then.
void Contraction::exchangeSides(stablehlo::TransposeOp user) {
  int64_t batch = lhs.batch.size(), end = batch + lhs.free.size();
  ArrayRef<int64_t> wanted = user.getPermutation();
  if (lhs.free.empty() || rhs.free.empty() || wanted.back() != end - 1)
    return;
  SmallVector<int64_t> order(type.getRank());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + batch, order.begin() + end, order.end());
  SmallVector<int64_t> shape, places(order.size());
  for (auto [place, dim] : llvm::enumerate(order)) {
    shape.push_back(type.getDimSize(dim));
    places[dim] = place;
  }
  SmallVector<int64_t> strides = getDenseStrides(shape);
  for (auto [dim, place] : llvm::enumerate(places))
    out[dim] = strides[place];
  type = RankedTensorType::get(shape, type.getElementType());
  transposed = user;
  permutation.emplace();
  for (int64_t dim : wanted)
    permutation->push_back(places[dim]);
}

int64_t Contraction::countContracted() {
  int64_t contracted = 1;
  for (int64_t dim : lhs.contracting)
    contracted *= op.getLhs().getType().getDimSize(dim);
  return contracted;
}

void Contraction::placeAll() {
  place(rhs, [&] { return columns(); });
  place(lhs, [&] { return rows(); });
  placeResult();
}

LogicalResult Contraction::lowerBytes(int64_t fewProducts,
                                      const Target &target) {
  lhs.set(op.getLhs());
  rhs.set(op.getRhs());
  lhs.findFree();
  rhs.findFree();
  format::Matmul types;
  auto typeOf = [](Value value) {
    return format::parseDType(getDTypeName(getElementTypeOrSelf(value)))
        .value_or(format::DType::F32);
  };
  types.lhsType = typeOf(op.getLhs());
  types.rhsType = typeOf(op.getRhs());
  int64_t contracted = countContracted();
  if (!format::isOfBytes(types) || contracted == 0 ||
      isForLoops(contracted, fewProducts))
    return failure();
  const char *why = "it asks for more precision";
  // Integers are exact.
  if (types.lhsType == format::DType::I8 ||
      (isDefault(op.getPrecisionConfig()) && !op.getAlgorithm())) {
    lhs.contractsNeighbours = rhs.contractsNeighbours = true;
    placeAll();
    MatmulOp matmul = makeProduct();
    why = format::findLackOfBytes(matmul.toFormat(), target.getCapability());
    if (!why) {
      replace(matmul);
      return success();
    }
    rewriter.eraseOp(matmul);
  }
  op.emitRemark("this product is not cuBLASLt's: ") << why;
  return failure();
}

LogicalResult Contraction::lower(int64_t fewProducts, bool hasIntegers,
                                 int64_t complexProducts) {
  Value left = op.getLhs(), right = op.getRhs();
  int64_t contracted = countContracted();
  if (contracted == 0) {
    rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(op, makeZeros(type));
    return success();
  }
  lhs.set(left);
  rhs.set(right);
  lhs.findFree();
  rhs.findFree();
  if (isForLoops(contracted, fewProducts))
    return failure();
  bool isOfIntegers = contracted <= format::mostExactTerms &&
                      getElementTypeOrSelf(left).isSignlessInteger(8) &&
                      getElementTypeOrSelf(right).isSignlessInteger(8) &&
                      type.getElementType().isSignlessInteger(32);
  bool isOfComplex =
      isComplexOfF32(left) && isComplexOfF32(right) &&
      isComplexOfF32(op.getResult()) &&
      lhs.countFree() <= complexProducts / contracted / rhs.countFree();
  if (!(hasIntegers && isOfIntegers) && !isOfComplex &&
      (!isLibraryType(type.getElementType()) ||
       !makeLibraryTypes(rewriter, op, left, right)))
    return failure();
  lhs.set(left);
  rhs.set(right);
  placeAll();
  replace(makeProduct());
  return success();
}

MatmulOp Contraction::makeProduct() {
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
  return MatmulOp::create(
      rewriter, op.getLoc(), TypeRange(type), lhs.value, rhs.value, batch,
      ArrayRef<int64_t>{row.size, row.first, row.second},
      ArrayRef<int64_t>{column.size, column.first, column.second},
      ArrayRef<int64_t>{inner.size, inner.first, inner.second},
      mayRoundToTf32(op), /*epilogue=*/StringAttr(), /*addend=*/Value(),
      /*bias=*/Value(), /*aux=*/Value());
}

void Contraction::replace(MatmulOp matmul) {
  if (permutation) {
    rewriter.setInsertionPoint(transposed);
    rewriter.replaceOpWithNewOp<stablehlo::TransposeOp>(
        transposed, transposed.getType(), matmul.getOutput(),
        rewriter.getDenseI64ArrayAttr(*permutation));
    rewriter.eraseOp(op);
  } else if (transposed) {
    rewriter.replaceOp(transposed, matmul.getOutput());
    rewriter.eraseOp(op);
  } else {
    rewriter.replaceOp(op, matmul.getOutput());
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

/// Pattern: convolution(x, w) with windows reversed -> convolution(x,
/// reverse(w)), as kernels have it.
void reverseFilter(RewriterBase &rewriter, stablehlo::ConvolutionOp op) {
  SmallVector<int64_t> dims;
  for (auto [dim, reversed] :
       llvm::zip_equal(op.getDimensionNumbers().getKernelSpatialDimensions(),
                       *op.getWindowReversal()))
    if (reversed)
      dims.push_back(dim);
  Value filter =
      stablehlo::ReverseOp::create(rewriter, op.getLoc(), op.getRhs(), dims);
  rewriter.modifyOpInPlace(op, [&] {
    op.getRhsMutable().assign(filter);
    op.removeWindowReversalAttr();
  });
}

/// Whether the argument is a sum that a loop carries, or one over micro-batches
/// up to this one.
bool isTakenOver(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<FunctionOpInterface>(parent))
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
  rewriter.replaceOp(op, product.getOutput());
}

/// Pattern: dot_general(a, b) -> convert(dot_general(convert(a), convert(b))),
/// or so a convolution, for GPUs without arithmetic of bf16: what is stored as
/// bf16 is computed in f32 and rounded once.
void computeInF32(RewriterBase &rewriter, Operation *op) {
  auto isBF16 = [](Value value) {
    return getElementTypeOrSelf(value).isBF16();
  };
  Type f32 = rewriter.getF32Type();
  rewriter.setInsertionPoint(op);
  auto convert = [&](Value value, Type element) -> Value {
    return stablehlo::ConvertOp::create(
        rewriter, op->getLoc(),
        cast<RankedTensorType>(value.getType()).clone(element), value);
  };
  for (OpOperand &operand : op->getOpOperands())
    if (isBF16(operand.get())) {
      Value wide = convert(operand.get(), f32);
      rewriter.modifyOpInPlace(op, [&] { operand.set(wide); });
    }
  Value result = op->getResult(0);
  if (isBF16(result)) {
    rewriter.setInsertionPointAfter(op);
    rewriter.modifyOpInPlace(op, [&] {
      result.setType(cast<RankedTensorType>(result.getType()).clone(f32));
    });
    Value narrow = convert(result, rewriter.getBF16Type());
    rewriter.replaceAllUsesExcept(result, narrow, narrow.getDefiningOp());
  }
}

struct LowerLibraryOps : whale::impl::LowerLibraryOpsBase<LowerLibraryOps> {
  using LowerLibraryOpsBase::LowerLibraryOpsBase;

  void runOnOperation() override {
    const Target &target = this->target;
    IRRewriter rewriter(&getContext());
    SmallVector<stablehlo::DotGeneralOp> products;
    getOperation().walk(
        [&](stablehlo::DotGeneralOp op) { products.push_back(op); });
    for (stablehlo::DotGeneralOp op : products) {
      rewriter.setInsertionPoint(op);
      (void)splitComplexProduct(rewriter, op, fewProducts, complexProducts);
    }
    SmallVector<Operation *> found;
    getOperation().walk([&](Operation *op) {
      if (isa<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp>(op))
        found.push_back(op);
    });
    for (Operation *op : found) {
      if (!target.computesBF16())
        computeInF32(rewriter, op);
      rewriter.setInsertionPoint(op);
      // What the library cannot do is left to kernels.
      if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op)) {
        if (!target.isGpu() ||
            failed(Contraction(rewriter, dot).lowerBytes(fewProducts, target)))
          (void)Contraction(rewriter, dot)
              .lower(fewProducts, target.multipliesBytes(), complexProducts);
      } else if (auto convolution = cast<stablehlo::ConvolutionOp>(op);
                 failed(lowerConvolution(rewriter, convolution)) &&
                 isReversed(convolution)) {
        reverseFilter(rewriter, convolution);
      }
    }
    SmallVector<stablehlo::AddOp> sums;
    getOperation().walk([&](stablehlo::AddOp op) { sums.push_back(op); });
    for (stablehlo::AddOp op : sums)
      addToOperand(rewriter, op);
    RewritePatternSet patterns(&getContext());
    populateComplexPatterns(patterns);
    populateLinearAlgebraPatterns(patterns);
    populateAttentionPatterns(patterns);
    if (target.isGpu())
      populateAttentionBlockPatterns(patterns, !target.isWithoutCode());
    if (std::optional<int64_t> bytes = target.getAttentionBytes())
      populateFusedAttentionPatterns(patterns, target.getCapability(), *bytes);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    // What calls have replaced.
    eraseDeadOps(rewriter, getOperation());
  }
};

} // namespace
