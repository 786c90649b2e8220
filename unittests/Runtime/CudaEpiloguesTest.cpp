//===- CudaEpiloguesTest.cpp - Epilogues of products ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products with each epilogue on the processor, on a test machine, and on one
// whose library has no algorithm for them, against sums in f64. The machine
// refuses what cuBLASLt would. The texts of the kernels are assembled where
// ptxas is.
//
//===----------------------------------------------------------------------===//

#include "CudaScenario.h"
#include "cuda/EpilogueKernels.h"
#include "whale/ProgramFormat/Numeric.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace whale::runtime::test {
namespace {

using cuda::test::Machine;
using Numbers = std::vector<double>;

constexpr int64_t kRows = 16, kColumns = 24, kTerms = 40;

/// lhs, rhs, out, bias and aux, which are the buffers 0 to 4.
using Buffers = std::array<Numbers, 5>;

template <typename Function>
void withType(DType dtype, Function function) {
  if (dtype == DType::F32)
    function.template operator()<float>();
  else if (dtype == DType::BF16)
    function.template operator()<format::BFloat16>();
  else
    function.template operator()<format::Float16>();
}

Matmul makeProduct(DType dtype, Epilogue epilogue, bool isTransposed) {
  Matmul op;
  op.lhsType = op.rhsType = op.outType = dtype;
  op.lhs = 0, op.rhs = 1, op.out = 2, op.bias = 3, op.aux = 4;
  op.m = isTransposed ? kColumns : kRows;
  op.n = isTransposed ? kRows : kColumns;
  op.k = kTerms;
  op.mLhs = kTerms, op.kLhs = 1;
  op.kRhs = op.n, op.nRhs = 1;
  op.mOut = isTransposed ? 1 : kColumns;
  op.nOut = isTransposed ? kColumns : 1;
  op.epilogue = epilogue;
  return op;
}

double gelu(double x, bool isDerivative) {
  double scale = std::sqrt(2 / M_PI);
  double tanh = std::tanh(scale * (x + 0.044715 * x * x * x));
  if (!isDerivative)
    return x * (1 + tanh) / 2;
  return (1 + tanh) / 2 +
         x / 2 * (1 - tanh * tanh) * scale * (1 + 3 * 0.044715 * x * x);
}

/// What is in the buffers after the product.
Buffers expect(const Matmul &op, Buffers buffers) {
  auto &[lhs, rhs, out, bias, aux] = buffers;
  if (writesBias(op.epilogue))
    bias.assign(kColumns, 0);
  for (int64_t i = 0; i < op.m; ++i)
    for (int64_t j = 0; j < op.n; ++j) {
      int64_t place = i * op.mOut + j * op.nOut, column = place % kColumns;
      double x = 0;
      for (int64_t k = 0; k < op.k; ++k)
        x += lhs[i * op.mLhs + k] * rhs[k * op.kRhs + j];
      if (readsBias(op.epilogue))
        x += bias[column];
      if (writesAux(op.epilogue))
        aux[place] = x;
      if (readsAux(op.epilogue))
        x *= gelu(aux[place], true);
      else if (op.epilogue != Epilogue::Bias)
        x = gelu(x, false);
      if (writesBias(op.epilogue))
        bias[column] += x;
      out[place] = x;
    }
  return buffers;
}

/// Numbers that the type has.
Buffers randomBuffers(DType dtype) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, 0.4);
  Buffers buffers;
  size_t sizes[] = {std::max(kRows, kColumns) * kTerms,
                    std::max(kRows, kColumns) * kTerms, kRows * kColumns,
                    kColumns, kRows * kColumns};
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < sizes[i]; ++j)
      withType(dtype, [&]<typename T>() {
        using E = format::Element<T>;
        buffers[i].push_back(
            E::load(E::store(static_cast<float>(normal(random)))));
      });
  return buffers;
}

/// Runs the product twice, of which the second run has all chosen before.
Buffers runOn(Device &device, const Matmul &op, Buffers buffers) {
  withType(op.outType, [&]<typename T>() {
    using E = format::Element<T>;
    std::vector<std::shared_ptr<Buffer>> memory;
    std::vector<Region> regions;
    for (const Numbers &numbers : buffers) {
      memory.push_back(
          Buffer::allocate(static_cast<int64_t>(numbers.size() * sizeof(T))));
      auto *data =
          static_cast<T *>(static_cast<void *>(memory.back()->data.get()));
      for (double number : numbers)
        *data++ = E::store(static_cast<float>(number));
      regions.push_back({memory.back().get(), 0});
    }
    for (int i = 0; i < 2; ++i) {
      BufferTable table;
      device.reset();
      device.bind(table, regions);
      device.matmul(Queue::Compute, op, table);
      device.finish();
      device.bind(table, {});
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      auto *data = static_cast<T *>(static_cast<void *>(memory[i]->data.get()));
      for (double &number : buffers[i])
        number = E::load(*data++);
    }
  });
  return buffers;
}

/// By how much two buffers differ, as a share of the largest magnitude.
double difference(const Numbers &wanted, const Numbers &found) {
  double apart = 0, most = 1e-30;
  for (size_t i = 0; i < wanted.size(); ++i) {
    apart = std::max(apart, std::abs(wanted[i] - found[i]));
    most = std::max(most, std::abs(wanted[i]));
  }
  return apart / most;
}

constexpr Epilogue kAll[] = {Epilogue::Bias,
                             Epilogue::Gelu,
                             Epilogue::GeluBias,
                             Epilogue::GeluAux,
                             Epilogue::GeluAuxBias,
                             Epilogue::GeluGradient,
                             Epilogue::GeluGradientBias};

/// The products of all epilogues, which are named `algorithm`, or as the
/// library's.
void check(Device &device, DType dtype, const std::string &algorithm) {
  double tolerance = dtype == DType::F32 ? 1e-6 : 1e-2;
  Buffers buffers = randomBuffers(dtype);
  // A device knows products by their addresses.
  std::deque<Matmul> products;
  for (Epilogue epilogue : kAll)
    for (bool isTransposed : {false, true}) {
      SCOPED_TRACE(format::name(epilogue) + std::string(" ") +
                   std::string(name(dtype)));
      const Matmul &op =
          products.emplace_back(makeProduct(dtype, epilogue, isTransposed));
      Buffers wanted = expect(op, buffers), found = runOn(device, op, buffers);
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_LT(difference(wanted[i], found[i]), tolerance) << i;
      Instruction instruction;
      instruction.operation = &op;
      if (algorithm.empty())
        continue;
      EXPECT_EQ(device.algorithmOf(instruction),
                algorithm == "library" ? "cuBLASLt 10, tile 11, stages 16, 12 "
                                         "parts of the sum, " +
                                             std::string(name(epilogue))
                                       : algorithm);
    }
}

constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::F16};

TEST(CudaEpilogues, AreThoseOfTheProcessor) {
  for (DType dtype : kTypes) {
    auto cpu = createCpuDevice(2);
    cpu->attachThread();
    check(*cpu, dtype, "");
  }
}

TEST(CudaEpilogues, AreTheLibrarys) {
  Machine machine({});
  for (DType dtype : kTypes)
    check(*makeGpu(machine), dtype, "library");
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(CudaEpilogues, AreKernelsWhereTheLibraryHasNone) {
  Machine machine({.refusesEpilogues = true});
  for (DType dtype : kTypes)
    check(*makeGpu(machine), dtype,
          "cuBLASLt 10, tile 11, stages 16, 12 parts of the sum");
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(CudaEpilogues, ForWhichProducts) {
  auto whyNot = [](auto change) {
    Matmul op = makeProduct(DType::BF16, Epilogue::Gelu, false);
    change(op);
    const char *why = "";
    EXPECT_EQ(format::shapeForEpilogue(op, &why).has_value(), !*why);
    return std::string(why);
  };
  EXPECT_EQ(whyNot([](Matmul &op) { op.batch = {{1, 0, 0, 0}}; }), "");
  EXPECT_EQ(whyNot([](Matmul &op) { op.batch = {{2, 640, 960, 384}}; }),
            "it is a batch of products");
  EXPECT_EQ(whyNot([](Matmul &op) { op.outType = DType::F32; }),
            "its operands and its result differ in type");
  EXPECT_EQ(whyNot([](Matmul &op) {
              op.lhsType = op.rhsType = op.outType = DType::F64;
            }),
            "its result is not f16, bf16 or f32");
  EXPECT_EQ(whyNot([](Matmul &op) { op.accumulate = true; }),
            "it is added to another one");
  EXPECT_EQ(whyNot([](Matmul &op) { op.m = 12; }),
            "an extent is no multiple of 8");
  EXPECT_EQ(whyNot([](Matmul &op) { op.k = 0; }), "it is empty");
  EXPECT_EQ(whyNot([](Matmul &op) { op.mLhs = 44; }),
            "an operand's rows are not at multiples of 8 elements");
  EXPECT_EQ(whyNot([](Matmul &op) { op.kRhs = 0; }),
            "an operand's rows are not at multiples of 8 elements");
  EXPECT_EQ(whyNot([](Matmul &op) { op.mOut = 32; }),
            "its result is not dense");
}

TEST(CudaEpilogues, AreAssembled) {
  if (std::system("ptxas --version > /dev/null 2>&1"))
    GTEST_SKIP() << "there is no ptxas";
  namespace fs = std::filesystem;
  fs::path file = fs::path(testing::TempDir()) /
                  ("epilogues." + std::to_string(getpid()) + ".ptx");
  EXPECT_EQ(cuda::epilogueKernelNames().size(), 3 * (std::size(kAll) + 1));
  // One of each form of load and operation: each takes a while.
  for (const char *name : {"epilogue_gelu_aux_bias_bf16",
                           "epilogue_dgelu_bgrad_f16", "epilogue_sum_f32"}) {
    std::ofstream(file) << cuda::epilogueKernelText(name);
    std::string command =
        "ptxas -arch=sm_75 -o /dev/null '" + file.string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << name;
  }
  fs::remove(file);
}

} // namespace
} // namespace whale::runtime::test
