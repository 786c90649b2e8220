//===- ChannelEmitter.cpp - Collectives as JSON -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of the classes say where each rank joins a channel; the
// placements of any one of its operations say what it does.
//
//===----------------------------------------------------------------------===//

#include "ChannelEmitter.h"

#include "mlir/IR/Threading.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Planner/Cells.h"
#include "whale/Planner/Cluster.h"
#include "llvm/ADT/Hashing.h"

#include <map>
#include <set>

using namespace mlir;

namespace whale {
namespace {

Type elementTypeOf(CollectiveOp op) {
  Value value = op.getInput() ? op.getInput() : op.getOutput();
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// A channel as the classes use it.
struct Use {
  CollectiveOp op;
  /// By rank: the local shape of what it gives and takes.
  std::map<int64_t, std::optional<SmallVector<int64_t>>> sources, targets;

  /// True if all but the number is the same in the other channel.
  bool movesLike(Use &other) {
    return op.getFrom() == other.op.getFrom() &&
           op.getTo() == other.op.getTo() &&
           op->getName() == other.op->getName() &&
           elementTypeOf(op) == elementTypeOf(other.op) &&
           sources == other.sources && targets == other.targets;
  }
};

std::optional<SmallVector<int64_t>> shapeOf(Value value) {
  if (!value)
    return std::nullopt;
  return llvm::to_vector(cast<RankedTensorType>(value.getType()).getShape());
}

Json cellsToJson(const Receiver &receiver) {
  Json list = Json::array();
  for (const Cell &cell : receiver.cells) {
    Json from = Json::array();
    for (const Contribution &part : cell.contributions)
      from.push_back(Json::array({part.peer, toJson(part.start)}));
    list.push_back(
        {{"dst", Json::array({toJson(cell.box.start), toJson(cell.box.size)})},
         {"from", std::move(from)}});
  }
  return list;
}

/// Equal for equal cells.
size_t hashOf(const Receiver &receiver) {
  llvm::hash_code hash(receiver.cells.size());
  for (const Cell &cell : receiver.cells) {
    hash = llvm::hash_combine(hash, ArrayRef<int64_t>(cell.box.start));
    for (const Contribution &part : cell.contributions)
      hash = llvm::hash_combine(hash, part.peer);
  }
  return hash;
}

FailureOr<Json> emitChannel(const Use &use, const Topology &topology) {
  CollectiveOp op = use.op;
  Step step{stepKindOf(op), op.getFrom().getValue(), op.getTo().getValue()};
  CellTable table = cells(step, topology);
  Json json;
  json["kind"] = stringifyStepKind(step.kind).str();
  json["reduction"] = table.reduction
                          ? Json(stringifyReduction(*table.reduction).str())
                          : Json();
  json["dtype"] = getDTypeName(elementTypeOf(op));
  json["participants"] = Json::array();
  for (const auto &[rank, shape] : use.sources)
    json["participants"].push_back(rank);

  if (step.kind == StepKind::AllReduce) {
    std::set<int64_t> alone;
    for (const auto &[rank, shape] : use.sources)
      alone.insert(rank);
    Json groups = Json::array();
    for (const auto &group : table.groups) {
      groups.push_back(toJson(group));
      for (DeviceId rank : group)
        alone.erase(rank);
    }
    for (int64_t rank : alone)
      groups.push_back(Json::array({rank}));
    json["groups"] = std::move(groups);
    return json;
  }

  Json cellTable = Json::object(), sources = Json::object(),
       targets = Json::object();
  Type element = elementTypeOf(op);
  bool ordered =
      table.reduction == Reduction::Min || table.reduction == Reduction::Max;
  bool wide = element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 16;
  // All ranks of a group may receive the same: their cells are told once.
  llvm::DenseMap<size_t, SmallVector<const Receiver *, 1>> told;
  auto findEqual = [&](const Receiver &receiver) -> const Receiver * {
    auto &equal = told[hashOf(receiver)];
    for (const Receiver *other : equal)
      if (other->cells == receiver.cells)
        return other;
    equal.push_back(&receiver);
    return nullptr;
  };
  for (const Receiver &receiver : table.receivers) {
    bool fills = llvm::any_of(receiver.cells, [](const Cell &cell) {
      return cell.contributions.empty();
    });
    if (fills && ordered && !wide)
      return op.emitError("there is no identity of ")
             << stringifyReduction(*table.reduction) << " in " << element;
    auto target = use.targets.find(receiver.device);
    if (target == use.targets.end() || !target->second) {
      // What a rank takes from itself and doesn't use is left out there.
      if (receiver.cells.empty() || isa<LocalSliceOp>(op.getOperation()))
        continue;
      return op.emitError("gives elements to rank ")
             << receiver.device << ", whose function takes none";
    }
    std::string rank = std::to_string(receiver.device);
    const Receiver *equal = findEqual(receiver);
    cellTable[rank] = equal ? Json(equal->device) : cellsToJson(receiver);
    if (ArrayRef<int64_t>(receiver.shape) != ArrayRef(*target->second))
      targets[rank] = toJson(receiver.shape);
  }
  for (const Sender &sender : table.senders) {
    auto source = use.sources.find(sender.device);
    if (source != use.sources.end() && source->second &&
        ArrayRef<int64_t>(sender.shape) != ArrayRef(*source->second))
      sources[std::to_string(sender.device)] = toJson(sender.shape);
  }
  json["cells"] = std::move(cellTable);
  if (!sources.empty())
    json["src_shapes"] = std::move(sources);
  if (!targets.empty())
    json["dst_shapes"] = std::move(targets);
  return json;
}

} // namespace

FailureOr<std::vector<std::pair<std::string, std::string>>>
emitChannels(ModuleOp module, ArrayRef<func::FuncOp> classes) {
  std::map<uint64_t, Use> uses;
  for (func::FuncOp function : classes) {
    std::optional<ArrayRef<int64_t>> ranks = getRanks(function);
    WalkResult walk = function.walk([&](CollectiveOp op) {
      Use &use = uses[op.getChannel()];
      if (!use.op)
        use.op = op;
      if (use.op.getFrom() != op.getFrom() || use.op.getTo() != op.getTo() ||
          use.op->getName() != op->getName() ||
          elementTypeOf(use.op) != elementTypeOf(op)) {
        op.emitError("channel ")
            << op.getChannel() << " is another one in another rank class";
        return WalkResult::interrupt();
      }
      auto given = shapeOf(op.getInput()), taken = shapeOf(op.getOutput());
      for (int64_t rank : *ranks) {
        // Micro-batches use a channel once each, in the same way.
        auto source = use.sources.emplace(rank, given);
        auto target = use.targets.emplace(rank, taken);
        if (source.first->second != given || target.first->second != taken) {
          op.emitError("channel ")
              << op.getChannel() << " is used with different shapes";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
  }
  Topology topology;
  for (ClusterOp cluster : module.getOps<ClusterOp>())
    topology = Topology::of(cluster.getCluster());
  // The same collective of many layers is told once: on many ranks its table
  // is what is large.
  std::vector<std::pair<std::string, std::string>> channels;
  std::vector<std::pair<size_t, const Use *>> told;
  llvm::DenseMap<std::pair<Attribute, Attribute>,
                 SmallVector<std::pair<uint64_t, Use *>>>
      similarTo;
  for (auto &[channel, use] : uses) {
    auto &similar = similarTo[{use.op.getFrom(), use.op.getTo()}];
    auto *first = llvm::find_if(similar, [&use = use](auto &other) {
      return use.movesLike(*other.second);
    });
    channels.emplace_back(std::to_string(channel), "");
    if (first != similar.end()) {
      channels.back().second = printElement({{"same_as", first->first}});
      continue;
    }
    similar.push_back({channel, &use});
    told.push_back({channels.size() - 1, &use});
  }
  auto tell = [&](const std::pair<size_t, const Use *> &channel) {
    FailureOr<Json> json = emitChannel(*channel.second, topology);
    if (succeeded(json))
      channels[channel.first].second = printElement(*json);
    return LogicalResult(json);
  };
  if (failed(failableParallelForEach(module.getContext(), told, tell)))
    return failure();
  return channels;
}

} // namespace whale
