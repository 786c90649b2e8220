//===- Linker.cpp - lld within whale-compile ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A whale-compile that is installed without LLVM starts itself under the name
// ld.lld to link kernels (WHALE_BUNDLE_LLVM).
//
//===----------------------------------------------------------------------===//

#include "Linker.h"

#ifdef WHALE_BUNDLE_LLVM

#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

// lld registers every target of LLVM, for the code that it generates from
// bitcode. It gets none here: with these in the place of LLVM's, the linker
// leaves out the code generators that Whale doesn't use.
#define WHALE_WITHOUT_TARGET(name)                                             \
  extern "C" void LLVMInitialize##name##TargetInfo() {}                        \
  extern "C" void LLVMInitialize##name##Target() {}                            \
  extern "C" void LLVMInitialize##name##TargetMC() {}                          \
  extern "C" void LLVMInitialize##name##AsmPrinter() {}                        \
  extern "C" void LLVMInitialize##name##AsmParser() {}
WHALE_WITHOUT_TARGET(AArch64)
WHALE_WITHOUT_TARGET(AMDGPU)
WHALE_WITHOUT_TARGET(ARM)
WHALE_WITHOUT_TARGET(AVR)
WHALE_WITHOUT_TARGET(BPF)
WHALE_WITHOUT_TARGET(Hexagon)
WHALE_WITHOUT_TARGET(Lanai)
WHALE_WITHOUT_TARGET(LoongArch)
WHALE_WITHOUT_TARGET(M68k)
WHALE_WITHOUT_TARGET(MSP430)
WHALE_WITHOUT_TARGET(Mips)
WHALE_WITHOUT_TARGET(PowerPC)
WHALE_WITHOUT_TARGET(RISCV)
WHALE_WITHOUT_TARGET(SPIRV)
WHALE_WITHOUT_TARGET(Sparc)
WHALE_WITHOUT_TARGET(SystemZ)
WHALE_WITHOUT_TARGET(VE)
WHALE_WITHOUT_TARGET(WebAssembly)
WHALE_WITHOUT_TARGET(XCore)
WHALE_WITHOUT_TARGET(Xtensa)

// So that lld's code for bitcode links without Polly's archives.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", "", [](llvm::PassBuilder &) {}};
}

bool whale::isLinker(const char *name) {
  return llvm::StringRef(name) == "ld.lld";
}

int whale::runLinker(int argc, char **argv) {
  llvm::SmallVector<const char *> arguments(argv, argv + argc);
  return lld::lldMain(arguments, llvm::outs(), llvm::errs(),
                      {{lld::Gnu, &lld::elf::link}})
      .retCode;
}

#else

bool whale::isLinker(const char *name) { return false; }
int whale::runLinker(int argc, char **argv) { return 1; }

#endif
