//===- Epilogue.cpp - What is done to a product ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Products.h"

#include <utility>

namespace whale::format {

static constexpr std::pair<Epilogue, const char *> names[] = {
    {Epilogue::None, ""},
    {Epilogue::Bias, "bias"},
    {Epilogue::Gelu, "gelu"},
    {Epilogue::GeluBias, "gelu_bias"},
    {Epilogue::GeluAux, "gelu_aux"},
    {Epilogue::GeluAuxBias, "gelu_aux_bias"},
    {Epilogue::GeluGradient, "dgelu"},
    {Epilogue::GeluGradientBias, "dgelu_bgrad"},
};

const char *name(Epilogue epilogue) {
  return names[static_cast<size_t>(epilogue)].second;
}

std::optional<Epilogue> parseEpilogue(std::string_view name) {
  for (auto [epilogue, known] : names)
    if (epilogue != Epilogue::None && name == known)
      return epilogue;
  return std::nullopt;
}

static const char *findLack(const Matmul &op) {
  constexpr int64_t step = 8;
  DType type = op.outType;
  if (type != DType::F16 && type != DType::BF16 && type != DType::F32)
    return "its result is not f16, bf16 or f32";
  if (op.lhsType != type || op.rhsType != type)
    return "its operands and its result differ in type";
  if (op.accumulate)
    return "it is added to another one";
  for (const Matmul::Batch &dim : op.batch)
    if (dim.size != 1)
      return "it is a batch of products";
  if (op.m == 0 || op.n == 0 || op.k == 0)
    return "it is empty";
  for (int64_t extent : {op.m, op.n, op.k})
    if (extent % step)
      return "an extent is no multiple of 8";
  auto hasRows = [](int64_t extent, int64_t stride, int64_t otherStride) {
    return stride == 1 && otherStride >= extent && otherStride % step == 0;
  };
  if ((!hasRows(op.m, op.mLhs, op.kLhs) && !hasRows(op.k, op.kLhs, op.mLhs)) ||
      (!hasRows(op.k, op.kRhs, op.nRhs) && !hasRows(op.n, op.nRhs, op.kRhs)))
    return "an operand's rows are not at multiples of 8 elements";
  if (!(op.nOut == 1 && op.mOut == op.n) && !(op.mOut == 1 && op.nOut == op.m))
    return "its result is not dense";
  return nullptr;
}

std::optional<EpilogueShape> shapeForEpilogue(const Matmul &matmul,
                                              const char **why) {
  if (const char *lack = findLack(matmul)) {
    if (why)
      *why = lack;
    return std::nullopt;
  }
  if (matmul.nOut == 1)
    return EpilogueShape{matmul.m, matmul.n};
  return EpilogueShape{matmul.n, matmul.m};
}

} // namespace whale::format
