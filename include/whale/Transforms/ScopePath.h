//===- ScopePath.h - Scopes inside name paths -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JAX writes the stack of named scopes and transformations of every operation
// into its location: `jit(step)/transpose(jvp(whale:split:4:2:head))/dot`. The
// functions below read such a path and compose the paths of a call and of what
// it calls. They are pure: text or locations in, text or locations out.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_SCOPEPATH_H
#define WHALE_TRANSFORMS_SCOPEPATH_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace whale {

/// One component `whale:KIND:COUNT:ID:NAME` of a name path.
struct Scope {
  enum class Kind { Replicate, Split };
  Kind kind = Kind::Replicate;
  /// Devices asked for; none where the component says `*`.
  std::optional<int64_t> devices;
  /// The id of the scope followed by the numbers of the calls it was reached
  /// through: `7`, or `7.1.0` for the scope 7 inside two functions that are
  /// called more than once.
  std::string id;
  /// Decoded; empty where the scope has no name.
  std::string name;

  /// The id without the numbers of the calls.
  llvm::StringRef baseId() const {
    return llvm::StringRef(id).take_until([](char c) { return c == '.'; });
  }
  bool operator==(const Scope &) const = default;
};

/// What a name path says about its operation.
struct ScopePath {
  /// The innermost scope.
  std::optional<Scope> scope;
  /// `transpose(` is in the path, and no `jvp(` before it.
  bool backward = false;
  /// `jvp(` is somewhere in the path: a differentiated operation.
  bool differentiated = false;
};

/// Parses one component without its wrappers. The error says which field is
/// wrong.
llvm::Expected<Scope> parseScope(llvm::StringRef component);

/// Reads a name path. Fails if a component that starts with `whale:` is
/// malformed.
llvm::Expected<ScopePath> parseScopePath(llvm::StringRef path);

/// The name path of `location`: the outermost name; for an inlined operation
/// (a call site of MLIR) the caller's path followed by the callee's; for fused
/// locations the first part that holds a scope, else the first that has a path.
std::string namePath(mlir::Location location);

/// Whether the name path of `location` is well-formed and names a scope.
bool isInScope(mlir::Location location);

/// The location with paths that name no scope: `jvp(whale:split:4:2:head)/dot`
/// is `jvp()/dot`, as JAX prints it outside of all scopes. It is in no
/// TaskGraph.
mlir::Location withoutScopes(mlir::Location location);

/// The location of an operation of the TaskGraph of this name, which its path
/// need not say: operations join TaskGraphs, and stages are cut automatically.
mlir::Location inTaskGraph(mlir::Location location, llvm::StringRef name);

/// The name that `inTaskGraph` gave to the location, or to the first one that
/// has any of those that are fused into it; else empty.
llvm::StringRef findTaskGraph(mlir::Location location);

/// The path of an operation with path `inner` in a function called at `outer`.
/// The ids of the scopes in `inner` get the suffix `numbers`: of a function
/// that is called more than once, the number of the call after a dot, so that
/// the scopes of two calls stay apart, and then those of the calls around it.
std::string composePaths(llvm::StringRef outer, llvm::StringRef inner,
                         llvm::StringRef numbers);

/// The location of an inlined operation: the composed path, and the source line
/// of the operation, or that of the call where it has none.
mlir::Location composeLocations(mlir::Location outer, mlir::Location inner,
                                llvm::StringRef numbers);

} // namespace whale

#endif // WHALE_TRANSFORMS_SCOPEPATH_H
