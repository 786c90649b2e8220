//===- OutlineKernels.cpp - whale-outline-kernels -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: functions of linalg operations and kernels. Out: what is left of linalg
// is loops (for a GPU after joining reductions), all loops are functions of
// @kernels, equal ones once, and functions launch them.
//
// Cost: linear in the operations and their bodies; for a GPU also that of
// JoinReductions.cpp. Functions are converted in parallel, each with a cache
// that writes equal loops once; each body is then hashed, and compared with
// those of its hash, by one thread. A large constant is a loop for each use.
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseKernels.h"
#include "Kernel/KernelBuilder.h"
#include "LoopNest/LinalgToKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Threading.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"

#include <unordered_map>

namespace whale {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// Constants beyond are filled in when they are needed, where they are needed,
/// instead of stored.
static constexpr int64_t kMaxConstantBytes = 16384;

static bool isLarge(Type type) {
  return getTensorBytes(type) > kMaxConstantBytes;
}

/// Pattern: stablehlo.constant (large, one value) -> linalg.generic before each
/// user, so that it is written into the user's buffer. Not in loops, where it
/// would be written in every iteration.
static void fillLargeConstants(IRRewriter &rewriter,
                               FunctionOpInterface function) {
  for (auto op : llvm::make_early_inc_range(
           function.front().getOps<stablehlo::ConstantOp>())) {
    auto type = cast<RankedTensorType>(op.getType());
    Attribute value = matchSplat(op);
    if (!value || !isLarge(type))
      continue;
    RankedTensorType storage = getStorageType(type);
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      Operation *user = function.front().findAncestorOpInBlock(*use.getOwner());
      if (user != use.getOwner())
        continue;
      rewriter.setInsertionPoint(user);
      Value empty = tensor::EmptyOp::create(
          rewriter, op.getLoc(), storage.getShape(), storage.getElementType());
      auto fill = linalg::GenericOp::create(
          rewriter, op.getLoc(), storage, ValueRange(), empty,
          rewriter.getMultiDimIdentityMap(type.getRank()),
          SmallVector<utils::IteratorType>(type.getRank(),
                                           utils::IteratorType::parallel),
          [&](OpBuilder &b, Location loc, ValueRange) {
            linalg::YieldOp::create(
                b, loc, makeConstant(b, loc, value, type.getElementType()));
          });
      Value filled = fill.getResult(0);
      if (storage != type)
        filled = UnrealizedConversionCastOp::create(rewriter, op.getLoc(), type,
                                                    filled)
                     .getResult(0);
      use.set(filled);
    }
  }
}

/// Pattern: linalg.generic { yield constant } -> stablehlo.constant
static bool replaceByConstant(RewriterBase &rewriter, linalg::GenericOp op) {
  if (op->getNumResults() != 1 || op.getNumReductionLoops() != 0 ||
      (isLarge(op->getResult(0).getType()) &&
       isa<FunctionOpInterface>(op->getParentOp())))
    return false;
  Attribute value;
  if (!matchPattern(op.getRegion().front().getTerminator()->getOperand(0),
                    m_Constant(&value)))
    return false;
  rewriter.setInsertionPoint(op);
  rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
      op, DenseElementsAttr::get(
              cast<RankedTensorType>(op->getResult(0).getType()), value));
  return true;
}

/// Every slice update gets a loop of its own to store it, unless there is one
/// already.
static void isolateUpdates(IRRewriter &rewriter, FunctionOpInterface function) {
  SmallVector<stablehlo::DynamicUpdateSliceOp> stores;
  function.walk(
      [&](stablehlo::DynamicUpdateSliceOp store) { stores.push_back(store); });
  for (stablehlo::DynamicUpdateSliceOp store : stores) {
    auto result = dyn_cast<OpResult>(store.getUpdate());
    auto loop = store.getUpdate().getDefiningOp<linalg::GenericOp>();
    if (loop && findStore(loop, result.getResultNumber()))
      continue;
    // The tensor may have other readers, which come first or get a copy.
    rewriter.setInsertionPoint(store);
    store.getUpdateMutable().assign(
        makeCopy(rewriter, store.getLoc(), store.getUpdate()).getResult(0));
  }
}

namespace {

/// The kernels of a function.
struct FoundKernels {
  KernelCache cache;
  SmallVector<KernelOp> kernels;
  /// Of the bodies of those that have one of their own.
  llvm::DenseMap<Operation *, llvm::hash_code> hashes;

  void collect(FunctionOpInterface function) {
    function.walk([&](KernelOp kernel) {
      kernels.push_back(kernel);
      if (cache.getFirst(kernel) == kernel)
        hashes.try_emplace(kernel, hashBody(kernel.getBody()));
    });
  }
};

/// The functions of @kernels, one for each different body.
class KernelTable {
public:
  explicit KernelTable(ModuleOp module) {
    kernels = dyn_cast_or_null<ModuleOp>(
        SymbolTable::lookupSymbolIn(module, kKernelsModuleName));
    if (!kernels) {
      OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
      kernels = ModuleOp::create(b, module.getLoc(), kKernelsModuleName);
    }
  }

  void outline(RewriterBase &rewriter, KernelOp kernel,
               const FoundKernels &found) {
    KernelOp first = found.cache.getFirst(kernel);
    StringAttr &symbol = symbols[first];
    if (!symbol)
      symbol = intern(first, found.hashes.at(first));
    rewriter.setInsertionPoint(kernel);
    rewriter.replaceOpWithNewOp<LaunchOp>(
        kernel, kernel.getResultTypes(), FlatSymbolRefAttr::get(symbol),
        kernel.getInputs(), kernel.getInplaceAttr(), kernel.getUpdatesAttr());
  }

private:
  StringAttr intern(KernelOp kernel, llvm::hash_code hash) {
    OpBuilder b = OpBuilder::atBlockEnd(kernels.getBody());
    Block &body = kernel.getBody().front();
    auto type = b.getFunctionType(body.getArgumentTypes(), {});
    // The name is given when the body turns out to be a new one.
    auto function = func::FuncOp::create(b, kernel.getLoc(), "k", type);
    function->setAttr(kExtentAttrName, kernel.getExtentAttr());
    for (StringRef name :
         {kThreadsAttrName, kFlopsAttrName, kBytesAttrName, kClassAttrName,
          kComputesInAttrName, kParallelAttrName})
      if (Attribute value = kernel->getAttr(name))
        function->setAttr(name, value);
    function.getFunctionBody().takeBody(kernel.getBody());
    b.setInsertionPointToEnd(&function.getFunctionBody().front());
    func::ReturnOp::create(b, kernel.getLoc());
    SmallVector<func::FuncOp, 1> &alike = known[llvm::hash_combine(type, hash)];
    for (func::FuncOp other : alike) {
      function.setSymNameAttr(other.getSymNameAttr());
      if (OperationEquivalence::isEquivalentTo(
              function, other, OperationEquivalence::IgnoreLocations)) {
        function.erase();
        return other.getSymNameAttr();
      }
    }
    function.setSymName(("k" + Twine(count++)).str());
    alike.push_back(function);
    return function.getSymNameAttr();
  }

  ModuleOp kernels;
  llvm::DenseMap<Operation *, StringAttr> symbols;
  /// By hash.
  std::unordered_map<size_t, SmallVector<func::FuncOp, 1>> known;
  unsigned count = 0;
};

struct OutlineKernels : whale::impl::OutlineKernelsBase<OutlineKernels> {
  using OutlineKernelsBase::OutlineKernelsBase;

  void runOnOperation() override {
    auto functions =
        llvm::to_vector(getOperation().getOps<FunctionOpInterface>());
    std::vector<FoundKernels> found(functions.size());
    parallelFor(&getContext(), 0, functions.size(), [&](size_t number) {
      FunctionOpInterface function = functions[number];
      if (function.isExternal())
        return;
      IRRewriter rewriter(&getContext());
      fillLargeConstants(rewriter, function);
      isolateUpdates(rewriter, function);
      if (target.getValue().isGpu())
        joinReductions(rewriter, function.front());
      convertGenerics(rewriter, function, found[number].cache);
      found[number].collect(function);
    });
    IRRewriter rewriter(&getContext());
    KernelTable table(getOperation());
    for (const FoundKernels &one : found)
      for (KernelOp kernel : one.kernels)
        table.outline(rewriter, kernel, one);
    parallelForEach(&getContext(), functions, removeCasts);
  }

  /// From the last to the first, so that what fills an initial value is still
  /// a linalg operation when its user takes it in.
  void convertGenerics(IRRewriter &rewriter, FunctionOpInterface function,
                       KernelCache &cache) {
    SmallVector<linalg::GenericOp> generics;
    function.walk([&](linalg::GenericOp op) { generics.push_back(op); });
    for (linalg::GenericOp op : llvm::reverse(generics)) {
      if (op->use_empty()) {
        rewriter.eraseOp(op);
      } else if (!replaceByConstant(rewriter, op)) {
        op->setLoc(getAllLocations(op));
        if (target.getValue().isGpu())
          convertToBlocks(rewriter, op, cache);
        else
          convertToLoops(rewriter, op, cache);
      }
    }
    function.walk<WalkOrder::PostOrder, mlir::ReverseIterator>(
        [&](Operation *op) {
          if (isa<tensor::EmptyOp, stablehlo::ConstantOp,
                  UnrealizedConversionCastOp>(op) &&
              op->use_empty())
            rewriter.eraseOp(op);
        });
  }

  /// A launch takes and gives buffers, whatever the sign: its results get the
  /// type that the operations around it want, and so do constants.
  static void removeCasts(FunctionOpInterface function) {
    SmallVector<UnrealizedConversionCastOp> casts;
    function.walk(
        [&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
    for (UnrealizedConversionCastOp cast : casts) {
      Value from = cast.getOperand(0), to = cast.getResult(0);
      if (from.getDefiningOp<LaunchOp>())
        from.setType(to.getType());
      Attribute value;
      if (matchPattern(from, m_Constant(&value))) {
        OpBuilder builder(cast);
        from = stablehlo::ConstantOp::create(
            builder, from.getLoc(),
            mlir::cast<DenseElementsAttr>(value).bitcast(
                getElementTypeOrSelf(to)));
      }
      to.replaceAllUsesWith(from);
      cast.erase();
    }
  }
};

} // namespace
