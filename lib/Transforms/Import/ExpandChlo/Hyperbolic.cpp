//===- Hyperbolic.cpp - Inverse, hyperbolic and Bessel functions ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expr.h"

#include <cmath>

namespace whale::elementwise {

namespace {

// exp(-|x|) I1(x) as Chebyshev series: divided by |x| in |x| / 2 - 2 on [0, 8],
// multiplied with sqrt(|x|) in 32 / |x| - 2 above (Cephes).
constexpr double kSmallF32[] = {
    9.38153732e-09, -4.44505908e-08, 2.00329481e-07, -8.56872e-07,
    3.47025139e-06, -1.32731639e-05, 4.78156508e-05, -0.000161760821,
    0.000512286,    -0.00151357241,  0.0041564228,   -0.0105640851,
    0.0247264486,   -0.0529459827,   0.102643661,    -0.176416516,
    0.252587199};
constexpr double kLargeF32[] = {
    -3.83538046e-09, -2.63146891e-08, -2.51223611e-07, -3.88256467e-06,
    -0.000110588939, -0.00976109784,  0.778576254};
constexpr double kSmallF64[] = {
    2.7779141127610464e-18,  -2.111421214358166e-17,  1.5536319577362005e-16,
    -1.1055969477353862e-15, 7.600684294735408e-15,   -5.042185504727912e-14,
    3.223793365945575e-13,   -1.9839743977649436e-12, 1.1736186298890901e-11,
    -6.663489723502027e-11,  3.625590281552117e-10,   -1.8872497517228294e-09,
    9.381537386495773e-09,   -4.445059128796328e-08,  2.0032947535521353e-07,
    -8.568720264695455e-07,  3.4702513081376785e-06,  -1.3273163656039436e-05,
    4.781565107550054e-05,   -0.00016176081582589674, 0.0005122859561685758,
    -0.0015135724506312532,  0.004156422944312888,    -0.010564084894626197,
    0.024726449030626516,    -0.05294598120809499,    0.1026436586898471,
    -0.17641651835783406,    0.25258718644363365};
constexpr double kLargeF64[] = {
    7.517296310842105e-18,   4.414348323071708e-18,   -4.6503053684893586e-17,
    -3.209525921993424e-17,  2.96262899764595e-16,    3.3082023109209285e-16,
    -1.8803547755107825e-15, -3.8144030724370075e-15, 1.0420276984128802e-14,
    4.272440016711951e-14,   -2.1015418427726643e-14, -4.0835511110921974e-13,
    -7.198551776245908e-13,  2.0356285441470896e-12,  1.4125807436613782e-11,
    3.2526035830154884e-11,  -1.8974958123505413e-11, -5.589743462196584e-10,
    -3.835380385964237e-09,  -2.6314688468895196e-08, -2.512236237870209e-07,
    -3.882564808877691e-06,  -0.00011058893876262371, -0.009761097491361469,
    0.7785762350182801};

} // namespace

Expr besselI1e(Expr x) {
  Expr a = abs(x);
  bool wide = x.isF64();
  llvm::ArrayRef<double> smallTable =
      wide ? llvm::ArrayRef(kSmallF64) : llvm::ArrayRef(kSmallF32);
  llvm::ArrayRef<double> largeTable =
      wide ? llvm::ArrayRef(kLargeF64) : llvm::ArrayRef(kLargeF32);
  Expr small = a * chebyshev(0.5 * a - 2.0, smallTable);
  Expr large = chebyshev(32.0 / a - 2.0, largeTable) / sqrt(a);
  return sign(x) * select(a <= 8.0, small, large);
}

// Adding log(1/2) to the exponent keeps exp(x) / 2 finite as long as it can be.
Expr cosh(Expr x) {
  double logHalf = std::log(0.5);
  return exp(x + logHalf) + exp(logHalf - x);
}

Expr sinh(Expr x) {
  double logHalf = std::log(0.5);
  Expr large = exp(x + logHalf) - exp(logHalf - x);
  // Without cancellation near 0: sinh(x) = (e + e / (e + 1)) / 2, e = expm1(x).
  Expr e = expm1(x);
  Expr small = 0.5 * (e + e / (e + 1.0));
  return select(abs(x) < 1.0, small, large);
}

Expr asin(Expr x) {
  Expr half = atan2(x, 1.0 + sqrt((1.0 - x) * (1.0 + x)));
  return half + half;
}

Expr acos(Expr x) { return atan2(sqrt((1.0 - x) * (1.0 + x)), x); }

Expr atan(Expr x) { return atan2(x, x.like(1.0)); }

Expr asinh(Expr x) {
  Expr a = abs(x);
  Expr square = a * a;
  Expr usual = log1p(a + square / (1.0 + sqrt(1.0 + square)));
  // Where the square overflows, asinh(x) = log(2 x).
  Expr huge = std::log(2.0) + log(a);
  return sign(x) * select(a >= std::sqrt(x.largest()), huge, usual);
}

Expr acosh(Expr x) {
  Expr below = sqrt(x - 1.0);
  Expr usual = log1p(below * (sqrt(x + 1.0) + below));
  Expr huge = std::log(2.0) + log(x);
  return select(x >= x.largest() / 2, huge, usual);
}

Expr atanh(Expr x) {
  return select(abs(x) > 1.0, kNaN, (log1p(x) - log1p(-x)) * 0.5);
}

} // namespace whale::elementwise
