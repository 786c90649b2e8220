//===- whale-kernels-test.cpp - Lower, compile and run one function -------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a module of StableHLO, inlines its calls, runs the kernel passes,
// compiles the kernels and runs @main on arguments from a file. Results go to a
// file, or with --print-ir the lowered module to the output. Files hold the
// elements of one tensor after the other.
//
// Cost: inlining searches @main from its beginning for each call. The times of
// lowering, compiling and running are printed on standard error.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Target/CPU/CompileKernels.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>
#include <cstring>
#include <dlfcn.h>

using namespace mlir;
using namespace whale;

static llvm::cl::opt<std::string> inputFile(llvm::cl::Positional,
                                            llvm::cl::init("-"),
                                            llvm::cl::desc("<input>"));
static llvm::cl::opt<std::string>
    argumentsFile("arguments", llvm::cl::desc("Elements of the arguments"));
static llvm::cl::opt<std::string>
    resultsFile("results", llvm::cl::desc("Where to write the results"));
static llvm::cl::opt<bool> printIR("print-ir",
                                   llvm::cl::desc("Print the lowered module"));
static llvm::cl::opt<bool> share("share",
                                 llvm::cl::desc("Work in place where allowed"));
static llvm::cl::opt<bool> fuse("fuse", llvm::cl::init(true),
                                llvm::cl::desc("Fuse kernels"));
static llvm::cl::opt<bool> fuseRows("fuse-rows", llvm::cl::init(true),
                                    llvm::cl::desc("Fuse loops over rows"));
static llvm::cl::opt<std::string>
    dumpLLVM("dump-llvm", llvm::cl::desc("Prefix of files with LLVM IR"));

/// Drops what only says how values are sharded.
static void dropShardings(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (isa<sdy::SdyDialect>(op->getDialect()))
      found.push_back(op);
  });
  for (Operation *op : found) {
    if (op->getNumResults() == 1)
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  }
}

/// Puts the bodies of called functions in the place of calls.
static void inlineCalls(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  while (main) {
    func::CallOp call;
    main.walk([&](func::CallOp found) {
      call = found;
      return WalkResult::interrupt();
    });
    if (!call)
      break;
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    OpBuilder b(call);
    IRMapping mapping;
    mapping.map(callee.getArguments(), call.getOperands());
    Block &body = callee.getBody().front();
    for (Operation &op : body.without_terminator())
      b.clone(op, mapping);
    for (auto [result, value] : llvm::zip_equal(
             call.getResults(), body.getTerminator()->getOperands()))
      result.replaceAllUsesWith(mapping.lookupOrDefault(value));
    call.erase();
  }
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (main && function != main)
      function.erase();
}

static LogicalResult runTest() {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, sdy::SdyDialect,
                  stablehlo::StablehloDialect, WhaleDialect>();
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  auto file = openInputFile(inputFile);
  if (!file)
    return failure();
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failure();

  dropShardings(*module);
  inlineCalls(*module);
  auto start = std::chrono::steady_clock::now();
  auto report = [&](StringRef what) {
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    llvm::errs() << llvm::format("%-8s %.3f s\n", what.str().c_str(),
                                 seconds.count());
    start = std::chrono::steady_clock::now();
  };
  PassManager passes(&context);
  OpPassManager &functions = passes.nest<func::FuncOp>();
  functions.addPass(createLowerLibraryOps());
  functions.addPass(createStableHLOToLinalg());
  if (fuse)
    functions.addPass(createFuseKernels());
  if (fuse && fuseRows)
    functions.addPass(createFuseRows());
  passes.addPass(createOutlineKernels());
  if (failed(passes.run(*module)))
    return failure();
  report("lower");
  if (printIR)
    module->print(llvm::outs());

  auto kernels = module->lookupSymbol<ModuleOp>(kKernelsModuleName);
  SmallString<64> library;
  if (llvm::sys::fs::createTemporaryFile("kernels", "so", library))
    return failure();
  llvm::FileRemover remover(library);
  CompileKernelsOptions options;
  options.dumpLLVM = dumpLLVM;
  if (failed(compileKernels(kernels, library, options)))
    return failure();
  report("compile");
  llvm::errs() << "kernels  "
               << llvm::range_size(kernels.getOps<func::FuncOp>()) << "\n";
  void *handle = dlopen(library.c_str(), RTLD_NOW);
  if (!handle) {
    llvm::errs() << dlerror() << "\n";
    return failure();
  }
  if (argumentsFile.empty())
    return success();

  auto function = module->lookupSymbol<func::FuncOp>("main");
  auto data = llvm::MemoryBuffer::getFile(argumentsFile, false, false);
  if (!function || !data)
    return failure();
  std::vector<Buffer> arguments;
  size_t position = 0;
  for (Type type : function.getArgumentTypes()) {
    size_t bytes = Interpreter::getBytes(type);
    auto buffer = std::make_shared<std::vector<char>>(bytes);
    if (position + bytes > (*data)->getBufferSize())
      return function.emitError("gets too few bytes of arguments");
    std::memcpy(buffer->data(), (*data)->getBufferStart() + position, bytes);
    position += bytes;
    arguments.push_back(buffer);
  }
  auto results = Interpreter(handle, share).run(function, arguments);
  if (failed(results))
    return failure();
  report("run");
  std::error_code code;
  llvm::raw_fd_ostream os(resultsFile, code);
  if (code)
    return failure();
  for (const Buffer &buffer : *results)
    os.write(buffer->data(), buffer->size());
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ParseCommandLineOptions(argc, argv, "Test of kernels\n");
  return failed(runTest());
}
