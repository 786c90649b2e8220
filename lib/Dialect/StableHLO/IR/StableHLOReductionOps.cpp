//===- StableHLOReductionOps.cpp - x ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOReductionOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ReduceOp: text form
//===----------------------------------------------------------------------===//

/// The operation of a region that only applies a commutative operation of the
/// dialect to its two arguments, or null.
static Operation *getCompactReducer(ReduceOp op) {
  Region &body = op.getBody();
  if (op.getInputs().size() != 1 || !body.hasOneBlock())
    return nullptr;
  Block &block = body.front();
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block, 2))
    return nullptr;
  Operation *reducer = &block.front();
  auto terminator = dyn_cast<ReturnOp>(block.back());
  Type type = block.getArgument(0).getType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto input = dyn_cast<RankedTensorType>(op.getInputs().front().getType());
  bool isCompact =
      terminator && terminator->getAttrs().empty() && tensor && input &&
      tensor == RankedTensorType::get({}, input.getElementType()) &&
      isa<StablehloDialect>(reducer->getDialect()) &&
      reducer->hasTrait<OpTrait::IsCommutative>() &&
      reducer->getNumRegions() == 0 && reducer->getAttrs().empty() &&
      reducer->getNumResults() == 1 &&
      reducer->getResult(0).getType() == type &&
      llvm::equal(reducer->getOperands(), block.getArguments()) &&
      llvm::equal(terminator->getOperands(), reducer->getResults()) &&
      block.getArgument(1).getType() == type;
  return isCompact ? reducer : nullptr;
}

void ReduceOp::print(OpAsmPrinter &printer) {
  size_t count = getNumOperands() / 2;
  printer << '(';
  for (size_t i = 0; i < count; ++i)
    printer << (i == 0 ? "" : ", (") << getOperand(i)
            << " init: " << getOperand(count + i) << ')';
  if (count == 0)
    printer << ')';
  Operation *reducer = getCompactReducer(*this);
  if (reducer)
    printer << " applies " << reducer->getName();
  printer << " across dimensions = [";
  llvm::interleaveComma(getDimensions(), printer);
  printer << ']';
  printer.printOptionalAttrDict((*this)->getAttrs(), {"dimensions"});
  printer << " : ";
  printer.printFunctionalType(*this);
  if (reducer)
    return;
  printer.printNewline();
  printer << " reducer";
  Block &block = getBody().front();
  for (size_t i = 0; i < count; ++i) {
    printer << (i == 0 ? "(" : " (");
    printer.printRegionArgument(block.getArgument(i));
    printer << ", ";
    printer.printRegionArgument(block.getArgument(count + i));
    printer << ')';
  }
  printer << "  ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// Builds the region of `applies NAME`.
static ParseResult buildCompactReducer(OpAsmParser &parser, SMLoc nameLoc,
                                       OperationName name, Location loc,
                                       OperationState &result) {
  std::optional<RegisteredOperationName> info = name.getRegisteredInfo();
  if (!info || !isa<StablehloDialect>(name.getDialect()) ||
      !name.hasTrait<OpTrait::IsCommutative>() ||
      !name.hasTrait<OpTrait::NOperands<2>::Impl>() ||
      !name.hasTrait<OpTrait::OneResult>())
    return parser.emitError(nameLoc)
           << "expected a commutative operation of two operands, got '" << name
           << "'";
  auto tensor =
      result.operands.empty()
          ? RankedTensorType()
          : dyn_cast<RankedTensorType>(result.operands.front().getType());
  if (!tensor || result.operands.size() != 2)
    return parser.emitError(nameLoc, "expected one input tensor");
  Type type = RankedTensorType::get({}, tensor.getElementType());
  Block &block = result.addRegion()->emplaceBlock();
  block.addArguments({type, type}, {loc, loc});
  OpBuilder builder = OpBuilder::atBlockEnd(&block);
  OperationState state(loc, name, block.getArguments(), type);
  Operation *reducer = builder.create(state);
  ReturnOp::create(builder, loc, reducer->getResults());
  return success();
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> inputs, inits;
  if (parser.parseLParen())
    return failure();
  if (failed(parser.parseOptionalRParen())) {
    do {
      if (!inputs.empty() && parser.parseLParen())
        return failure();
      if (parser.parseOperand(inputs.emplace_back()) ||
          parser.parseKeyword("init") || parser.parseColon() ||
          parser.parseOperand(inits.emplace_back()) || parser.parseRParen())
        return failure();
    } while (succeeded(parser.parseOptionalComma()));
  }
  std::optional<OperationName> reducer;
  SMLoc reducerLoc;
  if (succeeded(parser.parseOptionalKeyword("applies"))) {
    reducerLoc = parser.getCurrentLocation();
    FailureOr<OperationName> name = parser.parseCustomOperationName();
    if (failed(name))
      return failure();
    reducer = *name;
  }
  SmallVector<int64_t> dimensions;
  FunctionType type;
  if (parser.parseKeyword("across") || parser.parseKeyword("dimensions") ||
      parser.parseEqual() || whale::parseList(parser, dimensions) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type))
    return failure();
  result.getOrAddProperties<Properties>().dimensions =
      parser.getBuilder().getDenseI64ArrayAttr(dimensions);
  result.addTypes(type.getResults());
  inputs.append(inits);
  if (parser.resolveOperands(inputs, type.getInputs(), loc, result.operands))
    return failure();

  if (reducer) {
    // The operation in the region gets the reduce's own location.
    std::optional<Location> trailing;
    if (parser.parseOptionalLocationSpecifier(trailing))
      return failure();
    if (trailing)
      result.location = *trailing;
    return buildCompactReducer(parser, reducerLoc, *reducer, result.location,
                               result);
  }

  SmallVector<OpAsmParser::Argument> lhs, rhs;
  auto parseArgument = [&](SmallVectorImpl<OpAsmParser::Argument> &arguments) {
    return parser.parseArgument(arguments.emplace_back(), /*allowType=*/true,
                                /*allowAttrs=*/true);
  };
  if (parser.parseKeyword("reducer"))
    return failure();
  while (succeeded(parser.parseOptionalLParen()))
    if (parseArgument(lhs) || parser.parseComma() || parseArgument(rhs) ||
        parser.parseRParen())
      return failure();
  lhs.append(rhs);
  return parser.parseRegion(*result.addRegion(), lhs);
}
