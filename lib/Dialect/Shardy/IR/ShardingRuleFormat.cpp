//===- ShardingRuleFormat.cpp - Text form of sharding rules -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints and parses sharding rules: a name for each factor, the factors of each
// dimension, the sizes of factors, and lists of factors by kind. Linear in the
// text.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectImplementation.h"
#include "whale/Dialect/Shardy/IR/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::sdy;

/// Factors i to z have one letter; the others are z_1, z_2, ...
static constexpr int64_t kLetters = 'z' - 'i' + 1;

std::string sdy::factorName(int64_t index) {
  if (index < kLetters)
    return std::string(1, static_cast<char>('i' + index));
  return "z_" + std::to_string(index - kLetters + 1);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printMappings(AsmPrinter &printer,
                          ArrayRef<TensorMappingAttr> mappings) {
  printer << '(';
  llvm::interleaveComma(mappings, printer, [&](TensorMappingAttr tensor) {
    printer << '[';
    llvm::interleaveComma(tensor.getDimMappings(), printer,
                          [&](DimMappingAttr dimension) {
                            for (int64_t factor : dimension.getFactorIndices())
                              printer << factorName(factor);
                          });
    printer << ']';
  });
  printer << ')';
}

void sdy::printShardingRule(AsmPrinter &printer, OpShardingRuleAttr rule) {
  printer << '<';
  printMappings(printer, rule.getOperandMappings());
  printer << "->";
  printMappings(printer, rule.getResultMappings());
  printer << " {";
  llvm::interleaveComma(
      llvm::enumerate(rule.getFactorSizes()), printer, [&](auto factor) {
        printer << factorName(factor.index()) << '=' << factor.value();
      });
  printer << '}';
  auto printFactors = [&](StringRef name, ArrayRef<int64_t> factors) {
    if (factors.empty())
      return;
    printer << ' ' << name << "={";
    llvm::interleaveComma(factors, printer, [&](int64_t factor) {
      printer << factorName(factor);
    });
    printer << '}';
  };
  printFactors("reduction", rule.getReductionFactors());
  printFactors("need_replication", rule.getNeedReplicationFactors());
  printFactors("permutation", rule.getPermutationFactors());
  printFactors("blocked_propagation", rule.getBlockedPropagationFactors());
  if (rule.getIsCustomRule())
    printer << ", custom";
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// Removes one factor's name from the front of `text`.
static bool consumeFactor(StringRef &text, int64_t &factor) {
  if (text.empty() || text.front() < 'i' || text.front() > 'z')
    return false;
  factor = text.front() - 'i';
  text = text.drop_front();
  if (factor != kLetters - 1 || !text.consume_front("_"))
    return true;
  int64_t number;
  if (text.consumeInteger(10, number) || number < 1 ||
      number > std::numeric_limits<int32_t>::max())
    return false;
  factor += number;
  return true;
}

/// Parses the factors of one dimension, such as `ij`, or of a list entry.
static ParseResult parseFactors(AsmParser &parser,
                                SmallVectorImpl<int64_t> &factors) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef text;
  if (parser.parseKeyword(&text))
    return failure();
  StringRef rest = text;
  while (!rest.empty())
    if (!consumeFactor(rest, factors.emplace_back()))
      return parser.emitError(loc)
             << "expected factors i to z or z_1, z_2, ..., got '" << text
             << "'";
  return success();
}

static ParseResult parseMappings(AsmParser &parser,
                                 SmallVectorImpl<TensorMappingAttr> &mappings) {
  MLIRContext *context = parser.getContext();
  auto parseTensor = [&]() -> ParseResult {
    SmallVector<DimMappingAttr> dimensions;
    auto parseDimension = [&]() -> ParseResult {
      SmallVector<int64_t> factors;
      if (parseFactors(parser, factors))
        return failure();
      dimensions.push_back(DimMappingAttr::get(context, factors));
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       parseDimension))
      return failure();
    mappings.push_back(TensorMappingAttr::get(context, dimensions));
    return success();
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                        parseTensor);
}

static ParseResult parseFactorSizes(AsmParser &parser,
                                    SmallVectorImpl<int64_t> &sizes) {
  auto parseSize = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    SmallVector<int64_t> factor;
    if (parseFactors(parser, factor))
      return failure();
    if (factor.size() != 1 ||
        factor.front() != static_cast<int64_t>(sizes.size()))
      return parser.emitError(loc) << "expected the size of factor '"
                                   << factorName(sizes.size()) << "'";
    return failure(parser.parseEqual() ||
                   parser.parseInteger(sizes.emplace_back()));
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                        parseSize);
}

ParseResult sdy::parseShardingRule(AsmParser &parser,
                                   OpShardingRuleAttr &rule) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<TensorMappingAttr> operands, results;
  SmallVector<int64_t> sizes, reduction, replication, permutation, blocked;
  if (parser.parseLess() || parseMappings(parser, operands) ||
      parser.parseArrow() || parseMappings(parser, results) ||
      parseFactorSizes(parser, sizes))
    return failure();
  std::pair<StringRef, SmallVector<int64_t> *> lists[] = {
      {"reduction", &reduction},
      {"need_replication", &replication},
      {"permutation", &permutation},
      {"blocked_propagation", &blocked}};
  for (auto [name, factors] : lists)
    if (succeeded(parser.parseOptionalKeyword(name)))
      if (parser.parseEqual() ||
          parser.parseCommaSeparatedList(
              AsmParser::Delimiter::Braces,
              [&, target = factors] { return parseFactors(parser, *target); }))
        return failure();
  bool isCustom = succeeded(parser.parseOptionalComma());
  if (isCustom && parser.parseKeyword("custom"))
    return failure();
  if (parser.parseGreater())
    return failure();

  auto isKnown = [&](int64_t factor) {
    return factor < static_cast<int64_t>(sizes.size());
  };
  auto areKnown = [&](ArrayRef<TensorMappingAttr> mappings) {
    return llvm::all_of(mappings, [&](TensorMappingAttr tensor) {
      return llvm::all_of(tensor.getDimMappings(), [&](DimMappingAttr dim) {
        return llvm::all_of(dim.getFactorIndices(), isKnown);
      });
    });
  };
  if (!areKnown(operands) || !areKnown(results) ||
      llvm::any_of(lists, [&](auto list) {
        return !llvm::all_of(*list.second, isKnown);
      }))
    return parser.emitError(loc, "names a factor that has no size");
  rule = OpShardingRuleAttr::get(parser.getContext(), sizes, operands, results,
                                 reduction, replication, permutation, blocked,
                                 isCustom);
  return success();
}
