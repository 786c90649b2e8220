//===- StableHLOReductionOps.cpp - Reductions -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text form, verifiers and type inference of reductions, select_and_scatter,
// map and batch normalization.
//
// In: the operation, its text, or the operands and attributes of a new one.
// Out: its text, the operation, the types of results, or an error that states
// the first violated constraint. A reduction by one commutative operation is
// printed as `applies NAME`, without its region. Comments such as reduce_c1
// name the constraint of the StableHLO specification that is checked. Cost:
// inputs times their rank, and at most quadratic in the rank; of a region the
// arguments and at most two operations are looked at.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using whale::Checker;
using whale::elementType;
using whale::mayBeEqual;
using whale::tensorType;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOReductionOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ReduceOp: text form
//===----------------------------------------------------------------------===//

/// If a region only applies a commutative operation of the dialect to its two
/// arguments, returns that operation, otherwise null.
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
  // Take the context from the parser: the region has no parent yet.
  OpBuilder builder(parser.getContext());
  builder.setInsertionPointToEnd(&block);
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
    // The operation in the region has the location of the reduce.
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
                                /*allowAttrs=*/false);
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

//===----------------------------------------------------------------------===//
// ReduceOp and ReduceWindowOp: inference
//===----------------------------------------------------------------------===//

/// Checks the inputs of a variadic reduction: at least one, all of one shape,
/// each with an initial value of its element type.
static LogicalResult verifyReductionInputs(const Checker &check,
                                           ValueRange inputs,
                                           ValueRange inits) {
  if (inputs.empty())
    return check.error("expects at least one input");
  auto first = tensorType(inputs.front().getType());
  for (auto [input, init] : llvm::zip_equal(inputs, inits)) {
    auto inputType = tensorType(input.getType());
    auto initType = tensorType(init.getType());
    if (failed(check.sameShape("each input", inputType.getShape(),
                               first.getShape())) ||
        failed(
            check.sameShape("each initial value", initType.getShape(), {})) ||
        failed(
            check.sameElements("input and initial value", inputType, initType)))
      return failure();
  }
  return success();
}

/// Returns the element type in which the region accumulates input `index`; that
/// of the input if there is no region yet.
static Type accumulatorType(RegionRange regions, ValueRange inputs,
                            size_t index) {
  Type input = elementType(inputs[index].getType());
  if (regions.empty() || !regions.front() || regions.front()->empty())
    return input;
  Block &block = regions.front()->front();
  if (index >= block.getNumArguments())
    return input;
  auto argument =
      dyn_cast<RankedTensorType>(block.getArgument(index).getType());
  return argument ? argument.getElementType() : input;
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  ValueRange inputs = adaptor.getInputs();
  // reduce_c1, reduce_c2, reduce_c3
  if (failed(verifyReductionInputs(check, inputs, adaptor.getInitValues())))
    return failure();
  auto first = tensorType(inputs.front().getType());
  // reduce_c4, reduce_c5
  ArrayRef<int64_t> dimensions = adaptor.getDimensions();
  if (failed(check.rangeAndUnique("dimensions", dimensions, first.getRank())))
    return failure();
  // reduce_c7, reduce_c8
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < first.getRank(); ++i)
    if (!llvm::is_contained(dimensions, i))
      shape.push_back(first.getDimSize(i));
  for (size_t i = 0; i < inputs.size(); ++i)
    results.push_back(RankedTensorType::get(
        shape, accumulatorType(adaptor.getRegions(), inputs, i)));
  return success();
}

LogicalResult ReduceOp::verifyRegions() {
  // reduce_c6
  return Checker(*this).reducer(getBody(), getInputs().getTypes(),
                                getInitValues().getTypes());
}

LogicalResult ReduceWindowOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> location,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  ValueRange inputs = adaptor.getInputs();
  // reduce_window_c1, c2, c3
  if (failed(verifyReductionInputs(check, inputs, adaptor.getInitValues())))
    return failure();
  auto first = tensorType(inputs.front().getType());
  // reduce_window_c4 to c12
  if (failed(check.count("window_dimensions",
                         adaptor.getWindowDimensions().size(),
                         first.getRank())))
    return failure();
  FailureOr<whale::Window> window = whale::getWindow(
      check, adaptor.getWindowDimensions(), adaptor.getWindowStrides(),
      adaptor.getPadding(), adaptor.getBaseDilations(),
      adaptor.getWindowDilations());
  if (failed(window))
    return failure();
  // reduce_window_c14, c15, c16
  FailureOr<SmallVector<int64_t>> shape =
      whale::getWindowCounts(check, first.getShape(), *window);
  if (failed(shape))
    return failure();
  for (size_t i = 0; i < inputs.size(); ++i)
    results.push_back(RankedTensorType::get(
        *shape, accumulatorType(adaptor.getRegions(), inputs, i)));
  return success();
}

LogicalResult ReduceWindowOp::verifyRegions() {
  // reduce_window_c13
  return Checker(*this).reducer(getBody(), getInputs().getTypes(),
                                getInitValues().getTypes());
}

//===----------------------------------------------------------------------===//
// SelectAndScatterOp
//===----------------------------------------------------------------------===//

LogicalResult SelectAndScatterOp::verify() {
  Checker check(*this);
  RankedTensorType operand = getOperand().getType();
  RankedTensorType source = getSource().getType();
  // select_and_scatter_c1, c3
  if (failed(check.sameElements("operand and source", operand, source)) ||
      failed(check.sameElements("operand and initial value", operand,
                                getInitValue().getType())))
    return failure();
  // select_and_scatter_c4 to c8
  SmallVector<int64_t> ones(operand.getRank(), 1);
  ArrayRef<int64_t> sizes = getWindowDimensions().value_or(ones);
  if (failed(check.count("window_dimensions", sizes.size(), operand.getRank())))
    return failure();
  FailureOr<whale::Window> window =
      whale::getWindow(check, sizes, getWindowStrides(), getPadding(),
                       std::nullopt, std::nullopt);
  if (failed(window))
    return failure();
  // select_and_scatter_c2
  FailureOr<SmallVector<int64_t>> windows =
      whale::getWindowCounts(check, operand.getShape(), *window);
  if (failed(windows) ||
      failed(check.sameShape("the source", source.getShape(), *windows)))
    return failure();
  // select_and_scatter_c9, c10
  if (failed(check.comparator(getSelect(), operand)) ||
      failed(check.reducer(getScatter(), source, getInitValue().getType())))
    return failure();
  // select_and_scatter_c11, c12
  return success(succeeded(check.sameShape("the result", getType().getShape(),
                                           operand.getShape())) &&
                 succeeded(check.sameElements(
                     "result and region", getType(),
                     getScatter().front().getArgument(0).getType())));
}

//===----------------------------------------------------------------------===//
// MapOp
//===----------------------------------------------------------------------===//

LogicalResult MapOp::verify() {
  Checker check(*this);
  // map_c2 is a part of SameOperandsAndResultShape; map_c3
  auto first = tensorType(getInputs().front().getType());
  if (!llvm::equal(getDimensions(), llvm::seq<int64_t>(0, first.getRank())))
    return check.error("expects dimensions 0 to ", first.getRank(),
                       " in order");
  // map_c4
  Block &block = getComputation().front();
  auto terminator =
      dyn_cast_if_present<ReturnOp>(block.empty() ? nullptr : &block.back());
  if (!terminator || terminator.getNumOperands() != 1 ||
      terminator.getOperand(0).getType() !=
          RankedTensorType::get({}, getType().getElementType()))
    return check.error("expects a region that returns one element of the "
                       "result");
  if (failed(check.count("region arguments", block.getNumArguments(),
                         getInputs().size())))
    return failure();
  for (auto [argument, input] :
       llvm::zip_equal(block.getArguments(), getInputs()))
    if (argument.getType() !=
        RankedTensorType::get({}, elementType(input.getType())))
      return check.error("expects region arguments that are elements of the "
                         "inputs (got ",
                         argument.getType(), ")");
  return success();
}

//===----------------------------------------------------------------------===//
// Batch normalization: inference
//===----------------------------------------------------------------------===//

/// Verifies a batch normalization of `operand` along dimension `feature`; each
/// of `features` must have one element for each feature.
static LogicalResult verifyBatchNorm(const Checker &check, Type operand,
                                     int64_t feature, TypeRange features) {
  auto type = tensorType(operand);
  // batch_norm_*_c1
  if (failed(check.inRange("feature_index", feature, type.getRank())))
    return failure();
  // batch_norm_*_c2 to c7
  for (Type other : features)
    if (failed(check.sameElements("operands", type, other)) ||
        failed(check.sameShape("per-feature values",
                               tensorType(other).getShape(),
                               type.getDimSize(feature))))
      return failure();
  return success();
}

LogicalResult BatchNormTrainingOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  Type type = adaptor.getOperand().getType();
  Type feature = adaptor.getScale().getType();
  results.assign({type, feature, feature});
  return verifyBatchNorm({location, getOperationName()}, type,
                         adaptor.getFeatureIndex(),
                         adaptor.getOperands().drop_front().getTypes());
}

LogicalResult BatchNormInferenceOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  Type type = adaptor.getOperand().getType();
  results.push_back(type);
  return verifyBatchNorm({location, getOperationName()}, type,
                         adaptor.getFeatureIndex(),
                         adaptor.getOperands().drop_front().getTypes());
}

LogicalResult BatchNormGradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  Type type = adaptor.getOperand().getType();
  Type gradient = adaptor.getGradOutput().getType();
  Type feature = adaptor.getScale().getType();
  results.assign({type, feature, feature});
  if (failed(check.sameElements("operand and grad_output", type, gradient)) ||
      failed(check.sameShape("grad_output", tensorType(gradient).getShape(),
                             tensorType(type).getShape())))
    return failure();
  return verifyBatchNorm(
      check, type, adaptor.getFeatureIndex(),
      adaptor.getOperands().drop_front().drop_back().getTypes());
}
