//===- whale-gpu-traffic.cpp - What kernels of a GPU read and write -------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads level 5 of programs for GPUs (whale-compile --dump-phases-to). Prints
// the bytes that each of their kernels moves between memory and blocks, times
// the launches of a step, the most first, and their sum. A block moves each
// sector of 32 bytes that it reads or writes once, however often it does, and
// does not read what it has written. What other blocks find in a cache counts
// again, but for buffers of at most 64 KiB: a launch reads these once.
//
// Blocks are run in the emulator: of each kernel --blocks that are chosen at
// random, whose mean stands for the others, or with 0 all of them. With --check
// both, which must be at most --apart per cent apart. Buffers hold zeros and,
// where they are integers of 32 bits, numbers from 0 to 1,023 in order: indices
// of a sort, or how many keys rows of causal attention have.
//
//===----------------------------------------------------------------------===//

#include "GpuMachine.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/TargetSelect.h"

#include <random>
#include <sys/mman.h>
#include <unordered_set>

using namespace llvm;
using mlir::func::FuncOp;
namespace runtime = whale::runtime;

static cl::list<std::string> inputFiles(cl::Positional, cl::OneOrMore,
                                        cl::desc("<files of level 5>"));
static cl::opt<unsigned> numBlocks("blocks", cl::init(8),
                                   cl::desc("Blocks of a kernel; 0: all"));
static cl::opt<bool> check("check", cl::desc("Compare with all blocks"));
static cl::opt<double>
    apart("apart", cl::init(5),
          cl::desc("How far sums may be apart, in per cent"));
static cl::opt<unsigned> most("most", cl::init(20),
                              cl::desc("Kernels that are printed"));

static constexpr uintptr_t kSector = 32;

/// The numbers of sectors that the block that is run has read and written.
static std::unordered_set<uintptr_t> hasRead, hasWritten;

/// A buffer that stays in a cache, and its sectors that any block has read.
struct SmallBuffer {
  uintptr_t begin, end;
  std::unordered_set<uintptr_t> hasRead;
};
static constexpr uintptr_t kSmall = 64 * 1024;
static std::vector<SmallBuffer> smallBuffers;

static void observe(const void *address, int32_t bytes, int32_t kind) {
  if (kind & whale::format::kOfSharedMemory)
    return;
  auto first = reinterpret_cast<uintptr_t>(address);
  auto small = find_if(smallBuffers, [&](const SmallBuffer &buffer) {
    return buffer.begin <= first && first < buffer.end;
  });
  auto &reads = small != smallBuffers.end() ? small->hasRead : hasRead;
  for (uintptr_t at = first / kSector; at <= (first + bytes - 1) / kSector;
       ++at)
    if (kind & whale::format::kWrites)
      hasWritten.insert(at);
    else if (!hasWritten.contains(at))
      reads.insert(at);
}

namespace {

/// Zeros that take memory only where something is written.
class Memory {
public:
  explicit Memory(size_t bytes)
      : bytes(std::max<size_t>(bytes, 1)),
        start(mmap(nullptr, this->bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (start == MAP_FAILED)
      report_fatal_error("no memory for a buffer");
  }
  ~Memory() { munmap(start, bytes); }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  void *get() const { return start; }

private:
  size_t bytes;
  void *start;
};

/// Bytes that a kernel moves.
struct Traffic {
  FuncOp kernel;
  double sampled = 0, all = 0, launches = 0;
  double get() const { return launches * sampled; }
};

class Counter {
public:
  /// Fills in what the kernel, alone in `kernels`, moves when it is run once.
  void count(mlir::ModuleOp kernels, Traffic &traffic);

private:
  double countBlocks(void *entry, FuncOp function, bool isSampled);

  whale::GpuMachine machine;
};

} // namespace

double Counter::countBlocks(void *entry, FuncOp function, bool isSampled) {
  std::vector<std::unique_ptr<Memory>> buffers;
  std::vector<void *> pointers;
  smallBuffers.clear();
  for (mlir::Type type : function.getArgumentTypes().drop_back(2)) {
    buffers.push_back(std::make_unique<Memory>(whale::getTensorBytes(type)));
    pointers.push_back(buffers.back()->get());
    auto begin = reinterpret_cast<uintptr_t>(pointers.back());
    if (uintptr_t bytes = whale::getTensorBytes(type); bytes <= kSmall)
      smallBuffers.push_back({begin, begin + bytes, {}});
    auto array = cast<mlir::MemRefType>(type);
    int64_t size = array.getNumElements();
    if (array.getElementType().isInteger(32) && size < (1 << 20))
      for (int64_t at = 0; at < size; ++at)
        static_cast<int32_t *>(pointers.back())[at] =
            static_cast<int32_t>(at * 1024 / size);
  }
  int64_t extent = whale::getExtent(function);
  int64_t step =
      function->hasAttr(whale::kThreadsAttrName) ? 1 : whale::kBlockThreads;
  int64_t blocks = divideCeil(extent, step);
  isSampled &= blocks > numBlocks;
  int64_t count = isSampled ? int64_t(numBlocks) : blocks;
  std::mt19937_64 random(1);
  double bytes = 0;
  for (int64_t number = 0; number < count; ++number) {
    // One of each part of the grid.
    int64_t from = blocks * number / count;
    int64_t block = from;
    if (isSampled)
      block += random() % (blocks * (number + 1) / count - from);
    hasRead.clear();
    hasWritten.clear();
    whale::GpuMachine::run(entry, pointers, block * step,
                           std::min(extent, (block + 1) * step));
    bytes +=
        static_cast<double>((hasRead.size() + hasWritten.size()) * kSector);
  }
  // Indices that are none may let threads meet.
  runtime::takeEmulatorFault();
  double times = static_cast<double>(blocks) / static_cast<double>(count);
  bytes *= times;
  // Blocks read all of it, or a part each.
  for (const SmallBuffer &buffer : smallBuffers)
    bytes +=
        std::min(static_cast<double>(buffer.hasRead.size() * kSector) * times,
                 static_cast<double>(buffer.end - buffer.begin));
  return bytes;
}

void Counter::count(mlir::ModuleOp kernels, Traffic &traffic) {
  mlir::OwningOpRef<mlir::ModuleOp> before(kernels.clone());
  FuncOp function = *before->getOps<FuncOp>().begin();
  orc::ThreadSafeContext shared(std::make_unique<LLVMContext>());
  shared.withContextDo([&](LLVMContext *context) {
    std::unique_ptr<Module> module =
        whale::lowerToNvvm(kernels, *context, /*isForProcessor=*/true);
    if (!module)
      report_fatal_error("a kernel is not lowered");
    void *entry = machine.compile(std::move(module), shared);
    traffic.sampled = countBlocks(entry, function, numBlocks != 0);
    traffic.all = check ? countBlocks(entry, function, false) : traffic.sampled;
  });
}

/// How often a step runs what is in `op`: loops and calls around it.
static double countRuns(mlir::Operation *op, mlir::ModuleOp module) {
  double runs = 1;
  mlir::FunctionOpInterface function;
  for (mlir::Operation *around = op->getParentOp(); around;
       around = around->getParentOp()) {
    if (auto trips =
            around->getAttrOfType<mlir::IntegerAttr>(whale::kTripsAttrName))
      runs *= static_cast<double>(trips.getInt());
    if (auto inside = dyn_cast<mlir::FunctionOpInterface>(around))
      function = inside;
  }
  auto uses = mlir::SymbolTable::getSymbolUses(function, module);
  double calls = 0;
  if (uses)
    for (const mlir::SymbolTable::SymbolUse &use : *uses)
      calls += countRuns(use.getUser(), module);
  return runs * (calls > 0 ? calls : 1);
}

static int run() {
  runtime::setEmulatorObserver(observe);
  Counter counter;
  double sampled = 0, all = 0;
  std::vector<std::pair<double, std::string>> lines;
  auto countKernel = [&](mlir::ModuleOp kernel, mlir::ModuleOp program) {
    std::string name = (*kernel.getOps<FuncOp>().begin()).getName().str();
    Traffic own;
    program.walk([&](whale::LaunchOp launch) {
      if (launch.getKernel() == name)
        own.launches += countRuns(launch, program);
    });
    counter.count(kernel, own);
    sampled += own.get();
    all += own.launches * own.all;
    std::string text;
    raw_string_ostream(text)
        << format("%10.3f MB, %4.0f launches: ", own.get() / 1e6, own.launches)
        << name;
    lines.emplace_back(-own.get(), text);
  };
  if (!whale::forEachKernel(inputFiles, countKernel))
    return 1;
  std::sort(lines.begin(), lines.end());
  for (auto &[bytes, text] : ArrayRef(lines).take_front(most))
    outs() << text << '\n';
  outs() << format("%.3f GB a step\n", sampled / 1e9);
  if (!check)
    return 0;
  double difference = std::abs(sampled / all - 1) * 100;
  outs() << format("%.3f GB with all blocks, ", all / 1e9)
         << (difference <= apart ? "near" : "far") << '\n';
  return difference > apart;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  cl::ParseCommandLineOptions(argc, argv, "Traffic of kernels for GPUs\n");
  return run();
}
