//===- EmitProgramTest.cpp ------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under test: emitProgram with `verify`, which reads the program that it has
// written and checks it. In: modules of one schedule with its buffers, as text,
// once right and once wrong: two buffers that overlap in the arena, a call of a
// library with a tensor of another size. The libraries are a class of this
// file.
//
// A test passes if the right module is written without a diagnostic, and the
// wrong one is refused with exactly the expected message. emitProgram must
// succeed if and only if there is no diagnostic. Cost: a small program
// directory in the tests' temporary folder; no kernel is compiled.
//
//===----------------------------------------------------------------------===//

#include "whale/Program/EmitProgram.h"

#include "whale/Program/Compile.h"
#include "whale/ProgramFormat/Libraries.h"
#include "whale/System/Error.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;

namespace {

/// They have one function, which takes a tensor of eight numbers.
class TestLibraries : public whale::format::Libraries {
public:
  void checkCall(const std::string &function,
                 std::vector<whale::format::LibraryTensor> inputs,
                 std::vector<whale::format::LibraryTensor> outputs,
                 const std::string &config) const override {
    if (function != "flip" || inputs.size() != 1 || outputs.size() != 1 ||
        inputs[0].dtype != whale::format::DType::F32 || config != "{\"by\":2}")
      throw whale::system::Error("this is no call of flip");
    if (inputs[0].shape != whale::format::Shape{8})
      throw whale::system::Error("flip takes eight numbers");
  }
  std::optional<int64_t> gpuWorkspace(
      const std::string &, const std::vector<whale::format::LibraryTensor> &,
      const std::vector<whale::format::LibraryTensor> &) const override {
    return std::nullopt;
  }
  std::optional<int64_t>
  gpuWorkspace(const whale::format::Convolution &) const override {
    return std::nullopt;
  }
  int64_t gpuProductWorkspace(int) const override { return 0; }
  std::vector<whale::format::ScratchSizes>
  findScratch(std::span<const whale::format::Product> products,
              int64_t) const override {
    return std::vector<whale::format::ScratchSizes>(products.size());
  }
};

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

/// A rank class that calls a library with so many numbers.
std::string makeCall(int64_t extent) {
  std::string type = "tensor<" + std::to_string(extent) + "xf32>";
  std::string bytes = std::to_string(4 * extent);
  return R"(
#whole = #whale.placement<[)" +
         std::to_string(extent) + R"(] replicate 1 on [0]>
module @step {
  whale.schedule ranks [0] @rank_class_0(
      %arg0: )" +
         type + " {whale.global_type = " + type +
         R"(, whale.placement = #whole})
      -> ()" +
         type + " {whale.global_type = " + type +
         R"(, whale.placement = #whole})
      attributes {
        whale.arena_bytes = 0 : i64,
        whale.result_buffers = array<i64: 1>,
        whale.buffers = [{argument = 0 : i64, bytes = )" +
         bytes + R"( : i64}, {result = 0 : i64, bytes = )" + bytes +
         R"( : i64}]} {
    %0 = whale.library_call "flip"(%arg0)
       {by = 2 : i64, whale.out = array<i64: 1>} : ()" +
         type + ") -> " + type + R"(
    whale.return %0 : )" +
         type + R"(
  }
}
)";
}

/// What the program of that text is refused for.
std::string verify(const std::string &text) {
  DialectRegistry registry;
  whale::registerProgramDialects(registry);
  MLIRContext context(registry);
  std::string message;
  context.getDiagEngine().registerHandler(
      [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return message;
  TestLibraries libraries;
  whale::EmitOptions options(libraries);
  options.target = "none";
  options.verify = true;
  std::string folder = testing::TempDir() + "/emitted.whale";
  bool isWritten = succeeded(whale::emitProgram(*module, options, folder));
  EXPECT_EQ(isWritten, message.empty());
  return message;
}

TEST(EmitProgram, ChecksWhatItWrites) {
  EXPECT_EQ(verify(makeModule(32)), "");
  EXPECT_EQ(verify(makeModule(16)),
            "the compiler has made a wrong program: classes[0].instructions[4]:"
            " buffer 1 is read where buffer 2 of the class was written last");
}

TEST(EmitProgram, AsksTheLibrariesThatItIsGiven) {
  EXPECT_EQ(verify(makeCall(8)), "");
  EXPECT_EQ(verify(makeCall(4)), "flip takes eight numbers");
}

} // namespace
