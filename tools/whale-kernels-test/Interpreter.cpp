//===- Interpreter.cpp - Runs lowered functions in process ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a lowered function, the library of its compiled kernels, and a buffer for
// each argument. Out: a buffer for each result, or an error at an operation
// that it does not know.
//
// It walks over the operations in order and keeps the buffer of each value.
// Buffers are filled with a pattern first, so that what a kernel leaves out
// shows, and a kernel runs in three calls, as threads would divide it. Products
// and convolutions are plain loops that sum in double, of f32 and floats of 16
// bits alone. Cost: one step for each multiplication, and no buffer is freed
// before the end.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include "mlir/IR/TypeUtilities.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cstring>
#include <dlfcn.h>

using namespace mlir;
using namespace whale;

size_t Interpreter::getBytes(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.getNumElements() *
         std::max(1u, shaped.getElementTypeBitWidth() / 8);
}

static Buffer makeBuffer(Type type) {
  // What a kernel does not write must show.
  return std::make_shared<std::vector<char>>(Interpreter::getBytes(type),
                                             char(0x5b));
}

/// Reads and writes elements of a float type as double.
static double getFloat(const Buffer &buffer, Type type, int64_t index) {
  const char *data = buffer->data();
  if (type.isF32())
    return reinterpret_cast<const float *>(data)[index];
  uint16_t bits = reinterpret_cast<const uint16_t *>(data)[index];
  return llvm::APFloat(cast<FloatType>(type).getFloatSemantics(),
                       llvm::APInt(16, bits))
      .convertToDouble();
}

static void setFloat(const Buffer &buffer, Type type, int64_t index,
                     double value) {
  char *data = buffer->data();
  if (type.isF32()) {
    reinterpret_cast<float *>(data)[index] = static_cast<float>(value);
    return;
  }
  llvm::APFloat number(static_cast<float>(value));
  bool lost;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &lost);
  reinterpret_cast<uint16_t *>(data)[index] =
      number.bitcastToAPInt().getZExtValue();
}

FailureOr<std::vector<Buffer>> Interpreter::run(func::FuncOp function,
                                                ArrayRef<Buffer> arguments) {
  return runBlock(function.getBody().front(), arguments);
}

FailureOr<std::vector<Buffer>>
Interpreter::runBlock(Block &block, ArrayRef<Buffer> arguments) {
  for (auto [argument, buffer] :
       llvm::zip_equal(block.getArguments(), arguments))
    values[argument] = buffer;
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      std::vector<Buffer> results;
      for (Value operand : op.getOperands())
        results.push_back(values.lookup(operand));
      return results;
    }
    if (failed(runOp(op)))
      return failure();
  }
  return failure();
}

LogicalResult Interpreter::runOp(Operation &op) {
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](LaunchOp) { return launch(op); })
      .Case([&](MatmulOp) { return multiply(op); })
      .Case([&](ConvolutionOp) { return convolve(op); })
      .Case([&](stablehlo::ConstantOp constant) -> LogicalResult {
        Buffer buffer = makeBuffer(constant.getType());
        auto elements = cast<DenseElementsAttr>(constant.getValue());
        size_t bytes =
            std::max(1u, elements.getElementType().getIntOrFloatBitWidth() / 8);
        size_t position = 0;
        for (Attribute value : elements.getValues<Attribute>()) {
          uint64_t bits =
              isa<IntegerAttr>(value)
                  ? cast<IntegerAttr>(value).getValue().getZExtValue()
                  : cast<FloatAttr>(value)
                        .getValue()
                        .bitcastToAPInt()
                        .getZExtValue();
          std::memcpy(buffer->data() + position, &bits, bytes);
          position += bytes;
        }
        values[constant.getResult()] = buffer;
        return success();
      })
      .Case([&](stablehlo::ReshapeOp reshape) -> LogicalResult {
        values[reshape.getResult()] = values.lookup(reshape.getOperand());
        return success();
      })
      .Case([&](stablehlo::WhileOp loop) -> LogicalResult {
        std::vector<Buffer> carried;
        for (Value operand : loop->getOperands())
          carried.push_back(values.lookup(operand));
        while (true) {
          auto condition = runBlock(loop.getCond().front(), carried);
          if (failed(condition))
            return failure();
          if (!(*condition)[0]->front())
            break;
          auto next = runBlock(loop.getBody().front(), carried);
          if (failed(next))
            return failure();
          carried = *next;
        }
        for (auto [result, buffer] :
             llvm::zip_equal(loop->getResults(), carried))
          values[result] = buffer;
        return success();
      })
      .Case([&](stablehlo::CaseOp branch) -> LogicalResult {
        int32_t index;
        std::memcpy(&index, values.lookup(branch.getIndex())->data(), 4);
        int32_t last = branch->getNumRegions() - 1;
        if (index < 0 || index > last)
          index = last;
        auto results = runBlock(branch->getRegion(index).front(), {});
        if (failed(results))
          return failure();
        for (auto [result, buffer] :
             llvm::zip_equal(branch->getResults(), *results))
          values[result] = buffer;
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("cannot be interpreted");
      });
}

LogicalResult Interpreter::launch(Operation &op) {
  auto launchOp = cast<LaunchOp>(op);
  std::string name = launchOp.getKernel().str();
  auto *kernel = reinterpret_cast<void (*)(void **, int64_t, int64_t)>(
      dlsym(library, name.c_str()));
  func::FuncOp function = launchOp.getKernelFunc(symbols);
  if (!kernel || !function)
    return op.emitOpError("has no compiled kernel");
  SmallVector<void *> pointers;
  for (Value operand : op.getOperands())
    pointers.push_back(values.lookup(operand)->data());
  for (OpResult result : op.getResults()) {
    Buffer buffer = makeBuffer(result.getType());
    auto operandOf = [&](std::optional<ArrayRef<int64_t>> list) {
      return list ? (*list)[result.getResultNumber()] : -1;
    };
    if (int64_t operand = operandOf(launchOp.getUpdates()); operand >= 0)
      *buffer = *values.lookup(op.getOperand(operand));
    // Only a value that nothing else reads may be overwritten.
    if (int64_t operand = operandOf(launchOp.getInplace());
        share && operand >= 0) {
      Value source = op.getOperand(operand);
      if (source.getDefiningOp<LaunchOp>() && source.hasOneUse())
        buffer = values.lookup(source);
    }
    values[result] = buffer;
    pointers.push_back(buffer->data());
  }
  // In three parts, as threads would.
  int64_t extent =
      cast<IntegerAttr>(function->getAttr(kExtentAttrName)).getInt();
  int64_t part = (extent + 2) / 3;
  for (int64_t begin = 0; begin < extent; begin += part)
    kernel(pointers.data(), begin, std::min(extent, begin + part));
  return success();
}

LogicalResult Interpreter::multiply(Operation &op) {
  auto matmul = cast<MatmulOp>(op);
  auto isRead = [](Type type) {
    return type.isF32() || type.isF16() || type.isBF16();
  };
  if (op.getNumOperands() != 2 || op.getNumResults() != 1 ||
      !llvm::all_of(
          op.getOperandTypes(),
          [&](Type type) { return isRead(getElementTypeOrSelf(type)); }) ||
      !isRead(getElementTypeOrSelf(matmul.getOutput().getType())))
    return op.emitOpError("cannot be interpreted with an addend, an epilogue "
                          "or these types");
  Type lhsType = getElementTypeOrSelf(matmul.getLhs().getType());
  Type rhsType = getElementTypeOrSelf(matmul.getRhs().getType());
  Type outType = getElementTypeOrSelf(matmul.getOutput().getType());
  Buffer lhs = values.lookup(matmul.getLhs());
  Buffer rhs = values.lookup(matmul.getRhs());
  Buffer out = makeBuffer(matmul.getOutput().getType());
  values[matmul.getOutput()] = out;
  ArrayRef<int64_t> m = matmul.getM(), n = matmul.getN(), k = matmul.getK();
  std::function<void(ArrayRef<int64_t>, int64_t, int64_t, int64_t)> over =
      [&](ArrayRef<int64_t> batch, int64_t l, int64_t r, int64_t o) {
        if (!batch.empty()) {
          for (int64_t i = 0; i < batch[0]; ++i)
            over(batch.drop_front(4), l + i * batch[1], r + i * batch[2],
                 o + i * batch[3]);
          return;
        }
        for (int64_t i = 0; i < m[0]; ++i)
          for (int64_t j = 0; j < n[0]; ++j) {
            double sum = 0;
            for (int64_t c = 0; c < k[0]; ++c)
              sum += getFloat(lhs, lhsType, l + i * m[1] + c * k[1]) *
                     getFloat(rhs, rhsType, r + j * n[1] + c * k[2]);
            setFloat(out, outType, o + i * m[2] + j * n[2], sum);
          }
      };
  over(matmul.getBatch(), 0, 0, 0);
  return success();
}

LogicalResult Interpreter::convolve(Operation &op) {
  auto conv = cast<whale::ConvolutionOp>(op);
  auto lhsType = cast<RankedTensorType>(conv.getLhs().getType());
  auto rhsType = cast<RankedTensorType>(conv.getRhs().getType());
  auto outType = cast<RankedTensorType>(conv.getType());
  Buffer lhs = values.lookup(conv.getLhs());
  Buffer rhs = values.lookup(conv.getRhs());
  Buffer out = makeBuffer(outType);
  values[conv.getResult()] = out;
  auto linear = [](ShapedType type, ArrayRef<int64_t> index) {
    int64_t result = 0;
    for (auto [i, size] : llvm::zip_equal(index, type.getShape()))
      result = result * size + i;
    return result;
  };
  size_t spatial = conv.getInputSpatialDimensions().size();
  int64_t groups = conv.getFeatureGroupCount();
  int64_t batchGroups = conv.getBatchGroupCount();
  int64_t features = rhsType.getDimSize(conv.getKernelInputFeatureDimension());
  int64_t outputs = rhsType.getDimSize(conv.getKernelOutputFeatureDimension());
  int64_t batches =
      lhsType.getDimSize(conv.getInputBatchDimension()) / batchGroups;
  SmallVector<int64_t> at(spatial + 2, 0);
  for (int64_t number = 0; number < outType.getNumElements(); ++number) {
    int64_t rest = number;
    for (int64_t dim = spatial + 1; dim >= 0; --dim) {
      at[dim] = rest % outType.getDimSize(dim);
      rest /= outType.getDimSize(dim);
    }
    int64_t feature = at[conv.getOutputFeatureDimension()];
    int64_t group = feature / (outputs / groups);
    int64_t batchGroup = feature / (outputs / batchGroups);
    double sum = 0;
    SmallVector<int64_t> from(spatial + 2), weight(spatial + 2);
    std::function<void(size_t)> over = [&](size_t dim) {
      if (dim < spatial) {
        int64_t kernelDim = conv.getKernelSpatialDimensions()[dim];
        int64_t inputDim = conv.getInputSpatialDimensions()[dim];
        int64_t size = rhsType.getDimSize(kernelDim);
        for (int64_t k = 0; k < size; ++k) {
          int64_t place = at[conv.getOutputSpatialDimensions()[dim]] *
                              conv.getWindowStrides()[dim] +
                          k * conv.getRhsDilation()[dim] -
                          conv.getPadding()[2 * dim];
          int64_t dilation = conv.getLhsDilation()[dim];
          if (place < 0 || place % dilation != 0 ||
              place / dilation >= lhsType.getDimSize(inputDim))
            continue;
          from[inputDim] = place / dilation;
          weight[kernelDim] = conv.getWindowReversal()[dim] ? size - 1 - k : k;
          over(dim + 1);
        }
        return;
      }
      for (int64_t f = 0; f < features; ++f) {
        from[conv.getInputBatchDimension()] =
            at[conv.getOutputBatchDimension()] + batchGroup * batches;
        from[conv.getInputFeatureDimension()] = group * features + f;
        weight[conv.getKernelInputFeatureDimension()] = f;
        weight[conv.getKernelOutputFeatureDimension()] = feature;
        sum += getFloat(lhs, lhsType.getElementType(), linear(lhsType, from)) *
               getFloat(rhs, rhsType.getElementType(), linear(rhsType, weight));
      }
    };
    over(0);
    setFloat(out, outType.getElementType(), number, sum);
  }
  return success();
}
