//===- ErrorFunctions.cpp - erf, erfc and the inverse of erf --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// erf, erfc and the inverse of erf as formulas of elementwise operations, in
// f32 or f64: the caller has converted narrower floats.
//
// They are made of polynomials and quotients of them (erfc with an exponential,
// the inverse with a logarithm), with other coefficients in each range of the
// argument. There are no branches: each element is computed for all ranges, or
// with selected coefficients, and a select takes the result.
//
// Cost: a product and a sum for each coefficient of all ranges: 12 for erf and
// 24 for erfc in f32, 42 for each in f64. The inverse has 9 in f32 and 23 in
// f64, each with one or two selects.
//
//===----------------------------------------------------------------------===//

#include "Expr.h"

namespace whale::elementwise {

namespace {

// erf on [-4, 4] as x times a quotient of polynomials in x^2, in f32.
constexpr double kErfNumeratorF32[] = {
    -2.72614237e-10, 2.77068146e-08, -2.10102394e-06, -5.69250624e-05,
    -0.000734990637, -0.0029546,     -0.0160960332};
constexpr double kErfDenominatorF32[] = {-1.45660715e-05, -0.000213374049,
                                         -0.00168282702, -0.00737332925,
                                         -0.0142647391};

// erf near 0 as x times a polynomial in x^2, in f32.
constexpr double kErfNearZeroF32[] = {
    7.85386146e-05, -0.00080101937, 0.00518832775, -0.0268538129,
    0.112835854,    -0.37612626,    1.12837911};

// erfc on [1, 2) and above 2, as polynomials in 1 / x^2, in f32.
constexpr double kErfcMiddleF32[] = {0.0232682,    -0.138703942, 0.368742466,
                                     -0.582473278, 0.621000468,  -0.494451523,
                                     0.340488,     -0.274112701, 0.563825965};
constexpr double kErfcTailF32[] = {-10.477664,   12.9772,     -7.49551868,
                                   2.92101908,   -1.01526523, 0.42184633,
                                   -0.282076746, 0.564189494};

// erf below 1, in f64 (Cephes T / U).
constexpr double kErfNumeratorF64[] = {9.604973739870516, 90.02601972038427,
                                       2232.005345946843, 7003.325141128051,
                                       55592.30130103949};
constexpr double kErfDenominatorF64[] = {1.0,
                                         33.56171416475031,
                                         521.3579497801527,
                                         4594.323829709801,
                                         22629.000061389095,
                                         49267.39426086359};

// erfc on [1, 8) and above 8 as quotients of polynomials in |x|, in f64
// (Cephes P / Q and R / S).
constexpr double kErfcMiddleNumeratorF64[] = {
    2.461969814735305e-10, 0.5641895648310689, 7.463210564422699,
    48.63719709856814,     196.5208329560771,  526.4451949954773,
    934.5285271719576,     1027.5518868951572, 557.5353353693994};
constexpr double kErfcMiddleDenominatorF64[] = {1.0,
                                                13.228195115474499,
                                                86.70721408859897,
                                                354.9377788878199,
                                                975.7085017432055,
                                                1823.9091668790973,
                                                2246.3376081871097,
                                                1656.6630919416134,
                                                557.5353408177277};
constexpr double kErfcTailNumeratorF64[] = {
    0.5641895835477551, 1.275366707599781,  5.019050422511805,
    6.160210979930536,  7.4097426995044895, 2.9788666537210022};
constexpr double kErfcTailDenominatorF64[] = {1.0,
                                              2.2605286322011726,
                                              9.396035249380015,
                                              12.048953980809666,
                                              17.08144507475659,
                                              9.608968090632859,
                                              3.369076451000815};

// The inverse of erf as x times a polynomial in a shifted -log(1 - x^2) or its
// square root (Giles, Approximating the erfinv function), in f32.
constexpr double kErfInvCentralF32[] = {
    2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
    -4.39150654e-06, 0.00021858087,  -0.00125372503,
    -0.00417768164,  0.246640727,    1.50140941};
constexpr double kErfInvTailF32[] = {
    -0.000200214257, 0.000100950558, 0.00134934322,
    -0.00367342844,  0.00573950773,  -0.0076224613,
    0.00943887047,   1.00167406,     2.83297682};

// The same in f64 for w < 6.25, w < 16 and above.
constexpr double kErfInvCentralF64[] = {
    -3.64441206401782e-21,  -1.6850591381820166e-19, 1.28584807152564e-18,
    1.1157877678025181e-17, -1.333171662854621e-16,  2.0972767875968562e-17,
    6.637638134358324e-15,  -4.054566272975207e-14,  -8.151934197605472e-14,
    2.6335093153082323e-12, -1.2975133253453532e-11, -5.415412054294628e-11,
    1.0512122733215323e-09, -4.112633980346984e-09,  -2.9070369957882005e-08,
    4.2347877827932404e-07, -1.3654692000834679e-06, -1.3882523362786469e-05,
    0.00018673420803405714, -0.000740702534166267,   -0.006033670871430149,
    0.24015818242558962,    1.6536545626831027};
constexpr double kErfInvTailF64[] = {
    2.2137376921775787e-09, 9.075656193888539e-08,  -2.7517406297064545e-07,
    1.8239629214389228e-08, 1.5027403968909828e-06, -4.013867526981546e-06,
    2.9234449089955446e-06, 1.2475304481671779e-05, -4.7318229009055734e-05,
    6.828485145957318e-05,  2.4031110387097894e-05, -0.0003550375203628475,
    0.0009532893797373805,  -0.0016882755560235047, 0.002491442096107851,
    -0.003751208507569241,  0.005370914553590064,   1.0052589676941592,
    3.0838856104922208};
constexpr double kErfInvFarTailF64[] = {
    -2.7109920616438573e-11, -2.555641816996525e-10,  1.5076572693500548e-09,
    -3.789465440126737e-09,  7.61570120807834e-09,    -1.496002662714924e-08,
    2.914795345090108e-08,   -6.771199775845234e-08,  2.2900482228026655e-07,
    -9.9298272942317e-07,    4.526062597223154e-06,   -1.968177810553167e-05,
    7.599527703001776e-05,   -0.00021503011930044477, -0.00013871931833623122,
    1.0103004648645344,      4.849906401408584};

/// erfc from its value at |x|, which underflows to 0.
Expr erfcOfSigned(Expr x, Expr minusSquare, double smallestExponent,
                  Expr erfcOfAbs) {
  Expr flushed = select(minusSquare < smallestExponent, 0.0, erfcOfAbs);
  return select(x < 0.0, 2.0 - flushed, flushed);
}

Expr erfNearZeroF64(Expr x) {
  Expr square = x * x;
  return x * polynomial(square, kErfNumeratorF64) /
         polynomial(square, kErfDenominatorF64);
}

Expr erfcF64(Expr x) {
  Expr minusSquare = -(x * x);
  Expr e = exp(minusSquare);
  Expr a = abs(x);
  Expr middle = e * polynomial(a, kErfcMiddleNumeratorF64) /
                polynomial(a, kErfcMiddleDenominatorF64);
  Expr tail = e * polynomial(a, kErfcTailNumeratorF64) /
              polynomial(a, kErfcTailDenominatorF64);
  return erfcOfSigned(x, minusSquare, -709.78271289338397,
                      select(a < 8.0, middle, tail));
}

Expr erfcF32(Expr x) {
  Expr square = x * x;
  Expr a = abs(x);
  Expr q = 1.0 / square;
  Expr series = select(a < 2.0, polynomial(q, kErfcMiddleF32),
                       polynomial(q, kErfcTailF32));
  return erfcOfSigned(x, -square, -88.7228394,
                      exp(-square) * (1.0 / a) * series);
}

} // namespace

Expr erf(Expr x) {
  if (x.isF64())
    return select(abs(x) < 1.0, erfNearZeroF64(x), 1.0 - erfcF64(x));
  Expr c = clamp(-4.0, x, 4.0);
  Expr square = c * c;
  Expr quotient = c * polynomial(square, kErfNumeratorF32) /
                  polynomial(square, kErfDenominatorF32);
  return clamp(-1.0, quotient, 1.0);
}

Expr erfc(Expr x) {
  Expr nearZero =
      x.isF64() ? erfNearZeroF64(x) : x * polynomial(x * x, kErfNearZeroF32);
  Expr far = x.isF64() ? erfcF64(x) : erfcF32(x);
  return select(abs(x) < 1.0, 1.0 - nearZero, far);
}

/// A Horner scheme whose coefficients depend on the element; the shorter
/// polynomials start late.
static Expr selectedPolynomial(Expr x, llvm::ArrayRef<Expr> conditions,
                               llvm::ArrayRef<llvm::ArrayRef<double>> tables) {
  size_t length = tables.front().size();
  std::optional<Expr> sum;
  for (size_t i = 0; i < length; ++i) {
    auto coefficient = [&](llvm::ArrayRef<double> table) {
      size_t missing = length - table.size();
      return i < missing ? 0.0 : table[i - missing];
    };
    Expr selected = x.like(coefficient(tables.back()));
    for (size_t k = conditions.size(); k-- > 0;)
      selected = select(conditions[k], coefficient(tables[k]), selected);
    sum = sum ? *sum * x + selected : selected;
  }
  return *sum;
}

Expr erfInv(Expr x) {
  Expr w = -log1p(x * -x);
  std::optional<Expr> value;
  if (x.isF64()) {
    Expr central = w < 6.25, tail = w < 16.0;
    Expr shifted =
        select(central, w - 3.125, sqrt(w) - select(tail, 3.25, w.like(5.0)));
    value = selectedPolynomial(
        shifted, {central, tail},
        {kErfInvCentralF64, kErfInvTailF64, kErfInvFarTailF64});
  } else {
    Expr central = w < 5.0;
    Expr shifted = select(central, w - 2.5, sqrt(w) - 3.0);
    value = selectedPolynomial(shifted, {central},
                               {kErfInvCentralF32, kErfInvTailF32});
  }
  // The ends of the domain are infinite, with the sign of x.
  return select(abs(x).equals(1.0), x * std::numeric_limits<double>::infinity(),
                *value * x);
}

} // namespace whale::elementwise
