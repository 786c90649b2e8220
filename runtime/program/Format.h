//===- Format.h - The program format's names --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The names of the program format that the runtime uses as its own.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PROGRAM_FORMAT_H
#define WHALE_RUNTIME_PROGRAM_FORMAT_H

#include "whale/ProgramFormat/Libraries.h"
#include "whale/ProgramFormat/Program.h"
#include "whale/Runtime/Types.h"

namespace whale::runtime {

using format::BufferIndex;
using format::BufferInfo;
using format::Cell;
using format::ChannelPart;
using format::Collective;
using format::Convolution;
using format::Epilogue;
using format::Group;
using format::Groups;
using format::LibraryTensor;
using format::Matmul;
using format::Parameter;
using format::Reduction;
using format::ScratchSizes;
using format::Space;
using format::Start;

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PROGRAM_FORMAT_H
