//===- ScopePatterns.cpp - Strategies by names in name paths --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, all calls inlined, and patterns of names with their strategies.
// Out: locations whose name paths hold a component `whale:KIND:COUNT:ID:NAME`
// behind the names that a pattern matches, for all that reads scopes to find.
//
// A path is taken apart at its slashes. Of a part in parentheses
// (`transpose(jvp(layer_0))`) the innermost text is the name; what JAX writes
// for `jit` and for loops, branches and rematerialization is none, nor is the
// last part, the operation's own. A pattern matches a run of names anywhere in
// the path, and all that follows; of two patterns the one whose run ends later
// wins, as of two scopes the inner one. A strategy without a name gets the
// names up to the end of the run as its own, so that each module is a TaskGraph
// with its backward operations. Cost: for each location, the patterns times the
// square of its names.
//
//===----------------------------------------------------------------------===//

#include "ScopePatterns.h"
#include "whale/Dialect/Whale/IR/WhaleAttrs.h"
#include "whale/Transforms/ScopeNames.h"
#include "whale/Transforms/ScopePath.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"
#include <map>

using namespace mlir;

namespace whale {

namespace {

constexpr StringRef kScopePrefix = "whale:";
/// How many names an error lists.
constexpr size_t kMostListed = 32;
/// How many names the braces of a pattern may stand for.
constexpr size_t kMostAlternatives = 1024;

/// A name in a path, or a scope.
struct PathPart {
  StringRef text;
  /// Where a component can be put behind it.
  size_t end = 0;
  bool isScope = false;
};

struct NamePattern {
  StringRef text;
  StrategyAttr strategy;
  /// One for each name; `**`, any number of names, is none.
  SmallVector<std::optional<llvm::GlobPattern>> globs;
  /// What it has matched, in the order of the step.
  llvm::SetVector<StringAttr> found;
};

/// A run of names that a pattern matches.
struct NameMatch {
  NamePattern *pattern = nullptr;
  /// How many names there are up to its end.
  size_t count = 0;
};

} // namespace

/// Whether JAX writes this for its own control flow.
static bool isStructure(StringRef name, StringRef before) {
  if (name == "body")
    return before == "while";
  if (name.starts_with("branch_"))
    return before == "cond";
  return llvm::is_contained({"while", "cond", "closed_call", "core_call",
                             "checkpoint", "remat", "remat2",
                             "rematted_computation", "custom_jvp_call",
                             "custom_vjp_call", "custom_lin"},
                            name);
}

/// The end of the part of `path` that begins at `begin`.
static size_t findPartEnd(StringRef path, size_t begin) {
  int depth = 0;
  for (size_t at = begin; at < path.size(); ++at) {
    depth += path[at] == '(';
    depth -= path[at] == ')';
    if (path[at] == '/' && depth <= 0)
      return at;
  }
  return path.size();
}

/// What is inside of all transformations, of `transpose(jvp(a))` the `a`.
static StringRef unwrap(StringRef part) {
  while (part.ends_with(")")) {
    auto [head, inside] = part.drop_back().split('(');
    if (head == "jit" || head == "pjit")
      return "";
    part = inside;
  }
  return part;
}

static SmallVector<PathPart> getParts(StringRef path) {
  SmallVector<PathPart> parts;
  StringRef before;
  for (size_t begin = 0, end = 0; begin < path.size(); begin = end + 1) {
    end = findPartEnd(path, begin);
    StringRef part = path.slice(begin, end), inside = unwrap(part);
    SmallVector<StringRef> names;
    inside.split(names, '/', -1, /*KeepEmpty=*/false);
    for (StringRef name : names) {
      bool isScope = name.starts_with(kScopePrefix);
      bool isOperation = end == path.size() && inside.size() == part.size();
      if (isScope || !(isOperation || isStructure(name, before)))
        parts.push_back({name, end, isScope});
      before = name;
    }
  }
  return parts;
}

/// A strategy as it is written in Python.
static std::string describe(StrategyAttr strategy) {
  std::string text = isa<SplitAttr>(strategy) ? "wh.split(" : "wh.replicate(";
  std::optional<int64_t> devices = strategy.getDevices();
  if (devices)
    text += std::to_string(*devices);
  if (!strategy.getName().empty())
    text += (devices ? ", '" : "name='") + strategy.getName().str() + "'";
  return text + ")";
}

static std::string join(ArrayRef<PathPart> names) {
  return llvm::join(
      llvm::map_range(names, [](const PathPart &name) { return name.text; }),
      "/");
}

/// The names, of runs that follow themselves one: the path of what JAX computes
/// again begins with that of the first time.
static std::string joinOnce(ArrayRef<PathPart> names) {
  SmallVector<PathPart> once;
  for (const PathPart &name : names) {
    once.push_back(name);
    for (size_t size = once.size() / 2; size > 0; --size) {
      ArrayRef<PathPart> last = ArrayRef(once).take_back(size);
      ArrayRef<PathPart> earlier =
          ArrayRef(once).drop_back(size).take_back(size);
      if (llvm::equal(last, earlier, [](auto &one, auto &other) {
            return one.text == other.text;
          })) {
        once.truncate(once.size() - size);
        break;
      }
    }
  }
  return join(once);
}

/// How many of `names` there are up to the end of the longest run from `begin`
/// that `globs` match.
static std::optional<size_t>
matchFrom(ArrayRef<PathPart> names, size_t begin,
          ArrayRef<std::optional<llvm::GlobPattern>> globs) {
  if (globs.empty())
    return begin;
  if (!globs.front()) {
    for (size_t next = names.size() + 1; next-- > begin;)
      if (auto end = matchFrom(names, next, globs.drop_front()))
        return end;
    return std::nullopt;
  }
  if (begin == names.size() || !globs.front()->match(names[begin].text))
    return std::nullopt;
  return matchFrom(names, begin + 1, globs.drop_front());
}

/// The match of a pattern that ends last.
static NameMatch findLast(NamePattern &pattern, ArrayRef<PathPart> names) {
  NameMatch last{&pattern, 0};
  for (size_t begin = 0; begin < names.size(); ++begin)
    if (auto end = matchFrom(names, begin, pattern.globs))
      last.count = std::max(last.count, *end);
  return last;
}

static FailureOr<SmallVector<NamePattern, 0>> readPatterns(ModuleOp module) {
  SmallVector<NamePattern, 0> patterns;
  for (NamedAttribute entry :
       module->getAttrOfType<DictionaryAttr>(kScopesAttr)) {
    NamePattern &pattern = patterns.emplace_back();
    pattern.text = entry.getName();
    pattern.strategy = cast<StrategyAttr>(entry.getValue());
    SmallVector<StringRef> names;
    pattern.text.split(names, '/');
    for (StringRef name : names) {
      if (name == "**") {
        pattern.globs.emplace_back();
        continue;
      }
      llvm::Expected<llvm::GlobPattern> glob =
          llvm::GlobPattern::create(name, kMostAlternatives);
      if (!glob)
        return module.emitError("wh.scopes: '")
               << pattern.text
               << "' is no pattern: " << llvm::toString(glob.takeError());
      pattern.globs.push_back(std::move(*glob));
    }
  }
  return patterns;
}

static std::string encode(StringRef name) {
  std::string text;
  for (char c : name) {
    if (llvm::isAlnum(c) || StringRef("_.-~").contains(c))
      text += c;
    else
      text += ("%" + llvm::toHex(StringRef(&c, 1)));
  }
  return text;
}

/// The scope of a match, as it is in a path.
static std::string getComponent(const NameMatch &match,
                                ArrayRef<PathPart> names) {
  StrategyAttr strategy = match.pattern->strategy;
  std::string name = strategy.getName().str();
  if (name.empty())
    name = joinOnce(names.take_front(match.count));
  std::optional<int64_t> devices = strategy.getDevices();
  return (kScopePrefix + (isa<SplitAttr>(strategy) ? "split" : "replicate") +
          ":" + (devices ? llvm::utostr(*devices) : "*") + ":0:" + encode(name))
      .str();
}

namespace {

class PatternScopes {
public:
  PatternScopes(ModuleOp module, SmallVector<NamePattern, 0> patterns)
      : module(module), patterns(std::move(patterns)) {}

  LogicalResult run(func::FuncOp main) {
    WalkResult result = main.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == main.getOperation())
        return WalkResult::advance();
      auto [known, isNew] = replaced.try_emplace(op->getLoc(), op->getLoc());
      if (isNew) {
        FailureOr<Location> location = insert(op);
        if (failed(location))
          return WalkResult::interrupt();
        known->second = *location;
      }
      op->setLoc(known->second);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    Builder builder(module.getContext());
    NamedAttrList found;
    for (const NamePattern &pattern : patterns) {
      if (pattern.found.empty())
        return module.emitError("wh.scopes: no name in the step matches '")
               << pattern.text << "'" << describeNames();
      SmallVector<Attribute> names(pattern.found.begin(), pattern.found.end());
      found.append(pattern.text, builder.getArrayAttr(names));
    }
    module->setAttr(kScopeNamesAttr, found.getDictionary(module.getContext()));
    return success();
  }

private:
  /// The location of an operation, with the scope of the innermost match.
  FailureOr<Location> insert(Operation *op) {
    Location location = op->getLoc();
    std::string path = namePath(location);
    SmallVector<PathPart> parts = getParts(path), names;
    llvm::copy_if(parts, std::back_inserter(names),
                  [](const PathPart &part) { return !part.isScope; });
    for (size_t count = 1; count <= names.size(); ++count)
      known.insert(StringAttr::get(
          module.getContext(), joinOnce(ArrayRef(names).take_front(count))));
    SmallVector<NameMatch> matches;
    for (NamePattern &pattern : patterns)
      if (NameMatch last = findLast(pattern, names); last.count != 0) {
        pattern.found.insert(
            StringAttr::get(module.getContext(),
                            joinOnce(ArrayRef(names).take_front(last.count))));
        matches.push_back(last);
      }
    if (matches.empty())
      return location;
    llvm::sort(matches, [](const NameMatch &one, const NameMatch &other) {
      return std::pair(one.count, one.pattern) <
             std::pair(other.count, other.pattern);
    });
    if (failed(check(op, matches, parts, names)))
      return failure();
    const NameMatch &inner = matches.back();
    path.insert(names[inner.count - 1].end, "/" + getComponent(inner, names));
    auto name = dyn_cast<NameLoc>(location);
    return Location(NameLoc::get(StringAttr::get(module.getContext(), path),
                                 name ? name.getChildLoc() : location));
  }

  /// Checks that no two matches end at the same name, and that none is in a
  /// split.
  LogicalResult check(Operation *op, ArrayRef<NameMatch> matches,
                      ArrayRef<PathPart> parts, ArrayRef<PathPart> names) {
    for (auto [one, other] : llvm::zip(matches, matches.drop_front()))
      if (one.count == other.count &&
          one.pattern->strategy != other.pattern->strategy)
        return op->emitError("wh.scopes: '")
               << join(names.take_front(one.count)) << "' has two strategies, "
               << describe(one.pattern->strategy) << " of '"
               << one.pattern->text << "' and "
               << describe(other.pattern->strategy) << " of '"
               << other.pattern->text << "'; leave one out";
    // The scopes around each other, of the path and of patterns.
    std::string around;
    size_t count = 0;
    auto enter = [&](std::string scope) -> LogicalResult {
      if (StringRef(around).starts_with("whale:split:") &&
          kindAndName(around) != kindAndName(scope))
        return op->emitError("wh.scopes: '")
               << kindAndName(scope).second << "' is in the split '"
               << kindAndName(around).second
               << "', which shards all that it holds; give both one name and "
                  "strategy, or leave one out";
      around = std::move(scope);
      return success();
    };
    for (const PathPart &part : parts) {
      if (part.isScope) {
        if (failed(enter(part.text.str())))
          return failure();
        continue;
      }
      ++count;
      for (const NameMatch &match : matches)
        if (match.count == count && failed(enter(getComponent(match, names))))
          return failure();
    }
    return success();
  }

  static std::pair<StringRef, StringRef> kindAndName(StringRef component) {
    return {component.drop_front(kScopePrefix.size()).take_until([](char c) {
              return c == ':';
            }),
            component.rsplit(':').second};
  }

  /// The names of the step, those of the model's outer parts first.
  std::string describeNames() const {
    if (known.empty())
      return "; its operations have no names";
    // By their depth, and then in the order of the step.
    std::map<size_t, SmallVector<StringRef>> levels;
    for (StringAttr name : known)
      levels[name.getValue().count('/')].push_back(name);
    SmallVector<StringRef> names;
    for (auto &[depth, level] : levels)
      llvm::append_range(names, level);
    size_t others = names.size() - std::min(names.size(), kMostListed);
    names.truncate(names.size() - others);
    std::string text = "; the names are " + llvm::join(names, ", ");
    if (others != 0)
      text += " and " + llvm::utostr(others) + " others";
    return text;
  }

  ModuleOp module;
  SmallVector<NamePattern, 0> patterns;
  DenseMap<Location, Location> replaced;
  /// All names of the step, from the outermost on.
  llvm::SetVector<StringAttr> known;
};

} // namespace

LogicalResult insertPatternScopes(ModuleOp module, func::FuncOp main) {
  if (!module->hasAttr(kScopesAttr))
    return success();
  FailureOr<SmallVector<NamePattern, 0>> patterns = readPatterns(module);
  if (failed(patterns))
    return failure();
  module->removeAttr(kScopesAttr);
  return PatternScopes(module, std::move(*patterns)).run(main);
}

} // namespace whale
