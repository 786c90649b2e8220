//===- FusedAttention.cpp - Attention that cuDNN has ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a call of attention or its gradient, whose configuration names the
// dimensions of each tensor by letters as in an einsum. Out: the same tensors
// with four dimensions (sample, head, row or key, feature), as strides into the
// same memory, or the reason why cuDNN can't compute the call. Two head
// dimensions become one where, in all tensors, one step of the outer is as far
// as all of the inner; two must remain, samples and heads.
//
// Cost: at most cubic in the dimensions that are heads, of which a call has
// few, times its tensors. The choice of a part whose workspace is small enough
// tries each number of parts up to that of samples and heads of keys.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/FusedAttention.h"

#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/ProgramFormat/Layout.h"
#include "whale/ProgramFormat/Limits.h"

#include <algorithm>
#include <map>

namespace whale::format {

namespace {

/// Some letters of heads as one number.
struct Axis {
  std::string letters;
  int64_t extent;
  /// By tensor; nothing in those that share it.
  std::vector<std::optional<int64_t>> strides;
};

/// A tensor's stride of each letter.
std::map<char, int64_t> stridesOf(const AttentionCall::Tensor &tensor) {
  std::map<char, int64_t> strides;
  int64_t stride = 1;
  for (size_t dim = tensor.shape.size(); dim-- > 0;) {
    strides[tensor.letters[dim]] =
        tensor.strides.empty() ? stride : tensor.strides[dim];
    stride *= tensor.shape[dim];
  }
  return strides;
}

/// Whether `inner` counts within each element of `outer` in all tensors.
bool canMerge(const Axis &outer, const Axis &inner) {
  for (size_t i = 0; i < outer.strides.size(); ++i)
    if (outer.strides[i].has_value() != inner.strides[i].has_value() ||
        (outer.strides[i] &&
         *outer.strides[i] != *inner.strides[i] * inner.extent))
      return false;
  return true;
}

void mergeAll(std::vector<Axis> &axes) {
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t j = 0; j < axes.size(); ++j)
      if (i != j && canMerge(axes[i], axes[j])) {
        axes[j].letters.insert(0, axes[i].letters);
        axes[j].extent *= axes[i].extent;
        axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
        return mergeAll(axes);
      }
}

/// Samples, heads of keys, and heads of queries that share one of these.
struct Axes {
  Axis samples, keyHeads, sharing;
};

std::optional<Axes> divide(std::vector<Axis> axes, size_t tensors) {
  mergeAll(axes);
  auto isShared = [](const Axis &axis) { return !axis.strides[1]; };
  std::vector<Axis> shared;
  std::ranges::copy_if(axes, std::back_inserter(shared), isShared);
  std::erase_if(axes, isShared);
  if (axes.size() > 2 || shared.size() > 1)
    return std::nullopt;
  Axis one{"", 1, std::vector<std::optional<int64_t>>(tensors, 0)};
  // The larger stride is that of the samples.
  std::ranges::sort(axes, [](const Axis &a, const Axis &b) {
    return a.strides[0] > b.strides[0];
  });
  Axes result{one, one, one};
  if (shared.empty()) {
    if (!axes.empty())
      result.keyHeads = axes.back();
    if (axes.size() == 2)
      result.samples = axes.front();
    return result;
  }
  result.sharing = shared.front();
  if (axes.size() == 1)
    result.samples = axes.front();
  if (axes.size() < 2)
    return result;
  // Neighbouring heads of queries share one of the keys.
  auto follows = [&](const Axis &outer) {
    for (size_t i = 0; i < tensors; ++i)
      if (const auto &inner = result.sharing.strides[i];
          inner && *outer.strides[i] != *inner * result.sharing.extent)
        return false;
    return true;
  };
  if (!follows(axes[1]))
    std::swap(axes[0], axes[1]);
  if (!follows(axes[1]))
    return std::nullopt;
  result.samples = axes[0];
  result.keyHeads = axes[1];
  return result;
}

} // namespace

/// What the numbers of a call have that cuDNN has not; empty if nothing.
static std::string findLack(const AttentionCall &call, int capability,
                            const FusedAttention &sizes, int64_t values) {
  auto text = [](int64_t number) { return std::to_string(number); };
  const GpuArchitecture &arch = findGpuArchitecture(capability);
  int64_t most =
      call.isGradient ? arch.attentionGradientFeatures : arch.attentionFeatures;
  if (most == 0)
    return "cuDNN's attention is for sm_80 and later";
  if (call.hasMask || call.hasBias)
    return "it has a mask or a bias that is a tensor";
  if (sizes.features != values || sizes.features % 8 != 0 ||
      sizes.features > most)
    return "its heads have " + text(sizes.features) + " and " + text(values) +
           " features: cuDNN has the same number of both, a multiple of 8, at "
           "most " +
           text(most);
  if (sizes.rows < 2 || sizes.keys < 2)
    return "it has one row or one key";
  if (call.isGradient && sizes.keys % 128 != 0)
    return "gradients of " + text(sizes.keys) +
           " keys, no multiple of 128, are wrong in cuDNN up to 9.15";
  if (call.causal && *call.causal != 0)
    return "its causal mask is shifted";
  // A row's own score is far above, whatever is masked.
  constexpr double highestFill = -1e8;
  if (call.causal && call.fill && *call.fill > highestFill)
    return "what is masked may count";
  return "";
}

/// With the four dimensions of each tensor, whatever it takes besides.
static std::optional<FusedAttention>
describeTensors(const AttentionCall &call, int capability, std::string &why) {
  std::vector<const AttentionCall::Tensor *> tensors;
  for (const auto &tensor : call.inputs)
    tensors.push_back(&tensor);
  for (const auto &tensor : call.results)
    tensors.push_back(&tensor);
  std::map<char, int64_t> extents;
  std::vector<std::map<char, int64_t>> strides;
  for (const auto *tensor : tensors) {
    if (tensor->dtype != DType::BF16) {
      why = "its tensors are not all of bf16";
      return std::nullopt;
    }
    for (size_t dim = 0; dim < tensor->shape.size(); ++dim)
      extents[tensor->letters[dim]] = tensor->shape[dim];
    strides.push_back(stridesOf(*tensor));
  }
  FusedAttention result;
  result.rows = extents['q'];
  result.keys = extents['k'];
  result.features = extents['d'];
  result.scale = call.scale;
  result.isCausal = call.causal.has_value();
  result.isGradient = call.isGradient;
  why = findLack(call, capability, result, extents['e']);
  if (!why.empty())
    return std::nullopt;

  std::vector<Axis> axes;
  bool isEmpty = false;
  for (const auto &[letter, extent] : extents) {
    isEmpty |= extent == 0;
    if (extent <= 1 ||
        std::string_view("qkde1").find(letter) != std::string_view::npos)
      continue;
    Axis axis{{letter}, extent, {}};
    for (const auto &own : strides) {
      auto it = own.find(letter);
      axis.strides.push_back(it == own.end() ? std::optional<int64_t>()
                                             : it->second);
    }
    if (axis.strides[1].has_value() != axis.strides[2].has_value()) {
      why = "keys and values are not shared by the same heads";
      return std::nullopt;
    }
    size_t ofKey = call.inputs.size() + 1;
    if (call.isGradient && !axis.strides[1] &&
        (axis.strides[ofKey] || axis.strides[ofKey + 1])) {
      why = "its cotangents of shared keys are not summed to bf16";
      return std::nullopt;
    }
    axes.push_back(std::move(axis));
  }
  std::optional<Axes> divided = divide(std::move(axes), tensors.size());
  if (isEmpty || !divided) {
    why = isEmpty ? "it has no elements"
                  : "its heads are not two dimensions in all of its tensors";
    return std::nullopt;
  }
  result.headLetters = divided->samples.letters + divided->keyHeads.letters +
                       divided->sharing.letters;
  result.samples = divided->samples.extent;
  result.keyHeads = divided->keyHeads.extent;
  result.heads = result.keyHeads * divided->sharing.extent;
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto strideOf = [&](std::initializer_list<char> letters) {
      for (char letter : letters)
        if (auto it = strides[i].find(letter); it != strides[i].end())
          return it->second;
      return int64_t(0);
    };
    if (strideOf({'d', 'e'}) != 1) {
      why = "features are not neighbours";
      return std::nullopt;
    }
    bool isShared = divided->sharing.extent > 1 && divided->sharing.strides[i];
    const Axis &heads = isShared ? divided->sharing : divided->keyHeads;
    // Of one sample or head any stride will do that keeps the alignment.
    int64_t all = elementCount(tensors[i]->shape);
    FusedAttention::Strides own = {
        result.samples > 1 ? *divided->samples.strides[i] : all,
        heads.extent > 1 ? *heads.strides[i] : all, strideOf({'q', 'k'})};
    // Of 16 bytes.
    constexpr int64_t alignment = 8;
    int64_t bits = own[0] | own[1] | own[2] | tensors[i]->offset;
    if (bits % alignment != 0) {
      why = "its tensors are not aligned to 16 bytes";
      return std::nullopt;
    }
    if (i < call.inputs.size())
      result.offsets.push_back(tensors[i]->offset);
    (i < call.inputs.size() ? result.inputs : result.results).push_back(own);
  }
  return result;
}

int64_t mostAttentionWorkspace(int64_t memoryBytes) {
  // Of a head of 32,768 rows and keys it is 2 GiB: what a device of 80 GB can
  // spare, as a program without attention in parts would use more.
  constexpr int64_t share = 32;
  return std::max(mostWorkspace, memoryBytes / share);
}

std::optional<FusedAttention> describeFused(const AttentionCall &call,
                                            const AttentionLimits &limits,
                                            std::string &why) {
  auto result = describeTensors(call, limits.capability, why);
  if (!result || choosePart(*result, limits.mostWorkspace))
    return result;
  why = "a head of " + std::to_string(result->rows) + " rows and " +
        std::to_string(result->keys) +
        " keys would take more than its workspace of " +
        std::to_string(limits.mostWorkspace) + " bytes";
  return std::nullopt;
}

int64_t findPartialBytes(const FusedAttention &part) {
  if (part.keyParts == 1)
    return 0;
  constexpr int64_t elementBytes = 2;
  return 2 * part.keyParts * part.keys * part.features * elementBytes;
}

int64_t findWorkspace(const FusedAttention &part) {
  // Of what is small: sums and statistics of a gradient's rows, and a margin.
  constexpr int64_t small = 1 << 20, rowBytes = 2 * sizeof(float);
  if (!part.isGradient)
    return small;
  // It keeps two bytes of each pair of a row and a key, of whole tiles.
  auto pad = [](int64_t lines) { return (lines + 127) / 128 * 128; };
  int64_t pairs = pad(part.rows) * pad(part.keys);
  // And cotangents of keys and values before they are summed.
  if (part.heads != part.keyHeads)
    pairs += 2 * part.keys * part.features;
  return small + findPartialBytes(part) +
         part.samples * part.heads * (2 * pairs + part.rows * rowBytes);
}

/// One head of queries, of those that share a head of keys.
static FusedAttention takeOneHead(const FusedAttention &all) {
  FusedAttention part = all;
  part.samples = part.heads = part.keyHeads = 1;
  part.keyParts = all.heads / all.keyHeads;
  for (size_t result : {1, 2})
    part.results[result] = {all.keys * all.features, all.keys * all.features,
                            all.features};
  return part;
}

std::optional<FusedAttention> choosePart(const FusedAttention &all,
                                         int64_t most) {
  FusedAttention part = all;
  int64_t wanted = std::min(most, mostWorkspace);
  auto fits = [&] { return findWorkspace(part) <= wanted; };
  for (int64_t count = 1; count <= all.samples && !fits(); ++count)
    if (all.samples % count == 0)
      part.samples = all.samples / count;
  // Heads of queries go with the head of keys that they share.
  for (int64_t count = 1; count <= all.keyHeads && !fits(); ++count)
    if (all.keyHeads % count == 0) {
      part.keyHeads = all.keyHeads / count;
      part.heads = all.heads / count;
    }
  // As many as the kernel that sums has operands for.
  constexpr int64_t mostSharing = 256;
  int64_t sharing = all.heads / all.keyHeads;
  if (!fits() && sharing > 1 && sharing <= mostSharing)
    part = takeOneHead(all);
  if (findWorkspace(part) > most)
    return std::nullopt;
  return part;
}

} // namespace whale::format
