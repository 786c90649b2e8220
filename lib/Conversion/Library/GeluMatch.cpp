//===- GeluMatch.cpp - GELU of a value, and its gradient ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a value x. Out: the elementwise functions of it that are GELU in its form
// with tanh, and those of it and a product y that are y times the derivative.
//
// Functions are recognized by what they are, not by how they are written: sums,
// products and hyperbolic tangents of x, y and constants are computed at some
// points, and compared. The constants may be rounded to the type of x, as JAX
// writes them: no other function of these operations is that near at all
// points by chance. Conversions count as the identity: an epilogue rounds once.
//
// Cost: each elementwise operation that x reaches is computed at twelve points.
//
//===----------------------------------------------------------------------===//

#include "Library/GeluMatch.h"
#include "Kernel/KernelBuilder.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/DenseMap.h"

#include <array>
#include <cmath>

using namespace mlir;
using namespace whale;

namespace {

constexpr size_t kPoints = 12;
using Samples = std::array<double, kPoints>;
constexpr Samples kX = {-3.9, -2.7,  -1.6, -1.1, -0.7, -0.2,
                        0.15, 0.535, 0.95, 1.4,  2.45, 3.3};
constexpr Samples kY = {0.9, -1.2, 1.7,  -0.45, 0.3, 1.05,
                        2.2, -0.8, 0.65, 1.35,  0.7, -1.55};

/// A function of x, and of a product if there is one.
struct Function {
  Samples at;
  MatmulOp product;
};

/// GELU at x, or its derivative, with these constants.
double gelu(double x, double scale, double cubic, bool isDerivative) {
  double tanh = std::tanh(scale * (x + cubic * x * x * x));
  if (!isDerivative)
    return x / 2 * (1 + tanh);
  return (1 + tanh) / 2 +
         x / 2 * (1 - tanh * tanh) * scale * (1 + 3 * cubic * x * x);
}

/// A number as it is in a floating-point type.
double rounded(double number, Type type) {
  llvm::APFloat value(number);
  bool losesInfo;
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

bool isGelu(const Function &function, Type type) {
  constexpr double scale = 0.7978845608028654, cubic = 0.044715; // sqrt(2/pi)
  constexpr double near = 1e-5;
  auto matches = [&](double scale, double cubic) {
    for (size_t i = 0; i < kPoints; ++i) {
      double wanted = gelu(kX[i], scale, cubic, function.product != nullptr) *
                      (function.product ? kY[i] : 1);
      if (std::abs(function.at[i] - wanted) > near)
        return false;
    }
    return true;
  };
  return matches(scale, cubic) ||
         matches(rounded(scale, type), rounded(cubic, type));
}

/// The number that all elements of a constant are.
std::optional<double> splatOf(Value value) {
  auto splat = dyn_cast_or_null<FloatAttr>(matchSplat(value));
  if (!splat)
    return std::nullopt;
  llvm::APFloat number = splat.getValue();
  bool losesInfo;
  number.convert(llvm::APFloat::IEEEdouble(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

bool isPartOfGelu(Operation *op) {
  return isa_and_present<stablehlo::AddOp, stablehlo::SubtractOp,
                         stablehlo::MulOp, stablehlo::NegOp, stablehlo::TanhOp,
                         stablehlo::ConvertOp>(op) &&
         isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
}

Samples compute(Operation *op, ArrayRef<Function> operands) {
  Samples result;
  for (size_t i = 0; i < kPoints; ++i) {
    double a = operands[0].at[i], b = operands.back().at[i];
    if (isa<stablehlo::AddOp>(op))
      result[i] = a + b;
    else if (isa<stablehlo::SubtractOp>(op))
      result[i] = a - b;
    else if (isa<stablehlo::MulOp>(op))
      result[i] = a * b;
    else if (isa<stablehlo::NegOp>(op))
      result[i] = -a;
    else if (isa<stablehlo::TanhOp>(op))
      result[i] = std::tanh(a);
    else
      result[i] = a;
  }
  return result;
}

/// The functions of a value that elementwise operations compute.
class Functions {
public:
  explicit Functions(Value x) : x(x) {
    known[x] = {kX, {}};
    add(x);
  }

  /// Those that are GELU or its gradient.
  std::optional<Gelu> find();

private:
  void add(Value value);
  std::optional<Function> functionOf(Value value);
  void collect(Value value, MatmulOp product, Gelu &gelu);

  Value x;
  llvm::DenseMap<Value, Function> known;
  /// In the order in which they were found.
  SmallVector<Value> found;
};

/// Computes the users of a value whose other operands are known, too.
void Functions::add(Value value) {
  SmallVector<Value> next = {value};
  while (!next.empty()) {
    for (Operation *user : next.pop_back_val().getUsers()) {
      if (!isPartOfGelu(user) || user->getBlock() != x.getParentBlock() ||
          known.contains(user->getResult(0)))
        continue;
      SmallVector<Function> operands;
      Function result;
      for (Value operand : user->getOperands()) {
        std::optional<Function> function = functionOf(operand);
        bool isOther = function && function->product && result.product &&
                       function->product != result.product;
        if (!function || isOther)
          break;
        if (function->product)
          result.product = function->product;
        operands.push_back(*function);
      }
      if (operands.size() != user->getNumOperands())
        continue;
      result.at = compute(user, operands);
      known[user->getResult(0)] = result;
      found.push_back(user->getResult(0));
      next.push_back(user->getResult(0));
    }
  }
}

std::optional<Function> Functions::functionOf(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  if (std::optional<double> number = splatOf(value)) {
    Function constant;
    constant.at.fill(*number);
    return constant;
  }
  while (auto convert = value.getDefiningOp<stablehlo::ConvertOp>())
    value = convert.getOperand();
  auto product = value.getDefiningOp<MatmulOp>();
  if (product && product->getBlock() == x.getParentBlock() &&
      product.getOutput() == value && value.getType() == x.getType())
    return Function{kY, product};
  return std::nullopt;
}

/// Adds what computes `value`.
void Functions::collect(Value value, MatmulOp product, Gelu &gelu) {
  SmallVector<Value> next = {value};
  while (!next.empty()) {
    Value each = next.pop_back_val();
    Operation *op = each.getDefiningOp();
    if (each == x || op == product || splatOf(each))
      continue;
    if (gelu.ops.insert(op))
      llvm::append_range(next, op->getOperands());
  }
}

std::optional<Gelu> Functions::find() {
  Gelu gelu{x, {}, {}, {}};
  Type type = getElementTypeOrSelf(x.getType());
  for (Value value : found) {
    Function function = known.lookup(value);
    if (value.getType() != x.getType() || !isGelu(function, type))
      continue;
    if (function.product)
      gelu.gradients.push_back({function.product, value});
    else if (!gelu.result)
      gelu.result = value;
    else
      continue;
    collect(value, function.product, gelu);
  }
  if (!gelu.result)
    return std::nullopt;
  return gelu;
}

} // namespace

/// Pattern: add(x, broadcast_in_dim(bias)), which is no function of x alone.
static bool addsVector(Operation *op) {
  return isa<stablehlo::AddOp>(op) &&
         llvm::any_of(op->getOperands(), [](Value operand) {
           return operand.getDefiningOp<stablehlo::BroadcastInDimOp>() &&
                  !splatOf(operand);
         });
}

Value whale::findInputOfTanh(Operation *tanh) {
  Value input;
  SmallVector<Value> next = {tanh->getOperand(0)};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!next.empty()) {
    Value value = next.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (splatOf(value) || value == input)
      continue;
    // What a conversion widens is what was there before.
    if (isPartOfGelu(op) && op->getBlock() == tanh->getBlock() &&
        !addsVector(op)) {
      if (seen.insert(op).second)
        llvm::append_range(next, op->getOperands());
      continue;
    }
    if (input)
      return {};
    input = value;
  }
  return input;
}

std::optional<Gelu> whale::findGelu(Value input) {
  if (!input || !isa<FloatType>(getElementTypeOrSelf(input.getType())))
    return std::nullopt;
  return Functions(input).find();
}
