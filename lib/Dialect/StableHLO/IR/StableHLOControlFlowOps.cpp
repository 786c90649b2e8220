//===- StableHLOControlFlowOps.cpp - Loops, branches, calls -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text form, verifiers and type inference of loops, branches and calls.
//
// In: the operation, its text, or the operands and attributes of a new one.
// Out: its text, the operation, the types of results, or an error that states
// the first violated constraint. Comments such as while_c1 name the constraint
// of the StableHLO specification that is checked. Cost: linear in operands,
// results and branches; of a region only the arguments and the last operation
// are looked at. The dimensions of each layout of a custom call are sorted.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/CustomCalls.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using whale::Checker;
using whale::elementType;
using whale::mayBeEqual;
using whale::tensorType;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOControlFlowOps.cpp.inc"

//===----------------------------------------------------------------------===//
// WhileOp
//===----------------------------------------------------------------------===//

void WhileOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    setName(argument, "iterArg");
}

void WhileOp::print(OpAsmPrinter &printer) {
  printer << '(';
  llvm::interleaveComma(
      llvm::zip(getCond().getArguments(), getOperation()->getOperands()),
      printer, [&](auto pair) {
        printer << std::get<0>(pair) << " = " << std::get<1>(pair);
      });
  printer << ')';
  if (getNumOperands() != 0)
    printer << " : " << getOperandTypes();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer.printNewline();
  printer << "cond ";
  printer.printRegion(getCond(), /*printEntryBlockArgs=*/false);
  printer << " do ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult WhileOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  auto parsePair = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  SmallVector<Type> types;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parsePair) ||
      parser.parseOptionalColonTypeList(types) ||
      parser.resolveOperands(operands, types, loc, result.operands))
    return failure();
  result.addTypes(types);
  for (auto [argument, type] : llvm::zip_equal(arguments, types))
    argument.type = type;
  return failure(parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseKeyword("cond") ||
                 parser.parseRegion(*result.addRegion(), arguments) ||
                 parser.parseKeyword("do") ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void CustomCallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // Only an explicit `has_side_effect = false` means that there is none.
  BoolAttr hasSideEffect = getHasSideEffectAttr();
  if (hasSideEffect && !hasSideEffect.getValue())
    return;
  effects.emplace_back(MemoryEffects::Allocate::get());
  effects.emplace_back(MemoryEffects::Free::get());
  effects.emplace_back(MemoryEffects::Write::get());
  effects.emplace_back(MemoryEffects::Read::get());
}

LogicalResult
CompositeOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // composite_c3, composite_c4
  auto function = symbolTable.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getDecompositionAttr());
  if (!function)
    return emitOpError() << "'" << getDecomposition()
                         << "' does not name a function";
  if (!areCompatibleTypes(getOperandTypes(), function.getArgumentTypes()) ||
      !areCompatibleTypes(getResultTypes(), function.getResultTypes()))
    return emitOpError() << "has types other than those of its decomposition '"
                         << getDecomposition() << "'";
  return success();
}

//===----------------------------------------------------------------------===//
// Verifiers and inference
//===----------------------------------------------------------------------===//

/// Verifies that a region of one block returns values of the given types.
static LogicalResult verifyReturns(const Checker &check, StringRef name,
                                   Region &region, TypeRange types) {
  if (!region.hasOneBlock() || region.front().empty())
    return check.error("expects ", name, " to be one block");
  auto terminator = dyn_cast<ReturnOp>(region.front().back());
  if (!terminator)
    return check.error("expects ", name, " to end with stablehlo.return");
  if (!areCompatibleTypes(terminator.getOperandTypes(), types)) {
    std::string got, expected;
    llvm::raw_string_ostream gotStream(got), expectedStream(expected);
    llvm::interleaveComma(terminator.getOperandTypes(), gotStream);
    llvm::interleaveComma(types, expectedStream);
    return check.error("expects ", name, " to return (", expected, ") (got (",
                       got, "))");
  }
  return success();
}

static LogicalResult verifyArguments(const Checker &check, StringRef name,
                                     Region &region, TypeRange types) {
  if (!areCompatibleTypes(region.getArgumentTypes(), types))
    return check.error("expects arguments of ", name,
                       " that have the types of the operands");
  return success();
}

LogicalResult WhileOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  // while_c3
  llvm::append_range(results, adaptor.getOperands().getTypes());
  return success();
}

LogicalResult WhileOp::verifyRegions() {
  Checker check(*this);
  Type pred = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  // while_c1, while_c2
  return success(
      succeeded(verifyArguments(check, "cond", getCond(), getOperandTypes())) &&
      succeeded(verifyReturns(check, "cond", getCond(), pred)) &&
      succeeded(verifyArguments(check, "body", getBody(), getOperandTypes())) &&
      succeeded(verifyReturns(check, "body", getBody(), getOperandTypes())));
}

static LogicalResult verifyBranch(const Checker &check, const Twine &name,
                                  Region &region, TypeRange types) {
  std::string text = name.str();
  if (region.getNumArguments() != 0)
    return check.error("expects ", text, " to have no arguments");
  return verifyReturns(check, text, region, types);
}

LogicalResult CaseOp::verifyRegions() {
  Checker check(*this);
  // case_c1
  if (getBranches().empty())
    return check.error("expects at least one branch");
  // case_c2, case_c3, case_c4
  for (auto [i, branch] : llvm::enumerate(getBranches()))
    if (failed(verifyBranch(check, "branch " + Twine(i), branch,
                            getResultTypes())))
      return failure();
  return success();
}

LogicalResult IfOp::verifyRegions() {
  Checker check(*this);
  // if_c1, if_c2, if_c3
  return success(succeeded(verifyBranch(check, "true_branch", getTrueBranch(),
                                        getResultTypes())) &&
                 succeeded(verifyBranch(check, "false_branch", getFalseBranch(),
                                        getResultTypes())));
}

LogicalResult OptimizationBarrierOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  // optimization_barrier_c1
  llvm::append_range(results, adaptor.getOperand().getTypes());
  return success();
}

/// Checks the layouts of values: one for each value, of its rank.
static LogicalResult verifyLayouts(const Checker &check, StringRef name,
                                   ArrayAttr layouts, TypeRange types) {
  if (failed(check.count(name, layouts.size(), types.size())))
    return failure();
  for (auto [attr, type] : llvm::zip_equal(layouts, types)) {
    auto layout = cast<DenseIntElementsAttr>(attr);
    auto tensor = dyn_cast<RankedTensorType>(type);
    SmallVector<int64_t> dims;
    for (const APInt &dim : layout.getValues<APInt>())
      dims.push_back(dim.getSExtValue());
    llvm::sort(dims);
    int64_t rank = tensor ? tensor.getRank() : 0;
    if (!llvm::equal(dims, llvm::seq<int64_t>(0, rank)))
      return check.error("expects each of ", name,
                         " to be a permutation of the dimensions of its value");
  }
  return success();
}

LogicalResult CustomCallOp::verify() {
  Checker check(*this);
  if (getOperandLayouts().has_value() != getResultLayouts().has_value())
    return check.error("expects operand_layouts and result_layouts both or "
                       "neither");
  // A single tuple result has the layouts of its elements.
  TypeRange results = getResultTypes();
  if (results.size() == 1)
    if (auto tuple = dyn_cast<TupleType>(results.front()))
      results = tuple.getTypes();
  if (getOperandLayouts())
    if (failed(verifyLayouts(check, "operand_layouts", *getOperandLayouts(),
                             getOperandTypes())) ||
        failed(verifyLayouts(check, "result_layouts", *getResultLayouts(),
                             results)))
      return failure();
  for (auto alias :
       getOutputOperandAliases().getAsRange<OutputOperandAliasAttr>()) {
    if (failed(check.inRange("operand_index of an alias",
                             alias.getOperandIndex(), getNumOperands())))
      return failure();
    ArrayRef<int64_t> index = alias.getOutputTupleIndices();
    if (!index.empty() &&
        failed(check.inRange("output_tuple_indices of an alias", index.front(),
                             results.size())))
      return failure();
  }
  return whale::verifySignature(*this);
}

LogicalResult CompositeOp::verify() {
  Checker check(*this);
  // composite_c1
  StringRef name = getName();
  auto [space, rest] = name.split('.');
  if (space.empty() || rest.empty())
    return check.error("expects a name with a namespace, such as my.op (got '",
                       name, "')");
  // composite_c2
  if (static_cast<int32_t>(getVersion()) < 0)
    return check.error("expects a version that is not negative");
  return success();
}

LogicalResult TupleOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  // tuple_c1
  results.push_back(TupleType::get(context, adaptor.getVal().getTypes()));
  return success();
}

LogicalResult GetTupleElementOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  // get_tuple_element_c1, get_tuple_element_c2
  auto tuple = cast<TupleType>(adaptor.getOperand().getType());
  int64_t index = static_cast<int32_t>(adaptor.getIndex());
  if (failed(Checker(location, getOperationName())
                 .inRange("index", index, tuple.size())))
    return failure();
  results.push_back(tuple.getType(index));
  return success();
}
