//===- OpRuleBuilder.h - Writes sharding rules ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_SHARDING_OPRULEBUILDER_H
#define WHALE_LIB_SHARDING_OPRULEBUILDER_H

#include "mlir/IR/BuiltinTypes.h"
#include "whale/Sharding/OpRule.h"

namespace whale {

/// A tensor of the operation: operand or result by number.
struct TensorRef {
  bool isResult;
  unsigned index;
};
inline TensorRef operandRef(unsigned index) { return {false, index}; }
inline TensorRef resultRef(unsigned index) { return {true, index}; }

/// Collects the factors of one operation. Dimensions that no call mentions
/// become blocked factors of their own, so a forgotten dimension is never
/// split by mistake.
class OpRuleBuilder {
public:
  explicit OpRuleBuilder(mlir::Operation *op);

  /// A new factor; extent 1 needs none and returns nothing.
  std::optional<unsigned> factor(int64_t extent,
                                 FactorKind kind = FactorKind::Parallel,
                                 Reduction reduction = Reduction::Sum);
  /// Appends the factor to a dimension (major to minor order of calls).
  void append(TensorRef tensor, unsigned dim, std::optional<unsigned> factor);
  /// One factor that is dimension `dim` of each of the tensors given.
  void same(llvm::ArrayRef<std::pair<TensorRef, unsigned>> places,
            FactorKind kind = FactorKind::Parallel,
            Reduction reduction = Reduction::Sum);
  /// The places share their minor `tail` elements (the rest is blocked), as
  /// the operand and result of a block-aligned slice do.
  void sameTail(llvm::ArrayRef<std::pair<TensorRef, unsigned>> places,
                int64_t tail);
  /// A factor of grains in which the rows of an operand and the positions that
  /// read them go together; fills in `factor` and `window.grain`.
  void window(OperandWindow window);
  void linear(llvm::ArrayRef<unsigned> operands);

  int64_t size(TensorRef tensor, unsigned dim) const;
  int64_t rank(TensorRef tensor) const;
  llvm::ArrayRef<int64_t> shape(TensorRef tensor) const;

  OpRule take();

private:
  DimFactors &dims(TensorRef tensor);
  mlir::Operation *op;
  OpRule rule;
};

/// The rules by family; each returns nothing for operations of another one.
std::optional<OpRule> getElementwiseRule(mlir::Operation *op);
std::optional<OpRule> getShapeRule(mlir::Operation *op);
std::optional<OpRule> getReductionRule(mlir::Operation *op);
std::optional<OpRule> getContractionRule(mlir::Operation *op);
std::optional<OpRule> getIndexingRule(mlir::Operation *op);

} // namespace whale

#endif // WHALE_LIB_SHARDING_OPRULEBUILDER_H
