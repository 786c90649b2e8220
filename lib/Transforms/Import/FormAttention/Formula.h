//===- Formula.h - Algebra of a softmax's gradient --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of products of what a softmax and its gradient consist of, in one normal
// form: two ways to write the same gradient are equal formulas.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_FORMULA_H
#define WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_FORMULA_H

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace whale::attention {

/// A product of powers of values that have an element for each row and key.
struct Powers {
  /// exp(score - maximum of the row).
  int exponential = 0;
  /// The cotangent of the probability.
  int cotangent = 0;
  /// 1 where the score is not masked, else 0; so its powers are itself.
  bool mask = false;

  auto operator<=>(const Powers &) const = default;
  bool isOne() const { return *this == Powers(); }
};

/// A product of these, of powers of the row's sum of exponentials, and of other
/// sums over the row.
struct Term {
  Powers powers;
  int sum = 0;
  /// What is summed over the row, sorted.
  std::vector<Powers> rowSums;

  auto operator<=>(const Term &) const = default;
};

class Formula {
public:
  Formula() = default;
  static Formula constant(double value) { return Formula({}, value); }
  static Formula exponential() { return Formula({{1, 0, false}, 0, {}}, 1); }
  static Formula cotangent() { return Formula({{0, 1, false}, 0, {}}, 1); }
  static Formula mask() { return Formula({{0, 0, true}, 0, {}}, 1); }

  Formula operator+(const Formula &other) const;
  Formula operator*(const Formula &other) const;
  Formula operator*(double factor) const { return *this * constant(factor); }
  /// Nothing for a sum, and for what is divided by a cotangent, mask or sum.
  std::optional<Formula> reciprocal() const;
  /// The sum over the `keys` keys of a row.
  Formula sumOfRow(int64_t keys) const;

  /// Equal but for rounding of the factors.
  bool isNear(const Formula &other) const;
  /// Whether it has the same value for all keys of a row.
  bool isOfRow() const;

private:
  Formula(Term term, double factor);

  std::map<Term, double> terms;
};

/// The probabilities: exponentials by their sum.
Formula getProbabilities();
/// scale * p * (dp - sum of p * dp over the row), and 0 where `isMasked` and
/// the mask says so: the cotangents of the products of queries and keys.
Formula getScoreGradient(double scale, bool isMasked);

} // namespace whale::attention

#endif // WHALE_LIB_TRANSFORMS_IMPORT_FORMATTENTION_FORMULA_H
