//===- CheckSizes.cpp - Sizes that can be counted -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Program/CheckSizes.h"

#include "whale/ProgramFormat/Limits.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace whale {

/// Bytes of one tensor at most, and of all values of a program together: more
/// than any cluster has, and sums, a few times over, are numbers of 64 bits.
static constexpr int64_t kMostTensorBytes = int64_t(1) << 56;
static constexpr int64_t kMostBytes = int64_t(1) << 60;

/// Bytes of a tensor of the largest element type, which is how large it may
/// become on the way to a program. Extents of 0 are passed over: what is
/// computed with the others must be a number, too. None where it is too much.
static std::optional<int64_t> boundBytes(RankedTensorType type) {
  int64_t bytes = 16;
  for (int64_t extent : type.getShape())
    if (extent > 0 &&
        (llvm::MulOverflow(bytes, extent, bytes) || bytes > kMostTensorBytes))
      return std::nullopt;
  return bytes;
}

bool hasCountableBytes(RankedTensorType type) {
  return boundBytes(type).has_value();
}

LogicalResult checkSizes(Operation *root) {
  int64_t sum = 0;
  auto check = [&](Operation *op, Type type, StringRef what) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return success();
    if (tensor.getRank() > format::mostDimensions)
      return op->emitError(what) << " has more than " << format::mostDimensions
                                 << " dimensions: " << type;
    std::optional<int64_t> bytes = boundBytes(tensor);
    if (!bytes)
      return op->emitError(what)
             << " has more bytes than can be counted: " << type;
    sum += *bytes;
    if (sum > kMostBytes)
      return op->emitError(what) << " and the values before it together have "
                                 << "more bytes than can be counted: " << type;
    return success();
  };
  WalkResult result = root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (failed(check(op, type, "result")))
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          if (failed(check(op, type, "argument")))
            return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct CheckSizes : PassWrapper<CheckSizes, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckSizes)

  StringRef getName() const final { return "CheckSizes"; }

  void runOnOperation() final {
    if (failed(checkSizes(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

std::unique_ptr<Pass> createCheckSizesPass() {
  return std::make_unique<CheckSizes>();
}

} // namespace whale
