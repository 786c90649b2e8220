//===- Checks.h - Checks that verifiers share -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_DIALECT_STABLEHLO_IR_CHECKS_H
#define WHALE_LIB_DIALECT_STABLEHLO_IR_CHECKS_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {

/// Reports what is wrong with an operation, whether it exists already or its
/// types are only being inferred.
class Checker {
public:
  Checker(mlir::Operation *op)
      : location(op->getLoc()), name(op->getName().getStringRef()) {}
  Checker(std::optional<mlir::Location> location, llvm::StringRef name)
      : location(location), name(name) {}

  template <typename... Args>
  llvm::LogicalResult error(Args &&...args) const {
    return mlir::emitOptionalError(location, "'", name, "' op ",
                                   std::forward<Args>(args)...);
  }

  /// Each dimension is in [0, rank).
  llvm::LogicalResult inRange(llvm::StringRef what,
                              llvm::ArrayRef<int64_t> dims, int64_t rank) const;
  /// No dimension occurs twice.
  llvm::LogicalResult unique(llvm::StringRef what,
                             llvm::ArrayRef<int64_t> dims) const;
  llvm::LogicalResult sorted(llvm::StringRef what,
                             llvm::ArrayRef<int64_t> dims) const;
  llvm::LogicalResult rangeAndUnique(llvm::StringRef what,
                                     llvm::ArrayRef<int64_t> dims,
                                     int64_t rank) const;
  llvm::LogicalResult count(llvm::StringRef what, int64_t got,
                            int64_t expected) const;
  /// Each value is at least `minimum`.
  llvm::LogicalResult atLeast(llvm::StringRef what,
                              llvm::ArrayRef<int64_t> values,
                              int64_t minimum) const;
  /// The element types are equal.
  llvm::LogicalResult sameElements(llvm::StringRef what, mlir::Type lhs,
                                   mlir::Type rhs) const;
  /// The shapes are equal where both are static.
  llvm::LogicalResult sameShape(llvm::StringRef what,
                                llvm::ArrayRef<int64_t> got,
                                llvm::ArrayRef<int64_t> expected) const;

  /// A region with one block whose arguments and returned values are 0-d
  /// tensors: two of each input's kind, and one. `inits` are the types that the
  /// block's elements have to be those of.
  llvm::LogicalResult reducer(mlir::Region &region, mlir::TypeRange inputs,
                              mlir::TypeRange inits) const;
  /// A region of two arguments of the type that returns a boolean.
  llvm::LogicalResult comparator(mlir::Region &region,
                                 mlir::TypeRange elements) const;

  std::optional<mlir::Location> getLocation() const { return location; }

private:
  std::optional<mlir::Location> location;
  llvm::StringRef name;
};

/// Whether two sizes can be equal.
inline bool mayBeEqual(int64_t lhs, int64_t rhs) {
  return mlir::ShapedType::isDynamic(lhs) || mlir::ShapedType::isDynamic(rhs) ||
         lhs == rhs;
}

/// A size that is known to be representable: std::nullopt otherwise.
std::optional<int64_t> toSize(__int128 value);

/// The window of reduce_window, convolution, select_and_scatter; what is left
/// out has its default.
struct Window {
  llvm::SmallVector<int64_t> sizes, strides, low, high, baseDilations,
      windowDilations;
};

/// Collects a window of the given rank and verifies it.
llvm::FailureOr<Window>
getWindow(const Checker &check, llvm::ArrayRef<int64_t> sizes,
          std::optional<llvm::ArrayRef<int64_t>> strides,
          std::optional<mlir::DenseIntElementsAttr> padding,
          std::optional<llvm::ArrayRef<int64_t>> baseDilations,
          std::optional<llvm::ArrayRef<int64_t>> windowDilations);

/// The number of windows in each dimension.
llvm::FailureOr<llvm::SmallVector<int64_t>>
getWindowCounts(const Checker &check, llvm::ArrayRef<int64_t> shape,
                const Window &window);

/// The elements of a tensor type.
inline mlir::Type elementType(mlir::Type type) {
  return llvm::cast<mlir::ShapedType>(type).getElementType();
}

/// Whether a value of the first element type may be accumulated in the second.
bool isPromotable(mlir::Type from, mlir::Type to);

/// Types as a list of shaped types.
inline mlir::RankedTensorType tensorType(mlir::Type type) {
  return llvm::cast<mlir::RankedTensorType>(type);
}

} // namespace whale

#endif // WHALE_LIB_DIALECT_STABLEHLO_IR_CHECKS_H
