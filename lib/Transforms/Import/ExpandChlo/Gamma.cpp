//===- Gamma.cpp - The logarithm of gamma and its derivatives -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expr.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace whale::elementwise {

namespace {

// Lanczos' approximation with g = 7 and nine coefficients.
constexpr double kLanczosG = 7.0;
constexpr double kLanczosBase = 0.99999999999980993227684700473478;
constexpr double kLanczos[] = {
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,   -176.61502916214059906584551354,
    12.507343278686904814458936853,     -0.13857109526572011689554707,
    9.984369578019570859563e-6,         1.50563273514931155834e-7};

// B(2k) / (2k)! with the Bernoulli numbers B, the highest first; k is 1 at the
// end.
constexpr double kBernoulli[] = {
    -1.3954464685812522e-19, 5.5090028283602295e-18,  -2.1748686985580617e-16,
    8.5860620562778452e-15,  -3.3896802963225832e-13, 1.3382536530684679e-11,
    -5.2841901386874932e-10, 2.08767569878681e-8,     -8.2671957671957675e-7,
    3.3068783068783071e-5,   -0.0013888888888888889,  0.083333333333333329};

constexpr double kPi = 3.14159265358979323846;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// log(z + g + 1/2), precise also where z is much smaller than g.
Expr logOfT(Expr z) {
  return std::log(kLanczosG + 0.5) + log1p(z / (kLanczosG + 0.5));
}

} // namespace

Expr lgamma(Expr x) {
  // Lanczos' approximation holds from 1/2 on; below, Euler's reflection.
  Expr reflects = x < 0.5;
  Expr z = select(reflects, -x, x - 1.0);
  Expr sum = z.like(kLanczosBase);
  for (auto [i, coefficient] : llvm::enumerate(kLanczos))
    sum = sum + coefficient / (z + (i + 1.0));
  Expr logT = logOfT(z);
  // (z + 1/2) log t - t without cancellation for large z.
  Expr scaled = (z + 0.5 - (kLanczosG + 0.5 + z) / logT) * logT;
  Expr logGamma = std::log(2 * kPi) / 2 + scaled + log(sum);

  // The fraction of |x| is folded to [0, 1/2], where sin(pi x) is precise.
  Expr a = abs(x);
  Expr fraction = a - floor(a);
  fraction = select(fraction > 0.5, 1.0 - fraction, fraction);
  Expr logSine = log(sin(kPi * fraction));
  Expr reflected = std::log(kPi) - logSine - logGamma;
  // At the poles -log(sin) is infinity.
  Expr isFinite(x.getBuilder(), mlir::stablehlo::IsFiniteOp::create(
                                    x.getBuilder(), logSine.getValue()));
  reflected = select(isFinite, reflected, -logSine);
  Expr result = select(reflects, reflected, logGamma);
  return select(a.equals(kInfinity), kInfinity, result);
}

Expr digamma(Expr x) {
  Expr reflects = x < 0.5;
  Expr z = select(reflects, -x, x - 1.0);
  Expr numerator = z.like(0.0);
  Expr denominator = z.like(kLanczosBase);
  for (auto [i, coefficient] : llvm::enumerate(kLanczos)) {
    Expr shifted = z + (i + 1.0);
    numerator = numerator - coefficient / (shifted * shifted);
    denominator = denominator + coefficient / shifted;
  }
  Expr result =
      logOfT(z) + numerator / denominator - kLanczosG / (kLanczosG + 0.5 + z);
  // cot(pi x) with the argument moved near 0.
  Expr angle = kPi * (x + abs(floor(x + 0.5)));
  Expr reflected = result - kPi * cos(angle) / sin(angle);
  result = select(reflects, reflected, result);
  Expr isPole = (x <= 0.0) & x.equals(floor(x));
  return select(isPole, kNaN, result);
}

/// Hurwitz' zeta function by Euler and Maclaurin's summation.
Expr zeta(Expr x, Expr q) {
  // The first ten terms are added up.
  Expr a = q;
  Expr term = pow(a, -x);
  Expr sum = term;
  for (int i = 1; i < 10; ++i) {
    a = a + 1.0;
    term = pow(a, -x);
    sum = sum + term;
  }
  // The rest is the integral and its corrections.
  a = a + 1.0;
  term = pow(a, -x);
  Expr integral = term * a / (x - 1.0);
  Expr inverseSquare = 1.0 / (a * a);
  Expr series = x.like(0.0);
  for (auto [i, coefficient] :
       llvm::enumerate(llvm::ArrayRef(kBernoulli).drop_back())) {
    double k = 22.0 - 2.0 * i;
    series = (x + k) * (x + (k - 1)) * (inverseSquare * (series + coefficient));
  }
  Expr corrections =
      term * (0.5 + x / a * (series + llvm::ArrayRef(kBernoulli).back()));
  Expr all = sum + integral + corrections;
  double smallest = x.isF64() ? 4.9406564584124654e-324 : 1.401298464324817e-45;
  Expr result = select(abs(term) < abs(sum) * smallest, sum, all);

  // Outside the domain.
  result = select(x < 1.0, kNaN, result);
  Expr isNegative = q <= 0.0;
  result = select(isNegative & x.differs(floor(x)), kNaN, result);
  Expr isEven = x.equals(floor(x)) & rem(x, x.like(2.0)).equals(0.0);
  Expr pole = select(isEven, kInfinity, x.like(kNaN));
  result = select(isNegative & q.equals(floor(q)), pole, result);
  return select(x.equals(1.0), kInfinity, result);
}

Expr polygamma(Expr n, Expr x) {
  Expr sign = 2.0 * rem(n, n.like(2.0)) - 1.0;
  Expr order = n + 1.0;
  Expr result = sign * exp(lgamma(order)) * zeta(order, x);
  result = select(n.equals(0.0), digamma(x), result);
  return select(n.differs(floor(n)) | (n < 0.0), kNaN, result);
}

} // namespace whale::elementwise
