//===- Tool.h - What a command does before all else -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_TOOL_H
#define WHALE_SYSTEM_TOOL_H

#include <cstddef>
#include <functional>

namespace whale::system {

/// To be called first in `main` (after LLVM's own handlers, if it has them):
///
/// - HUP, INT, TERM and XCPU still end the process, after its staging
///   directories are removed; those that it was started with ignored stay so.
/// - A full pipe, or a file over `ulimit -f`, is an error of the write instead
///   of a signal.
/// - What this process starts can be waited for, also where its parent ignores
///   the ends of its children.
/// - What no thread catches, as of memory that is not to be had, is an error.
/// - What is opened later is never taken for a closed standard stream.
void beginTool();

/// Ends the process with an error where its limit (ulimit -v) is below so many
/// MiB: with less, libraries that it uses end it in their own ways.
void requireAddressSpace(size_t mebibytes);

/// Runs what a command does, which returns its exit status, and writes what is
/// left of the standard output. Prints what is thrown as one error. Returns the
/// exit status: 1 where something was thrown or cannot be written.
int runTool(const std::function<int()> &run);

} // namespace whale::system

#endif // WHALE_SYSTEM_TOOL_H
