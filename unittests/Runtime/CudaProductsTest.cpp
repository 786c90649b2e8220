//===- CudaProductsTest.cpp - Products as cuBLASLt takes them -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random products of small whole numbers, whose results are exact, on the test
// machine and on the processor, and products of 8-bit elements. The machine
// refuses what cuBLASLt would.
//
//===----------------------------------------------------------------------===//

#include "CudaScenario.h"
#include "device/cuda/Products.h"

#include <gtest/gtest.h>
#include <numeric>

namespace whale::runtime::test {
namespace {

using cuda::test::Machine;

int64_t pick(std::mt19937 &random, int64_t count) {
  return static_cast<int64_t>(random() % static_cast<unsigned>(count));
}

/// Strides of a tensor whose dimensions are in some order in memory, the last
/// one with a gap now and then. Returns the elements that it spans.
int64_t layOut(std::mt19937 &random, const std::vector<int64_t> &sizes,
               std::vector<int64_t> &strides) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  strides.assign(sizes.size(), 0);
  int64_t stride = 1;
  for (size_t dim : order) {
    strides[dim] = stride;
    stride *= sizes[dim] + (pick(random, 4) == 0 ? 3 : 0);
  }
  return stride;
}

struct Case {
  Matmul op;
  int64_t lhsElements, rhsElements, outElements;
};

Case makeCase(std::mt19937 &random) {
  static constexpr DType types[][2] = {
      {DType::F32, DType::F32},  {DType::BF16, DType::BF16},
      {DType::BF16, DType::F32}, {DType::F16, DType::F16},
      {DType::F64, DType::F64},  {DType::C64, DType::C64},
      {DType::I32, DType::I32}};
  Case result;
  Matmul &op = result.op;
  const auto &type = types[pick(random, 7)];
  op.lhsType = op.rhsType = type[0];
  op.outType = type[1];
  op.m = 1 + pick(random, 9), op.n = 1 + pick(random, 9);
  op.k = 1 + pick(random, 9);
  op.accumulate = pick(random, 3) == 0;
  std::vector<int64_t> lhs = {op.m, op.k}, rhs = {op.k, op.n},
                       out = {op.m, op.n};
  for (int64_t dims = pick(random, 4); dims > 0; --dims) {
    int64_t size = 1 + pick(random, 3);
    op.batch.push_back({size, 0, 0, 0});
    for (auto *sizes : {&lhs, &rhs, &out})
      sizes->push_back(size);
  }
  std::vector<int64_t> strides;
  result.lhsElements = layOut(random, lhs, strides);
  op.mLhs = strides[0], op.kLhs = strides[1];
  for (size_t i = 0; i < op.batch.size(); ++i)
    op.batch[i].lhs = strides[i + 2];
  result.rhsElements = layOut(random, rhs, strides);
  op.kRhs = strides[0], op.nRhs = strides[1];
  for (size_t i = 0; i < op.batch.size(); ++i)
    op.batch[i].rhs = pick(random, 4) ? strides[i + 2] : 0;
  result.outElements = layOut(random, out, strides);
  op.mOut = strides[0], op.nOut = strides[1];
  for (size_t i = 0; i < op.batch.size(); ++i)
    op.batch[i].out = strides[i + 2];
  op.lhs = 0, op.rhs = 1, op.out = 2;
  return result;
}

/// What a device makes of `out`.
Bytes multiply(Device &device, const Matmul &op, const Bytes &lhs,
               const Bytes &rhs, const Bytes &out) {
  return computeOn(device, lhs, rhs, out, [&](const BufferTable &table) {
    device.matmul(Queue::Compute, op, table);
  });
}

TEST(CudaProducts, AreThoseOfTheProcessor) {
  Machine machine({});
  auto gpu = makeGpu(machine), cpu = createCpuDevice(1);
  cpu->attachThread();
  std::mt19937 random(11);
  int64_t forBlas = 0;
  constexpr int64_t count = 400;
  // A device knows products by their addresses.
  std::vector<Case> cases;
  for (int64_t i = 0; i < count; ++i)
    cases.push_back(makeCase(random));
  for (const Case &each : cases) {
    const Matmul &op = each.op;
    SCOPED_TRACE(&each - cases.data());
    forBlas += cuda::isForBlas(op, 90, 256);
    Bytes lhs = randomElements(random, op.lhsType, each.lhsElements),
          rhs = randomElements(random, op.rhsType, each.rhsElements),
          out = randomElements(random, op.outType, each.outElements);
    std::vector<Bytes> results;
    for (Device *device : {cpu.get(), gpu.get()})
      results.push_back(multiply(*device, op, lhs, rhs, out));
    ASSERT_EQ(machine.takeFaults(), std::vector<std::string>());
    ASSERT_EQ(results[0], results[1]);
  }
  EXPECT_GT(forBlas, count / 4);
  EXPECT_LT(forBlas, count);
  std::cout << forBlas << " of " << count << " by cuBLASLt\n";
}

struct Types {
  DType lhs, rhs, out;
};

/// As cuBLASLt takes products of bytes: rows of neighbours that are contracted,
/// of 48 elements in two batches, with a gap behind each, or none.
Case makeBytes(const Types &types, int64_t gap, bool isTransposed) {
  constexpr int64_t m = 20, n = 24, k = 48, batch = 2;
  Case result;
  Matmul &op = result.op;
  op.lhsType = types.lhs, op.rhsType = types.rhs, op.outType = types.out;
  op.m = m, op.n = n, op.k = k;
  op.kLhs = op.kRhs = 1;
  op.mLhs = op.nRhs = k + gap;
  // Rows of its result must be of 16 bytes each.
  if (isTransposed)
    std::swap(op.m, op.n);
  op.nOut = 1, op.mOut = op.n;
  if (isTransposed)
    op.mOut = 1, op.nOut = op.m;
  result.lhsElements = op.m * op.mLhs * batch;
  result.rhsElements = op.n * op.nRhs * batch;
  result.outElements = m * n * batch;
  op.batch = {{batch, op.m * op.mLhs, op.n * op.nRhs, m * n}};
  op.lhs = 0, op.rhs = 1, op.out = 2;
  return result;
}

constexpr Types kBytes[] = {{DType::I8, DType::I8, DType::I32},
                            {DType::F8E4M3FN, DType::F8E4M3FN, DType::F32},
                            {DType::F8E4M3FN, DType::F8E5M2, DType::BF16},
                            {DType::F8E5M2, DType::F8E4M3FN, DType::F16}};

/// The results are the processor's; `isForBlas` says which are the library's.
void checkBytes(Machine &machine,
                const std::function<bool(const Matmul &)> &isForBlas) {
  auto gpu = makeGpu(machine), cpu = createCpuDevice(1);
  cpu->attachThread();
  std::mt19937 random(5);
  std::vector<Case> cases;
  for (const Types &types : kBytes)
    for (int64_t gap : {0, 4, 16})
      for (bool isTransposed : {false, true})
        cases.push_back(makeBytes(types, gap, isTransposed));
  for (const Case &each : cases) {
    const Matmul &op = each.op;
    SCOPED_TRACE(&each - cases.data());
    Bytes lhs = randomElements(random, op.lhsType, each.lhsElements),
          rhs = randomElements(random, op.rhsType, each.rhsElements),
          out = randomElements(random, op.outType, each.outElements);
    EXPECT_EQ(multiply(*cpu, op, lhs, rhs, out),
              multiply(*gpu, op, lhs, rhs, out));
    Instruction instruction;
    instruction.operation = &op;
    EXPECT_EQ(gpu->algorithmOf(instruction),
              isForBlas(op)
                  ? "cuBLASLt 10, tile 11, stages 16, 12 parts of the sum"
                  : "processor");
  }
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

bool isInteger(const Matmul &op) { return op.lhsType == DType::I8; }

TEST(CudaProducts, OfBytesAreTheLibrarysIfItHasThem) {
  Machine machine({});
  checkBytes(machine, [](const Matmul &op) {
    return isInteger(op) || op.mLhs % 16 == 0;
  });
}

TEST(CudaProducts, OfF8AreTheProcessorsBeforeSm89) {
  Machine machine({.capabilities = {86}});
  checkBytes(machine, isInteger);
}

TEST(CudaProducts, OfBytesAreTheProcessorsWithoutAnAlgorithm) {
  Machine machine({.refusesBytes = true});
  checkBytes(machine, [](const Matmul &) { return false; });
}

TEST(CudaProducts, SayWhyBytesAreNotTheLibrarys) {
  auto whyNot = [](const Types &types,
                   const std::function<void(Matmul &)> &change,
                   int capability = 90) {
    Matmul op = makeBytes(types, 0, false).op;
    EXPECT_TRUE(format::isOfBytes(op));
    change(op);
    const char *why = format::findLackOfBytes(op, capability);
    return std::string(why ? why : "");
  };
  auto same = [](Matmul &) {};
  const Types &integers = kBytes[0], &f8 = kBytes[1];
  EXPECT_EQ(whyNot(integers, same, 75), "");
  EXPECT_EQ(whyNot(f8, same, 89), "");
  EXPECT_EQ(whyNot(f8, same, 86), "products of f8 are for sm_89 and later");
  EXPECT_EQ(whyNot({DType::I8, DType::I8, DType::I8}, same),
            "its result is not i32");
  EXPECT_EQ(whyNot({DType::F8E5M2, DType::F8E5M2, DType::F32}, same),
            "both operands are f8E5M2");
  EXPECT_EQ(whyNot({DType::F8E5M2, DType::F8E4M3FN, DType::F8E5M2}, same),
            "its result is not f32, bf16 or f16");
  EXPECT_EQ(whyNot(integers,
                   [](Matmul &op) {
                     op.k = op.mLhs = op.nRhs = 131072;
                     op.batch.clear();
                   }),
            "its sums may leave i32");
  EXPECT_EQ(whyNot(f8, [](Matmul &op) { op.n = 1; }),
            "it is empty, or has one row or column");
  EXPECT_EQ(whyNot(integers, [](Matmul &op) { std::swap(op.kRhs, op.nRhs); }),
            "the contracted elements are no neighbours");
  EXPECT_EQ(whyNot(integers, [](Matmul &op) { op.nOut = 2; }),
            "its result has no neighbours");
  EXPECT_EQ(whyNot(integers, [](Matmul &op) { op.k = 46; }),
            "the contracted extent is no multiple of 4");
  EXPECT_EQ(whyNot(f8, [](Matmul &op) { op.mLhs = 52; }),
            "the contracted extent is no multiple of 16");
  for (auto change :
       {+[](Matmul &op) { op.n = 22; }, +[](Matmul &op) { op.mOut = 26; },
        +[](Matmul &op) { op.batch[0].out = 482; }})
    EXPECT_EQ(whyNot(f8, change),
              "rows of its result are no multiple of 16 bytes");
}

/// What nobody asks of the library as `isForBlas` knows better.
TEST(CudaProducts, OfBytesAreRefusedAsTheLibraryDoes) {
  Machine machine({.capabilities = {86}});
  cuda::Gpu gpu(machine.libraries(), 0);
  gpu.attach();
  auto faultsOf = [&](const Types &types, uint32_t alignment,
                      const std::function<void(Matmul &)> &change) {
    Matmul op = makeBytes(types, 0, false).op;
    change(op);
    EXPECT_THROW(
        cuda::Product(gpu, nullptr, op, alignment, 0, nullptr, nullptr), Error);
    return machine.takeFaults().size();
  };
  auto same = [](Matmul &) {};
  EXPECT_EQ(faultsOf(kBytes[0], 2, same), 1u);
  EXPECT_EQ(faultsOf(kBytes[1], 16, same), 1u);
  EXPECT_EQ(faultsOf(kBytes[0], 4, [](Matmul &op) { op.k = 46; }), 1u);
  EXPECT_EQ(
      faultsOf(kBytes[0], 4, [](Matmul &op) { op.mLhs = 1, op.kLhs = op.m; }),
      1u);
}

/// 1 + 2^-12 times itself: f32 tells it from 1, TF32 does not.
TEST(CudaProducts, AreInTf32OnlyWhereTheyMayBe) {
  Machine machine({});
  auto device = makeGpu(machine);
  Matmul exact;
  exact.lhsType = exact.rhsType = exact.outType = DType::F32;
  exact.m = exact.n = exact.k = 1;
  exact.lhs = 0, exact.rhs = 1, exact.out = 2;
  Matmul rounded = exact;
  rounded.tf32 = true;
  float number = 1 + 0x1p-12f;
  for (const auto &[op, expected] :
       {std::pair(&exact, number * number), std::pair(&rounded, 1.0f)}) {
    Bytes bytes(sizeof(number));
    std::memcpy(bytes.data(), &number, sizeof(number));
    Bytes result = multiply(*device, *op, bytes, bytes, bytes);
    float found = 0;
    ASSERT_EQ(result.size(), sizeof(found));
    std::memcpy(&found, result.data(), sizeof(found));
    EXPECT_EQ(found, expected);
    Instruction instruction;
    instruction.operation = op;
    EXPECT_EQ(device->algorithmOf(instruction),
              "cuBLASLt 10, tile 11, stages 16, 12 parts of the sum");
  }
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(CudaProducts, LeaveNothingIfTheLibraryHasThemNot) {
  Machine machine({});
  cuda::Gpu gpu(machine.libraries(), 0);
  gpu.attach();
  Matmul op;
  op.lhsType = op.outType = DType::F32;
  op.rhsType = DType::BF16;
  op.m = op.n = op.k = 1;
  EXPECT_THROW(cuda::Product(gpu, nullptr, op, 256, 0, nullptr, nullptr),
               Error);
  EXPECT_EQ(machine.blasObjects, 0);
  op.rhsType = op.lhsType;
  {
    cuda::Product product(gpu, nullptr, op, 256, 0, nullptr, nullptr);
    EXPECT_EQ(machine.blasObjects, 4);
  }
  EXPECT_EQ(machine.blasObjects, 0);
}

TEST(CudaProducts, HaveTheWorkspaceThatTheProgramPlans) {
  auto scratchOf = [](int64_t workspaceBytes, int64_t memoryBytes) {
    Machine machine({.memoryBytes = memoryBytes});
    auto gpu = std::make_shared<cuda::Gpu>(machine.libraries(), 0);
    auto noKernels = [](const KernelLaunch &) { return GpuKernel(); };
    format::Program program = programOf(1, {});
    program.classes[0].workspaceBytes = workspaceBytes;
    auto device = createCudaDevice(gpu, program, noKernels, nullptr, 0, {});
    BufferTable table;
    device->bind(table, {});
    return device->scratchBytes();
  };
  constexpr int64_t much = int64_t(1) << 30, little = 16 << 20;
  EXPECT_EQ(scratchOf(0, little), 0);
  EXPECT_EQ(scratchOf(32 << 20, much), 32 << 20);
  EXPECT_THROW(scratchOf(32 << 20, little), Error);
}

} // namespace
} // namespace whale::runtime::test
