//===- NativeCode.h - LLVM IR to a shared library ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TARGET_CPU_NATIVECODE_H
#define WHALE_TARGET_CPU_NATIVECODE_H

#include "mlir/Support/LLVM.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace whale {

/// For a processor by LLVM's name, or if that is empty for this machine's. Null
/// and an error if LLVM cannot.
std::unique_ptr<llvm::TargetMachine>
createNativeMachine(llvm::StringRef processor, std::string &error);

void optimizeNative(llvm::Module &module, llvm::TargetMachine &machine);

/// Compiles the module to the file `object`. Returns an empty string, or what
/// is wrong.
std::string emitObject(llvm::Module &module, llvm::TargetMachine &machine,
                       llvm::StringRef object);

/// Links object files, libm and libmvec to a shared library. Returns an empty
/// string, or what is wrong.
std::string linkShared(llvm::ArrayRef<std::string> objects,
                       llvm::StringRef path);

/// Whether libmvec has a function.
bool hasVectorMath(const std::string &name);

} // namespace whale

#endif // WHALE_TARGET_CPU_NATIVECODE_H
