//===- NativeCode.cpp - LLVM IR to a shared library -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module of LLVM IR and the name of a processor. Out: an object file, and
// of several object files a shared library. LLVM's O2 pipeline optimizes the
// module, with loops and straight-line code vectorized. ld.lld links it, as a
// child process, with libm, libmvec, libgcc and libc, where the dynamic linker
// finds them on this machine. Every failure, that of a full disk or of a linker
// that crashes included, is returned as text.
//
// Cost: LLVM's time for the module; a target machine is made anew for each
// module and each question about a processor. Four libraries are opened once
// for all, and each question about a function looks up a symbol. A link is a
// process that reads the object files and writes the library.
//
//===----------------------------------------------------------------------===//

#include "whale/Target/CPU/NativeCode.h"
#include "whale/ProgramFormat/Processor.h"
#include "whale/Support/WriteFile.h"
#include "whale/Target/CPU/CompileKernels.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include <csignal>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace whale;

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

namespace {

/// A shared library of the system, found as the dynamic linker finds it.
struct SystemLibrary {
  void *handle;
  std::string path;

  SystemLibrary(const char *name, const char *symbol)
      : handle(dlopen(name, RTLD_LAZY)) {
    Dl_info info;
    if (handle && dlsym(handle, symbol) && dladdr(dlsym(handle, symbol), &info))
      path = info.dli_fname;
  }
  bool has(const std::string &symbol) const {
    return handle && dlsym(handle, symbol.c_str());
  }
};

const SystemLibrary &getLibmvec() {
  static SystemLibrary library("libmvec.so.1", "_ZGVbN4v_expf");
  return library;
}

const SystemLibrary &getLibm() {
  static SystemLibrary library("libm.so.6", "expf");
  return library;
}

const SystemLibrary &getLibc() {
  static SystemLibrary library("libc.so.6", "memset");
  return library;
}

/// Converts f16 where the processor cannot.
const SystemLibrary &getLibgcc() {
  static SystemLibrary library("libgcc_s.so.1", "__truncsfhf2");
  return library;
}

} // namespace

bool whale::hasVectorMath(const std::string &name) {
  return getLibmvec().has(name);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

static void initializeTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine>
whale::createNativeMachine(StringRef processor, std::string &error) {
  initializeTarget();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  std::string cpu = processor.str(), features;
  if (cpu.empty()) {
    cpu = llvm::sys::getHostCPUName().str();
    SmallVector<std::string> list;
    for (auto &feature : llvm::sys::getHostCPUFeatures())
      list.push_back((feature.second ? "+" : "-") + feature.first().str());
    features = llvm::join(list, ",");
  }
  llvm::TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, features, targetOptions, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default));
}

void whale::optimizeNative(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopInterleaving = true;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

std::string whale::emitObject(llvm::Module &module,
                              llvm::TargetMachine &machine, StringRef object) {
  bool isSupported = true;
  auto emit = [&](llvm::raw_pwrite_stream &os) {
    llvm::legacy::PassManager passes;
    isSupported = !machine.addPassesToEmitFile(
        passes, os, nullptr, llvm::CodeGenFileType::ObjectFile);
    if (isSupported)
      passes.run(module);
  };
  if (std::error_code code = writeFile(object, emit))
    return ("cannot write '" + object + "': " + code.message()).str();
  return isSupported ? "" : "the target cannot emit object files";
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

namespace {

/// A file that is no part of any disk, which may be full.
class MemoryFile {
public:
  explicit MemoryFile(const char *name)
      : descriptor(memfd_create(name, MFD_CLOEXEC)) {}
  ~MemoryFile() { close(descriptor); }

  /// Empty, for nowhere, where /proc is missing.
  std::string getPath() const {
    std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" +
                       std::to_string(descriptor);
    return llvm::sys::fs::exists(path) ? path : "";
  }
  std::string read() const {
    auto text = llvm::MemoryBuffer::getFile(getPath());
    return text ? (*text)->getBuffer().str() : "";
  }

private:
  int descriptor;
};

/// Where the linker makes a file. In the name of its output it takes each `%`
/// for a digit at random: a path that has one is named by its directory, which
/// is open here, and the file renamed.
class LinkerOutput {
public:
  explicit LinkerOutput(StringRef path) : path(path), made(path) {
    if (!path.contains('%'))
      return;
    StringRef parent = llvm::sys::path::parent_path(path);
    std::string place = parent.empty() ? "." : parent.str();
    directory = open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    made = "/proc/" + std::to_string(getpid()) + "/fd/" +
           std::to_string(directory) + "/linked";
  }
  ~LinkerOutput() {
    if (directory >= 0)
      close(directory);
  }

  const std::string &getPath() const { return made; }
  /// Returns what has failed, or nothing.
  std::error_code finish() const {
    return made == path ? std::error_code() : llvm::sys::fs::rename(made, path);
  }

private:
  StringRef path;
  std::string made;
  int directory = -1;
};

} // namespace

/// Returns the program that links when it is started as ld.lld, or an error:
/// this one if it has lld in it, else the one of the LLVM that Whale was built
/// with, wherever PATH leads, else one in PATH.
static llvm::ErrorOr<std::string> findLinker() {
#if WHALE_BUNDLE_LLVM
  return llvm::sys::fs::getMainExecutable(nullptr, nullptr);
#else
  llvm::ErrorOr<std::string> linker =
      llvm::sys::findProgramByName("ld.lld", {WHALE_LLVM_TOOLS_DIR});
  if (!linker)
    linker = llvm::sys::findProgramByName("ld.lld");
  if (!linker)
    linker = llvm::sys::findProgramByName("ld.lld-22");
  return linker;
#endif
}

std::string whale::linkShared(ArrayRef<std::string> objects, StringRef path) {
  llvm::ErrorOr<std::string> linker = findLinker();
  if (!linker)
    return "cannot find the linker ld.lld";
  LinkerOutput output(path);
  // A write to memory that is mapped to a file on a full disk is a SIGBUS.
  SmallVector<StringRef> arguments{
      "ld.lld", "-shared",        "--build-id=none", "--no-mmap-output-file",
      "-o",     output.getPath(), "--no-undefined",  "--as-needed"};
  for (const std::string &object : objects)
    arguments.push_back(object);
  for (const SystemLibrary *library :
       {&getLibm(), &getLibmvec(), &getLibgcc(), &getLibc()})
    if (!library->path.empty())
      arguments.push_back(library->path);
  MemoryFile log("link.log");
  std::string logPath = log.getPath();
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(logPath),
                                          StringRef(logPath)};
  // A linker that crashes need not say where, in more files.
  SmallVector<StringRef> environment{"LLVM_DISABLE_SYMBOLIZATION=1"};
  for (char **variable = environ; *variable; ++variable)
    environment.push_back(*variable);
  // It has a handler that makes a crash of a file over the limit of its size;
  // with the signal blocked, that is an error.
  sigset_t fileSize, before;
  sigemptyset(&fileSize);
  sigaddset(&fileSize, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &fileSize, &before);
  std::string error;
  int status = llvm::sys::ExecuteAndWait(
      *linker, arguments, ArrayRef(environment), redirects, 0, 0, &error);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (status == 0) {
    std::error_code code = output.finish();
    return code ? ("cannot write '" + path + "': " + code.message()).str() : "";
  }
  if (error.empty()) // It was no crash.
    error = log.read();
  StringRef text = StringRef(error).trim();
  text.consume_front("ld.lld: error: ") || text.consume_front("LLVM ERROR: ");
  if (text.empty())
    text = "it does not say why";
  return ("ld.lld failed to make '" + path + "': " + text).str();
}

//===----------------------------------------------------------------------===//
// Processors
//===----------------------------------------------------------------------===//

bool whale::isProcessor(StringRef name) {
  // Asked about an unknown name, LLVM prints a warning and answers for another
  // processor.
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createNativeMachine("", error);
  return machine && machine->getMCSubtargetInfo()->isCPUStringValid(name);
}

std::vector<std::string> whale::findKernelFeatures(StringRef cpu) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      createNativeMachine(cpu, error);
  std::vector<std::string> needed;
  for (std::string_view feature : format::processorFeatures())
    if (machine && machine->getMCSubtargetInfo()->checkFeatures(
                       ("+" + Twine(feature)).str()))
      needed.emplace_back(feature);
  return needed;
}
