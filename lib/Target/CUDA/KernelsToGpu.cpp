//===- KernelsToGpu.cpp - whale-kernels-to-gpu ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: functions whose last arguments are the range of iterations that a call
// runs. Out: kernels of a GPU, in each of which a thread, or a block of
// threads, runs one iteration: which one follows from its number, and the loop
// over the range disappears. Arrays of shared memory become attributions of the
// kernel. Cost: each body is copied once and walked a few times. Where the
// threads of all blocks are more than the iterations, a thread compares its
// number.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Target/CUDA/CompileCuda.h"
#include "whale/Target/CUDA/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace whale {
#define GEN_PASS_DEF_KERNELSTOGPU
#include "whale/Target/CUDA/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

SmallVector<memref::AllocaOp> whale::findSharedMemory(Operation *kernel) {
  SmallVector<memref::AllocaOp> found;
  kernel->walk([&](memref::AllocaOp alloca) {
    auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(
        alloca.getType().getMemorySpace());
    if (space && space.getValue() == gpu::AddressSpace::Workgroup)
      found.push_back(alloca);
  });
  return found;
}

/// Replaces a loop of one iteration by its body.
static void inlineLoop(scf::ForOp loop) {
  Block *body = loop.getBody();
  loop.getInductionVar().replaceAllUsesWith(loop.getLowerBound());
  for (auto [argument, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    argument.replaceAllUsesWith(init);
  Operation *yield = body->getTerminator();
  for (auto [result, value] :
       llvm::zip_equal(loop.getResults(), yield->getOperands()))
    result.replaceAllUsesWith(value);
  yield->erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(),
                                           body->getOperations());
  loop->erase();
}

LaunchShape whale::getLaunchShape(func::FuncOp kernel) {
  int64_t extent = kernel->getAttrOfType<IntegerAttr>(kExtentAttrName).getInt();
  auto shared = kernel->getAttrOfType<IntegerAttr>(kThreadsAttrName);
  int64_t threads = shared ? shared.getInt() : kBlockThreads;
  int64_t blocks = shared ? extent : llvm::divideCeil(extent, threads);
  return {std::max<int64_t>(blocks, 1), threads, bool(shared)};
}

/// The kernel that `function` describes, with its buffers, the shared memory
/// that it asks for and what it may rely on of its launch; without a body.
static gpu::GPUFuncOp makeKernel(func::FuncOp function, OpBuilder &modules) {
  MLIRContext *context = function.getContext();
  LaunchShape shape = getLaunchShape(function);
  SmallVector<Type> arrays;
  for (memref::AllocaOp array : findSharedMemory(function))
    arrays.push_back(array.getType());
  auto toSizes = [&](int64_t size) {
    return DenseI32ArrayAttr::get(context, {static_cast<int32_t>(size), 1, 1});
  };
  // The range of iterations is no argument of it.
  ArrayRef<Type> buffers = ArrayRef(function.getArgumentTypes()).drop_back(2);
  auto kernel =
      gpu::GPUFuncOp::create(modules, function.getLoc(), function.getName(),
                             FunctionType::get(context, buffers, {}), arrays);
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                  UnitAttr::get(context));
  kernel.setKnownBlockSizeAttr(toSizes(shape.threads));
  kernel.setKnownGridSizeAttr(toSizes(shape.blocks));
  // Else ptxas guesses how many blocks a multiprocessor should have, and may
  // rather spill registers than have fewer.
  kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                  IntegerAttr::get(IntegerType::get(context, 32), 1));
  if (shape.isByBlock)
    kernel->setAttr("passthrough", modules.getStrArrayAttr({kByBlockAttrName}));
  for (auto [number, buffer] : llvm::enumerate(buffers))
    if (int64_t bytes = getTensorBytes(buffer))
      kernel.setArgAttr(number, LLVM::LLVMDialect::getDereferenceableAttrName(),
                        modules.getI64IntegerAttr(bytes));
  return kernel;
}

/// The iteration of a thread, or of its block. Ends the kernel, and sets `b` to
/// where those threads are that have one.
static Value findIteration(OpBuilder &b, Location loc, const LaunchShape &shape,
                           int64_t extent) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value iteration = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  if (!shape.isByBlock) {
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    iteration = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, iteration, index(shape.threads)),
        thread);
  }
  Operation *end = gpu::ReturnOp::create(b, loc);
  b.setInsertionPoint(end);
  if (!shape.isByBlock && extent % shape.threads != 0) {
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           iteration, index(extent));
    auto branch = scf::IfOp::create(b, loc, isInside, false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  return iteration;
}

/// Copies the body for the range of the one iteration, and leaves out the loops
/// over it.
static void cloneBody(OpBuilder &b, Block &from, gpu::GPUFuncOp kernel,
                      Value iteration) {
  Location loc = kernel.getLoc();
  IRMapping mapping;
  for (unsigned number = 0; number < kernel.getNumArguments(); ++number)
    mapping.map(from.getArgument(number), kernel.getArgument(number));
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value next = arith::AddIOp::create(b, loc, iteration, one);
  mapping.map(from.getArguments().take_back(2), ValueRange{iteration, next});
  for (Operation &op : from.without_terminator())
    b.clone(op, mapping);

  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (loop.getLowerBound() == iteration && loop.getUpperBound() == next)
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    inlineLoop(loop);
  if (next.use_empty()) {
    next.getDefiningOp()->erase();
    one.getDefiningOp()->erase();
  }
}

/// Lets the arrays of the body be the shared memory of the kernel.
static void placeSharedMemory(gpu::GPUFuncOp kernel) {
  OpBuilder b(kernel.getContext());
  for (auto [number, array] : llvm::enumerate(findSharedMemory(kernel))) {
    array.replaceAllUsesWith(kernel.getWorkgroupAttributions()[number]);
    array.erase();
    // LLVM vectorizes accesses, since it assumes that it may raise an array's
    // alignment; without the attribute it emits that of the element type.
    kernel.setWorkgroupAttributionAttr(number,
                                       LLVM::LLVMDialect::getAlignAttrName(),
                                       b.getI64IntegerAttr(kSharedAlignment));
  }
}

/// Makes the kernel that `function` describes.
static void convert(func::FuncOp function, OpBuilder &modules) {
  int64_t extent =
      function->getAttrOfType<IntegerAttr>(kExtentAttrName).getInt();
  gpu::GPUFuncOp kernel = makeKernel(function, modules);
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
  Value iteration =
      findIteration(b, function.getLoc(), getLaunchShape(function), extent);
  cloneBody(b, function.getBody().front(), kernel, iteration);
  placeSharedMemory(kernel);
}

namespace {

struct KernelsToGpu : whale::impl::KernelsToGpuBase<KernelsToGpu> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(kExtentAttrName))
        functions.push_back(function);
    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    auto kernels = gpu::GPUModuleOp::create(b, getOperation().getLoc(),
                                            kKernelsModuleName);
    b.setInsertionPointToStart(kernels.getBody());
    for (func::FuncOp function : functions) {
      convert(function, b);
      function.erase();
    }
  }
};

} // namespace
