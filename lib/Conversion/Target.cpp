//===- Target.cpp - What kernels are made for -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Conversion/Target.h"

using namespace whale;

static constexpr llvm::StringLiteral kProcessor = "cpu", kI8 = "+i8",
                                     kGpu = "sm_",
                                     kCudnn = "+cudnn=", kPlan = "+plan";

std::optional<Target> Target::parse(llvm::StringRef text) {
  if (text.consume_back(kPlan)) {
    std::optional<Target> target = parse(text);
    if (!target || target->isPlanned)
      return std::nullopt;
    return target->withoutCode();
  }
  if (text.consume_front(kProcessor)) {
    bool hasI8 = text.consume_front(kI8);
    return text.empty() ? std::optional(forProcessor(hasI8)) : std::nullopt;
  }
  int capability = 0;
  if (!text.consume_front(kGpu) || text.consumeInteger(10, capability) ||
      capability <= 0)
    return std::nullopt;
  if (text.empty())
    return forGpu(capability);
  int64_t bytes = 0;
  if (!text.consume_front(kCudnn) || text.getAsInteger(10, bytes) || bytes < 0)
    return std::nullopt;
  return forGpu(capability, bytes);
}

std::string Target::str() const {
  if (isPlanned) {
    Target target = *this;
    target.isPlanned = false;
    return target.str() + kPlan.str();
  }
  if (!isGpu())
    return (kProcessor + (hasI8 ? kI8 : "")).str();
  std::string text = format::archOf(capability);
  if (attentionBytes)
    text += kCudnn.str() + std::to_string(*attentionBytes);
  return text;
}

bool llvm::cl::parser<Target>::parse(Option &option, StringRef, StringRef text,
                                     Target &target) {
  std::optional<Target> found = Target::parse(text);
  if (!found)
    return option.error("'" + text +
                        "' is no target; cpu, cpu+i8, sm_90 and "
                        "sm_90+cudnn=BYTES are some, and each with +plan");
  target = *found;
  return false;
}
