//===- Config.cpp - The configuration of a module -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/Config.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace whale;

Attribute Config::get(StringRef key) const {
  Attribute value = entries;
  for (StringRef part : llvm::split(key, '.')) {
    auto section = dyn_cast_or_null<DictionaryAttr>(value);
    value = section ? section.get(part) : Attribute();
  }
  return value;
}

std::optional<int64_t> Config::getCount(StringRef key) const {
  auto count = dyn_cast_or_null<IntegerAttr>(get(key));
  return count ? std::optional(count.getInt()) : std::nullopt;
}

std::optional<ScheduleKind> Config::getSchedule() const {
  auto name = dyn_cast_or_null<StringAttr>(get(kSchedule));
  return name ? parseScheduleKind(name) : std::nullopt;
}

Type Config::getWireType() const {
  if (isSet(kBF16Wire))
    return BFloat16Type::get(entries.getContext());
  return isSet(kF16Wire) ? Float16Type::get(entries.getContext()) : Type();
}

ZeroLevel Config::getZeroLevel() const {
  auto name = dyn_cast_or_null<StringAttr>(get(kZeroLevel));
  return llvm::StringSwitch<ZeroLevel>(name ? name.getValue().lower() : "")
      .Case("v0", ZeroLevel::State)
      .Case("v1", ZeroLevel::Gradients)
      .Case("v2", ZeroLevel::Parameters)
      .Default(ZeroLevel::None);
}

OffloadLevel Config::getOffloadLevel() const {
  auto name = dyn_cast_or_null<StringAttr>(get(kOffloadLevel));
  return llvm::StringSwitch<OffloadLevel>(name ? name.getValue().lower() : "")
      .Case("state", OffloadLevel::State)
      .Case("weights", OffloadLevel::Weights)
      .Case("v0", OffloadLevel::Weights)
      .Default(OffloadLevel::None);
}

GradientCheckpoint Config::getGradientCheckpoint() const {
  auto name = dyn_cast_or_null<StringAttr>(get(kGradientCheckpoint));
  return llvm::StringSwitch<GradientCheckpoint>(name ? name.getValue().lower()
                                                     : "")
      .Case("auto", GradientCheckpoint::Auto)
      .Case("collection", GradientCheckpoint::Collection)
      .Default(GradientCheckpoint::None);
}

FloatType Config::getProductType() const {
  auto name = dyn_cast_or_null<StringAttr>(get(kAmpLevel));
  if (!name)
    return {};
  return name.getValue().equals_insensitive("bf16")
             ? FloatType(BFloat16Type::get(name.getContext()))
             : Float16Type::get(name.getContext());
}

bool Config::isSet(StringRef key) const {
  auto flag = dyn_cast_or_null<BoolAttr>(get(key));
  return flag && flag.getValue();
}

/// The entries with one more, whose name has a section and a dot or none.
static DictionaryAttr withEntry(DictionaryAttr entries, StringRef key,
                                Attribute value) {
  auto [name, rest] = key.split('.');
  if (!rest.empty())
    value = withEntry(entries ? entries.getAs<DictionaryAttr>(name)
                              : DictionaryAttr(),
                      rest, value);
  NamedAttrList list(entries);
  list.set(name, value);
  return list.getDictionary(value.getContext());
}

void Config::set(ModuleOp module, StringRef key, Attribute value) {
  auto entries = module->getAttrOfType<DictionaryAttr>(kAttr);
  module->setAttr(kAttr, withEntry(entries, key, value));
}

void Config::setNumMicroBatches(ModuleOp module, int64_t count) {
  set(module, kMicroBatches, Builder(module).getI64IntegerAttr(count));
}

void Config::setTf32(ModuleOp module) {
  set(module, kTf32, BoolAttr::get(module.getContext(), true));
}

namespace {
/// What a key accepts: a number from `least` to `most` or one of `names`, in
/// upper or lower case, or else true or false.
struct Key {
  std::string name;
  std::optional<int64_t> least, most;
  std::vector<std::string> names;
  /// Another key with values of it: all but False if there are none.
  struct Other {
    std::string key;
    std::vector<std::string> values;
    std::string why;
  };
  /// Those without which this one does nothing, and those that cannot be beside
  /// it.
  std::vector<Other> needs, excludes;
};
} // namespace

using KeyJson = nlohmann::ordered_json;

/// The values that a key of the table lists, of those that are names.
static std::vector<std::string> readNames(const KeyJson &list) {
  std::vector<std::string> names;
  for (const KeyJson &value : list)
    if (value.is_string())
      names.push_back(value);
  return names;
}

static void readOthers(Key &key, const KeyJson &entry) {
  if (entry.contains("needs"))
    for (const auto &[name, values] : entry["needs"].items())
      key.needs.push_back({name, readNames(values), ""});
  if (entry.contains("excludes"))
    for (const KeyJson &other : entry["excludes"])
      key.excludes.push_back({other["key"],
                              other.contains("values")
                                  ? readNames(other["values"])
                                  : std::vector<std::string>(),
                              other["why"]});
}

/// The keys that the compiler knows.
static ArrayRef<Key> getKeys() {
  static const std::vector<Key> keys = [] {
    constexpr StringLiteral text =
#include "ConfigKeys.inc"
        ;
    std::vector<Key> keys;
    auto table = KeyJson::parse(text.begin(), text.end());
    for (const auto &[name, entry] : table.items()) {
      if (entry.value("python", false))
        continue;
      Key &key = keys.emplace_back(Key{name, {}, {}, {}, {}, {}});
      readOthers(key, entry);
      if (entry.contains("names"))
        key.names = entry["names"];
      if (entry.contains("most")) {
        key.least = entry["least"];
        key.most = entry["most"];
      }
    }
    return keys;
  }();
  return keys;
}

static std::string accepted(const Key &key) {
  std::string names = "\"" + llvm::join(key.names, "\", \"") + "\"";
  if (key.names.size() > 1 && !key.most)
    names = "one of " + names;
  if (!key.most)
    return key.names.empty() ? "true or false" : names;
  return ((key.names.empty() ? "" : names + " or ") + "a whole number from " +
          Twine(*key.least) + " to " + Twine(*key.most))
      .str();
}

static bool isValid(const Key &key, Attribute value) {
  if (!key.most && key.names.empty())
    return isa<BoolAttr>(value);
  if (auto number = dyn_cast<IntegerAttr>(value))
    return key.most && number.getType().isSignlessInteger(64) &&
           number.getInt() >= *key.least && number.getInt() <= *key.most;
  auto name = dyn_cast<StringAttr>(value);
  return name && llvm::any_of(key.names, [&](StringRef other) {
           return other.equals_insensitive(name);
         });
}

static LogicalResult verifySection(Operation *op, DictionaryAttr section,
                                   const Twine &prefix) {
  for (NamedAttribute entry : section) {
    std::string path = (prefix + entry.getName().getValue()).str();
    if (llvm::any_of(getKeys(), [&](const Key &key) {
          return StringRef(key.name).starts_with(path + ".");
        })) {
      auto inner = dyn_cast<DictionaryAttr>(entry.getValue());
      if (!inner)
        return op->emitError("whale.config: ")
               << path << " is " << entry.getValue()
               << ", expected a dictionary";
      if (failed(verifySection(op, inner, path + ".")))
        return failure();
      continue;
    }
    const Key *key = llvm::find_if(
        getKeys(), [&](const Key &key) { return key.name == path; });
    if (key == getKeys().end())
      return op->emitError("whale.config: there is no key '")
             << path << "'; the keys are "
             << llvm::join(
                    llvm::map_range(getKeys(),
                                    [](const Key &key) { return key.name; }),
                    ", ");
    if (!isValid(*key, entry.getValue()))
      return op->emitError("whale.config: ")
             << path << " is " << entry.getValue() << ", expected "
             << accepted(*key);
  }
  return success();
}

/// Whether an entry is one of the values that a key needs, or excludes.
static bool isAmong(Attribute value, const Key::Other &other) {
  if (!value)
    return false;
  if (other.values.empty()) {
    auto flag = dyn_cast<BoolAttr>(value);
    return !flag || flag.getValue();
  }
  auto name = dyn_cast<StringAttr>(value);
  return name && llvm::any_of(other.values, [&](StringRef each) {
           return each.equals_insensitive(name);
         });
}

/// "amp.level "f16" or "O1"".
static std::string describe(const Key::Other &other) {
  return other.values.empty()
             ? other.key
             : other.key + " \"" + llvm::join(other.values, "\" or \"") + "\"";
}

LogicalResult Config::verify(Operation *op, DictionaryAttr entries) {
  if (failed(verifySection(op, entries, "")))
    return failure();
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return success();
  Config config(module);
  for (const Key &key : getKeys()) {
    Attribute value = config.get(key.name);
    if (!value)
      continue;
    for (const Key::Other &other : key.needs)
      if (!isAmong(config.get(other.key), other))
        return op->emitError("whale.config: ")
               << key.name << " belongs with " << describe(other);
    // One that is False does nothing.
    if (auto flag = dyn_cast<BoolAttr>(value); flag && !flag.getValue())
      continue;
    for (const Key::Other &other : key.excludes)
      if (isAmong(config.get(other.key), other))
        return op->emitError("whale.config: ")
               << key.name << " and " << describe(other)
               << " exclude one another: " << other.why;
  }
  return success();
}
