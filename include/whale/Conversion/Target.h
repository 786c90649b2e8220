//===- Target.h - What kernels are made for ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CONVERSION_TARGET_H
#define WHALE_CONVERSION_TARGET_H

#include "whale/ProgramFormat/GpuArchitecture.h"
#include "llvm/Support/CommandLine.h"

#include <compare>
#include <optional>
#include <string>
#include <tuple>

namespace whale {

/// What kernels and calls of libraries are made for: the processor, or GPUs of
/// one architecture. As text, which passes take as their option `target`:
///
///   cpu             the processor
///   cpu+i8          one with instructions that multiply i8 into i32
///   sm_90           GPUs of compute capability 9.0
///   sm_90+cudnn=N   such, on which a call of cuDNN's attention may take N
///                   bytes besides its tensors
///
/// and each of them with `+plan` for plans of which no code is written: kernels
/// of rows and of attention, which are large and within all limits, say what
/// they cost and stay empty.
class Target {
public:
  /// The processor, without more than all have.
  Target() = default;
  static Target forProcessor(bool multipliesBytes) {
    Target target;
    target.hasI8 = multipliesBytes;
    return target;
  }
  /// `attentionBytes`: what a call of cuDNN's attention may take besides its
  /// tensors; nothing where cuDNN computes none.
  static Target forGpu(int capability,
                       std::optional<int64_t> attentionBytes = {}) {
    Target target;
    target.capability = capability;
    target.attentionBytes = attentionBytes;
    return target;
  }

  /// The same without code.
  Target withoutCode() const {
    Target target = *this;
    target.isPlanned = true;
    return target;
  }

  bool isGpu() const { return capability > 0; }
  /// Whether kernels that nothing needs to look into stay empty.
  bool isWithoutCode() const { return isPlanned; }
  /// Of a GPU, 90 for sm_90.
  int getCapability() const { return capability; }
  const format::GpuArchitecture &getArchitecture() const {
    return format::findGpuArchitecture(capability);
  }
  std::optional<int64_t> getAttentionBytes() const { return attentionBytes; }
  /// Whether libraries of a processor multiply i8 into i32 as they are.
  bool multipliesBytes() const { return hasI8; }
  /// Whether products and convolutions of bf16 are computed in it.
  bool computesBF16() const { return !isGpu() || getArchitecture().hasBF16; }

  /// Nothing if the text is none of a target.
  static std::optional<Target> parse(llvm::StringRef text);
  std::string str() const;

  bool operator==(const Target &) const = default;
  /// GPUs from the lowest architecture on, then the processor.
  auto operator<=>(const Target &other) const {
    auto orderOf = [](const Target &target) {
      return std::tuple(!target.isGpu(), target.capability,
                        target.attentionBytes, target.hasI8, target.isPlanned);
    };
    return orderOf(*this) <=> orderOf(other);
  }

private:
  int capability = 0;
  std::optional<int64_t> attentionBytes;
  bool hasI8 = false;
  bool isPlanned = false;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &stream,
                                     const Target &target) {
  return stream << target.str();
}

} // namespace whale

/// Reads a pass's option.
template <>
class llvm::cl::parser<whale::Target>
    : public llvm::cl::basic_parser<whale::Target> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text,
             whale::Target &target);
  StringRef getValueName() const override { return "target"; }
  void printOptionDiff(const Option &option, const whale::Target &target,
                       const OptionValue<whale::Target> &, size_t width) const {
    printOptionName(option, width);
    outs() << "= " << target << "\n";
  }
};

#endif // WHALE_CONVERSION_TARGET_H
