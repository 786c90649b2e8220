//===- KernelBuilder.cpp - Building kernels -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions by which patterns build parallel linalg operations and hand-made
// kernels from StableHLO. They take values in stored form (StoredScalars.h) and
// emit operations at the insertion point.
//
// Cost: each linear in rank and operands, besides the body that it is given;
// matchSplat follows a chain of reshapes and broadcasts to its constant,
// eraseDeadOps walks over all that is in an operation. A buffer of a kernel
// that is seen in one dimension, and a cast to stored form, cost nothing when
// the program runs; unflatten a division for each dimension but the first.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Iterators.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

void whale::eraseDeadOps(RewriterBase &rewriter, Operation *root) {
  // Users are after what they use.
  root->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
  });
}

//===----------------------------------------------------------------------===//
// Values in stored form
//===----------------------------------------------------------------------===//

Value whale::stored(OpBuilder &b, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  RankedTensorType storage = type ? getStorageType(type) : type;
  if (!storage || storage == type)
    return storage ? value : Value();
  if (auto cast = value.getDefiningOp<UnrealizedConversionCastOp>())
    if (cast.getNumOperands() == 1 && cast.getOperand(0).getType() == storage)
      return cast.getOperand(0);
  return UnrealizedConversionCastOp::create(b, value.getLoc(), storage, value)
      .getResult(0);
}

void whale::replaceWithStored(PatternRewriter &rewriter, Operation *op,
                              ValueRange values) {
  SmallVector<Value> results;
  for (auto [value, type] : llvm::zip_equal(values, op->getResultTypes())) {
    if (value.getType() == type)
      results.push_back(value);
    else
      results.push_back(UnrealizedConversionCastOp::create(
                            rewriter, op->getLoc(), type, value)
                            .getResult(0));
  }
  rewriter.replaceOp(op, results);
}

Attribute whale::matchSplat(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (elements && elements.isSplat())
        return elements.getSplatValue<Attribute>();
      return {};
    }
    if (!isa<UnrealizedConversionCastOp, stablehlo::ReshapeOp,
             stablehlo::BroadcastInDimOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Parallel generics
//===----------------------------------------------------------------------===//

FailureOr<linalg::GenericOp>
whale::makeParallel(PatternRewriter &rewriter, Location loc,
                    ArrayRef<int64_t> shape, TypeRange elements,
                    ArrayRef<Input> inputs, BodyFn body) {
  SmallVector<Type> types;
  SmallVector<Value> tensors, outs;
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs) {
    if (!input.tensor)
      return failure();
    tensors.push_back(input.tensor);
    maps.push_back(input.map);
  }
  for (Type element : elements) {
    types.push_back(RankedTensorType::get(shape, element));
    outs.push_back(tensor::EmptyOp::create(rewriter, loc, shape, element));
    maps.push_back(rewriter.getMultiDimIdentityMap(shape.size()));
  }
  SmallVector<utils::IteratorType> iterators(shape.size(),
                                             utils::IteratorType::parallel);
  bool failedBody = false;
  auto generic = linalg::GenericOp::create(
      rewriter, loc, types, tensors, outs, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange arguments) {
        auto results = body(b, loc, arguments.take_front(inputs.size()));
        failedBody = failed(results);
        linalg::YieldOp::create(
            b, loc,
            failedBody ? ValueRange(arguments.take_back(elements.size()))
                       : ValueRange(*results));
      });
  if (!failedBody)
    return generic;
  rewriter.eraseOp(generic);
  return failure();
}

DenseElementsAttr whale::makeZeros(RankedTensorType type) {
  Builder b(type.getContext());
  if (auto complex = dyn_cast<ComplexType>(type.getElementType())) {
    Attribute zero = b.getZeroAttr(complex.getElementType());
    return DenseElementsAttr::get(type, b.getArrayAttr({zero, zero}));
  }
  return cast<DenseElementsAttr>(b.getZeroAttr(type));
}

Value whale::narrowElements(PatternRewriter &rewriter, Location loc, Value wide,
                            Type storage,
                            function_ref<Value(OpBuilder &, Value)> narrow) {
  auto type = cast<RankedTensorType>(wide.getType());
  auto generic =
      makeParallel(rewriter, loc, type.getShape(), storage,
                   Input{wide, rewriter.getMultiDimIdentityMap(type.getRank())},
                   [&](OpBuilder &b, Location,
                       ValueRange values) -> FailureOr<SmallVector<Value>> {
                     return SmallVector<Value>{narrow(b, values[0])};
                   });
  return generic->getResult(0);
}

linalg::GenericOp whale::makeCopy(OpBuilder &b, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value empty =
      tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  return linalg::GenericOp::create(
      b, loc, type, tensor, empty, {map, map},
      SmallVector<utils::IteratorType>(type.getRank(),
                                       utils::IteratorType::parallel),
      [](OpBuilder &b, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(b, loc, arguments[0]);
      });
}

Value whale::constantIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value whale::toIndex(OpBuilder &b, Location loc, Value value, Type type) {
  if (isUnsigned(type)) {
    // What an index can't hold is beyond any dimension all the same.
    if (value.getType().isInteger(64))
      value = arith::MinUIOp::create(
          b, loc, value,
          arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(INT64_MAX)));
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
  }
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}

Value whale::clampIndex(OpBuilder &b, Location loc, Value value, int64_t low,
                        int64_t high) {
  Value raised =
      arith::MaxSIOp::create(b, loc, value, constantIndex(b, loc, low));
  return arith::MinSIOp::create(b, loc, raised, constantIndex(b, loc, high));
}

int64_t whale::clampConstant(const APInt &value, Type type, int64_t high) {
  return isUnsigned(type) ? int64_t(value.getLimitedValue(high))
                          : std::clamp<int64_t>(value.getSExtValue(), 0, high);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

MemRefType whale::getBufferType(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  Type element = getStorageType(type.getElementType());
  if (element.isInteger(1))
    element = IntegerType::get(type.getContext(), 8);
  return MemRefType::get(type.getShape(), element);
}

Value KernelBuilder::load(unsigned buffer, ValueRange indices) {
  return memref::LoadOp::create(b, loc, buffers[buffer], indices);
}

Value KernelBuilder::loadScalar(unsigned buffer, ValueRange indices,
                                Type type) {
  Value value = load(buffer, indices);
  if (!getElementTypeOrSelf(type).isInteger(1))
    return value;
  return compare(arith::CmpIPredicate::ne, value,
                 arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0)));
}

void KernelBuilder::store(Value value, unsigned buffer, ValueRange indices) {
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  memref::StoreOp::create(b, loc, value, buffers[buffer], indices);
}

Value KernelBuilder::add(Value lhs, Value rhs) {
  return arith::AddIOp::create(b, loc, lhs, rhs);
}

Value KernelBuilder::mul(Value lhs, Value rhs) {
  return arith::MulIOp::create(b, loc, lhs, rhs);
}

void KernelBuilder::parallel(ArrayRef<int64_t> shape,
                             function_ref<void(ValueRange)> body) {
  if (shape.empty())
    return body({});
  if (blocks)
    return share(ShapedType::getNumElements(shape),
                 [&](Value number) { body(unflatten(number, shape)); });
  share(shape.front(), [&](Value first) {
    nest(shape.drop_front(), [&](ValueRange others) {
      SmallVector<Value> all{first};
      llvm::append_range(all, others);
      body(all);
    });
  });
}

void KernelBuilder::share(int64_t count, function_ref<void(Value)> body) {
  assert((extent == 1 || extent == count) && "a kernel has one extent");
  extent = count;
  loop(begin, end, body);
}

void KernelBuilder::loop(Value from, Value to, function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void KernelBuilder::nest(ArrayRef<int64_t> sizes,
                         function_ref<void(ValueRange)> body) {
  SmallVector<Value> counters;
  OpBuilder::InsertionGuard guard(b);
  for (int64_t size : sizes) {
    auto loop = scf::ForOp::create(b, loc, index(0), index(size), index(1));
    counters.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  body(counters);
}

void KernelBuilder::when(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

Value KernelBuilder::compare(arith::CmpIPredicate predicate, Value lhs,
                             Value rhs) {
  return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
}

Value KernelBuilder::inside(Value value, int64_t size) {
  // One unsigned comparison also excludes what is negative.
  return compare(arith::CmpIPredicate::ult, value, index(size));
}

SmallVector<Value> KernelBuilder::unflatten(Value number,
                                            ArrayRef<int64_t> shape) {
  SmallVector<Value> indices(shape.size());
  for (size_t dim = shape.size(); dim-- > 1;) {
    Value size = index(shape[dim]);
    indices[dim] = arith::RemUIOp::create(b, loc, number, size);
    number = arith::DivUIOp::create(b, loc, number, size);
  }
  if (!shape.empty())
    indices[0] = number;
  return indices;
}

Value whale::flatten(OpBuilder &b, Location loc, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getRank() == 1)
    return buffer;
  int64_t count = type.getNumElements();
  return memref::ReinterpretCastOp::create(
      b, loc, MemRefType::get({count}, type.getElementType()), buffer,
      /*offset=*/int64_t(0), ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
}

FailureOr<KernelOp>
whale::makeKernel(PatternRewriter &rewriter, Location loc, bool blocks,
                  TypeRange results, ValueRange inputs,
                  function_ref<LogicalResult(KernelBuilder &)> body) {
  if (llvm::is_contained(inputs, Value()))
    return failure();
  auto kernel = KernelOp::create(rewriter, loc, results, inputs, /*extent=*/1,
                                 /*inplace=*/nullptr, /*updates=*/nullptr);
  OpBuilder::InsertionGuard guard(rewriter);
  Block *block = rewriter.createBlock(&kernel.getBody());
  KernelBuilder builder{rewriter, loc, blocks, {}, 1, {}, {}};
  for (Value input : inputs)
    builder.buffers.push_back(
        block->addArgument(getBufferType(input.getType()), loc));
  for (Type result : results)
    builder.buffers.push_back(block->addArgument(getBufferType(result), loc));
  builder.begin = block->addArgument(rewriter.getIndexType(), loc);
  builder.end = block->addArgument(rewriter.getIndexType(), loc);
  if (failed(body(builder))) {
    rewriter.eraseOp(kernel);
    return failure();
  }
  kernel.setExtent(builder.extent);
  return kernel;
}
