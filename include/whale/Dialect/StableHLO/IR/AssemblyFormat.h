//===- AssemblyFormat.h - Parts of the text form ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Print and parse functions of the custom<...> directives in the formats of
// attributes and operations. A print function writes the parts of an attribute
// or operation; the parse function of the same name reads that text and sets
// its last arguments, or fails with a diagnostic. Each comment shows the text
// form. Cost: each linear in the text; parseStruct also compares each field
// with the names.
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

/// Prints `<a = [1, 2], n = 3>`, leaving out empty lists and zeros.
void printStruct(
    mlir::AsmPrinter &printer,
    llvm::ArrayRef<std::pair<llvm::StringRef, llvm::ArrayRef<int64_t>>> lists,
    llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> numbers = {});

/// Parses the output of printStruct; fields may be in any order, each at most
/// once.
mlir::ParseResult parseStruct(
    mlir::AsmParser &parser,
    llvm::ArrayRef<std::pair<llvm::StringRef, llvm::SmallVector<int64_t> *>>
        lists,
    llvm::ArrayRef<std::pair<llvm::StringRef, int64_t *>> numbers = {});

} // namespace whale

// The custom<...> directives of the operations' declarative formats.
namespace mlir::stablehlo {

/// Prints or parses elements as an attribute. Large arrays of booleans are in
/// hexadecimal with one byte each, as JAX prints them; MLIR 22 itself uses one
/// bit each.
void printConstantValue(OpAsmPrinter &printer, ElementsAttr value);
ParseResult parseConstantValue(OpAsmParser &parser, ElementsAttr &value);

/// Prints one type if all are equal, else a function type.
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

/// Prints the keyword of an enumeration, without the space with which the
/// attribute's own form begins.
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

/// Prints `, SIGNED` or nothing.
void printComparisonType(OpAsmPrinter &printer, Operation *,
                         ComparisonTypeAttr type);
ParseResult parseComparisonType(OpAsmParser &parser, ComparisonTypeAttr &type);

void printVariadicSameOperandsAndResultType(OpAsmPrinter &printer, Operation *,
                                            OperandRange operands,
                                            TypeRange types, Type result);
ParseResult parseVariadicSameOperandsAndResultType(
    OpAsmParser &parser, ArrayRef<OpAsmParser::UnresolvedOperand> operands,
    SmallVectorImpl<Type> &types, Type &result);

/// Prints the type of each operand, which is that of the result with its index.
void printPairwiseOpType(OpAsmPrinter &printer, Operation *, TypeRange operands,
                         TypeRange results);
ParseResult parsePairwiseOpType(OpAsmParser &parser,
                                SmallVectorImpl<Type> &operands,
                                SmallVectorImpl<Type> &results);

void printTupleOpType(OpAsmPrinter &printer, Operation *, TypeRange operands,
                      Type result);
ParseResult parseTupleOpType(OpAsmParser &parser,
                             SmallVectorImpl<Type> &operands, Type &result);

/// Prints only the complex type, which determines the types of the parts.
void printComplexOpType(OpAsmPrinter &printer, Operation *, Type lhs, Type rhs,
                        Type result);
ParseResult parseComplexOpType(OpAsmParser &parser, Type &lhs, Type &rhs,
                               Type &result);

/// Prints the types of the predicate and of the values.
void printSelectOpType(OpAsmPrinter &printer, Operation *, Type pred,
                       Type onTrue, Type onFalse, Type result);
ParseResult parseSelectOpType(OpAsmParser &parser, Type &pred, Type &onTrue,
                              Type &onFalse, Type &result);

/// Prints operands with a comma after each, because an attribute follows.
void printVariadicOperandWithAttribute(OpAsmPrinter &printer, Operation *,
                                       OperandRange operands);
ParseResult parseVariadicOperandWithAttribute(
    OpAsmParser &parser,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands);

/// Prints `[0:4, 1:8:2]`.
void printSliceRanges(OpAsmPrinter &printer, Operation *,
                      ArrayRef<int64_t> starts, ArrayRef<int64_t> limits,
                      ArrayRef<int64_t> strides);
ParseResult parseSliceRanges(OpAsmParser &parser, DenseI64ArrayAttr &starts,
                             DenseI64ArrayAttr &limits,
                             DenseI64ArrayAttr &strides);

/// Prints `e8m23`.
void printExponentMantissa(OpAsmPrinter &printer, Operation *,
                           IntegerAttr exponent, IntegerAttr mantissa);
ParseResult parseExponentMantissa(OpAsmParser &parser, IntegerAttr &exponent,
                                  IntegerAttr &mantissa);

/// Prints `@name`, which is a string, not a symbol.
void printCustomCallTarget(OpAsmPrinter &printer, Operation *,
                           StringAttr target);
ParseResult parseCustomCallTarget(OpAsmParser &parser, StringAttr &target);

/// Prints `batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
void printDotDimensionNumbers(OpAsmPrinter &printer, Operation *,
                              DotDimensionNumbersAttr numbers);
ParseResult parseDotDimensionNumbers(OpAsmParser &parser,
                                     DotDimensionNumbersAttr &numbers);

/// Prints `, precision = [DEFAULT, DEFAULT], algorithm = <...>`.
void printPrecisionConfigAndAlgorithm(OpAsmPrinter &printer, Operation *,
                                      ArrayAttr precision,
                                      DotAlgorithmAttr algorithm);
ParseResult parsePrecisionConfigAndAlgorithm(OpAsmParser &parser,
                                             ArrayAttr &precision,
                                             DotAlgorithmAttr &algorithm);

/// Prints `, precision = [DEFAULT, DEFAULT]`.
void printPrecisionConfig(OpAsmPrinter &printer, Operation *,
                          ArrayAttr precision);
ParseResult parsePrecisionConfig(OpAsmParser &parser, ArrayAttr &precision);

/// Prints `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
void printConvolutionDimensions(AsmPrinter &printer,
                                ConvDimensionNumbersAttr numbers);
ParseResult parseConvolutionDimensions(AsmParser &parser,
                                       ConvDimensionNumbersAttr &numbers);
inline void printConvolutionDimensions(OpAsmPrinter &printer, Operation *,
                                       ConvDimensionNumbersAttr numbers) {
  printConvolutionDimensions(printer, numbers);
}

/// Prints `stride = [1, 1], pad = [[0, 1], [0, 1]], ...` without absent
/// attributes.
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
