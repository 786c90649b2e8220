//===- Processor.h - What kernels need of a processor -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_PROCESSOR_H
#define WHALE_PROGRAMFORMAT_PROCESSOR_H

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace whale::format {

/// The features of processors that a program may need, by LLVM's names. Others
/// are not used by the code of kernels, or come with one of these.
std::span<const std::string_view> processorFeatures();

/// Whether this machine's processor has one of them.
bool hasProcessorFeature(std::string_view name);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_PROCESSOR_H
