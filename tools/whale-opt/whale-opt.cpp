//===- whale-opt.cpp - Run passes on a file ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads MLIR of any level, runs the passes named on the command line, prints
// the result: mlir-opt with Whale's dialects and passes.
//
//===----------------------------------------------------------------------===//

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Program/CheckSizes.h"
#include "whale/Program/Compile.h"
#include "whale/Program/Nesting.h"
#include "whale/Support/CleanErrors.h"
#include "whale/Support/LLVMTool.h"
#include "whale/Support/ReadFile.h"
#include "whale/System/Staging.h"
#include "whale/Target/CUDA/Passes.h"
#include "whale/Transforms/Passes.h"

#include "llvm/Support/ToolOutputFile.h"

#include <filesystem>
#include <memory>
#include <system_error>

using namespace llvm;
namespace fs = std::filesystem;

/// What the file `output` is written through: LLVM opens it, and empties it,
/// before it has read the input, which may be the same.
static std::unique_ptr<whale::system::Staging> stage(const fs::path &output) {
  std::error_code error;
  auto status = fs::status(output, error);
  if (output == "-" || (fs::exists(status) && !fs::is_regular_file(status)))
    return nullptr;
  try {
    return std::make_unique<whale::system::Staging>(output);
  } catch (const std::system_error &) {
    return nullptr; // A file in a directory where no other one can be made.
  }
}

/// Has all dialects loaded before a pass runs, as whale-compile has: a pass may
/// meet operations that others make of what it expects.
struct LoadDialects : mlir::PassWrapper<LoadDialects, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LoadDialects)

  StringRef getName() const final { return "LoadDialects"; }

  void getDependentDialects(mlir::DialectRegistry &registry) const final {
    whale::registerProgramDialects(registry);
    registry.insert<mlir::gpu::GPUDialect>();
  }

  void runOnOperation() final { markAllAnalysesPreserved(); }
};

/// What mlir-opt does, once the text is known not to be nested too deep.
static LogicalResult run(int argc, char **argv, StringRef inputName,
                         StringRef outputName,
                         mlir::DialectRegistry &registry) {
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, inputName, outputName, registry);
  std::string message;
  auto fail = [&](const Twine &location = "") {
    whale::LLVMTool::fail(location, message);
    return failure();
  };
  auto read = whale::readTextFile(inputName, whale::kMostSourceBytes);
  if (!read) {
    message = "cannot read the file: " + toString(read.takeError());
    return fail(inputName);
  }
  std::unique_ptr<MemoryBuffer> input = std::move(*read);
  if (auto deep = whale::findDeepNesting(input->getBuffer())) {
    message = deep->message;
    return fail(inputName + ":" + Twine(deep->line) + ":" +
                Twine(deep->column));
  }
  std::unique_ptr<ToolOutputFile> output =
      mlir::openOutputFile(outputName, &message);
  if (!output)
    return fail();
  mlir::MlirOptMainConfig checked = config;
  checked.setPassPipelineSetupFn([&](mlir::PassManager &manager) {
    manager.addPass(std::make_unique<LoadDialects>());
    manager.addPass(whale::createCheckSizesPass());
    return config.setupPassPipeline(manager);
  });
  std::string text;
  raw_string_ostream stream(text);
  LogicalResult result =
      mlir::MlirOptMain(stream, std::move(input), registry, checked);
  // Another process prints the diagnostics. They are printed before the output
  // however slow it is.
  whale::CleanErrors::finish();
  output->os() << text;
  if (succeeded(result))
    output->keep();
  return result;
}

int main(int argc, char **argv) {
  whale::LLVMTool tool(argc, argv);
  whale::CleanErrors errors;
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<mlir::stablehlo::StablehloDialect, mlir::chlo::ChloDialect,
                  mlir::sdy::SdyDialect, whale::WhaleDialect>();
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  whale::registerWhaleConversionPasses();
  whale::registerWhaleCudaPasses();
  whale::registerWhaleTransformsPasses();
  whale::registerPipelines();
  std::string overview =
      mlir::registerCLIOptions("Whale optimizer driver\n", registry);
  cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"),
                             cl::init("-"));
  cl::opt<std::string> output("o", cl::desc("Output filename"),
                              cl::value_desc("filename"), cl::init("-"));
  if (!whale::LLVMTool::parse(argc, argv, overview))
    return 1;
  tool.setOutput(output);
  std::unique_ptr<whale::system::Staging> staging = stage(output.getValue());
  std::string place = staging ? staging->place().string() : output.getValue();
  LogicalResult result = run(argc, argv, input, place, registry);
  if (!whale::LLVMTool::flushOutput() || failed(result))
    return 1;
  try {
    // Where passes are only listed, there is nothing.
    if (staging && fs::exists(staging->place()))
      staging->commitFile();
  } catch (const std::system_error &error) {
    return whale::LLVMTool::fail("", "cannot write '" + output +
                                         "': " + error.code().message());
  }
  return 0;
}
