//===- Linker.h - lld within whale-compile ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALECOMPILE_LINKER_H
#define WHALE_TOOLS_WHALECOMPILE_LINKER_H

namespace whale {

/// Whether this program was started under the name `ld.lld`, and has lld in it.
bool isLinker(const char *name);

/// Links as ld.lld does with these arguments. Returns the exit status.
int runLinker(int argc, char **argv);

} // namespace whale

#endif // WHALE_TOOLS_WHALECOMPILE_LINKER_H
