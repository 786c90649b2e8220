//===- OperationWorkTest.cpp - One work for each operation ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the cost model is told of an operation of StableHLO is what it is told
// of the instruction that the operation becomes: class, type, FLOPs, bytes and
// smallest extent. In: modules of one operation, as text, that the pipeline of
// level 'kernels' lowers for the processor and for a GPU. Bytes may differ by
// the few of an init value. Of what becomes a loop nest the extent is not
// known. A gather is one, which is elementwise, and counts what finds places.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/OperationWork.h"

#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Program/Compile.h"
#include "whale/Target/CUDA/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace whale;

namespace {

struct Case {
  const char *name;
  /// Arguments, results and body of a function whose last operation is looked
  /// at.
  const char *arguments, *result, *body;
  bool tf32 = false;
};

class OperationWork : public testing::Test {
protected:
  static void SetUpTestSuite() {
    registerWhaleConversionPasses();
    registerWhaleCudaPasses();
  }

  OperationWork() {
    DialectRegistry registry;
    registerProgramDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The operation, and the instruction that does most.
  void compare(const Case &it, const Target &target);

  MLIRContext context;
};

/// The function that computes.
func::FuncOp functionOf(ModuleOp module) {
  return *module.getOps<func::FuncOp>().begin();
}

std::optional<OpCost> findMost(func::FuncOp function) {
  std::optional<OpCost> most;
  SymbolTableCollection symbols;
  function.walk([&](Operation *op) {
    if (!isa<LaunchOp, LibraryCallOp, MatmulOp, ConvolutionOp>(op))
      return;
    std::optional<OpCost> work = operationWork(op, &symbols);
    if (!most || work->flops + work->bytes > most->flops + most->bytes)
      most = work;
  });
  return most;
}

void OperationWork::compare(const Case &it, const Target &target) {
  SCOPED_TRACE(std::string(it.name) + " on " + target.str());
  std::string text = "func.func @f(" + std::string(it.arguments) + ") -> " +
                     it.result + " {" + it.body + "\nreturn %r : " + it.result +
                     "}";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  if (it.tf32)
    Config::setTf32(*module);
  func::FuncOp function = functionOf(*module);
  Operation *op =
      function.front().getTerminator()->getOperand(0).getDefiningOp();
  bool isLookUp = isa<stablehlo::GatherOp>(op);
  std::optional<OpCost> before = operationWork(op);
  ASSERT_TRUE(before);
  PassManager manager(&context);
  for (const Level &level : getLevels())
    if (level.name == kKernelsLevel)
      ASSERT_TRUE(succeeded(parsePassPipeline(
          setTarget(target.isGpu() ? level.gpuPipeline : level.pipeline,
                    target),
          manager)));
  ASSERT_TRUE(succeeded(manager.run(*module)));
  std::optional<OpCost> after = findMost(functionOf(*module));
  ASSERT_TRUE(after);
  EXPECT_EQ(before->dtype, after->dtype);
  EXPECT_NEAR(before->bytes, after->bytes, 8);
  if (!isLookUp) {
    EXPECT_EQ(before->flops, after->flops);
    EXPECT_EQ(before->opClass, after->opClass);
  }
  if (after->extent > 0)
    EXPECT_EQ(before->extent, after->extent);
}

const Case cases[] = {
    {"a product", "%a: tensor<64x128xf32>, %b: tensor<128x96xf32>",
     "tensor<64x96xf32>", R"(
     %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
         : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>)"},
    {"a product in TF32", "%a: tensor<64x128xf32>, %b: tensor<128x96xf32>",
     "tensor<64x96xf32>", R"(
     %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
         : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>)",
     /*tf32=*/true},
    {"a batch of products of halves",
     "%a: tensor<4x64x128xbf16>, %b: tensor<4x128x96xbf16>",
     "tensor<4x64x96xf32>", R"(
     %r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0],
         contracting_dims = [2] x [1]
         : (tensor<4x64x128xbf16>, tensor<4x128x96xbf16>)
         -> tensor<4x64x96xf32>)"},
    {"a convolution", "%x: tensor<2x16x16x8xf32>, %k: tensor<3x3x8x16xf32>",
     "tensor<2x16x16x16xf32>", R"(
     %r = stablehlo.convolution(%x, %k)
         dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
         window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
         {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
         : (tensor<2x16x16x8xf32>, tensor<3x3x8x16xf32>)
         -> tensor<2x16x16x16xf32>)"},
    // The input's gradient of a convolution with stride 2.
    {"a dilated convolution",
     "%x: tensor<2x8x8x16xf32>, %k: tensor<3x3x16x8xf32>",
     "tensor<2x16x16x8xf32>", R"(
     %r = stablehlo.convolution(%x, %k)
         dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
         window = {stride = [1, 1], pad = [[1, 2], [1, 2]],
                   lhs_dilate = [2, 2]}
         {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
         : (tensor<2x8x8x16xf32>, tensor<3x3x16x8xf32>)
         -> tensor<2x16x16x8xf32>)"},
    {"a Fourier transform", "%x: tensor<8x64xcomplex<f32>>",
     "tensor<8x64xcomplex<f32>>", R"(
     %r = stablehlo.fft %x, type = FFT, length = [64]
         : (tensor<8x64xcomplex<f32>>) -> tensor<8x64xcomplex<f32>>)"},
    {"a solve with a triangle", "%a: tensor<32x32xf32>, %b: tensor<32x16xf32>",
     "tensor<32x16xf32>", R"(
     %r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true,
         lower = true, unit_diagonal = false,
         transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
         : (tensor<32x32xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>)"},
    {"attention", "%q: tensor<2x64x4x16xf32>, %k: tensor<2x64x4x16xf32>",
     "tensor<2x64x4x16xf32>", R"(
     %r = whale.attention query "bqhd" %q key "bkhd" %k value "bkhe" %k
         to "bqhe" scale 1.0 {causal = 0 : i64}
         : (tensor<2x64x4x16xf32>, tensor<2x64x4x16xf32>,
            tensor<2x64x4x16xf32>) -> tensor<2x64x4x16xf32>)"},
    {"a sum", "%x: tensor<64x128xf32>", "tensor<64xf32>", R"(
     %c = stablehlo.constant dense<0.0> : tensor<f32>
     %r = stablehlo.reduce(%x init: %c) applies stablehlo.add
         across dimensions = [1]
         : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>)"},
    {"what has one operand", "%x: tensor<64x128xf32>", "tensor<64x128xf32>", R"(
     %r = stablehlo.tanh %x : tensor<64x128xf32>)"},
    {"a comparison", "%x: tensor<64x128xf64>, %y: tensor<64x128xf64>",
     "tensor<64x128xi1>", R"(
     %r = stablehlo.compare LT, %x, %y
         : (tensor<64x128xf64>, tensor<64x128xf64>) -> tensor<64x128xi1>)"},
    {"a sum of unsigned numbers",
     "%x: tensor<64x128xui8>, %y: tensor<64x128xui8>", "tensor<64x128xui8>", R"(
     %r = stablehlo.add %x, %y : tensor<64x128xui8>)"},
    {"a look-up in a table", "%t: tensor<1000x16xf32>, %i: tensor<8x1xi32>",
     "tensor<8x16xf32>", R"(
     %r = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<
         offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
         index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}>
         : (tensor<1000x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>)"},
    {"an update of a table",
     "%t: tensor<1000x16xf32>, %i: tensor<8x1xi32>, %u: tensor<8x16xf32>",
     "tensor<1000x16xf32>", R"(
     %r = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers =
         #stablehlo.scatter<update_window_dims = [1],
         inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
         index_vector_dim = 1>}> ({
       ^bb0(%a: tensor<f32>, %b: tensor<f32>):
         %s = stablehlo.add %a, %b : tensor<f32>
         stablehlo.return %s : tensor<f32>
     }) : (tensor<1000x16xf32>, tensor<8x1xi32>, tensor<8x16xf32>)
         -> tensor<1000x16xf32>)"},
};

TEST_F(OperationWork, IsThatOfItsInstruction) {
  for (const Case &it : cases)
    compare(it, Target());
}

TEST_F(OperationWork, IsThatOfItsInstructionOnGpus) {
  for (const Case &it : cases)
    compare(it, Target::forGpu(80));
}

} // namespace
