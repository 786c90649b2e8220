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

/// Reports errors for an existing operation, or for one whose types are being
/// inferred.
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

  /// Checks that each dimension is in [0, rank).
  llvm::LogicalResult inRange(llvm::StringRef what,
                              llvm::ArrayRef<int64_t> dims, int64_t rank) const;
  /// Checks that no dimension appears twice.
  llvm::LogicalResult unique(llvm::StringRef what,
                             llvm::ArrayRef<int64_t> dims) const;
  llvm::LogicalResult sorted(llvm::StringRef what,
                             llvm::ArrayRef<int64_t> dims) const;
  llvm::LogicalResult rangeAndUnique(llvm::StringRef what,
                                     llvm::ArrayRef<int64_t> dims,
                                     int64_t rank) const;
  llvm::LogicalResult count(llvm::StringRef what, int64_t got,
                            int64_t expected) const;
  /// Checks that each value is at least `minimum`.
  llvm::LogicalResult atLeast(llvm::StringRef what,
                              llvm::ArrayRef<int64_t> values,
                              int64_t minimum) const;
  /// Checks that the element types are equal.
  llvm::LogicalResult sameElements(llvm::StringRef what, mlir::Type lhs,
                                   mlir::Type rhs) const;
  /// Checks that the shapes are equal, ignoring dynamic dimensions.
  llvm::LogicalResult sameShape(llvm::StringRef what,
                                llvm::ArrayRef<int64_t> got,
                                llvm::ArrayRef<int64_t> expected) const;

  /// Checks a region with one block whose arguments and returned values are 0-d
  /// tensors: two arguments and one returned value for each input. The block's
  /// elements must have the element types of `inits`.
  llvm::LogicalResult reducer(mlir::Region &region, mlir::TypeRange inputs,
                              mlir::TypeRange inits) const;
  /// Checks a region with two arguments of the type that returns a boolean.
  llvm::LogicalResult comparator(mlir::Region &region,
                                 mlir::TypeRange elements) const;

  std::optional<mlir::Location> getLocation() const { return location; }

private:
  std::optional<mlir::Location> location;
  llvm::StringRef name;
};

/// Whether two sizes can be equal; either may be dynamic.
inline bool mayBeEqual(int64_t lhs, int64_t rhs) {
  return mlir::ShapedType::isDynamic(lhs) || mlir::ShapedType::isDynamic(rhs) ||
         lhs == rhs;
}

/// Returns a value as a size; std::nullopt if it can't be represented.
std::optional<int64_t> toSize(__int128 value);

/// The window of reduce_window, convolution, select_and_scatter; absent
/// attributes have their defaults.
struct Window {
  llvm::SmallVector<int64_t> sizes, strides, low, high, baseDilations,
      windowDilations;
};

/// Collects and verifies a window of the given rank.
llvm::FailureOr<Window>
getWindow(const Checker &check, llvm::ArrayRef<int64_t> sizes,
          std::optional<llvm::ArrayRef<int64_t>> strides,
          std::optional<mlir::DenseIntElementsAttr> padding,
          std::optional<llvm::ArrayRef<int64_t>> baseDilations,
          std::optional<llvm::ArrayRef<int64_t>> windowDilations);

/// Returns the number of windows in each dimension.
llvm::FailureOr<llvm::SmallVector<int64_t>>
getWindowCounts(const Checker &check, llvm::ArrayRef<int64_t> shape,
                const Window &window);

/// Returns the element type of a tensor type.
inline mlir::Type elementType(mlir::Type type) {
  return llvm::cast<mlir::ShapedType>(type).getElementType();
}

/// Whether a value of the first element type may be accumulated in the second.
bool isPromotable(mlir::Type from, mlir::Type to);

/// Casts to a ranked tensor type.
inline mlir::RankedTensorType tensorType(mlir::Type type) {
  return llvm::cast<mlir::RankedTensorType>(type);
}

} // namespace whale

#endif // WHALE_LIB_DIALECT_STABLEHLO_IR_CHECKS_H
