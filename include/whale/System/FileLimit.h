//===- FileLimit.h - How many files a process may open ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SYSTEM_FILELIMIT_H
#define WHALE_SYSTEM_FILELIMIT_H

#include <cstddef>

namespace whale::system {

/// Makes sure that this process can open `count` files more, for a library that
/// does not survive it if it cannot: raises the process's own limit, as far as
/// the system lets it, where that is too low. `what` needs them: an Error says
/// so, with the limit that would do. Cost: opens and closes as many.
void needFiles(size_t count, const char *what);

} // namespace whale::system

#endif // WHALE_SYSTEM_FILELIMIT_H
