//===- Plans.cpp - The plan of a module -----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cost: each question reads the text of the plan. A step is known by its
// operations, what they read, and their attributes and types, each of which is
// printed once.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Plans.h"

#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/System/Json.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace whale {

namespace {
/// Numbers for all that a step is but its locations.
class StepNumbers {
public:
  explicit StepNumbers(ModuleOp module) {
    module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      // Clusters are compared by themselves.
      if (op != module && !isa<ClusterOp>(op))
        add(op);
    });
  }

  std::string checksum() const {
    return llvm::utohexstr(hash(ArrayRef(numbers)), /*LowerCase=*/true,
                           /*Width=*/16);
  }

private:
  template <typename T>
  static uint64_t hash(ArrayRef<T> values) {
    return llvm::xxh3_64bits(
        ArrayRef(reinterpret_cast<const uint8_t *>(values.data()),
                 values.size() * sizeof(T)));
  }

  void add(Operation *op) {
    numbers.push_back(llvm::xxh3_64bits(op->getName().getStringRef()));
    for (Value operand : op->getOperands())
      numbers.push_back(values.lookup(operand));
    for (NamedAttribute attribute : op->getAttrs()) {
      numbers.push_back(llvm::xxh3_64bits(attribute.getName().getValue()));
      numbers.push_back(hashOf(attribute.getValue()));
    }
    for (Value result : op->getResults())
      add(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          add(argument);
  }
  void add(Value value) {
    values[value] = numbers.size();
    numbers.push_back(hashOf(TypeAttr::get(value.getType())));
  }
  /// Of its text, which each is printed once for, or of its elements.
  uint64_t hashOf(Attribute attribute) {
    if (auto elements = dyn_cast<DenseElementsAttr>(attribute))
      return hash(elements.getRawData()) ^
             hashOf(TypeAttr::get(elements.getType()));
    auto [it, isNew] = attributes.try_emplace(attribute);
    if (isNew) {
      std::string text;
      llvm::raw_string_ostream(text) << attribute;
      it->second = llvm::xxh3_64bits(text);
    }
    return it->second;
  }

  std::vector<uint64_t> numbers;
  llvm::DenseMap<Value, uint64_t> values;
  llvm::DenseMap<Attribute, uint64_t> attributes;
};
} // namespace

static void setPlan(ModuleOp module, const Plan &plan) {
  module->setAttr(kPlanAttr, StringAttr::get(module.getContext(),
                                             system::printJson(toJson(plan))));
}

static InFlightDiagnostic emitAt(ModuleOp module, StringRef file,
                                 const system::TextPlace &place) {
  return emitError(
      FileLineColLoc::get(module.getContext(), file, place.line, place.column));
}

void beginPlan(ModuleOp module, const Cluster &cluster) {
  Plan plan;
  plan.step = StepNumbers(module).checksum();
  plan.cluster = checksumOf(nlohmann::ordered_json(cluster.toJson()));
  setPlan(module, plan);
}

/// The value as the configuration has it.
static Attribute toAttribute(Builder &builder,
                             const Plan::Option::Value &value) {
  if (const auto *flag = std::get_if<bool>(&value))
    return builder.getBoolAttr(*flag);
  if (const auto *number = std::get_if<int64_t>(&value))
    return builder.getI64IntegerAttr(*number);
  return builder.getStringAttr(std::get<std::string>(value));
}

void setOptions(ModuleOp module, ArrayRef<Plan::Option> options) {
  Builder builder(module.getContext());
  for (const Plan::Option &option : options)
    Config::set(module, option.key, toAttribute(builder, option.value));
}

/// Gives the module the options of a plan.
static LogicalResult takeOptions(ModuleOp module, StringRef file,
                                 const Plan &plan) {
  auto fail = [&](const Plan::Option &option, StringRef why) {
    return emitAt(module, file, option.place)
           << "decisions.options." << option.key << ": " << why;
  };
  for (const Plan::Option &option : plan.options) {
    if (Config(module).isGiven(option.key))
      return fail(option, "the step has it");
    if (StringRef(option.key).ends_with("."))
      return fail(option, "is no name of an option");
    setOptions(module, option);
  }
  // Some need others, in whatever order they stand.
  std::string wrong;
  if (!plan.options.empty()) {
    ScopedDiagnosticHandler keep(module.getContext(), [&](Diagnostic &said) {
      wrong = said.str();
      return success();
    });
    (void)Config::verify(module,
                         module->getAttrOfType<DictionaryAttr>(Config::kAttr));
  }
  if (!wrong.empty()) {
    auto named = llvm::find_if(plan.options, [&](const Plan::Option &option) {
      return StringRef(wrong).contains(option.key);
    });
    return fail(named == plan.options.end() ? plan.options.back() : *named,
                wrong);
  }
  addToPlan(module, [&](Plan &own) { own.options = plan.options; });
  return success();
}

LogicalResult setGivenPlan(ModuleOp module, const Cluster &cluster,
                           StringRef file, StringRef text) {
  Plan plan;
  try {
    plan = parsePlan(text);
  } catch (const system::JsonError &error) {
    return emitAt(module, file, system::placeOf(text, error.getOffset()))
           << error.what();
  }
  Plan own = getPlan(module);
  // Nothing else has a place of its own.
  system::TextPlace top{1, 1};
  if (plan.step != own.step)
    return emitAt(module, file, top)
           << "is the plan of another step, " << plan.step << ", and this is "
           << own.step;
  if (plan.cluster != own.cluster)
    return emitAt(module, file, top)
           << "is a plan for another cluster, " << plan.cluster
           << ", and this is " << own.cluster;
  auto count = int64_t(cluster.devices.size());
  for (const Plan::Devices &devices : plan.devices)
    for (const std::vector<int64_t> &group : devices.groups)
      for (int64_t device : group)
        if (device >= count)
          return emitAt(module, file, devices.place)
                 << "decisions.devices." << devices.taskGraph << ": device "
                 << device << " of a cluster of " << count;
  Builder builder(module.getContext());
  module->setAttr(kGivenPlanAttr, builder.getStrArrayAttr({file, text}));
  return takeOptions(module, file, plan);
}

static StringRef getPart(ModuleOp module, unsigned part) {
  auto given = module->getAttrOfType<ArrayAttr>(kGivenPlanAttr);
  return given ? cast<StringAttr>(given[part]).getValue() : StringRef();
}

std::optional<Plan> getGivenPlan(ModuleOp module) {
  if (!module->hasAttr(kGivenPlanAttr))
    return std::nullopt;
  return parsePlan(getPart(module, 1));
}

Plan getPlan(ModuleOp module) {
  auto text = module->getAttrOfType<StringAttr>(kPlanAttr);
  return text ? parsePlan(text.getValue()) : Plan();
}

void addToPlan(ModuleOp module, llvm::function_ref<void(Plan &)> add) {
  // Passes alone, as of whale-opt, make no plan.
  if (!module->hasAttr(kPlanAttr))
    return;
  Plan plan = getPlan(module);
  add(plan);
  setPlan(module, plan);
}

LogicalResult checkPlannedNames(ModuleOp module, ArrayRef<StringRef> names) {
  std::optional<Plan> plan = getGivenPlan(module);
  if (!plan || plan->devices.empty())
    return success();
  for (StringRef name : names)
    if (llvm::none_of(plan->devices, [&](const Plan::Devices &each) {
          return each.taskGraph == name;
        }))
      return emitPlanError(module, plan->devices.front().place)
             << "decisions.devices: has none for task graph '" << name << "'";
  return success();
}

InFlightDiagnostic emitPlanError(ModuleOp module,
                                 const system::TextPlace &place) {
  return emitAt(module, getPart(module, 0), place);
}

} // namespace whale
