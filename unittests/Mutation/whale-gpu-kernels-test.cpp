//===- whale-gpu-kernels-test.cpp - Is every wrong kernel caught? ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests: runs the kernels of a program's level 5 (whale-compile
// --dump-phases-to) in the emulator, each alone on random buffers. A kernel
// must be without faults, and give the same bits in every order of its warps.
// Then it is made wrong at one place at a time: a barrier is dropped, the lanes
// of a shuffle are others, an index is one too large, threads write to the same
// place in shared memory. Each must be a fault, or show in what the kernel
// writes.
//
// Kernels are compiled without optimization; a mutant takes some 20 ms.
//
//===----------------------------------------------------------------------===//

#include "GpuMachine.h"
#include "LowerToNvvm.h"
#include "emulator/Emulator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <map>
#include <random>

using namespace llvm;
using mlir::func::FuncOp;
namespace runtime = whale::runtime;

static cl::list<std::string> inputFiles(cl::Positional, cl::OneOrMore,
                                        cl::desc("<files of level 5>"));
static cl::opt<uint64_t> seed("seed", cl::init(1),
                              cl::desc("Of what is chosen"));
static cl::opt<unsigned> most("most",
                              cl::init(std::getenv("WHALE_TEST_FULL") ? 3 : 1),
                              cl::desc("Mutants of a class in one kernel"));
static cl::opt<unsigned> least("least", cl::init(0),
                               cl::desc("Mutants that each class must have"));
static cl::opt<std::string> dump("dump",
                                 cl::desc("Print the kernel of that name"));

namespace {

enum class Kind { DropBarrier, ChangeShuffle, ShiftIndex, CollideInShared };
constexpr StringLiteral kindNames[] = {"drop a barrier", "change a shuffle",
                                       "shift an index", "collide in shared"};

/// A place of a kernel's instructions that can be made wrong.
struct Place {
  Kind kind;
  unsigned instruction;
  /// Of a shuffle: which operand, and its new value.
  unsigned operand = 0;
  uint32_t value = 0;
};

StringRef getIntrinsic(const Instruction &instruction) {
  auto *call = dyn_cast<CallInst>(&instruction);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  StringRef name = callee ? callee->getName() : "";
  return name.consume_front("llvm.nvvm.") ? name : "";
}

/// The element of which shared array an instruction stores; else null.
GetElementPtrInst *getSharedElement(Instruction &instruction) {
  auto *store = dyn_cast<StoreInst>(&instruction);
  if (!store || store->getPointerAddressSpace() != 3)
    return nullptr;
  return dyn_cast<GetElementPtrInst>(store->getPointerOperand());
}

/// All places of a kernel, and how many could not be changed.
std::vector<Place> findPlaces(Function &kernel, unsigned &skipped) {
  std::vector<Place> places;
  for (auto [number, instruction] : enumerate(instructions(kernel))) {
    auto add = [&, number = static_cast<unsigned>(number)](
                   Kind kind, unsigned operand = 0, uint32_t value = 0) {
      places.push_back({kind, number, operand, value});
    };
    StringRef intrinsic = getIntrinsic(instruction);
    if (intrinsic.starts_with("barrier."))
      add(Kind::DropBarrier);
    if (intrinsic.starts_with("shfl.sync.")) {
      auto constantOf = [&](unsigned operand) {
        return dyn_cast<ConstantInt>(instruction.getOperand(operand));
      };
      // A lane less in the mask; a lane's own value instead of another's;
      // segments so short that the other lane is in another one.
      auto *mask = constantOf(0), *lane = constantOf(2), *clamp = constantOf(3);
      if (mask && lane && clamp && isPowerOf2_64(lane->getZExtValue())) {
        add(Kind::ChangeShuffle, 0, mask->getZExtValue() >> 1);
        add(Kind::ChangeShuffle, 2, 0);
        add(Kind::ChangeShuffle, 3,
            (32 - lane->getZExtValue()) << 8 | clamp->getZExtValue());
      } else {
        ++skipped;
      }
    }
    if (isa<LoadInst, StoreInst>(instruction) &&
        isa<GetElementPtrInst>(getLoadStorePointerOperand(&instruction)))
      add(Kind::ShiftIndex);
    if (getSharedElement(instruction))
      add(Kind::CollideInShared);
  }
  return places;
}

void makeWrong(Function &kernel, const Place &place) {
  Instruction &instruction =
      *std::next(instructions(kernel).begin(), place.instruction);
  IRBuilder<> b(&instruction);
  switch (place.kind) {
  case Kind::DropBarrier:
    instruction.eraseFromParent();
    return;
  case Kind::ChangeShuffle:
    instruction.setOperand(place.operand, b.getInt32(place.value));
    return;
  case Kind::ShiftIndex: {
    Value *address = getLoadStorePointerOperand(&instruction);
    Value *next =
        b.CreateConstGEP1_32(getLoadStoreType(&instruction), address, 1);
    instruction.replaceUsesOfWith(address, next);
    return;
  }
  case Kind::CollideInShared: {
    // Not to the first place, where a last thread alone may well store.
    GetElementPtrInst *element = getSharedElement(instruction);
    Value *second = b.CreateConstGEP1_32(getLoadStoreType(&instruction),
                                         element->getPointerOperand(), 1);
    instruction.replaceUsesOfWith(element, second);
    return;
  }
  }
}

/// What a kernel's arguments point to.
using Buffers = std::vector<std::vector<char>>;

/// Buffers are filled in so many ways: a maximum may well be the same without
/// some of its elements.
constexpr uint64_t numFills = 128;

/// Writes what `make` returns for each element to `bytes`.
template <typename T>
void fill(std::vector<char> &bytes, function_ref<T(size_t)> make) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value = make(at / sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

/// Random numbers, of which one in each row and column is far larger or smaller
/// than the others, often where a thread's part may begin; small if they are
/// integers, which may be indices. With `isSorted` integers of 32 bits are
/// indices, none smaller than the one before.
Buffers makeBuffers(FuncOp function, uint64_t number, bool isSorted) {
  std::mt19937_64 random(seed * numFills + number);
  int sign = number % 2 ? 1 : -1;
  Buffers buffers;
  for (mlir::Type type : function.getArgumentTypes().drop_back(2)) {
    auto array = cast<mlir::MemRefType>(type);
    uint64_t columns = array.getRank() ? array.getShape().back() : 1;
    uint64_t rows = array.getNumElements() / std::max<uint64_t>(columns, 1);
    std::vector<bool> isFar(rows * columns);
    auto choose = [&](uint64_t size) {
      constexpr uint64_t bits[] = {0, 5, 6, 7, 8, 9};
      uint64_t chosen = bits[random() % std::size(bits)];
      return random() % size >> chosen << chosen;
    };
    for (uint64_t row = 0; row < rows && columns >= 8; ++row)
      isFar[row * columns + choose(columns)] = true;
    for (uint64_t column = 0; column < columns && rows >= 8; ++column)
      isFar[choose(rows) * columns + column] = true;
    auto real = [&](size_t place) {
      return std::uniform_real_distribution<double>(-1, 1)(random) +
             2 * sign * isFar[place];
    };
    auto integer = [&](size_t place) {
      return static_cast<int64_t>(random() % 8) + 8 * sign * isFar[place];
    };
    std::vector<char> &bytes =
        buffers.emplace_back(whale::getTensorBytes(type));
    mlir::Type element = array.getElementType();
    if (auto complex = dyn_cast<mlir::ComplexType>(element))
      element = complex.getElementType();
    if (element.isF32())
      fill<float>(bytes, real);
    else if (element.isF64())
      fill<double>(bytes, real);
    else if (auto type = dyn_cast<mlir::FloatType>(element);
             type && type.getWidth() == 16)
      fill<uint16_t>(bytes, [&](size_t place) {
        APFloat value(real(place));
        bool lost;
        value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                      &lost);
        return static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue());
      });
    else if (element.isInteger(32) && isSorted)
      fill<int32_t>(bytes, [&, next = 0,
                            rest = 1 + random() % (1 << random() % 6)](
                               size_t place) mutable {
        // Where a thread of a scatter begins the next index often does, too.
        bool isNext = place % 64 == 0 ? random() % 2
                                      : random() % (bytes.size() / 4) < rest;
        next += place > 0 && isNext;
        return next;
      });
    else if (element.isInteger(32))
      fill<int32_t>(bytes, integer);
    else if (element.isInteger(64))
      fill<int64_t>(bytes, integer);
    else
      fill<uint8_t>(bytes, [&](size_t) { return random() % 2; });
  }
  return buffers;
}

/// What a kernel does: what it writes, or which fault it has.
struct Outcome {
  Buffers buffers;
  std::optional<std::string> fault;
  bool operator==(const Outcome &) const = default;
};

Outcome run(void *entry, FuncOp function, uint64_t number, uint64_t order,
            bool isSorted) {
  // What joins runs of sorted indices has no fault with others.
  isSorted |= number / 2 % 2;
  Outcome outcome{makeBuffers(function, number, isSorted), std::nullopt};
  std::vector<void *> pointers;
  for (std::vector<char> &buffer : outcome.buffers)
    pointers.push_back(buffer.data());
  runtime::setEmulatorSeed(order);
  whale::GpuMachine::run(entry, pointers, 0, whale::getExtent(function));
  outcome.fault = runtime::takeEmulatorFault();
  return outcome;
}

struct Test {
  whale::GpuMachine machine;
  std::mt19937_64 random{seed};
  std::map<Kind, unsigned> mutants;
  unsigned kernels = 0, sortedKernels = 0, skipped = 0, wrong = 0;

  void fail(FuncOp function, const Twine &what) {
    ++wrong;
    errs() << function.getName() << ": " << what << '\n';
  }

  /// Places of each kind, chosen at random.
  std::vector<Place> choose(std::vector<Place> places) {
    std::shuffle(places.begin(), places.end(), random);
    std::map<Kind, unsigned> counts;
    erase_if(places, [&](const Place &place) {
      // Every kernel has indices.
      unsigned limit = place.kind == Kind::ShiftIndex ? 1 : unsigned(most);
      return ++counts[place.kind] > limit;
    });
    return places;
  }

  /// Tests the kernel that is alone in `kernels`, which is consumed.
  void testKernel(mlir::ModuleOp kernels) {
    mlir::OwningOpRef<mlir::ModuleOp> before(kernels.clone());
    FuncOp function = *before->getOps<FuncOp>().begin();
    orc::ThreadSafeContext shared(std::make_unique<LLVMContext>());
    shared.withContextDo([&](LLVMContext *context) {
      std::unique_ptr<Module> module =
          whale::lowerToNvvm(kernels, *context, /*isForProcessor=*/true);
      if (!module)
        return fail(function, "is not lowered");
      if (function.getName() == dump)
        outs() << *module;
      testModule(function, *module, shared);
    });
  }

  void testModule(FuncOp function, Module &module,
                  orc::ThreadSafeContext context) {
    ++kernels;
    void *entry = machine.compile(CloneModule(module), context);
    // What takes indices that another kernel has sorted relies on their order.
    bool isSorted = run(entry, function, 0, 0, false).fault.has_value();
    sortedKernels += isSorted;
    std::vector<std::optional<Outcome>> right(numFills);
    auto getRight = [&](uint64_t number) -> const Outcome & {
      if (!right[number])
        right[number] = run(entry, function, number, 0, isSorted);
      return *right[number];
    };
    for (uint64_t number : {0, 1, 2}) {
      if (getRight(number).fault)
        return fail(function, *getRight(number).fault);
      if (run(entry, function, number, number + 1, isSorted) !=
          getRight(number))
        fail(function, "another order of warps gives another result");
    }
    auto shows = [&](void *changed) {
      for (uint64_t number = 0; number < numFills; ++number)
        if (run(changed, function, number, number, isSorted) !=
            getRight(number))
          return true;
      return false;
    };
    Function &kernel = *find_if(module, whale::isGpuKernel);
    for (const Place &place : choose(findPlaces(kernel, skipped))) {
      std::unique_ptr<Module> mutant = CloneModule(module);
      makeWrong(*mutant->getFunction(kernel.getName()), place);
      ++mutants[place.kind];
      if (!shows(machine.compile(std::move(mutant), context)))
        fail(function,
             "does not show: " + kindNames[static_cast<size_t>(place.kind)] +
                 ", instruction " + Twine(place.instruction) + ", operand " +
                 Twine(place.operand));
    }
  }
};

int runTests() {
  Test test;
  if (!whale::forEachKernel(inputFiles,
                            [&](mlir::ModuleOp kernel, mlir::ModuleOp) {
                              test.testKernel(kernel);
                            }))
    return 1;
  outs() << test.kernels << " kernels, " << test.sortedKernels
         << " of them of sorted indices\n";
  for (auto [kind, count] : test.mutants) {
    outs() << count << " mutants: " << kindNames[static_cast<size_t>(kind)]
           << '\n';
    if (count < least) {
      errs() << "too few of these\n";
      ++test.wrong;
    }
  }
  outs() << test.skipped << " places skipped\n" << test.wrong << " wrong\n";
  return test.wrong != 0;
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  cl::ParseCommandLineOptions(argc, argv, "Test of kernels for GPUs\n");
  return runTests();
}
