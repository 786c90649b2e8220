//===- Tool.h - Set-up of a command-line tool -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TOOL_H
#define WHALE_RUNTIME_TOOL_H

namespace whale::runtime {

/// Sets up signals and standard streams. To be called first in `main` (after
/// LLVM's own handlers, if it has them):
///
/// - HUP, INT, TERM and XCPU still end the process, after its staging
///   directories are removed; signals that were ignored at the start stay
///   ignored.
/// - A full pipe, or a file over `ulimit -f`, causes an error of the write
///   instead of a signal.
/// - Closed standard streams are replaced, so that a file opened later doesn't
///   get their descriptor.
void beginTool();

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TOOL_H
