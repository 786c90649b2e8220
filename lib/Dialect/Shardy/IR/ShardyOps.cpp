//===- ShardyOps.cpp - Text form and verifiers ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text form and verifiers of the sdy operations.
//
// In: an operation, or its text. Out: its text, or the operation; an error
// where a sharding of a value names no existing mesh, uses an axis that the
// mesh lacks, or has another rank than the value. Cost: printing and parsing
// are linear in the text. To verify a sharding, its mesh is looked up in symbol
// tables that are kept, and each of its axes is compared with all axes of the
// mesh.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "whale/Dialect/Shardy/IR/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::sdy;

//===----------------------------------------------------------------------===//
// Directives of the declarative formats
//===----------------------------------------------------------------------===//

static void printStrippedMesh(OpAsmPrinter &printer, Operation *,
                              MeshAttr mesh) {
  printMesh(printer, mesh);
}

static ParseResult parseStrippedMesh(OpAsmParser &parser, MeshAttr &mesh) {
  return parseMesh(parser, mesh);
}

static void printStrippedSharding(OpAsmPrinter &printer, Operation *,
                                  TensorShardingAttr sharding) {
  printSharding(printer, sharding);
}

static ParseResult parseStrippedSharding(OpAsmParser &parser,
                                         TensorShardingAttr &sharding) {
  return parseSharding(parser, sharding);
}

#define GET_OP_CLASSES
#include "whale/Dialect/Shardy/IR/ShardyOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Shardings of values
//===----------------------------------------------------------------------===//

/// Verifies a sharding of a value of the given type: the mesh exists and has
/// the axes, and the sharding has the rank of the type.
static LogicalResult verifySharding(Operation *op, TensorShardingAttr sharding,
                                    Type type,
                                    SymbolTableCollection &symbolTable) {
  auto mesh = dyn_cast<MeshAttr>(sharding.getMeshOrRef());
  if (auto name = dyn_cast<FlatSymbolRefAttr>(sharding.getMeshOrRef())) {
    auto meshOp = symbolTable.lookupNearestSymbolFrom<MeshOp>(op, name);
    if (!meshOp)
      return op->emitOpError() << "uses an unknown mesh " << name;
    mesh = meshOp.getMesh();
  }
  if (!mesh)
    return op->emitOpError() << "expects a mesh or the name of one";
  auto tensor = dyn_cast<RankedTensorType>(type);
  size_t rank = tensor ? tensor.getRank() : 0;
  bool isMaximal = mesh.getAxes().empty() && !mesh.getDeviceIds().empty();
  if (rank != sharding.getDimShardings().size() &&
      !(isMaximal && sharding.getDimShardings().empty()))
    return op->emitOpError()
           << "expects a sharding of each of " << rank << " dimensions (got "
           << sharding.getDimShardings().size() << ")";
  auto verifyAxes = [&](ArrayRef<AxisRefAttr> axes) -> LogicalResult {
    for (AxisRefAttr axis : axes)
      if (llvm::none_of(mesh.getAxes(), [&](MeshAxisAttr meshAxis) {
            return meshAxis.getName() == axis.getName();
          }))
        return op->emitOpError()
               << "uses axis '" << axis.getName() << "', which its mesh lacks";
    return success();
  };
  for (DimensionShardingAttr dimension : sharding.getDimShardings())
    if (failed(verifyAxes(dimension.getAxes())))
      return failure();
  return success(succeeded(verifyAxes(sharding.getReplicatedAxes())) &&
                 succeeded(verifyAxes(sharding.getUnreducedAxes())));
}

LogicalResult
ShardingConstraintOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  return verifySharding(*this, getSharding(), getType(), symbolTable);
}

LogicalResult ReshardOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  return verifySharding(*this, getSharding(), getType(), symbolTable);
}

//===----------------------------------------------------------------------===//
// ManualComputationOp
//===----------------------------------------------------------------------===//

void ManualComputationOp::print(OpAsmPrinter &printer) {
  printer << '(' << getTensors() << ") in_shardings=";
  printShardings(printer, getInShardings());
  printer << " out_shardings=";
  printShardings(printer, getOutShardings());
  printer << " manual_axes=";
  printManualAxes(printer, getManualAxes());
  printer << " (";
  llvm::interleaveComma(
      getBody().getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {"in_shardings", "out_shardings", "manual_axes"});
  printer << " : ";
  printer.printFunctionalType(*this);
}

ParseResult ManualComputationOp::parse(OpAsmParser &parser,
                                       OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<OpAsmParser::Argument> arguments;
  Properties &properties = result.getOrAddProperties<Properties>();
  FunctionType type;
  if (parser.parseOperandList(operands, AsmParser::Delimiter::Paren) ||
      parser.parseKeyword("in_shardings") || parser.parseEqual() ||
      parseShardings(parser, properties.in_shardings) ||
      parser.parseKeyword("out_shardings") || parser.parseEqual() ||
      parseShardings(parser, properties.out_shardings) ||
      parser.parseKeyword("manual_axes") || parser.parseEqual() ||
      parseManualAxes(parser, properties.manual_axes) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseRegion(*result.addRegion(), arguments) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type))
    return failure();
  result.addTypes(type.getResults());
  return parser.resolveOperands(operands, type.getInputs(), loc,
                                result.operands);
}

LogicalResult
ManualComputationOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto verifyAll = [&](StringRef name, TensorShardingPerValueAttr shardings,
                       TypeRange types) -> LogicalResult {
    if (shardings.getShardings().size() != types.size())
      return emitOpError() << "expects " << name << " of each of "
                           << types.size() << " values (got "
                           << shardings.getShardings().size() << ")";
    for (auto [sharding, type] :
         llvm::zip_equal(shardings.getShardings(), types))
      if (failed(verifySharding(*this, sharding, type, symbolTable)))
        return failure();
    return success();
  };
  return success(succeeded(verifyAll("in_shardings", getInShardings(),
                                     getOperandTypes())) &&
                 succeeded(verifyAll("out_shardings", getOutShardings(),
                                     getResultTypes())));
}

LogicalResult ManualComputationOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getTensors().size())
    return emitOpError() << "expects an argument for each of "
                         << getTensors().size() << " operands (got "
                         << block.getNumArguments() << ")";
  auto terminator = dyn_cast<ReturnOp>(block.back());
  if (!terminator)
    return emitOpError() << "expects a body that ends with sdy.return";
  if (terminator.getNumOperands() != getNumResults())
    return emitOpError() << "expects its body to return " << getNumResults()
                         << " values (got " << terminator.getNumOperands()
                         << ")";
  return success();
}
