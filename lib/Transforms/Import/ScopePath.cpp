//===- ScopePath.cpp - Scopes inside name paths ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a location. Out: the innermost scope in its name path, and whether that
// is of a backward or of a differentiated operation; locations of inlined
// calls.
//
// A path is searched for components by their beginning (`whale:`, `jvp(`,
// `transpose(`), at its start, behind a `/` or inside of a parenthesis; it is
// not parsed as a whole. The last component `whale:` is the innermost scope.
// The path of a location is put together from the names in it, of an inlined
// call the caller's before the callee's. Cost: linear in the path, which is
// copied once more for each fused location around a part of it.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/ScopePath.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::StringRef;

namespace whale {

static constexpr StringRef kPrefix = "whale:";

static llvm::Error malformed(StringRef component, const llvm::Twine &what) {
  return llvm::createStringError("malformed scope '" + component +
                                 "': " + what);
}

/// Undoes the percent-encoding of a scope's name.
static std::optional<std::string> decodeName(StringRef text) {
  std::string name;
  while (!text.empty()) {
    if (text.front() != '%') {
      name += text.front();
      text = text.drop_front();
      continue;
    }
    uint8_t byte;
    if (text.size() < 3 || !llvm::tryGetHexFromNibbles(text[1], text[2], byte))
      return std::nullopt;
    name += static_cast<char>(byte);
    text = text.drop_front(3);
  }
  return name;
}

static bool isCallNumberedId(StringRef id) {
  llvm::SmallVector<StringRef> parts;
  id.split(parts, '.');
  return llvm::all_of(parts, [](StringRef part) {
    return !part.empty() && llvm::all_of(part, llvm::isDigit);
  });
}

llvm::Expected<Scope> parseScope(StringRef component) {
  llvm::SmallVector<StringRef> fields;
  component.split(fields, ':');
  if (fields.size() != 5 || fields[0] != "whale")
    return malformed(component, "expected 'whale:KIND:COUNT:ID:NAME'");
  Scope scope;
  if (fields[1] == "replicate")
    scope.kind = Scope::Kind::Replicate;
  else if (fields[1] == "split")
    scope.kind = Scope::Kind::Split;
  else
    return malformed(component, "the kind '" + fields[1] +
                                    "' is neither 'replicate' nor 'split'");
  if (fields[2] != "*") {
    int64_t devices;
    if (fields[2].getAsInteger(10, devices) || devices < 1)
      return malformed(component, "the device count '" + fields[2] +
                                      "' is neither '*' nor a positive number");
    scope.devices = devices;
  }
  if (!isCallNumberedId(fields[3]))
    return malformed(component,
                     "the id '" + fields[3] + "' is not a decimal number");
  scope.id = fields[3].str();
  std::optional<std::string> name = decodeName(fields[4]);
  if (!name)
    return malformed(component,
                     "the name '" + fields[4] + "' is not percent-encoded");
  scope.name = std::move(*name);
  return scope;
}

/// A component starts at the beginning, after '/', or inside a wrapper's
/// parenthesis.
static bool startsComponent(StringRef path, size_t position) {
  return position == 0 || path[position - 1] == '/' ||
         path[position - 1] == '(';
}

static size_t findComponent(StringRef path, StringRef prefix, size_t from) {
  for (size_t at = path.find(prefix, from); at != StringRef::npos;
       at = path.find(prefix, at + 1))
    if (startsComponent(path, at))
      return at;
  return StringRef::npos;
}

static StringRef componentAt(StringRef path, size_t position) {
  return path.substr(position).take_until(
      [](char c) { return c == '/' || c == ')' || c == '('; });
}

llvm::Expected<ScopePath> parseScopePath(StringRef path) {
  ScopePath result;
  // The outermost derivative is the step's own: a loss that is made of
  // gradients has others inside.
  size_t derivative = findComponent(path, "jvp(", 0);
  result.backward = findComponent(path, "transpose(", 0) < derivative;
  result.differentiated = derivative != StringRef::npos;
  for (size_t at = findComponent(path, kPrefix, 0); at != StringRef::npos;
       at = findComponent(path, kPrefix, at + 1)) {
    llvm::Expected<Scope> scope = parseScope(componentAt(path, at));
    if (!scope)
      return scope.takeError();
    result.scope = std::move(*scope);
  }
  return result;
}

/// Appends the path of a part to what callers have made of it.
static void appendPath(std::string &path, StringRef inner) {
  if (!path.empty() && !inner.empty())
    path += '/';
  path += inner;
}

/// Whether a location is lines of Python with their functions' names. JAX gives
/// it, without a path, to what it has lowered once for several places.
static bool isTraceback(Location location) {
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return isTraceback(call.getCallee()) && isTraceback(call.getCaller());
  if (auto name = dyn_cast<NameLoc>(location)) {
    StringRef text = name.getName().getValue();
    return isa<FileLineColRange>(name.getChildLoc()) && !text.contains('/') &&
           !text.starts_with(kPrefix);
  }
  return isa<FileLineColRange>(location);
}

// Locations are nested no deeper than the parser lets them.
static void appendPath(std::string &path, Location location) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    // "jit:" and the like are labels around the location that has the path.
    StringRef text = name.getName().getValue();
    if (text.ends_with(":") && !text.starts_with(kPrefix) &&
        text.find('/') == StringRef::npos)
      return appendPath(path, name.getChildLoc());
    return appendPath(path, text);
  }
  if (auto call = dyn_cast<CallSiteLoc>(location)) {
    if (isTraceback(call))
      return;
    appendPath(path, call.getCaller());
    return appendPath(path, call.getCallee());
  }
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    std::string first;
    for (Location part : fused.getLocations()) {
      std::string own = namePath(part);
      if (findComponent(own, kPrefix, 0) != StringRef::npos)
        return appendPath(path, own);
      if (first.empty())
        first = std::move(own);
    }
    appendPath(path, first);
  }
}

std::string namePath(Location location) {
  std::string path;
  appendPath(path, location);
  return path;
}

bool isInScope(Location location) {
  llvm::Expected<ScopePath> path = parseScopePath(namePath(location));
  if (path)
    return path->scope.has_value();
  llvm::consumeError(path.takeError());
  return false;
}

static std::string withoutScopes(StringRef path) {
  std::string result;
  size_t done = 0;
  for (size_t at = findComponent(path, kPrefix, 0); at != StringRef::npos;
       at = findComponent(path, kPrefix, done)) {
    size_t end = at + componentAt(path, at).size();
    // Of the separators around a component one stays.
    if (end < path.size() && path[end] == '/')
      ++end;
    else if (end == path.size() && at > done && path[at - 1] == '/')
      --at;
    result += path.slice(done, at);
    done = end;
  }
  return result + path.substr(done).str();
}

static bool hasTaskGraph(FusedLoc location) {
  return isa_and_nonnull<StringAttr>(location.getMetadata());
}

Location withoutScopes(Location location) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](NameLoc name) -> Attribute {
    StringAttr path = name.getName();
    if (!path.getValue().contains(kPrefix))
      return name;
    return NameLoc::get(StringAttr::get(path.getContext(), withoutScopes(path)),
                        name.getChildLoc());
  });
  replacer.addReplacement(
      [](FusedLoc fused) -> std::optional<std::pair<Attribute, WalkResult>> {
        if (!hasTaskGraph(fused))
          return std::nullopt;
        return std::pair(withoutScopes(fused.getLocations().front()),
                         WalkResult::skip());
      });
  return cast<LocationAttr>(replacer.replace(location));
}

Location inTaskGraph(Location location, StringRef name) {
  MLIRContext *context = location.getContext();
  return FusedLoc::get(context, location, StringAttr::get(context, name));
}

StringRef findTaskGraph(Location location) {
  StringRef name;
  location->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    if (!fused || !hasTaskGraph(fused))
      return WalkResult::advance();
    name = cast<StringAttr>(fused.getMetadata()).getValue();
    return WalkResult::interrupt();
  });
  return name;
}

/// Appends `numbers` to the id of every scope in `path`.
static std::string numberScopes(StringRef path, StringRef numbers) {
  std::string result;
  size_t done = 0;
  for (size_t at = findComponent(path, kPrefix, 0); at != StringRef::npos;
       at = findComponent(path, kPrefix, at + 1)) {
    StringRef component = componentAt(path, at);
    // The name is the fifth field; a malformed component stays as it is.
    size_t colon = kPrefix.size() - 1;
    for (int field = 2; field <= 4 && colon != StringRef::npos; ++field)
      colon = component.find(':', colon + 1);
    if (colon == StringRef::npos)
      continue;
    result += path.slice(done, at + colon);
    result += numbers;
    done = at + colon;
  }
  return result + path.substr(done).str();
}

std::string composePaths(StringRef outer, StringRef inner, StringRef numbers) {
  std::string path = outer.str();
  appendPath(path, numberScopes(inner, numbers));
  return path;
}

/// The source line under the name path.
static Location sourceOf(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getChildLoc();
  return location;
}

Location composeLocations(Location outer, Location inner, StringRef numbers) {
  std::string path = composePaths(namePath(outer), namePath(inner), numbers);
  Location source = sourceOf(inner);
  if (isa<UnknownLoc>(source))
    source = sourceOf(outer);
  if (path.empty())
    return source;
  return NameLoc::get(StringAttr::get(outer.getContext(), path), source);
}

} // namespace whale
