//===- Plan.cpp - What was decided about a step ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans as JSON, and back. What can be said wrongly of one decision by itself
// is found here, with its place in the text; what does not fit the step or
// another decision is found by the pass that carries it out. ShareCost: linear
// in the text.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Plan.h"

#include "whale/System/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"

#include <set>

namespace whale {

using Json = nlohmann::ordered_json;
using system::JsonField;
using ByDevice = PlannedShares::ByDevice;

/// Of the text of a plan. One of another version has other members.
static constexpr int64_t kPlanVersion = 1;
/// What becomes of sums of split products.
static constexpr const char *kScattered = "scattered", *kWhole = "whole";
/// A larger number of a device, sample or operation is a mistake.
static constexpr double kMostNumber = 1e15;

bool PlannedShares::operator==(const PlannedShares &other) const {
  return devices == other.devices && batch == other.batch &&
         byGroup == other.byGroup && replicas == other.replicas &&
         inner == other.inner && otherInner == other.otherInner &&
         moments == other.moments && period == other.period;
}

/// Numbers count as what they are: a tool may write 1.0 as 1.
static uint64_t hashOf(const Json &value) {
  std::vector<uint64_t> parts = {uint64_t(value.is_array()),
                                 uint64_t(value.is_object())};
  auto hash = [](llvm::StringRef bytes) { return llvm::xxh3_64bits(bytes); };
  if (value.is_object()) {
    std::vector<std::pair<uint64_t, uint64_t>> members;
    for (const auto &[name, member] : value.items())
      members.push_back({hash(name), hashOf(member)});
    llvm::sort(members);
    for (auto [name, member] : members)
      parts.insert(parts.end(), {name, member});
  } else if (value.is_array()) {
    for (const Json &element : value)
      parts.push_back(hashOf(element));
  } else if (value.is_number()) {
    parts.push_back(llvm::bit_cast<uint64_t>(value.get<double>()));
  } else {
    parts.push_back(hash(value.dump()));
  }
  return hash({reinterpret_cast<const char *>(parts.data()),
               parts.size() * sizeof(uint64_t)});
}

std::string checksumOf(const Json &value) {
  return llvm::utohexstr(hashOf(value), /*LowerCase=*/true, /*Width=*/16);
}

//===----------------------------------------------------------------------===//
// To JSON
//===----------------------------------------------------------------------===//

/// A number where it says all.
static Json toJson(const ShareCost &cost) {
  if (cost.fixed == 0 && cost.most == 1)
    return cost.seconds;
  Json json = {{"seconds", cost.seconds}};
  if (cost.fixed != 0)
    json["fixed"] = cost.fixed;
  if (cost.most != 1)
    json["most"] = cost.most;
  return json;
}

static Json toJson(const std::vector<ShareCost> &costs) {
  Json json = Json::array();
  for (const ShareCost &cost : costs)
    json.push_back(toJson(cost));
  return json;
}

static Json toJson(const ByDevice &costs) {
  Json json = Json::array();
  for (const std::vector<ShareCost> &group : costs)
    json.push_back(toJson(group));
  return json;
}

static Json toJson(const PlannedShares &shares) {
  Json json = {{"devices", shares.devices}, {"batch", toJson(shares.batch)}};
  if (shares.byGroup)
    json["by_group"] = true;
  if (!shares.replicas.empty())
    json["replicas"] = toJson(shares.replicas);
  if (!shares.inner.empty()) {
    Json inner = Json::object();
    for (const PlannedShares::Inner &each : shares.inner)
      inner[std::to_string(each.pieces)] = toJson(each.costs);
    json["inner"] = std::move(inner);
  }
  if (shares.otherInner != shares.batch)
    json["other_inner"] = toJson(shares.otherInner);
  if (!shares.moments.empty()) {
    json["moments"] = shares.moments;
    json["period"] = shares.period;
  }
  return json;
}

static Json toJson(const Plan::Split &split) {
  Json json = {{"arguments", split.arguments},
               {"dimension", split.dimension},
               {"grains", split.grains}};
  if (split.inner != 1)
    json["inner"] = split.inner;
  if (split.isGathered)
    json["gathered"] = true;
  return json;
}

static std::string nameOf(const ScheduleStep &step) {
  std::string text(1, "FBW"[step.kind]);
  text += std::to_string(step.microBatch);
  if (step.chunk > 0)
    text += "." + std::to_string(step.chunk);
  return text;
}

static std::string listSteps(const std::vector<ScheduleStep> &steps) {
  std::string text;
  for (const ScheduleStep &step : steps)
    text += (text.empty() ? "" : " ") + nameOf(step);
  return text;
}

static Json toJson(const Plan::Pipeline &pipeline) {
  Json stages = Json::array();
  for (const std::vector<ScheduleStep> &steps : pipeline.steps)
    stages.push_back(listSteps(steps));
  return {{"kind", stringifyScheduleKind(pipeline.kind).str()},
          {"stages", std::move(stages)}};
}

Json toJson(const Plan::Option::Value &value) {
  return std::visit([](const auto &each) { return Json(each); }, value);
}

Json toJson(const Plan &plan) {
  Json json = {{"version", kPlanVersion},
               {"step", plan.step},
               {"cluster", plan.cluster}};
  if (!plan.options.empty()) {
    Json options = Json::object();
    for (const Plan::Option &each : plan.options)
      options[each.key] = toJson(each.value);
    json["options"] = std::move(options);
  }
  if (!plan.cuts.empty()) {
    Json cuts = Json::array();
    for (const Plan::Cut &cut : plan.cuts)
      cuts.push_back(cut.begin);
    json["cuts"] = std::move(cuts);
  }
  if (!plan.devices.empty()) {
    Json devices = Json::object();
    for (const Plan::Devices &each : plan.devices)
      devices[each.taskGraph] = each.groups;
    json["devices"] = std::move(devices);
  }
  if (!plan.shares.empty()) {
    Json shares = Json::array();
    for (const PlannedShares &each : plan.shares)
      shares.push_back(toJson(each));
    json["shares"] = std::move(shares);
  }
  if (!plan.splits.empty()) {
    Json splits = Json::array();
    for (const Plan::Split &each : plan.splits)
      splits.push_back(toJson(each));
    json["splits"] = std::move(splits);
  }
  if (plan.sums)
    json["sums"] = plan.sums->areScattered ? kScattered : kWhole;
  if (!plan.pipelines.empty()) {
    Json pipelines = Json::array();
    for (const Plan::Pipeline &each : plan.pipelines)
      pipelines.push_back(toJson(each));
    json["pipelines"] = std::move(pipelines);
  }
  if (!plan.recomputed.empty()) {
    Json recomputed = Json::array();
    for (const Plan::Recomputed &each : plan.recomputed) {
      recomputed.push_back({{"devices", each.devices}});
      if (!each.operations.empty())
        recomputed.back()["operations"] = each.operations;
    }
    json["recomputed"] = std::move(recomputed);
  }
  if (!plan.offloaded.empty()) {
    Json offloaded = Json::array();
    for (const Plan::Offloaded &each : plan.offloaded)
      offloaded.push_back(each.argument);
    json["offloaded"] = std::move(offloaded);
  }
  return json;
}

//===----------------------------------------------------------------------===//
// From JSON
//===----------------------------------------------------------------------===//

namespace {
class PlanReader {
public:
  explicit PlanReader(std::string_view text) : text(text) {}

  Plan read(const JsonField &file);

private:
  system::TextPlace placeOf(const JsonField &field) const {
    return system::placeOf(text, field.offset());
  }
  static int64_t number(const JsonField &field) {
    return field.whole(0, kMostNumber);
  }
  static std::vector<int64_t> numbers(const JsonField &field);
  static std::vector<std::vector<int64_t>> groups(const JsonField &field);
  static ShareCost cost(const JsonField &field);
  static ByDevice costs(const JsonField &field,
                        const std::vector<std::vector<int64_t>> &devices);
  static bool flag(const JsonField &field);
  static Plan::Option::Value value(const JsonField &field);
  PlannedShares shares(const JsonField &field) const;
  Plan::Split split(const JsonField &field) const;
  Plan::Sums sums(const JsonField &field) const;
  Plan::Pipeline pipeline(const JsonField &field) const;
  Plan::Recomputed recomputed(const JsonField &field) const;

  std::string_view text;
};
} // namespace

std::vector<int64_t> PlanReader::numbers(const JsonField &field) {
  std::vector<int64_t> list;
  for (const JsonField &each : field.list())
    list.push_back(number(each));
  return list;
}

/// Lists of devices, none of which is there twice.
std::vector<std::vector<int64_t>> PlanReader::groups(const JsonField &field) {
  std::vector<std::vector<int64_t>> lists;
  std::set<int64_t> seen;
  for (const JsonField &group : field.list()) {
    lists.emplace_back();
    for (const JsonField &each : group.list()) {
      lists.back().push_back(number(each));
      if (!seen.insert(lists.back().back()).second)
        each.fail("device " + std::to_string(lists.back().back()) +
                  " is there twice");
    }
  }
  return lists;
}

ShareCost PlanReader::cost(const JsonField &field) {
  // A device that takes no time would take all.
  constexpr double least = 1e-300, most = 1e300;
  ShareCost cost;
  if (!field.value().is_object()) {
    cost.seconds = field.within(least, most);
    return cost;
  }
  field.object({"seconds", "fixed", "most"});
  cost.seconds = field.need("seconds").within(least, most);
  if (std::optional<JsonField> fixed = field.get("fixed"))
    cost.fixed = fixed->within(0, most);
  if (std::optional<JsonField> part = field.get("most"))
    cost.most = part->within(0, 1);
  return cost;
}

ByDevice PlanReader::costs(const JsonField &field,
                           const std::vector<std::vector<int64_t>> &devices) {
  std::vector<JsonField> lists = field.list();
  if (lists.size() != devices.size())
    field.fail("expected a list for each of " + std::to_string(devices.size()) +
               " groups, found " + std::to_string(lists.size()));
  ByDevice result;
  for (auto [list, group] : llvm::zip_equal(lists, devices)) {
    result.emplace_back();
    for (const JsonField &each : list.list())
      result.back().push_back(cost(each));
    if (result.back().size() != group.size())
      list.fail("expected a number for each of " +
                std::to_string(group.size()) + " devices, found " +
                std::to_string(result.back().size()));
  }
  return result;
}

bool PlanReader::flag(const JsonField &field) {
  if (!field.value().is_boolean())
    field.fail("expected true or false, found " + field.describe());
  return field.value().get<bool>();
}

Plan::Option::Value PlanReader::value(const JsonField &field) {
  if (field.value().is_boolean())
    return flag(field);
  if (field.value().is_string())
    return field.string();
  return number(field);
}

PlannedShares PlanReader::shares(const JsonField &field) const {
  field.object({"devices", "batch", "by_group", "replicas", "inner",
                "other_inner", "moments", "period"});
  PlannedShares shares;
  shares.place = placeOf(field);
  shares.devices = groups(field.need("devices"));
  shares.batch = costs(field.need("batch"), shares.devices);
  if (std::optional<JsonField> byGroup = field.get("by_group"))
    shares.byGroup = flag(*byGroup);
  if (std::optional<JsonField> replicas = field.get("replicas")) {
    for (const JsonField &each : replicas->list())
      shares.replicas.push_back(cost(each));
    if (shares.replicas.size() != shares.devices.size())
      replicas->fail("expected a number for each of " +
                     std::to_string(shares.devices.size()) + " groups, found " +
                     std::to_string(shares.replicas.size()));
  }
  if (std::optional<JsonField> inner = field.get("inner"))
    for (const auto &[name, each] : inner->members()) {
      int64_t pieces;
      if (llvm::StringRef(name).getAsInteger(10, pieces) || pieces < 1 ||
          std::to_string(pieces) != name)
        each.fail("expected a number of pieces as the name");
      shares.inner.push_back({pieces, costs(each, shares.devices)});
    }
  shares.otherInner = shares.batch;
  if (std::optional<JsonField> other = field.get("other_inner"))
    shares.otherInner = costs(*other, shares.devices);
  if (std::optional<JsonField> moments = field.get("moments"))
    shares.moments = numbers(*moments);
  if (std::optional<JsonField> period = field.get("period"))
    shares.period = period->count(std::max<int64_t>(shares.moments.size(), 1));
  return shares;
}

Plan::Split PlanReader::split(const JsonField &field) const {
  field.object({"arguments", "dimension", "grains", "inner", "gathered"});
  Plan::Split split;
  split.place = placeOf(field);
  split.arguments = numbers(field.need("arguments"));
  split.dimension = number(field.need("dimension"));
  split.grains = number(field.need("grains"));
  if (std::optional<JsonField> inner = field.get("inner"))
    split.inner = number(*inner);
  if (std::optional<JsonField> gathered = field.get("gathered"))
    split.isGathered = flag(*gathered);
  return split;
}

Plan::Sums PlanReader::sums(const JsonField &field) const {
  std::string text = field.string();
  if (text != kScattered && text != kWhole)
    field.fail(std::string("expected \"") + kScattered + "\" or \"" + kWhole +
               "\", found " + field.describe());
  return {text == kScattered, placeOf(field)};
}

Plan::Pipeline PlanReader::pipeline(const JsonField &field) const {
  field.object({"kind", "stages"});
  Plan::Pipeline pipeline;
  pipeline.place = placeOf(field);
  std::string name = field.need("kind").string();
  std::optional<ScheduleKind> kind = parseScheduleKind(name);
  if (!kind)
    field.need("kind").fail("expected one of " +
                            llvm::join(scheduleKindNames(), ", ") + ", found " +
                            field.need("kind").describe());
  pipeline.kind = *kind;
  for (const JsonField &stage : field.need("stages").list()) {
    std::string steps = stage.string();
    pipeline.steps.emplace_back();
    for (llvm::StringRef word : llvm::split(steps, ' ')) {
      ScheduleStep step{};
      llvm::StringRef rest = word;
      size_t letter = rest.empty() ? llvm::StringRef::npos
                                   : llvm::StringRef("FBW").find(rest[0]);
      bool isStep = letter != llvm::StringRef::npos;
      if (isStep) {
        step.kind = ScheduleStep::Kind(letter);
        auto [microBatch, chunk] = rest.drop_front().split('.');
        isStep = !microBatch.getAsInteger(10, step.microBatch) &&
                 (!rest.contains('.') || !chunk.getAsInteger(10, step.chunk)) &&
                 step.microBatch >= 0 && step.chunk >= 0;
      }
      if (!isStep)
        stage.fail("expected steps such as F0, B0, W0 or, of the second task "
                   "graph of the stage, F0.1, found '" +
                   word.str() + "'");
      pipeline.steps.back().push_back(step);
    }
  }
  return pipeline;
}

Plan::Recomputed PlanReader::recomputed(const JsonField &field) const {
  field.object({"devices", "operations"});
  Plan::Recomputed recomputed;
  recomputed.place = placeOf(field);
  recomputed.devices = groups(field.need("devices"));
  std::optional<JsonField> operations = field.get("operations");
  if (!operations)
    return recomputed;
  for (const JsonField &each : operations->list()) {
    int64_t next = number(each);
    if (!recomputed.operations.empty() && next <= recomputed.operations.back())
      each.fail("expected more than the number before");
    recomputed.operations.push_back(next);
  }
  return recomputed;
}

Plan PlanReader::read(const JsonField &file) {
  JsonField holder = file.get("plan").value_or(file);
  JsonField decisions = holder.get("decisions").value_or(holder);
  if (std::optional<JsonField> sums = holder.get("checksums")) {
    Json values = Json::parse(text);
    if (file.get("plan"))
      values = values["plan"];
    for (const auto &[name, sum] : sums->members())
      if (std::optional<JsonField> member = holder.get(name);
          member && checksumOf(values[name]) != sum.string())
        member->fail("follows from the decisions, and was edited; edit "
                     "'decisions' alone");
  }
  decisions.object({"version", "step", "cluster", "options", "cuts", "devices",
                    "shares", "splits", "sums", "pipelines", "recomputed",
                    "offloaded"});
  if (JsonField version = decisions.need("version");
      version.count(int64_t(kMostNumber)) != kPlanVersion)
    version.fail("expected version " + std::to_string(kPlanVersion) +
                 ", found " + version.describe());
  Plan plan;
  plan.step = decisions.need("step").string();
  plan.cluster = decisions.need("cluster").string();
  if (std::optional<JsonField> options = decisions.get("options"))
    for (const auto &[name, each] : options->members())
      plan.options.push_back({name, value(each), placeOf(each)});
  if (std::optional<JsonField> cuts = decisions.get("cuts"))
    for (const JsonField &each : cuts->list()) {
      int64_t begin = number(each);
      if (plan.cuts.empty() ? begin != 0 : begin <= plan.cuts.back().begin)
        each.fail(plan.cuts.empty() ? "the first stage begins with operation 0"
                                    : "expected more than in the stage before");
      plan.cuts.push_back({begin, placeOf(each)});
    }
  if (std::optional<JsonField> devices = decisions.get("devices")) {
    for (const auto &[name, each] : devices->members())
      plan.devices.push_back(
          {system::bytesFromUtf8(name), groups(each), placeOf(each)});
    if (plan.devices.empty())
      devices->fail("expected at least one task graph");
  }
  if (std::optional<JsonField> list = decisions.get("shares"))
    for (const JsonField &each : list->list()) {
      PlannedShares own = shares(each);
      if (llvm::any_of(plan.shares, [&](const PlannedShares &other) {
            return other.devices == own.devices;
          }))
        each.fail("these devices have shares above");
      plan.shares.push_back(std::move(own));
    }
  if (std::optional<JsonField> list = decisions.get("splits"))
    for (const JsonField &each : list->list())
      plan.splits.push_back(split(each));
  if (std::optional<JsonField> field = decisions.get("sums"))
    plan.sums = sums(*field);
  if (std::optional<JsonField> list = decisions.get("pipelines"))
    for (const JsonField &each : list->list())
      plan.pipelines.push_back(pipeline(each));
  if (std::optional<JsonField> list = decisions.get("recomputed"))
    for (const JsonField &each : list->list())
      plan.recomputed.push_back(recomputed(each));
  if (std::optional<JsonField> list = decisions.get("offloaded"))
    for (const JsonField &each : list->list()) {
      int64_t argument = number(each);
      if (!plan.offloaded.empty() && argument <= plan.offloaded.back().argument)
        each.fail("expected more than the number before");
      plan.offloaded.push_back({argument, placeOf(each)});
    }
  return plan;
}

Plan parsePlan(std::string_view text) {
  system::JsonValue file = system::readJson(text);
  return PlanReader(text).read(JsonField(file, ""));
}

} // namespace whale
