//===- ClusterKinds.cpp - Built-in kinds of devices -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of built-in kinds. Peaks are dense (no structured sparsity), at
// boost clock; those of f16, bf16, tf32 and narrower types are of the tensor
// cores where there are any. Memory is in GiB.
//
// Sources, all by NVIDIA: "Tesla P100 GPU accelerator" data sheets (PCIe and
// SXM2, 2016), "Tesla V100" data sheet (2020; with V100S), "T4 70W low profile
// PCIe GPU accelerator" product brief (2020), "A100 80GB" data sheet (2022) and
// "A100 Tensor Core GPU architecture" (2020), "H100 Tensor Core GPU" data
// sheets (2023, 2024; with NVL), "H200 Tensor Core GPU" data sheet (2024). The
// A800 and H800 are the A100 and H100 with slower NVLink, and the H800 has a
// low f64 peak; the H20 follows its published specification (2023). `cpu` is a
// rough figure for one socket of a server, useful only where all devices are
// CPUs.
//

#include "whale/Cluster/Cluster.h"
#include <algorithm>

using namespace whale;

namespace {
struct Row {
  std::string_view name;
  /// Peak TFLOP/s; 0 where the hardware has no faster unit than f32's.
  double f64, f32, tf32, half, bf16, f8, i8;
  int64_t gib;
  /// GB/s.
  double bandwidth;
};
} // namespace

// If a short name fits several rows, the first of them is used.
static constexpr Row kRows[] = {
    // name             f64   f32   tf32   f16    bf16   f8      i8      GiB
    {"cpu", 0.5, 1.0, 0, 0, 0, 0, 0, 256, 100},
    {"P100-PCIe-16GB", 4.7, 9.3, 0, 18.7, 0, 0, 0, 16, 732},
    {"P100-PCIe-12GB", 4.7, 9.3, 0, 18.7, 0, 0, 0, 12, 549},
    {"P100-SXM2-16GB", 5.3, 10.6, 0, 21.2, 0, 0, 0, 16, 732},
    {"V100-SXM2-32GB", 7.8, 15.7, 0, 125, 0, 0, 0, 32, 900},
    {"V100-SXM2-16GB", 7.8, 15.7, 0, 125, 0, 0, 0, 16, 900},
    {"V100-PCIe-32GB", 7.0, 14.0, 0, 112, 0, 0, 0, 32, 900},
    {"V100-PCIe-16GB", 7.0, 14.0, 0, 112, 0, 0, 0, 16, 900},
    {"V100S-PCIe-32GB", 8.2, 16.4, 0, 130, 0, 0, 0, 32, 1134},
    {"T4-PCIe-16GB", 0.25, 8.1, 0, 65, 0, 0, 130, 16, 320},
    {"A100-SXM4-80GB", 9.7, 19.5, 156, 312, 312, 0, 624, 80, 2039},
    {"A100-SXM4-40GB", 9.7, 19.5, 156, 312, 312, 0, 624, 40, 1555},
    {"A100-PCIe-80GB", 9.7, 19.5, 156, 312, 312, 0, 624, 80, 1935},
    {"A100-PCIe-40GB", 9.7, 19.5, 156, 312, 312, 0, 624, 40, 1555},
    {"A800-SXM4-80GB", 9.7, 19.5, 156, 312, 312, 0, 624, 80, 2039},
    {"A800-PCIe-80GB", 9.7, 19.5, 156, 312, 312, 0, 624, 80, 1935},
    {"A800-PCIe-40GB", 9.7, 19.5, 156, 312, 312, 0, 624, 40, 1555},
    {"H100-SXM5-80GB", 34, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 80, 3350},
    {"H100-PCIe-80GB", 26, 51, 378, 756, 756, 1513, 1513, 80, 2000},
    {"H100-NVL-94GB", 30, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 94, 3900},
    {"H800-SXM5-80GB", 1, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 80, 3350},
    {"H800-PCIe-80GB", 0.8, 51, 378, 756, 756, 1513, 1513, 80, 2000},
    {"H800-NVL-94GB", 1, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 94, 3900},
    {"H20-SXM5-96GB", 1, 44, 74, 148, 148, 296, 296, 96, 4000},
    {"H20-SXM5-141GB", 1, 44, 74, 148, 148, 296, 296, 141, 4800},
    {"H200-SXM5-141GB", 34, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 141, 4800},
    {"H200-NVL-141GB", 30, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 141, 4800},
};

/// The architectures of these models.
static constexpr std::pair<std::string_view, std::string_view> kArchs[] = {
    {"P100", "sm_60"}, {"V100", "sm_70"}, {"V100S", "sm_70"}, {"T4", "sm_75"},
    {"A100", "sm_80"}, {"A800", "sm_80"}, {"H100", "sm_90"},  {"H800", "sm_90"},
    {"H20", "sm_90"},  {"H200", "sm_90"}};

/// Splits a name at its dashes.
static std::vector<std::string_view> components(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t dash; (dash = name.find('-')) != name.npos;
       name.remove_prefix(dash + 1))
    parts.push_back(name.substr(0, dash));
  parts.push_back(name);
  return parts;
}

/// Whether the names are equal, ignoring case (ASCII).
static bool equalsIgnoringCase(std::string_view first,
                               std::string_view second) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
  return std::ranges::equal(first, second, {}, lower, lower);
}

/// Whether `name` consists of the model of `full` and some of its other
/// components, in order. `SXM` matches any SXM generation; GB sizes and PCIe
/// match as written.
static bool fits(std::string_view name, std::string_view full) {
  std::vector<std::string_view> want = components(name),
                                have = components(full);
  if (!equalsIgnoringCase(want[0], have[0]))
    return false;
  size_t next = 1;
  for (size_t i = 1; i < want.size(); ++i) {
    auto same = [&](std::string_view other) {
      return equalsIgnoringCase(want[i], other) ||
             (equalsIgnoringCase(want[i], "SXM") && other.starts_with("SXM"));
    };
    while (next < have.size() && !same(have[next]))
      ++next;
    if (next++ >= have.size())
      return false;
  }
  return true;
}

std::optional<DeviceKind> Cluster::builtinKind(std::string_view name) {
  for (const Row &row : kRows) {
    if (!fits(name, row.name))
      continue;
    DeviceKind kind;
    kind.name = row.name;
    auto add = [&](std::string_view dtype, double tera) {
      if (tera != 0)
        kind.flops[std::string(dtype)] = tera * 1e12;
    };
    add("f64", row.f64);
    add("f32", row.f32);
    add("tf32", row.tf32);
    add("f16", row.half);
    add("bf16", row.bf16);
    for (std::string_view dtype : {"f8E4M3FN", "f8E5M2"})
      add(dtype, row.f8);
    add("i8", row.i8);
    for (const auto &[model, arch] : kArchs)
      if (components(row.name)[0] == model)
        kind.arch = arch;
    kind.memoryBytes = row.gib << 30;
    kind.memoryBandwidth = row.bandwidth * 1e9;
    return kind;
  }
  return std::nullopt;
}

std::vector<std::string_view> Cluster::builtinKindNames() {
  std::vector<std::string_view> names;
  for (const Row &row : kRows)
    names.push_back(row.name);
  return names;
}
