//===- CudaAttentionTest.cpp - Attention as cuDNN takes it ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls in many orders of dimensions, on the test machine and on the processor.
// Where the real cuDNN is, it makes plans for GPUs that are not there: it asks
// for a driver, of which only what loads its kernels has to work.
//
//===----------------------------------------------------------------------===//

#include "CudaScenario.h"
#include "device/cuda/AttentionGraphs.h"
#include "device/cuda/Calls.h"
#include "device/cuda/Staging.h"
#include "whale/ProgramFormat/Attention.h"

#include <cmath>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <unistd.h>

namespace whale::runtime::test {
namespace {

using cuda::test::Machine;
using format::FusedAttention;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// On the test machine
//===----------------------------------------------------------------------===//

using Tensors = std::vector<LibraryTensor>;
using Buffers = std::vector<std::vector<uint8_t>>;

int64_t bytesOf(const LibraryTensor &tensor) {
  return elementCount(tensor.shape) * byteSize(tensor.dtype);
}

/// Attention and perhaps its gradient, by the letters of their tensors.
struct Problem {
  std::map<char, int64_t> extents;
  std::string query, key, value, result, statistics;
  std::optional<int64_t> causal = {};
  /// Of the cotangents of the result, query, key and value.
  std::vector<std::string> cotangents = {};
  int64_t mostWorkspace = 1 << 30;
  /// Whether query, key and value are parts of a tensor of three times their
  /// last two dimensions.
  bool isPacked = false;

  LibraryTensor tensor(const std::string &letters,
                       DType dtype = DType::BF16) const {
    Shape shape;
    for (char letter : letters)
      shape.push_back(extents.at(letter));
    return {dtype, shape};
  }
  nlohmann::json config() const {
    nlohmann::json config = {{"query", query}, {"key", key},
                             {"value", value}, {"scale", 0.3},
                             {"fill", -1e9},   {"statistics", statistics}};
    if (causal)
      config["causal"] = *causal;
    int64_t part = 0;
    for (const auto &[name, letters] : {std::pair("query_view", query),
                                        {"key_view", key},
                                        {"value_view", value}}) {
      Shape shape = tensor(letters).shape, strides(shape.size(), 1);
      for (size_t dim = shape.size(); dim-- > 1;)
        strides[dim - 1] =
            strides[dim] * shape[dim] * (dim + 2 == shape.size() ? 3 : 1);
      int64_t line = strides[shape.size() - 2] * shape[shape.size() - 2];
      if (isPacked)
        config[name] = {
            {"shape", shape}, {"strides", strides}, {"offset", line * part++}};
    }
    return config;
  }
  /// Of queries, keys or values, with what is around them.
  LibraryTensor whole(const std::string &letters) const {
    LibraryTensor result = tensor(letters);
    if (isPacked)
      result.shape[result.shape.size() - 2] *= 3;
    return result;
  }
  /// Scratch memory of one thread.
  LibraryTensor scratch(bool isGradient) const {
    format::AttentionSizes sizes{1, extents.at('q'), extents.at('k'),
                                 extents.at('d'), extents.at('e')};
    return {DType::F32,
            {isGradient ? sizes.gradientScratch() : sizes.scratch()}};
  }
};

/// Numbers from -1 to 1 in bf16.
std::vector<uint8_t> randomNumbers(std::mt19937 &random,
                                   const LibraryTensor &tensor) {
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<uint8_t> bytes(static_cast<size_t>(bytesOf(tensor)));
  for (size_t at = 0; at < bytes.size(); at += 2) {
    float number = any(random);
    std::memcpy(&bytes[at], reinterpret_cast<char *>(&number) + 2, 2);
  }
  return bytes;
}

/// The largest difference, as a share of the largest number.
double difference(DType dtype, const std::vector<uint8_t> &a,
                  const std::vector<uint8_t> &b) {
  double most = 0, largest = 1e-30;
  auto width = static_cast<size_t>(byteSize(dtype));
  for (size_t at = 0; at < a.size(); at += width) {
    auto read = [&](const std::vector<uint8_t> &bytes) {
      float number = 0;
      std::memcpy(reinterpret_cast<char *>(&number) + 4 - width, &bytes[at],
                  width);
      return double(number);
    };
    double distance = std::abs(read(a) - read(b));
    most = std::isnan(distance) ? INFINITY : std::max(most, distance);
    largest = std::max(largest, std::abs(read(a)));
  }
  return most / largest;
}

std::vector<void *> addressesOf(Buffers &buffers) {
  std::vector<void *> result;
  for (auto &buffer : buffers)
    result.push_back(buffer.data());
  return result;
}

/// What is in outputs before they are written.
Buffers makeOutputs(const Tensors &outputs) {
  Buffers result;
  for (const LibraryTensor &tensor : outputs)
    result.emplace_back(static_cast<size_t>(bytesOf(tensor)), 0xff);
  return result;
}

/// Runs a call on the GPU; compares its results but scratch memory with those
/// of the processor, which it returns.
Buffers check(Machine &machine, const Problem &problem, bool isGradient,
              const LibraryRequest &request, Buffers &inputs) {
  Buffers expected = makeOutputs(request.outputs);
  (*findLibraryFunction(isGradient ? "fused_attention_gradient"
                                   : "fused_attention"))(request)(
      addressesOf(inputs), addressesOf(expected));

  cuda::Gpu gpu(machine.libraries(), 0);
  gpu.attach();
  cuda::CallContext context(gpu);
  cuda::GpuCall call = cuda::prepareGpuAttention(
      context, request, problem.mostWorkspace, isGradient);
  EXPECT_TRUE(call.run);
  if (!call.run)
    return expected;
  EXPECT_EQ(call.algorithm, "cuDNN engine 1");
  EXPECT_LE(call.workspaceBytes, problem.mostWorkspace);
  {
    cuda::PinnedPool pool(gpu);
    std::vector<cuda::Address> taken;
    auto take = [&](int64_t bytes) {
      return reinterpret_cast<void *>(taken.emplace_back(gpu.allocate(bytes)));
    };
    std::vector<void *> in, out;
    for (auto &bytes : inputs) {
      in.push_back(take(static_cast<int64_t>(bytes.size())));
      cuda::upload(gpu, pool, in.back(), bytes.data(),
                   static_cast<int64_t>(bytes.size()), gpu.compute);
    }
    for (const LibraryTensor &tensor : request.outputs)
      out.push_back(take(bytesOf(tensor)));
    context.stream = gpu.compute;
    context.workspace = take(call.workspaceBytes);
    call.run(in, out);
    for (size_t i = 0; i + 1 < request.outputs.size(); ++i) {
      std::vector<uint8_t> found(expected[i].size());
      cuda::download(gpu, pool, found.data(), out[i],
                     static_cast<int64_t>(found.size()), gpu.compute);
      EXPECT_LE(difference(request.outputs[i].dtype, expected[i], found), 1e-2)
          << "result " << i;
    }
    gpu.synchronize(gpu.compute);
    for (cuda::Address address : taken)
      gpu.driver.memFree.function(address);
  }
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
  return expected;
}

void check(Machine &machine, const Problem &problem, std::mt19937 &random) {
  SCOPED_TRACE(problem.query + " " + problem.key + " " + problem.result);
  nlohmann::json config = problem.config();
  config["result"] = problem.result;
  Tensors inputs = {problem.whole(problem.query), problem.whole(problem.key),
                    problem.whole(problem.value)};
  Buffers memory;
  for (const LibraryTensor &tensor : inputs)
    memory.push_back(randomNumbers(random, tensor));
  Tensors outputs = {problem.tensor(problem.result),
                     problem.tensor(problem.statistics, DType::F32),
                     problem.scratch(false)};
  Buffers results =
      check(machine, problem, false, {inputs, outputs, config, {}}, memory);
  if (problem.cotangents.empty())
    return;
  config = problem.config();
  config["output"] = problem.result;
  config["cotangent"] = problem.cotangents[0];
  config["query_result"] = problem.cotangents[1];
  config["key_result"] = problem.cotangents[2];
  config["value_result"] = problem.cotangents[3];
  inputs.push_back(problem.tensor(problem.cotangents[0]));
  inputs.insert(inputs.end(), outputs.begin(), outputs.begin() + 2);
  memory.push_back(randomNumbers(random, inputs[3]));
  memory.insert(memory.end(), results.begin(), results.begin() + 2);
  outputs = {problem.tensor(problem.cotangents[1]),
             problem.tensor(problem.cotangents[2]),
             problem.tensor(problem.cotangents[3]), problem.scratch(true)};
  check(machine, problem, true, {inputs, outputs, config, {}}, memory);
}

/// What cuDNN has no plan for, whatever the compiler has expected, is computed
/// by the processor, and profiles say why.
TEST(CudaAttention, WithoutAPlan) {
  Problem problem{
      {{'q', 4}, {'k', 4}, {'d', 8}, {'e', 8}}, "qd", "kd", "ke", "qe", "q"};
  nlohmann::json config = problem.config();
  config["result"] = problem.result;
  LibraryRequest request{
      {problem.tensor("qd"), problem.tensor("kd"), problem.tensor("ke")},
      {problem.tensor("qe"), problem.tensor("q", DType::F32),
       problem.scratch(false)},
      config,
      {}};
  auto algorithmOf = [&](const cuda::test::MachineOptions &options,
                         int64_t mostWorkspace) {
    Machine machine(options);
    cuda::Gpu gpu(machine.libraries(), 0);
    cuda::CallContext context(gpu);
    cuda::GpuCall call =
        cuda::prepareGpuAttention(context, request, mostWorkspace, false);
    EXPECT_FALSE(call.run);
    EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
    return call.algorithm;
  };
  EXPECT_EQ(algorithmOf({}, 100),
            "processor, as a head of 4 rows and 4 keys would take more than "
            "its workspace of 100 bytes");
  EXPECT_EQ(algorithmOf({.capabilities = {75}}, 1 << 30),
            "processor, as cuDNN's attention is for sm_80 and later");
  EXPECT_NE(algorithmOf({.hasNoEngines = true}, 1 << 30)
                .find("processor, as cuDNN 9.19 has no plan for attention ("),
            std::string::npos);
}

TEST(CudaAttention, IsThatOfTheProcessor) {
  Machine machine({});
  std::mt19937 random(6);
  std::map<char, int64_t> plain = {{'b', 2}, {'h', 3}, {'q', 10},
                                   {'k', 7}, {'d', 8}, {'e', 8}};
  check(machine, {plain, "bqhd", "bkhd", "bkhe", "bqhe", "bhq"}, random);
  check(machine, {plain, "hqbd", "bkhd", "hbke", "bhqe", "hbq", 0}, random);
  // Heads of queries that share one of the keys: some, and all.
  std::map<char, int64_t> grouped = plain;
  grouped.insert({{'n', 2}, {'1', 1}});
  check(machine, {grouped, "bqhnd", "bkhd", "bkhe", "bqhne", "bhnq"}, random);
  check(machine, {grouped, "bqnd", "bkd", "bke", "bnqe", "bnq", 0}, random);
  check(machine, {grouped, "1bqhnd", "bkhd", "bkh1e", "bqhne", "bhnq", 0},
        random);
  std::map<char, int64_t> wide = plain;
  wide['k'] = 128;
  for (std::optional<int64_t> causal : {std::optional<int64_t>(), {0}})
    check(machine,
          {wide,
           "bqhd",
           "bkhd",
           "hbke",
           "bhqe",
           "bhq",
           causal,
           {"bqhe", "hbqd", "bkhd", "bhke"}},
          random);
  Problem gradient{wide,   "bqhd", "bkhd", "bkhe",
                   "bqhe", "bhq",  0,      {"bqhe", "bqhd", "bkhd", "bkhe"}};
  gradient.isPacked = true;
  check(machine, gradient, random);
  // Heads that share keys add up their cotangents.
  grouped['k'] = 128;
  for (bool isShared : {false, true})
    check(machine,
          {grouped, isShared ? "bqnd" : "bqhnd", isShared ? "bkd" : "bkhd",
           isShared ? "bke" : "bkhe", isShared ? "bqne" : "bqhne",
           isShared ? "bnq" : "bhnq", 0,
           isShared
               ? std::vector<std::string>{"bnqe", "bqnd", "bkd", "bke"}
               : std::vector<std::string>{"bqhne", "bhnqd", "hbkd", "bkhe"}},
          random);
  // A sample at a time, and a head at a time.
  gradient.isPacked = false;
  for (int64_t heads : {4, 1}) {
    gradient.mostWorkspace = (1 << 20) + heads * (128 * 128 * 2 + 10 * 8);
    check(machine, gradient, random);
  }
  // Heads that share keys: a head of keys at a time, and one of queries, whose
  // cotangents of the keys are added up.
  Problem sharing{grouped, "bqhnd", "bkhd", "bkhe",
                  "bqhne", "bhnq",  0,      {"bqhne", "bhnqd", "hbkd", "bkhe"}};
  for (int64_t heads : {2, 1}) {
    sharing.mostWorkspace =
        (1 << 20) + heads * (128 * 128 * 2 + 10 * 8 + 4096 * 2);
    check(machine, sharing, random);
  }
}

FusedAttention fusedOf(int64_t heads, int64_t keyHeads, int64_t tokens,
                       int64_t features) {
  FusedAttention attention;
  attention.samples = 2;
  attention.heads = heads;
  attention.keyHeads = keyHeads;
  attention.rows = attention.keys = tokens;
  attention.features = features;
  attention.isCausal = attention.isGradient = true;
  auto strides = [&](int64_t heads) {
    return FusedAttention::Strides{tokens * heads * features, features,
                                   heads * features};
  };
  auto rows = strides(heads), keys = strides(keyHeads);
  attention.inputs = {rows, keys, keys, rows, rows};
  attention.results = {rows, keys, keys};
  return attention;
}

/// Each head is in one part, whatever takes too much workspace at once.
TEST(CudaAttention, PartsAreWholeAndFit) {
  struct Parts {
    int64_t samples, heads, keyHeads, keyParts;
    bool operator==(const Parts &) const = default;
  };
  constexpr int64_t gib = int64_t(1) << 30;
  auto partsOf = [&](const FusedAttention &all, int64_t most = gib) {
    std::optional<FusedAttention> part = format::choosePart(all, most);
    if (!part)
      return Parts{};
    EXPECT_LE(format::findWorkspace(*part), most);
    EXPECT_EQ(all.heads % part->heads, 0);
    return Parts{part->samples, part->heads, part->keyHeads, part->keyParts};
  };
  EXPECT_EQ(partsOf(fusedOf(32, 8, 2048, 128)), (Parts{2, 32, 8, 1}));
  // Of one sample it would be 1,144 MB.
  EXPECT_EQ(partsOf(fusedOf(32, 8, 4096, 128)), (Parts{1, 16, 4, 1}));
  EXPECT_EQ(partsOf(fusedOf(40, 8, 8192, 128)), (Parts{1, 5, 1, 1}));
  EXPECT_EQ(partsOf(fusedOf(64, 8, 8192, 128)), (Parts{1, 1, 1, 8}));
  EXPECT_EQ(partsOf(fusedOf(32, 32, 8192, 128)), (Parts{1, 4, 4, 1}));
  // A head of queries alone takes 2 GiB.
  EXPECT_EQ(partsOf(fusedOf(32, 8, 32768, 128)), Parts());
  EXPECT_EQ(partsOf(fusedOf(32, 8, 32768, 128), 5 * gib / 2),
            (Parts{1, 1, 1, 4}));
  EXPECT_EQ(partsOf(fusedOf(32, 32, 32768, 128), 5 * gib / 2),
            (Parts{1, 1, 1, 1}));
  EXPECT_EQ(format::mostAttentionWorkspace(16 * gib), gib);
  EXPECT_EQ(format::mostAttentionWorkspace(80 * gib), 5 * gib / 2);
}

//===----------------------------------------------------------------------===//
// By the real library
//===----------------------------------------------------------------------===//

/// Functions of the driver that cuDNN looks for when it makes plans.
constexpr const char *driverFunctions[] = {
    "cuCtxGetCurrent",       "cuCtxGetLimit",
    "cuCtxPopCurrent",       "cuCtxPushCurrent",
    "cuDeviceGet",           "cuDeviceGetCount",
    "cuDriverGetVersion",    "cuGetErrorName",
    "cuGetErrorString",      "cuKernelGetAttribute",
    "cuKernelSetAttribute",  "cuLaunchCooperativeKernel",
    "cuLaunchKernel",        "cuLaunchKernelEx",
    "cuLibraryLoadFromFile", "cuLinkAddData",
    "cuLinkComplete",        "cuLinkCreate",
    "cuLinkDestroy",         "cuOccupancyMaxPotentialClusterSize",
    "cuStreamGetCtx"};

/// Opens a driver without GPUs that loads what cuDNN compiles.
void openDriver() {
  std::string name = ::testing::TempDir() + "whale-attention-driver-" +
                     std::to_string(getpid());
  fs::path source = name + ".c", library = name + ".so";
  std::ofstream text(source);
  for (const char *function : driverFunctions)
    text << "int " << function << "(void) { return 34; }\n";
  text << "int cuLibraryLoadData(void **l) { *l = (void *)1; return 0; }\n"
          "int cuLibraryGetKernel(void **k) { *k = (void *)1; return 0; }\n"
          "int cuLibraryUnload(void *l) { return 0; }\n";
  text.close();
  std::string command = WHALE_TEST_CC " -shared -fPIC -Wl,-soname,libcuda.so.1 "
                                      "-o " +
                        library.string() + " " + source.string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  ASSERT_TRUE(dlopen(library.c_str(), RTLD_NOW)) << dlerror();
  fs::remove(source);
  fs::remove(library);
}

/// cuDNN has deterministic plans for what it is said to have, and for nothing
/// that an architecture is said not to have.
TEST(CudaAttention, HasPlansOfTheRealLibrary) {
  // It has no such attention before that version.
  std::string why;
  std::unique_ptr<cuda::Dnn> dnn = openRealDnn(91000, why);
  if (!dnn)
    GTEST_SKIP() << why;
  openDriver();
  struct Kind {
    int capability;
    int64_t rows, keys, heads, keyHeads, features;
    bool isCausal, isGradient, isThere;
  };
  constexpr int64_t most = int64_t(1) << 30;
  for (const Kind &kind : {
           Kind{75, 128, 128, 4, 4, 64, true, false, false},
           {75, 128, 128, 4, 4, 64, true, true, false},
           {80, 128, 128, 4, 4, 64, false, false, true},
           {80, 101, 77, 4, 2, 128, true, false, true},
           {80, 128, 128, 4, 4, 256, true, false, true},
           {80, 128, 128, 4, 4, 128, true, true, true},
           {80, 128, 128, 4, 4, 256, true, true, false},
           {90, 1024, 1024, 16, 16, 64, true, false, true},
           {90, 101, 77, 4, 1, 64, false, false, true},
           {90, 128, 128, 4, 4, 256, true, false, true},
           {90, 1024, 1024, 16, 16, 64, true, true, true},
           {90, 101, 128, 4, 4, 128, false, true, true},
           {90, 128, 128, 4, 2, 64, true, true, true},
           {90, 128, 128, 4, 4, 256, true, true, true},
           // What is computed at a time of heads that share keys.
           {90, 2048, 2048, 32, 8, 128, true, true, true},
           {90, 8192, 8192, 1, 1, 64, true, true, true},
       }) {
    FusedAttention attention;
    attention.samples = 2;
    attention.heads = kind.heads;
    attention.keyHeads = kind.keyHeads;
    attention.rows = kind.rows;
    attention.keys = kind.keys;
    attention.features = kind.features;
    attention.isCausal = kind.isCausal;
    attention.isGradient = kind.isGradient;
    auto strides = [&](int64_t lines, int64_t heads) {
      return FusedAttention::Strides{lines * heads * kind.features,
                                     kind.features, heads * kind.features};
    };
    auto rows = strides(kind.rows, kind.heads);
    auto keys = strides(kind.keys, kind.keyHeads);
    // As of one tensor.
    auto packed = [](FusedAttention::Strides strides) {
      return FusedAttention::Strides{3 * strides[0], strides[1],
                                     3 * strides[2]};
    };
    attention.inputs = {packed(rows), packed(keys), packed(keys), rows, rows};
    attention.results = {rows, keys, keys};
    auto plan = cuda::findAttentionPlan(
        *dnn, attention, {nullptr, propertiesOf(kind.capability)}, most);
    EXPECT_EQ(plan != nullptr, kind.isThere)
        << kind.capability << " " << kind.rows << " x " << kind.keys << ", "
        << kind.features << " features, gradient " << kind.isGradient;
    if (plan)
      EXPECT_LE(plan->workspaceBytes(), format::findWorkspace(attention));
    // Gradients that need less are sums in no order.
    if (plan && kind.isGradient)
      EXPECT_GE(plan->workspaceBytes(),
                2 * attention.samples * kind.heads * kind.rows * kind.keys);
  }
}

} // namespace
} // namespace whale::runtime::test
