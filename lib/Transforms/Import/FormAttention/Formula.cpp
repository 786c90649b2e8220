//===- Formula.cpp - Algebra of a softmax's gradient ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formula.h"

#include <algorithm>
#include <cmath>

namespace whale::attention {

Formula::Formula(Term term, double factor) {
  if (factor != 0)
    terms.emplace(std::move(term), factor);
}

Formula Formula::operator+(const Formula &other) const {
  Formula sum = *this;
  for (const auto &[term, factor] : other.terms)
    if ((sum.terms[term] += factor) == 0)
      sum.terms.erase(term);
  return sum;
}

Formula Formula::operator*(const Formula &other) const {
  Formula sum;
  for (const auto &[left, leftFactor] : terms)
    for (const auto &[right, rightFactor] : other.terms) {
      Term term = left;
      term.powers.exponential += right.powers.exponential;
      term.powers.cotangent += right.powers.cotangent;
      term.powers.mask |= right.powers.mask;
      term.sum += right.sum;
      term.rowSums.insert(term.rowSums.end(), right.rowSums.begin(),
                          right.rowSums.end());
      std::sort(term.rowSums.begin(), term.rowSums.end());
      sum = sum + Formula(std::move(term), leftFactor * rightFactor);
    }
  return sum;
}

std::optional<Formula> Formula::reciprocal() const {
  if (terms.size() != 1)
    return std::nullopt;
  auto [term, factor] = std::pair<Term, double>(*terms.begin());
  if (term.powers.cotangent || term.powers.mask || !term.rowSums.empty())
    return std::nullopt;
  term.powers.exponential *= -1;
  term.sum *= -1;
  return Formula(term, 1 / factor);
}

Formula Formula::sumOfRow(int64_t keys) const {
  Formula sum;
  for (const auto &[summed, each] : terms) {
    Term term = summed;
    double factor = each;
    Powers powers = term.powers;
    term.powers = {};
    if (powers.isOne()) {
      factor *= static_cast<double>(keys);
    } else if (powers == Powers{1, 0, false}) {
      ++term.sum;
    } else {
      term.rowSums.push_back(powers);
      std::sort(term.rowSums.begin(), term.rowSums.end());
    }
    sum = sum + Formula(term, factor);
  }
  return sum;
}

bool Formula::isNear(const Formula &other) const {
  constexpr double rounding = 1e-5; // of factors that were computed in f32
  return std::equal(terms.begin(), terms.end(), other.terms.begin(),
                    other.terms.end(), [](const auto &a, const auto &b) {
                      return a.first == b.first &&
                             std::abs(a.second - b.second) <=
                                 rounding * std::abs(a.second);
                    });
}

bool Formula::isOfRow() const {
  return std::all_of(terms.begin(), terms.end(), [](const auto &entry) {
    return entry.first.powers.isOne();
  });
}

Formula getProbabilities() {
  Formula exponential = Formula::exponential();
  return exponential * *exponential.sumOfRow(1).reciprocal();
}

Formula getScoreGradient(double scale, bool isMasked) {
  Formula p = getProbabilities(), dp = Formula::cotangent();
  Formula gradient = p * (dp + (p * dp).sumOfRow(1) * -1) * scale;
  return isMasked ? gradient * Formula::mask() : gradient;
}

} // namespace whale::attention
