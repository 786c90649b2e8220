//===- EmitProgramTest.cpp ------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Program/EmitProgram.h"

#include "whale/Program/Compile.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;

namespace {

/// A rank class that gathers its argument, then gathers it again to `offset` of
/// the arena, then scatters what it gathered first.
std::string makeModule(int64_t offset) {
  return R"(
#parts = #whale.placement<[8] split 0 (4, 4) on [0, 1]>
#whole = #whale.placement<[8] replicate 2 on [0, 1]>
#terms = #whale.placement<[8] partial sum 2 on [0, 1]>
module @step {
  whale.schedule ranks [0, 1] @rank_class_0(
      %arg0: tensor<4xf32> {whale.global_type = tensor<8xf32>,
                            whale.placement = #parts})
      -> (tensor<4xf32> {whale.global_type = tensor<8xf32>,
                         whale.placement = #parts})
      attributes {
        whale.arena_bytes = 96 : i64,
        whale.result_buffers = array<i64: 3>,
        whale.buffers = [{argument = 0 : i64, bytes = 16 : i64},
                         {arena = 0 : i64, bytes = 32 : i64},
                         {arena = )" +
         std::to_string(offset) + R"( : i64, bytes = 32 : i64},
                         {result = 0 : i64, bytes = 16 : i64}]} {
    %0 = whale.all_gather %arg0 channel 1 from #parts to #whole
       {whale.out = array<i64: 1>} : (tensor<4xf32>) -> tensor<8xf32>
    %1 = whale.all_gather %arg0 channel 2 from #parts to #whole
       {whale.out = array<i64: 2>} : (tensor<4xf32>) -> tensor<8xf32>
    %2 = whale.reduce_scatter %0 channel 3 from #terms to #parts
       {whale.out = array<i64: 3>} : (tensor<8xf32>) -> tensor<4xf32>
    whale.return %2 : tensor<4xf32>
  }
}
)";
}

/// What the program with that offset is refused for.
std::string verify(int64_t offset) {
  DialectRegistry registry;
  whale::registerProgramDialects(registry);
  MLIRContext context(registry);
  std::string message;
  context.getDiagEngine().registerHandler(
      [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  auto module = parseSourceString<ModuleOp>(makeModule(offset), &context);
  if (!module)
    return message;
  whale::EmitOptions options;
  options.target = "none";
  options.verify = true;
  std::string folder = testing::TempDir() + "/emitted.whale";
  bool isWritten = succeeded(whale::emitProgram(*module, options, folder));
  EXPECT_EQ(isWritten, message.empty());
  return message;
}

TEST(EmitProgram, ChecksWhatItWrites) {
  EXPECT_EQ(verify(32), "");
  EXPECT_EQ(verify(16),
            "the compiler has made a wrong program: classes[0].instructions[4]:"
            " buffer 1 is read where buffer 2 of the class was written last");
}

} // namespace
