//===- AssemblyFormat.h - Pieces of the text form ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_ASSEMBLYFORMAT_H
#define WHALE_DIALECT_STABLEHLO_IR_ASSEMBLYFORMAT_H

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {

/// Prints `[1, 2]`.
void printList(mlir::AsmPrinter &printer, llvm::ArrayRef<int64_t> values);
mlir::ParseResult parseList(mlir::AsmParser &parser,
                            llvm::SmallVectorImpl<int64_t> &values);

/// Prints `<a = [1, 2], n = 3>` without empty lists and zero numbers.
void printStruct(
    mlir::AsmPrinter &printer,
    llvm::ArrayRef<std::pair<llvm::StringRef, llvm::ArrayRef<int64_t>>> lists,
    llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> numbers = {});

/// Parses what printStruct prints; the fields in any order, each at most once.
mlir::ParseResult parseStruct(
    mlir::AsmParser &parser,
    llvm::ArrayRef<std::pair<llvm::StringRef, llvm::SmallVector<int64_t> *>>
        lists,
    llvm::ArrayRef<std::pair<llvm::StringRef, int64_t *>> numbers = {});

} // namespace whale

// The custom<...> directives of the operations' declarative formats.
namespace mlir::stablehlo {

/// Elements as an attribute. Large arrays of booleans are in hexadecimal, one
/// byte each, as JAX prints them; MLIR 22 itself has one bit each.
void printConstantValue(OpAsmPrinter &printer, ElementsAttr value);
ParseResult parseConstantValue(OpAsmParser &parser, ElementsAttr &value);

/// One type if all are equal, else a function type.
void printEqualTypes(OpAsmPrinter &printer, ArrayRef<Type> operands,
                     Type result);
ParseResult parseEqualTypes(OpAsmParser &parser, ArrayRef<Type *> operands,
                            Type &result);

template <typename... Types>
void printSameOperandsAndResultType(OpAsmPrinter &printer, Operation *,
                                    Types... types) {
  Type all[] = {types...};
  printEqualTypes(printer, ArrayRef(all).drop_back(), ArrayRef(all).back());
}

template <typename... Types>
ParseResult parseSameOperandsAndResultType(OpAsmParser &parser,
                                           Types &...types) {
  Type *all[] = {&types...};
  return parseEqualTypes(parser, ArrayRef(all).drop_back(),
                         *ArrayRef(all).back());
}

/// The keyword of an enumeration, without the space that the attribute's own
/// form begins with.
template <typename EnumAttrT>
void printEnum(OpAsmPrinter &printer, Operation *, EnumAttrT attr) {
  printer << attr.getValue();
}

template <typename EnumAttrT>
ParseResult parseEnum(OpAsmParser &parser, EnumAttrT &attr) {
  auto value = FieldParser<decltype(attr.getValue())>::parse(parser);
  if (failed(value))
    return failure();
  attr = EnumAttrT::get(parser.getContext(), *value);
  return success();
}

/// `, SIGNED` or nothing.
void printComparisonType(OpAsmPrinter &printer, Operation *,
                         ComparisonTypeAttr type);
ParseResult parseComparisonType(OpAsmParser &parser, ComparisonTypeAttr &type);

void printVariadicSameOperandsAndResultType(OpAsmPrinter &printer, Operation *,
                                            OperandRange operands,
                                            TypeRange types, Type result);
ParseResult parseVariadicSameOperandsAndResultType(
    OpAsmParser &parser, ArrayRef<OpAsmParser::UnresolvedOperand> operands,
    SmallVectorImpl<Type> &types, Type &result);

/// The type of each operand, which is that of the result beside it.
void printPairwiseOpType(OpAsmPrinter &printer, Operation *, TypeRange operands,
                         TypeRange results);
ParseResult parsePairwiseOpType(OpAsmParser &parser,
                                SmallVectorImpl<Type> &operands,
                                SmallVectorImpl<Type> &results);

void printTupleOpType(OpAsmPrinter &printer, Operation *, TypeRange operands,
                      Type result);
ParseResult parseTupleOpType(OpAsmParser &parser,
                             SmallVectorImpl<Type> &operands, Type &result);

/// Only the complex type: the parts' types follow.
void printComplexOpType(OpAsmPrinter &printer, Operation *, Type lhs, Type rhs,
                        Type result);
ParseResult parseComplexOpType(OpAsmParser &parser, Type &lhs, Type &rhs,
                               Type &result);

/// The types of the predicate and of the values.
void printSelectOpType(OpAsmPrinter &printer, Operation *, Type pred,
                       Type onTrue, Type onFalse, Type result);
ParseResult parseSelectOpType(OpAsmParser &parser, Type &pred, Type &onTrue,
                              Type &onFalse, Type &result);

/// Operands with a comma after each: an attribute follows.
void printVariadicOperandWithAttribute(OpAsmPrinter &printer, Operation *,
                                       OperandRange operands);
ParseResult parseVariadicOperandWithAttribute(
    OpAsmParser &parser,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands);

/// `[0:4, 1:8:2]`.
void printSliceRanges(OpAsmPrinter &printer, Operation *,
                      ArrayRef<int64_t> starts, ArrayRef<int64_t> limits,
                      ArrayRef<int64_t> strides);
ParseResult parseSliceRanges(OpAsmParser &parser, DenseI64ArrayAttr &starts,
                             DenseI64ArrayAttr &limits,
                             DenseI64ArrayAttr &strides);

/// `e8m23`.
void printExponentMantissa(OpAsmPrinter &printer, Operation *,
                           IntegerAttr exponent, IntegerAttr mantissa);
ParseResult parseExponentMantissa(OpAsmParser &parser, IntegerAttr &exponent,
                                  IntegerAttr &mantissa);

/// `@name`, which is a string and no symbol.
void printCustomCallTarget(OpAsmPrinter &printer, Operation *,
                           StringAttr target);
ParseResult parseCustomCallTarget(OpAsmParser &parser, StringAttr &target);

/// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
void printDotDimensionNumbers(OpAsmPrinter &printer, Operation *,
                              DotDimensionNumbersAttr numbers);
ParseResult parseDotDimensionNumbers(OpAsmParser &parser,
                                     DotDimensionNumbersAttr &numbers);

/// `, precision = [DEFAULT, DEFAULT], algorithm = <...>`.
void printPrecisionConfigAndAlgorithm(OpAsmPrinter &printer, Operation *,
                                      ArrayAttr precision,
                                      DotAlgorithmAttr algorithm);
ParseResult parsePrecisionConfigAndAlgorithm(OpAsmParser &parser,
                                             ArrayAttr &precision,
                                             DotAlgorithmAttr &algorithm);

/// `, precision = [DEFAULT, DEFAULT]`.
void printPrecisionConfig(OpAsmPrinter &printer, Operation *,
                          ArrayAttr precision);
ParseResult parsePrecisionConfig(OpAsmParser &parser, ArrayAttr &precision);

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
void printConvolutionDimensions(AsmPrinter &printer,
                                ConvDimensionNumbersAttr numbers);
ParseResult parseConvolutionDimensions(AsmParser &parser,
                                       ConvDimensionNumbersAttr &numbers);
inline void printConvolutionDimensions(OpAsmPrinter &printer, Operation *,
                                       ConvDimensionNumbersAttr numbers) {
  printConvolutionDimensions(printer, numbers);
}

/// `stride = [1, 1], pad = [[0, 1], [0, 1]], ...`, without those left out.
void printWindowAttributes(OpAsmPrinter &printer, Operation *,
                           DenseI64ArrayAttr strides,
                           DenseIntElementsAttr padding,
                           DenseI64ArrayAttr lhsDilation,
                           DenseI64ArrayAttr rhsDilation,
                           DenseBoolArrayAttr reversal);
ParseResult parseWindowAttributes(OpAsmParser &parser,
                                  DenseI64ArrayAttr &strides,
                                  DenseIntElementsAttr &padding,
                                  DenseI64ArrayAttr &lhsDilation,
                                  DenseI64ArrayAttr &rhsDilation,
                                  DenseBoolArrayAttr &reversal);

} // namespace mlir::stablehlo

#endif // WHALE_DIALECT_STABLEHLO_IR_ASSEMBLYFORMAT_H
