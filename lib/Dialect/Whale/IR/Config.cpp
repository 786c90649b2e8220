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

bool Config::isSet(StringRef key) const {
  auto flag = dyn_cast_or_null<BoolAttr>(get(key));
  return flag && flag.getValue();
}

static void set(ModuleOp module, StringRef key, Attribute value) {
  NamedAttrList list(module->getAttrOfType<DictionaryAttr>(Config::kAttr));
  list.set(key, value);
  module->setAttr(Config::kAttr, list.getDictionary(module.getContext()));
}

void Config::setNumMicroBatches(ModuleOp module, int64_t count) {
  set(module, kMicroBatches, Builder(module).getI64IntegerAttr(count));
}

void Config::setTf32(ModuleOp module) {
  auto [section, key] = kTf32.split('.');
  DictionaryAttr config = module->getAttrOfType<DictionaryAttr>(kAttr);
  NamedAttrList list(config ? config.getAs<DictionaryAttr>(section)
                            : DictionaryAttr());
  list.set(key, BoolAttr::get(module.getContext(), true));
  set(module, section, list.getDictionary(module.getContext()));
}

/// Returns what the value of a key must be, or an empty string if it is valid;
/// nullopt if the key is unknown.
static std::optional<std::string> findFault(StringRef key, Attribute value) {
  auto checkNumber = [&](int64_t least, int64_t most) -> std::string {
    auto number = dyn_cast<IntegerAttr>(value);
    if (number && number.getType().isSignlessInteger(64) &&
        number.getInt() >= least && number.getInt() <= most)
      return "";
    return ("a whole number from " + Twine(least) + " to " + Twine(most)).str();
  };
  if (key == Config::kMicroBatches || key == Config::kTaskGraphs)
    return checkNumber(1, Config::kMostCount);
  if (key == Config::kBucketBytes)
    return checkNumber(0, Config::kMostBytes);
  if (key == Config::kBatchNorm) {
    auto name = dyn_cast<StringAttr>(value);
    return name && name == "micro" ? "" : "\"micro\"";
  }
  if (key == Config::kZeroLevel) {
    auto name = dyn_cast<StringAttr>(value);
    return name && name == "v0" ? "" : "\"v0\"";
  }
  if (key == Config::kSchedule) {
    auto name = dyn_cast<StringAttr>(value);
    if (name && parseScheduleKind(name))
      return "";
    return "one of " + llvm::join(scheduleKindNames(), ", ");
  }
  if (key == Config::kUnevenReplicas || key == Config::kTf32 ||
      key == Config::kEpilogues || key == Config::kDebugNans)
    return isa<BoolAttr>(value) ? "" : "true or false";
  return std::nullopt;
}

static LogicalResult verifySection(Operation *op, DictionaryAttr section,
                                   const Twine &prefix) {
  for (NamedAttribute entry : section) {
    std::string key = (prefix + entry.getName().getValue()).str();
    if (llvm::is_contained(
            {"pipeline", "cluster", "communication", "gpu", "zero"}, key)) {
      auto inner = dyn_cast<DictionaryAttr>(entry.getValue());
      if (!inner)
        return op->emitError("whale.config: ")
               << key << " is " << entry.getValue()
               << ", expected a dictionary";
      if (failed(verifySection(op, inner, key + ".")))
        return failure();
      continue;
    }
    std::optional<std::string> fault = findFault(key, entry.getValue());
    if (!fault)
      return op->emitError("whale.config: there is no key '")
             << key << "'; the keys are "
             << llvm::join(
                    ArrayRef<StringRef>{
                        Config::kMicroBatches, Config::kBatchNorm,
                        Config::kTaskGraphs, Config::kSchedule,
                        Config::kUnevenReplicas, Config::kBucketBytes,
                        Config::kTf32, Config::kEpilogues, Config::kZeroLevel,
                        Config::kDebugNans},
                    ", ");
    if (!fault->empty())
      return op->emitError("whale.config: ")
             << key << " is " << entry.getValue() << ", expected " << *fault;
  }
  return success();
}

LogicalResult Config::verify(Operation *op, DictionaryAttr entries) {
  return verifySection(op, entries, "");
}
