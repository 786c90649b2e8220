//===- ClusterTest.cpp - Cluster files ------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parser of cluster files: which numbers and names come out of a text, and
// what is said of a wrong one. The expected values are written by hand; errors
// are compared word for word, with the path of the field, and for some with
// line and column.
//
// Files that are written and read again must be equal. A failure of the error
// tests may be just another wording; the others mean that devices, links or
// built-in kinds are numbered or read wrongly, from which every plan starts.
//
//===----------------------------------------------------------------------===//

#include "whale/Cluster/Cluster.h"
#include "../Growth.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace whale;

/// What is wrong with a text; empty if nothing is.
static std::string errorOf(std::string_view text) {
  try {
    Cluster::parse(text);
    return "";
  } catch (const ClusterError &error) {
    return error.what();
  }
}

/// Where something is wrong with a text.
static std::string positionOf(std::string_view text) {
  try {
    Cluster::parse(text);
    return "nowhere";
  } catch (const ClusterError &error) {
    return "line " + std::to_string(error.getLine()) + ", column " +
           std::to_string(error.getColumn());
  }
}

/// A file with one node, whose first devices entry has these fields.
static std::string withDevices(const std::string &fields) {
  return "{\"nodes\": [{\"devices\": [{" + fields + "}]}]}";
}

/// A file with one kind.
static std::string withKind(const std::string &fields) {
  return "{\"kinds\": {\"k\": {" + fields +
         "}}, \"nodes\": [{\"devices\": [{\"kind\": \"k\"}]}]}";
}

static const char *const kExample = R"({
  "kinds": {"V100-SXM2-32GB": {"flops": {"f32": 15.7e12, "f16": 125e12},
    "memory_bytes": 34359738368, "memory_bandwidth": 9.0e11}},
  "nodes": [{"name": "a", "count": 1,
    "devices": [{"kind": "V100-SXM2-32GB", "count": 8}],
    "link": {"bandwidth": 1.5e11, "latency": 3e-6}}],
  "network": {"bandwidth": 6.25e9, "latency": 1e-5}
})";

TEST(Cluster, ReadsTheExample) {
  Cluster cluster = Cluster::parse(kExample);
  ASSERT_EQ(cluster.devices.size(), 8u);
  EXPECT_EQ(cluster.kindOf(7).memoryBytes, 34359738368);
  EXPECT_EQ(cluster.kindOf(7).peakFlops("f16"), 125e12);
  EXPECT_EQ(cluster.kindOf(7).peakFlops("bf16"), 15.7e12);
  EXPECT_EQ(cluster.linkBetween(0, 7).bandwidth, 1.5e11);
  EXPECT_EQ(cluster.network.latency, 1e-5);
}

TEST(Cluster, NumbersDevicesInTheFilesOrder) {
  Cluster cluster = Cluster::parse(R"({"nodes": [
      {"name": "a", "count": 2, "devices": [
        {"kind": "V100", "count": 2}, {"kind": "P100", "slowdown": 1.5}]},
      {"devices": [{"kind": "cpu"}], "host":
        {"memory_bytes": 1e12, "bandwidth": 2e10}}]})");
  ASSERT_EQ(cluster.devices.size(), 7u);
  std::string kinds, nodes;
  for (const Device &device : cluster.devices) {
    kinds += cluster.kinds[device.kind].name + " ";
    nodes += std::to_string(device.node);
  }
  EXPECT_EQ(kinds, "V100 V100 P100 V100 V100 P100 cpu ");
  EXPECT_EQ(nodes, "0001112");
  EXPECT_EQ(cluster.devices[5].slowdown, 1.5);
  EXPECT_EQ(cluster.nodeOf(5).name, "a");
  EXPECT_EQ(cluster.nodeOf(6).name, "node1");
  EXPECT_EQ(cluster.nodeOf(6).host->memoryBytes, 1000000000000);
  EXPECT_TRUE(cluster.sameNode(3, 5));
  EXPECT_FALSE(cluster.sameNode(2, 3));
  EXPECT_TRUE(std::isinf(cluster.linkBetween(2, 3).bandwidth));
}

TEST(Cluster, RoundTrips) {
  for (std::string_view text :
       {std::string_view(kExample), std::string_view("3"),
        std::string_view(R"({"kinds": {"A100": {"efficiency": {"matmul": 0.5}},
          "x": {"flops": {"f64": 1.1}, "memory_bytes": 1,
                "memory_bandwidth": 3.3, "efficiency": 0.7, "power_w": 250},
          "y": {"flops": {"f32": 1}, "memory_bytes": 1, "memory_bandwidth": 1,
                "efficiency": {"matmul": [[1e6, 0.1], [1e9, 0.7]],
                               "other": [[1, 0.5]]}}},
          "nodes": [{"count": 3, "link": {"latency": 0.1},
            "devices": [{"kind": "A100", "slowdown": 1.1}, {"kind": "x"}],
            "host": {"memory_bytes": 1e18, "bandwidth": 1.3},
            "cores": 7, "memory_bandwidth": 2.5}]})")}) {
    Cluster cluster = Cluster::parse(text);
    Cluster again = Cluster::parse(cluster.toJson());
    EXPECT_EQ(cluster, again) << cluster.toJson();
  }
}

TEST(Cluster, RanksAreCpus) {
  Cluster cluster = Cluster::ofRanks(4);
  EXPECT_EQ(cluster.devices.size(), 4u);
  EXPECT_EQ(cluster.kindOf(3).name, "cpu");
  EXPECT_TRUE(cluster.sameNode(0, 3));
  EXPECT_EQ(errorOf("0"), "expected at least 1, found 0");
  EXPECT_EQ(errorOf("-1"), "expected at least 1, found -1");
  EXPECT_EQ(errorOf("2.5"), "expected a whole number, found 2.5");
  EXPECT_EQ(errorOf("32769"), "expected at most 32768, found 32769");
}

TEST(Cluster, BuiltinKinds) {
  auto full = [](std::string_view name) {
    std::optional<DeviceKind> kind = Cluster::builtinKind(name);
    return kind ? kind->name : "none";
  };
  EXPECT_EQ(full("V100"), "V100-SXM2-32GB");
  EXPECT_EQ(full("v100-pcie"), "V100-PCIe-32GB");
  EXPECT_EQ(full("V100-16GB"), "V100-SXM2-16GB");
  EXPECT_EQ(full("A100-SXM-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(full("H100-NVL"), "H100-NVL-94GB");
  EXPECT_EQ(full("H20"), "H20-SXM5-96GB");
  EXPECT_EQ(full("T4"), "T4-PCIe-16GB");
  EXPECT_EQ(full("cpu"), "cpu");
  EXPECT_EQ(full("V10"), "none");
  EXPECT_EQ(full("V100-"), "none");
  EXPECT_EQ(full(""), "none");
  EXPECT_EQ(full("V100-32GB-SXM2"), "none");
  for (std::string_view name : Cluster::builtinKindNames()) {
    EXPECT_EQ(full(name), name);
    EXPECT_GT(Cluster::builtinKind(name)->peakFlops("f32"), 0);
    EXPECT_EQ(Cluster::builtinKind(name)->arch.empty(), name == "cpu");
  }
  EXPECT_EQ(Cluster::builtinKind("A800")->arch, "sm_80");
}

TEST(Cluster, BuiltinKindsCanBeChanged) {
  Cluster cluster = Cluster::parse(
      R"({"kinds": {"V100": {"memory_bytes": 16000000000}},
          "nodes": [{"devices": [{"kind": "V100"}]}]})");
  EXPECT_EQ(cluster.kindOf(0).memoryBytes, 16000000000);
  EXPECT_EQ(cluster.kindOf(0).peakFlops("f32"), 15.7e12);
}

TEST(Cluster, KindsHaveArchitectures) {
  std::string own = R"("flops": {"f32": 1}, "memory_bytes": 1,
                       "memory_bandwidth": 1, "arch": )";
  Cluster cluster = Cluster::parse(withKind(own + "\"sm_120\""));
  EXPECT_EQ(cluster.kindOf(0).arch, "sm_120");
  EXPECT_EQ(Cluster::parse(cluster.toJson()), cluster);
  EXPECT_EQ(errorOf(withKind(own + "\"hopper\"")),
            "kinds.k.arch: expected an architecture such as \"sm_90\", found "
            "\"hopper\"");
}

TEST(Cluster, ConvolutionsMayNeedFewerFlopsThanCounted) {
  Cluster cluster = Cluster::parse(
      R"({"kinds": {"V100": {"efficiency": {"convolution": 4}}},
          "nodes": [{"devices": [{"kind": "V100"}]}]})");
  EXPECT_EQ(cluster.kindOf(0).efficiency[size_t(OpClass::Convolution)].at(1),
            4);
}

TEST(Cluster, EfficienciesMayBeCurves) {
  Cluster cluster = Cluster::parse(
      R"({"kinds": {"V100": {"efficiency": {"matmul": [[1e2, 0.2], [1e4, 0.6]],
                                            "other": 0.5}}},
          "nodes": [{"devices": [{"kind": "V100"}]}]})");
  const auto &kind = cluster.kindOf(0);
  const Efficiency &products = kind.efficiency[size_t(OpClass::Matmul)];
  for (auto [flops, share] :
       {std::pair(0., 0.2), {1., 0.2}, {1e2, 0.2}, {1e4, 0.6}, {1e9, 0.6}})
    EXPECT_EQ(products.at(flops), share) << flops;
  EXPECT_NEAR(products.at(1e3), 0.4, 1e-12);
  EXPECT_EQ(kind.efficiency[size_t(OpClass::Other)].at(1e3), 0.5);
  EXPECT_EQ(kind.efficiency[size_t(OpClass::Reduction)].at(1e3), 1);
  // It consists of products.
  EXPECT_EQ(kind.efficiency[size_t(OpClass::Attention)].at(1e4), 0.6);
  auto errorOfCurve = [](const std::string &curve) {
    return errorOf(withKind("\"flops\": {\"f32\": 1}, \"memory_bytes\": 1, "
                            "\"memory_bandwidth\": 1, \"efficiency\": " +
                            curve));
  };
  EXPECT_EQ(errorOfCurve("[]"),
            "kinds.k.efficiency: expected at least one element");
  EXPECT_EQ(errorOfCurve("[[1, 0.5, 2]]"),
            "kinds.k.efficiency[0]: expected FLOPs and a share, found 3 "
            "elements");
  EXPECT_EQ(errorOfCurve("{\"matmul\": [[2, 0.5], [2, 0.6]]}"),
            "kinds.k.efficiency.matmul[1][0]: expected more FLOPs than in the "
            "point before");
  EXPECT_EQ(errorOfCurve("[[1, 2]]"),
            "kinds.k.efficiency[0][1]: expected a number from 1e-6 to 1, found "
            "2");
}

TEST(Cluster, MemoryThatNoProgramHas) {
  Cluster cluster = Cluster::parse(
      withKind("\"flops\": {\"f32\": 1}, \"memory_bytes\": 1000, "
               "\"memory_bandwidth\": 1, "
               "\"reserved_bytes\": {\"nccl\": 30, \"context\": 70}"));
  const DeviceKind &kind = cluster.kindOf(0);
  EXPECT_EQ(kind.memoryBytes, 900);
  EXPECT_EQ(kind.reservedBytes, 100);
  std::vector<std::pair<std::string, int64_t>> expected = {{"nccl", 30},
                                                           {"context", 70}};
  EXPECT_EQ(kind.reserves, expected);
  EXPECT_EQ(Cluster::parse(cluster.toJson()), cluster);
}

TEST(Cluster, WhatIsReachedOfPeaks) {
  Cluster cluster = Cluster::parse(
      R"({"kinds": {"k": {"flops": {"f32": 1}, "memory_bytes": 1000,
          "memory_bandwidth": 10, "memory_efficiency": 0.5,
          "kernel_start": 5e-6, "overlap_tax": 0.2, "reserved_bytes": 200,
          "efficiency": {"matmul": {"flops": [[1, 0.5], [100, 0.9]],
            "smallest_dimension": [[16, 0.1], [64, 0.7]]},
            "attention": 0.3,
            "convolution": {"window": [[1, 0.4], [9, 1.1]]}}}},
          "nodes": [{"devices": [{"kind": "k", "count": 2}],
            "link": {"bandwidth": 8, "efficiency": [[10, 0.25], [1000, 1]]}}],
          "network": {"bandwidth": 4, "efficiency": 0.5}})");
  const DeviceKind &kind = cluster.kindOf(0);
  EXPECT_EQ(kind.memoryEfficiency, 0.5);
  EXPECT_EQ(kind.kernelStart, 5e-6);
  EXPECT_EQ(kind.overlapTax, 0.2);
  EXPECT_EQ(kind.memoryBytes, 800);
  EXPECT_EQ(kind.reservedBytes, 200);
  const Efficiency &products = kind.efficiency[size_t(OpClass::Matmul)];
  EXPECT_EQ(products.at(1000), 0.9);
  EXPECT_EQ(products.at(1000, 8), 0.1);
  EXPECT_EQ(products.at(1, 8), 0.1);
  EXPECT_EQ(products.at(1, 64), 0.5);
  const Efficiency &convolutions =
      kind.efficiency[size_t(OpClass::Convolution)];
  EXPECT_EQ(convolutions.at(1000, 1), 0.4);
  EXPECT_EQ(convolutions.at(1000, 49), 1.1);
  EXPECT_EQ(kind.efficiency[size_t(OpClass::Attention)].at(1000), 0.3);
  EXPECT_EQ(cluster.nodeOf(0).link.secondsFor(10), 5);
  EXPECT_EQ(cluster.nodeOf(0).link.secondsFor(0), 0);
  EXPECT_EQ(cluster.network.secondsFor(10), 5);
  EXPECT_EQ(Cluster::parse(cluster.toJson()), cluster);
  auto errorOfKind = [](const std::string &fields) {
    return errorOf(withKind("\"flops\": {\"f32\": 1}, \"memory_bytes\": 9, "
                            "\"memory_bandwidth\": 1, " +
                            fields));
  };
  EXPECT_EQ(errorOfKind("\"reserved_bytes\": 9"),
            "kinds.k.reserved_bytes: expected less than the memory has");
  EXPECT_EQ(errorOfKind("\"reserved_bytes\": {\"context\": 5, \"nccl\": 4}"),
            "kinds.k.reserved_bytes: expected less than the memory has");
  EXPECT_EQ(errorOfKind("\"reserved_bytes\": {\"wire\": 4}"),
            "kinds.k.reserved_bytes.wire: unknown field, expected one of "
            "context, libraries, local, ucx, mpi, nccl");
  EXPECT_EQ(errorOfKind("\"kernel_start\": -1"),
            "kinds.k.kernel_start: expected a number from 0 to 1, found -1");
  EXPECT_EQ(errorOfKind("\"memory_efficiency\": 0"),
            "kinds.k.memory_efficiency: expected a number from 1e-6 to 1, "
            "found 0");
  EXPECT_EQ(errorOfKind("\"efficiency\": {\"matmul\": {\"k\": 1}}"),
            "kinds.k.efficiency.matmul.k: unknown field, expected one of "
            "flops, smallest_dimension");
  EXPECT_EQ(errorOfKind("\"efficiency\": {\"convolution\": {\"k\": 1}}"),
            "kinds.k.efficiency.convolution.k: unknown field, expected one of "
            "flops, window");
  EXPECT_EQ(errorOfKind("\"efficiency\": {\"matmul\": "
                        "{\"smallest_dimension\": [[4, 1], [4, 1]]}}"),
            "kinds.k.efficiency.matmul.smallest_dimension[1][0]: expected more "
            "elements than in the point before");
}

TEST(Cluster, SyntaxErrorsHaveLineAndColumn) {
  std::string text = "{\n  \"nodes\": [,\n}";
  EXPECT_EQ(positionOf(text), "line 2, column 13");
  EXPECT_NE(errorOf(text).find("unexpected ','"), std::string::npos)
      << errorOf(text);
  EXPECT_NE(errorOf(""), "");
  EXPECT_NE(errorOf("4 5"), "");
  EXPECT_EQ(errorOf(std::string_view("4\0 5", 4)), "a zero byte");
  EXPECT_NE(errorOf("\xff"), "");
  EXPECT_NE(errorOf("{\"nodes\": NaN}"), "");
  EXPECT_NE(errorOf("1e999"), "");
  EXPECT_NE(errorOf(std::string(100000, '[')), "");
}

TEST(Cluster, ErrorsNameTheField) {
  EXPECT_EQ(errorOf("[]"), "expected an object, found a list");
  EXPECT_EQ(errorOf("\"x\""), "expected an object, found \"x\"");
  EXPECT_EQ(errorOf("{}"), "field 'nodes' is missing");
  EXPECT_EQ(errorOf(R"({"nodes": [], "nodes": []})"),
            "field 'nodes' is given twice");
  EXPECT_EQ(errorOf(R"({"node": []})"),
            "node: unknown field, expected one of kinds, nodes, network");
  EXPECT_EQ(errorOf(R"({"nodes": []})"),
            "nodes: expected at least one element");
  EXPECT_EQ(errorOf(R"({"nodes": {}})"),
            "nodes: expected a list, found an object");
  EXPECT_EQ(errorOf(R"({"nodes": [{}]})"),
            "nodes[0]: field 'devices' is missing");
  EXPECT_EQ(
      errorOf(R"({"nodes": [{"devices": [{"kind": "cpu"}], "link":
                      {"bandwidth": 0}}]})"),
      "nodes[0].link.bandwidth: expected a number from 1 to 1e24, found 0");
  EXPECT_EQ(
      errorOf(R"({"nodes": [{"devices": [{"kind": "cpu"}], "link":
                      {"latency": -1}}]})"),
      "nodes[0].link.latency: expected a number from 0 to 1000, found -1");
  EXPECT_EQ(errorOf(R"({"nodes": [{"name": "a", "devices": [{"kind": "cpu"}]},
                      {"name": "a", "devices": [{"kind": "cpu"}]}]})"),
            "nodes[1].name: another node is named 'a'");
  EXPECT_EQ(errorOf(R"({"nodes": [{"devices": [{"kind": "cpu"}], "host":
                      {"memory_bytes": 4}}]})"),
            "nodes[0].host: field 'bandwidth' is missing");
  EXPECT_EQ(errorOf(R"({"nodes": [{"devices": [{"kind": "cpu"}],
                      "cores": 0}]})"),
            "nodes[0].cores: expected at least 1, found 0");
  EXPECT_EQ(errorOf(R"({"nodes": [{"devices": [{"kind": "cpu"}],
                      "memory_bandwidth": 0}]})"),
            "nodes[0].memory_bandwidth: expected a number from 1 to 1e24, "
            "found 0");
  EXPECT_EQ(errorOf(R"({"nodes": [{"count": 30000, "devices":
                      [{"kind": "cpu", "count": 8}]}]})"),
            "nodes[0]: the cluster has more than 32768 devices up to here");
}

TEST(Cluster, DeviceErrors) {
  std::string at = "nodes[0].devices[0]";
  EXPECT_EQ(errorOf(withDevices("")), at + ": field 'kind' is missing");
  EXPECT_EQ(errorOf(withDevices("\"kind\": 3")),
            at + ".kind: expected a string, found 3");
  EXPECT_EQ(errorOf(withDevices("\"kind\": \"\"")),
            at + ".kind: the string is empty");
  EXPECT_EQ(errorOf(withDevices("\"kind\": \"V99\"")).substr(0, 61),
            at + ".kind: unknown kind 'V99', known are cpu, ");
  EXPECT_EQ(errorOf(withDevices("\"kind\": \"cpu\", \"count\": 0")),
            at + ".count: expected at least 1, found 0");
  EXPECT_EQ(errorOf(withDevices("\"kind\": \"cpu\", \"count\": \"8\"")),
            at + ".count: expected a number, found \"8\"");
  EXPECT_EQ(errorOf(withDevices("\"kind\": \"cpu\", \"count\": 1e30")),
            at + ".count: expected at most 32768, found 1e+30");
  EXPECT_EQ(errorOf(withDevices("\"kind\": \"cpu\", \"slowdown\": 0.5")),
            at + ".slowdown: expected a number from 1 to 1e6, found 0.5");
  EXPECT_EQ(errorOf(withDevices("\"kind\": \"cpu\", \"speed\": 2")),
            at + ".speed: unknown field, expected one of kind, count, "
                 "slowdown");
}

TEST(Cluster, KindErrors) {
  std::string rest = ", \"memory_bytes\": 1, \"memory_bandwidth\": 1";
  EXPECT_EQ(errorOf(withKind("")), "kinds.k: field 'flops' is missing");
  EXPECT_EQ(errorOf(withKind("\"flops\": {}")),
            "kinds.k.flops: expected at least one element type");
  EXPECT_EQ(errorOf(withKind("\"flops\": {\"float32\": 1}")).substr(0, 43),
            "kinds.k.flops.float32: unknown element type");
  EXPECT_EQ(errorOf(withKind("\"flops\": {\"f32\": -1}")),
            "kinds.k.flops.f32: expected a number from 1 to 1e24, found -1");
  EXPECT_EQ(errorOf(withKind("\"flops\": {\"f32\": 1}")),
            "kinds.k: field 'memory_bytes' is missing");
  EXPECT_EQ(errorOf(withKind("\"flops\": {\"f32\": 1}, \"memory_bytes\": 1")),
            "kinds.k: field 'memory_bandwidth' is missing");
  EXPECT_EQ(errorOf(withKind("\"flops\": {\"f32\": 1}, "
                             "\"memory_bytes\": 1.5")),
            "kinds.k.memory_bytes: expected a whole number, found 1.5");
  EXPECT_EQ(
      errorOf(withKind("\"efficiency\": {\"matmul\": 1.5}, "
                       "\"flops\": {\"f32\": 1}" +
                       rest)),
      "kinds.k.efficiency.matmul: expected a number from 1e-6 to 1, found "
      "1.5");
  EXPECT_EQ(errorOf(withKind("\"efficiency\": {\"conv\": 1}, "
                             "\"flops\": {\"f32\": 1}" +
                             rest)),
            "kinds.k.efficiency.conv: unknown field, expected one of matmul, "
            "convolution, attention, elementwise, reduction, other");
}

TEST(Cluster, ErrorsHaveLineAndColumn) {
  EXPECT_EQ(positionOf("0"), "line 1, column 1");
  EXPECT_EQ(positionOf("{\n \"nodes\" : 3}"), "line 2, column 12");
  EXPECT_EQ(positionOf("{\"nodes\": [{\"name\": \"a\\\"}:\", \"devices\": [\n"
                       "  {\"kind\": \"cpu\", \"count\": 1},\n"
                       "  {\"kind\": \"cpu\", \"count\": -1}]}]}"),
            "line 3, column 28");
  EXPECT_EQ(positionOf("{\"nodes\": [\n\n {}]}"), "line 3, column 2");
  EXPECT_EQ(positionOf("{\"x\": [true, null, [1.5e3]],\n\"network\": {}}"),
            "line 1, column 7");
  EXPECT_EQ(positionOf("{\"nodes\": [],\n \"nodes\": []}"), "line 2, column 2");
  EXPECT_EQ(positionOf("{\"nodes\":\n [{\"count\": 1e400}]}"),
            "line 2, column 13");
}

TEST(Cluster, ZeroBytesInNamesAreTold) {
  std::string node = R"({"name": "a\u0000b", "devices": [{"kind": "cpu"}]})";
  EXPECT_EQ(errorOf("{\"nodes\": [" + node + "," + node + "]}"),
            "nodes[1].name: another node is named 'a\\x00b'");
}

TEST(Cluster, ReadingIsLinear) {
  auto read = [](size_t count) {
    std::string kinds, nodes;
    for (size_t i = 0; i < count; ++i) {
      std::string number = std::to_string(i), comma = i ? "," : "";
      kinds += comma + "\"k" + number +
               R"(": {"flops": {"f32": 1e12}, "memory_bytes": 1e9,
                      "memory_bandwidth": 1e11})";
      nodes += comma + R"({"name": "n)" + number +
               R"(", "devices": [{"kind": "k)" + number + R"("}]})";
    }
    Cluster cluster = Cluster::parse("{\"kinds\": {" + kinds +
                                     "}, \"nodes\": [" + nodes + "]}");
    EXPECT_EQ(cluster.devices.size(), count);
    EXPECT_EQ(Cluster::parse(cluster.toJson()), cluster);
  };
  EXPECT_TRUE(test::isNearlyLinear(read, 100));
}
