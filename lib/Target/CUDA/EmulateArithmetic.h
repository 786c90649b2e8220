//===- EmulateArithmetic.h - GPU arithmetic on a processor ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TARGET_CUDA_EMULATEARITHMETIC_H
#define WHALE_LIB_TARGET_CUDA_EMULATEARITHMETIC_H

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"

namespace whale {

/// What `call`, of the intrinsic llvm.nvvm.`name`, computes; null for what is
/// no arithmetic.
llvm::Value *emulateArithmetic(llvm::IRBuilder<> &b, llvm::CallBase &call,
                               llvm::StringRef name);

/// What `call`, of the inline assembly `text`, computes; null for what the
/// device library does not have.
llvm::Value *emulateAssembly(llvm::IRBuilder<> &b, llvm::CallBase &call,
                             llvm::StringRef text);

} // namespace whale

#endif // WHALE_LIB_TARGET_CUDA_EMULATEARITHMETIC_H
