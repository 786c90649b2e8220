//===- InstructionWork.cpp - What instructions do -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a kernel, what its function notes (KernelWork.h); of a product or a call,
// what its operands are. Cost: linear in operands.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/InstructionWork.h"

#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/ProgramFormat/DType.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;

namespace whale {

/// A name that stays; f32 stands for what programs have no name for.
static std::string_view nameOf(Type type) {
  std::optional<format::DType> dtype =
      format::parseDType(getDTypeName(getElementTypeOrSelf(type)));
  return format::name(dtype.value_or(format::DType::F32));
}

static double numberOf(Operation *op, StringRef name) {
  auto number = op->getAttrOfType<IntegerAttr>(name);
  return number ? double(number.getInt()) : 0;
}

static OpClass classOf(Operation *op, OpClass otherwise) {
  auto name = op->getAttrOfType<StringAttr>(kClassAttrName);
  return name ? parseOpClass(name.getValue()).value_or(otherwise) : otherwise;
}

static double operandBytes(Operation *op) {
  double bytes = 0;
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                SmallVector<Type>(op->getResultTypes())))
    bytes += double(getTensorBytes(type));
  return bytes;
}

/// The type of a product is the wider one of its operands'.
static std::string_view productType(Value lhs, Value rhs, bool tf32) {
  if (tf32)
    return "tf32";
  Type left = getElementTypeOrSelf(lhs), right = getElementTypeOrSelf(rhs);
  return nameOf(getElementBytes(right) > getElementBytes(left) ? right : left);
}

std::optional<OpCost> instructionWork(Operation *op,
                                      SymbolTableCollection &symbols) {
  OpCost work;
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    work.opClass = OpClass::Elementwise;
    if (op->getNumResults() > 0)
      work.dtype = nameOf(op->getResult(0).getType());
    if (func::FuncOp kernel = launch.getKernelFunc(symbols)) {
      work.opClass = classOf(kernel, work.opClass);
      work.flops = numberOf(kernel, kFlopsAttrName);
      work.bytes = numberOf(kernel, kBytesAttrName);
      if (auto type = kernel->getAttrOfType<TypeAttr>(kComputesInAttrName))
        work.dtype = nameOf(type.getValue());
    }
  } else if (auto matmul = dyn_cast<MatmulOp>(op)) {
    work.opClass = OpClass::Matmul;
    work.flops = double(matmul.getFlops());
    format::Matmul product = matmul.toFormat();
    work.extent = double(std::min({product.m, product.n, product.k}));
    work.dtype =
        productType(matmul.getLhs(), matmul.getRhs(), matmul.getTf32());
    work.bytes = operandBytes(op);
  } else if (auto convolution = dyn_cast<ConvolutionOp>(op)) {
    work.opClass = OpClass::Convolution;
    work.flops = double(convolution.getFlops());
    work.extent = windowPlaces(
        convolution.getRhs(), convolution.getKernelSpatialDimensions(),
        convolution.getOutput(), convolution.getOutputSpatialDimensions());
    work.dtype = productType(convolution.getLhs(), convolution.getRhs(),
                             convolution.getTf32());
    work.bytes = operandBytes(op);
  } else if (isa<LibraryCallOp>(op)) {
    work.opClass = classOf(op, OpClass::Other);
    work.flops = numberOf(op, kFlopsAttrName);
    work.bytes = operandBytes(op);
    if (op->getNumOperands() > 0)
      work.dtype = nameOf(op->getOperand(0).getType());
  } else {
    return std::nullopt;
  }
  return work;
}

} // namespace whale
