//===- PrintRules.cpp - Show the sharding rule of every operation --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/OpRule.h"
#include "whale/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_PRINTRULES
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

/// Factors are named a, b, ..., z, then f26, f27, ...
void printFactor(raw_ostream &os, unsigned factor) {
  if (factor < 26)
    os << char('a' + factor);
  else
    os << 'f' << factor;
}

void printTensors(raw_ostream &os, ArrayRef<DimFactors> tensors) {
  llvm::interleaveComma(tensors, os, [&](const DimFactors &dims) {
    os << '[';
    llvm::interleaveComma(dims, os, [&](ArrayRef<unsigned> factors) {
      if (factors.empty())
        os << '1';
      for (unsigned factor : factors)
        printFactor(os, factor);
    });
    os << ']';
  });
}

std::string toString(const OpRule &rule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTensors(os, rule.operands);
  os << " -> ";
  printTensors(os, rule.results);
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    os << (index ? ", " : " where ");
    printFactor(os, index);
    os << '=' << factor.extent;
    switch (factor.kind) {
    case FactorKind::Parallel:
      break;
    case FactorKind::Reduction:
      os << ' ' << stringifyReduction(factor.reduction);
      break;
    case FactorKind::MaskedGather:
      os << " lookup";
      break;
    case FactorKind::MaskedScatter:
      os << " update";
      break;
    case FactorKind::Blocked:
      os << " whole";
      break;
    }
  }
  for (const OperandWindow &read : rule.windows) {
    os << "; along ";
    printFactor(os, read.factor);
    os << " reads " << read.window.rowsBefore() << " rows before and "
       << read.window.rowsAfter() << " after in " << read.operand;
  }
  for (ArrayRef<unsigned> operands : rule.linear) {
    os << "; linear in ";
    llvm::interleave(operands, os, " and ");
  }
  return text;
}

struct PrintRulesPass : impl::PrintRulesBase<PrintRulesPass> {
  using PrintRulesBase::PrintRulesBase;

  void runOnOperation() final {
    getOperation()->walk<WalkOrder::PreOrder>([](Operation *op) {
      std::optional<OpRule> rule = getOpRule(op);
      if (!rule)
        return WalkResult::advance();
      op->emitRemark(toString(*rule));
      // The bodies of reductions work on scalars.
      return WalkResult::skip();
    });
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace whale
