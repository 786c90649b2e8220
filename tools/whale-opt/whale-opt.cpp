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
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Program/Compile.h"
#include "whale/Support/LLVMTool.h"
#include "whale/Transforms/Passes.h"

int main(int argc, char **argv) {
  whale::LLVMTool tool(argc, argv, /*outputOption=*/"o");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<mlir::stablehlo::StablehloDialect, mlir::chlo::ChloDialect,
                  mlir::sdy::SdyDialect, whale::WhaleDialect>();
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  whale::registerWhaleConversionPasses();
  whale::registerWhaleTransformsPasses();
  whale::registerPipelines();
  llvm::LogicalResult result =
      mlir::MlirOptMain(argc, argv, "Whale optimizer driver\n", registry);
  bool isWritten = whale::LLVMTool::flushOutput();
  return succeeded(result) && isWritten ? 0 : 1;
}
