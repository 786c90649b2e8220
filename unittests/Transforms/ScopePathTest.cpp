//===- ScopePathTest.cpp - Scopes inside name paths -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The name paths in which JAX keeps scopes and transformations: how a path is
// parsed into a scope and a phase, how the paths of a call and of what it calls
// become one, and how scopes are taken out of locations again. Expected results
// are written by hand, in the spellings of JAX; errors are compared word for
// word.
//
// Whether JAX still spells so only tests with JAX can tell. A failure here
// means that operations land in another TaskGraph or phase than the user's
// scope says.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/ScopePath.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace whale;

namespace {

ScopePath parse(llvm::StringRef path) {
  llvm::Expected<ScopePath> result = parseScopePath(path);
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }
  return *result;
}

std::string parseError(llvm::StringRef path) {
  llvm::Expected<ScopePath> result = parseScopePath(path);
  return result ? "" : llvm::toString(result.takeError());
}

Scope scope(Scope::Kind kind, std::optional<int64_t> devices,
            llvm::StringRef id, llvm::StringRef name = "") {
  return Scope{kind, devices, id.str(), name.str()};
}

constexpr auto Replicate = Scope::Kind::Replicate;
constexpr auto Split = Scope::Kind::Split;

TEST(ScopePath, PlainForward) {
  ScopePath path = parse("jit(f)/whale:split:4:2:head/dot_general");
  EXPECT_EQ(path.scope, scope(Split, 4, "2", "head"));
  EXPECT_FALSE(path.backward);
  EXPECT_FALSE(path.differentiated);
}

TEST(ScopePath, InsideWrappers) {
  ScopePath path = parse("jit(f)/transpose(jvp(whale:replicate:*:0:))/dot");
  EXPECT_EQ(path.scope, scope(Replicate, std::nullopt, "0"));
  EXPECT_TRUE(path.backward);
  EXPECT_TRUE(path.differentiated);
  EXPECT_EQ(parse("jit(f)/vmap(jvp(whale:split:2:1:a))").scope,
            scope(Split, 2, "1", "a"));
}

TEST(ScopePath, BackwardWrapperMayStandBesideTheScope) {
  EXPECT_TRUE(parse("a/transpose(jvp(Model))/whale:split:2:1:/x").backward);
  EXPECT_TRUE(parse("whale:split:2:1:/transpose(jvp())/x").backward);
  EXPECT_TRUE(
      parse("transpose(jvp(whale:split:2:1:))/jvp(whale:split:2:1:)/checkpoint")
          .backward);
  // A gradient that the loss is made of, and its own gradient.
  EXPECT_FALSE(parse("jit(f)/jvp(vmap(jvp(vmap(transpose(jvp())))))").backward);
  EXPECT_TRUE(parse("jit(f)/transpose(jvp(vmap(transpose(jvp()))))").backward);
  // An operation called transpose is no wrapper, nor is a function.
  EXPECT_FALSE(parse("jit(f)/jvp(whale:split:2:1:)/transpose").backward);
  EXPECT_FALSE(parse("jit(transpose)/my_transpose(x)").backward);
}

TEST(ScopePath, InnermostWins) {
  EXPECT_EQ(
      parse("jvp(whale:replicate:4:0:out)/mlp/whale:split:2:1:in/dot").scope,
      scope(Split, 2, "1", "in"));
}

TEST(ScopePath, NamesAreDecoded) {
  EXPECT_EQ(parse("whale:split:2:1:a%2Fb%3A%28%25").scope,
            scope(Split, 2, "1", "a/b:(%"));
}

TEST(ScopePath, NoScope) {
  EXPECT_FALSE(parse("jit(f)/jvp()/notwhale:split:2:1:x/dot").scope);
  EXPECT_FALSE(parse("").scope);
}

TEST(ScopePath, MalformedComponents) {
  EXPECT_EQ(parseError("jit(f)/whale:split:4/dot"),
            "malformed scope 'whale:split:4': expected "
            "'whale:KIND:COUNT:ID:NAME'");
  EXPECT_EQ(parseError("jvp(whale:shard:4:0:)"),
            "malformed scope 'whale:shard:4:0:': the kind 'shard' is neither "
            "'replicate' nor 'split'");
  EXPECT_EQ(parseError("whale:split:0:0:"),
            "malformed scope 'whale:split:0:0:': the device count '0' is "
            "neither '*' nor a positive number");
  EXPECT_EQ(parseError("whale:split:4:x:"),
            "malformed scope 'whale:split:4:x:': the id 'x' is not a decimal "
            "number");
  EXPECT_EQ(parseError("whale:split:4:0:a%2"),
            "malformed scope 'whale:split:4:0:a%2': the name 'a%2' is not "
            "percent-encoded");
}

TEST(ScopePath, CompositionNumbersTheScopesOfTheCallee) {
  EXPECT_EQ(composePaths("jit(f)/while/body", "whale:split:2:1:x/dot", ""),
            "jit(f)/while/body/whale:split:2:1:x/dot");
  std::string once =
      composePaths("whale:split:2:0:/call", "jvp(whale:split:2:1:x)/dot", ".3");
  EXPECT_EQ(once, "whale:split:2:0:/call/jvp(whale:split:2:1.3:x)/dot");
  EXPECT_EQ(composePaths("g", "whale:split:2:1.3:x/dot", ".0"),
            "g/whale:split:2:1.3.0:x/dot");
  EXPECT_EQ(parse(once).scope, scope(Split, 2, "1.3", "x"));
  EXPECT_EQ(parse(once).scope->baseId(), "1");
  EXPECT_EQ(composePaths("", "a", ""), "a");
  EXPECT_EQ(composePaths("a", "", ".1"), "a");
}

TEST(ScopePath, Locations) {
  MLIRContext context;
  Builder b(&context);
  Location line = FileLineColLoc::get(&context, "model.py", 3, 5);
  auto named = [&](llvm::StringRef name, Location child) -> Location {
    return NameLoc::get(b.getStringAttr(name), child);
  };
  Location frame =
      CallSiteLoc::get(named("f.<locals>.loss", line), named("<module>", line));
  Location op = named("jit(f)/whale:split:2:1:/dot", frame);
  EXPECT_EQ(namePath(op), "jit(f)/whale:split:2:1:/dot");
  EXPECT_EQ(namePath(named("jit:", op)), "jit(f)/whale:split:2:1:/dot");
  EXPECT_EQ(namePath(CallSiteLoc::get(named("max", line), op)),
            "jit(f)/whale:split:2:1:/dot/max");
  EXPECT_EQ(namePath(b.getFusedLoc({line, named("a", line), op})),
            "jit(f)/whale:split:2:1:/dot");
  EXPECT_EQ(namePath(b.getUnknownLoc()), "");
  // Functions of Python are no names of the step.
  EXPECT_EQ(namePath(frame), "");

  Location inner = named("whale:split:2:7:/max", b.getUnknownLoc());
  EXPECT_EQ(composeLocations(op, inner, ".1"),
            named("jit(f)/whale:split:2:1:/dot/whale:split:2:7.1:/max", frame));

  auto without = [&](llvm::StringRef path) {
    return namePath(withoutScopes(named(path, line)));
  };
  EXPECT_EQ(without("jit(f)/jvp(whale:split:2:1:a)/dot"), "jit(f)/jvp()/dot");
  EXPECT_EQ(without("jit(f)/whale:split:2:1:a/dot"), "jit(f)/dot");
  EXPECT_EQ(without("whale:split:2:1:/whale:replicate:*:2:/dot"), "dot");
  EXPECT_EQ(without("jit(f)/whale:split:2:1:"), "jit(f)");
  EXPECT_EQ(without("whale:split:2:1:"), "");
  EXPECT_EQ(without("jit(f)/notwhale:split/dot"), "jit(f)/notwhale:split/dot");
  EXPECT_EQ(withoutScopes(b.getFusedLoc({line, CallSiteLoc::get(op, line)})),
            b.getFusedLoc(
                {line, CallSiteLoc::get(named("jit(f)/dot", frame), line)}));

  // The TaskGraph stays known in what is fused, and changes no path.
  Location graph = inTaskGraph(op, "stage1");
  Location fused = b.getFusedLoc({line, graph});
  EXPECT_EQ(findTaskGraph(fused), "stage1");
  EXPECT_EQ(namePath(graph), namePath(op));
  EXPECT_EQ(withoutScopes(fused), withoutScopes(b.getFusedLoc({line, op})));
  EXPECT_EQ(findTaskGraph(withoutScopes(fused)), "");
  EXPECT_EQ(findTaskGraph(op), "");
}

} // namespace
