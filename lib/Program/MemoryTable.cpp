//===- MemoryTable.cpp - What is held where at the peak -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module whose buffers are planned with their peak, and what devices
// need. Out: a text with a table for each of the rank classes that need most,
// or for that of one device.
// The values of the arena are added up by their TaskGraph, where there are
// several, and the line of the user's program. Cost:
// linear in the arguments and in the values at the peak.
//
//===----------------------------------------------------------------------===//

#include "MemoryTable.h"

#include "ClassEmitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Report/TextTable.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/SourceLines.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace whale {
namespace {

/// What is shown of programs with many classes, and of the arena of each.
constexpr size_t mostClasses = 8, mostLines = 12;

/// Bytes, and how many values have them.
struct Sum {
  int64_t bytes = 0, values = 0;
};
using Sums = llvm::MapVector<std::string, Sum, std::map<std::string, unsigned>>;

void add(Sums &sums, const std::string &what, int64_t bytes) {
  Sum &sum = sums[what];
  sum.bytes += bytes;
  ++sum.values;
}

/// "stage0 model.py:12 dot_general", or what is known of it.
std::string describeOrigin(DictionaryAttr held, bool namesTaskGraphs) {
  Location loc = held.getAs<LocationAttr>("of");
  StringRef graph = held.getAs<StringAttr>("task_graph").getValue();
  std::string line = getUserLine(loc), label = getLabel(loc);
  if (std::optional<FileLineColLoc> position = findPosition(loc);
      line.empty() && position)
    line = (StringRef(position->getFilename()).rsplit('/').second + ":" +
            Twine(position->getLine()))
               .str();
  StringRef operation = label;
  if (operation.contains('/'))
    operation = operation.rsplit('/').second;
  if (line.empty() && operation.empty())
    operation = held.getAs<StringAttr>("what").getValue();
  SmallVector<StringRef, 3> words = {line, operation};
  if (namesTaskGraphs)
    words.insert(words.begin(), graph);
  llvm::erase(words, "");
  return llvm::join(words, " ");
}

auto getHeld(ScheduleOp schedule) {
  return schedule->getAttrOfType<ArrayAttr>(kPeakAttr)
      .getAsRange<DictionaryAttr>();
}

/// Whether there are several TaskGraphs to tell apart.
bool haveTaskGraphs(ArrayRef<ScheduleOp> classes) {
  llvm::SmallDenseSet<Attribute> graphs;
  for (ScheduleOp schedule : classes)
    for (DictionaryAttr held : getHeld(schedule))
      if (auto graph = held.getAs<StringAttr>("task_graph"); !graph.empty())
        graphs.insert(graph);
  return graphs.size() > 1;
}

/// The first word of an argument's label: "params" of "params['w']".
std::string describeArgument(BlockArgument argument) {
  auto schedule = cast<ScheduleOp>(argument.getOwner()->getParentOp());
  auto given = schedule.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                     "whale.label");
  std::string label = given ? given.str() : getLabel(argument.getLoc());
  StringRef word =
      StringRef(label).take_until([](char c) { return c == '[' || c == '.'; });
  return word.empty() ? "arguments" : ("arguments: " + word).str();
}

using Rows = std::vector<MemoryRow>;

void addRow(Rows &rows, const std::string &what, const Sum &sum) {
  if (sum.bytes != 0)
    rows.push_back({what, sum.bytes, sum.values});
}

/// The rows of the arena: its largest sums, the others, and what is unused.
void addArena(Rows &rows, ScheduleOp schedule, bool namesTaskGraphs) {
  Sums sums;
  int64_t unused =
      schedule->getAttrOfType<IntegerAttr>(kArenaBytesAttr).getInt();
  for (DictionaryAttr held : getHeld(schedule)) {
    int64_t bytes = held.getAs<IntegerAttr>("bytes").getInt();
    add(sums, describeOrigin(held, namesTaskGraphs), bytes);
    unused -= bytes;
  }
  auto list = sums.takeVector();
  llvm::sort(list, [](const auto &a, const auto &b) {
    return std::pair(-a.second.bytes, a.first) <
           std::pair(-b.second.bytes, b.first);
  });
  Sum others;
  for (auto [number, entry] : llvm::enumerate(list)) {
    const auto &[what, sum] = entry;
    if (number < mostLines) {
      addRow(rows, what, sum);
      continue;
    }
    others.bytes += sum.bytes;
    others.values += sum.values;
  }
  addRow(rows, "of other lines", others);
  addRow(rows, "between them and unused then", {unused});
}

/// What no program has, in rows that are no part of the sum.
void addReserves(Rows &rows, const DeviceKind &kind) {
  for (const auto &[name, bytes] : kind.reserves)
    addRow(rows, "besides, reserved for " + name, {bytes});
  if (kind.reserves.empty())
    addRow(rows, "besides, reserved (reserved_bytes)", {kind.reservedBytes});
}

std::string formatRows(const Rows &rows) {
  std::vector<std::vector<std::string>> lines;
  for (const MemoryRow &row : rows)
    lines.push_back(
        {"", describeBytes(double(row.bytes)),
         row.values > 1
             ? row.what + " (" + std::to_string(row.values) + " values)"
             : row.what});
  return alignColumns(std::move(lines));
}

/// What is in the memory of a device's host, which others share.
std::string describeHost(ScheduleOp schedule, const Cluster &cluster,
                         const MemoryNeed &need) {
  int64_t device = schedule.getRanks().front();
  const std::optional<HostMemory> &host = cluster.nodeOf(device).host;
  if (need.hostBytes == 0 || !host)
    return "";
  auto devices = llvm::count_if(cluster.devices, [&](const Device &other) {
    return other.node == cluster.devices[device].node;
  });
  std::string text = "and " + describeBytes(double(need.hostBytes)) +
                     " in the memory of its host, of " +
                     describeBytes(double(host->memoryBytes));
  if (devices > 1)
    text += " that " + std::to_string(devices) + " devices share";
  Sums sums;
  for (BlockArgument argument : schedule.getArguments())
    if (schedule.getArgAttr(argument.getArgNumber(), kInHostAttr))
      add(sums, describeArgument(argument), getTensorBytes(argument.getType()));
  Rows rows;
  for (const auto &[what, sum] : sums)
    addRow(rows, what, sum);
  return text + "\n" + formatRows(rows);
}

/// The rows of a rank class, which add up to its need.
Rows listRows(ScheduleOp schedule, const MemoryNeed &need,
              bool namesTaskGraphs) {
  Rows rows;
  Sums arguments;
  for (BlockArgument argument : schedule.getArguments())
    if (!schedule.getArgAttr(argument.getArgNumber(), kInHostAttr))
      add(arguments, describeArgument(argument),
          getTensorBytes(argument.getType()));
  for (const auto &[what, sum] : arguments)
    addRow(rows, what, sum);
  addRow(rows, "results that replace no argument", {need.resultBytes});
  addRow(rows, "constants", {need.constantBytes});
  addRow(rows, "what products and convolutions take besides",
         {need.scratchBytes});
  addArena(rows, schedule, namesTaskGraphs);
  return rows;
}

/// The classes whose peak is known, those of a device alone if one is given.
SmallVector<ScheduleOp> listClasses(ModuleOp module,
                                    std::optional<int64_t> device) {
  return llvm::filter_to_vector(
      module.getOps<ScheduleOp>(), [&](ScheduleOp op) {
        return op->hasAttr(kPeakAttr) &&
               (!device || llvm::is_contained(op.getRanks(), *device));
      });
}

} // namespace

std::vector<MemoryRow> listMemory(ModuleOp module, ArrayRef<MemoryNeed> needs,
                                  int64_t device) {
  SmallVector<ScheduleOp> classes = listClasses(module, device);
  if (classes.empty())
    return {};
  return listRows(classes.front(), needs[device], haveTaskGraphs(classes));
}

std::string makeMemoryTable(ModuleOp module, const Cluster &cluster,
                            ArrayRef<MemoryNeed> needs,
                            std::optional<int64_t> device) {
  SmallVector<ScheduleOp> classes = listClasses(module, device);
  auto needOf = [&](ScheduleOp schedule) -> const MemoryNeed & {
    return needs[schedule.getRanks().front()];
  };
  llvm::sort(classes, [&](ScheduleOp a, ScheduleOp b) {
    return std::pair(-needOf(a).bytes, a.getRanks().front()) <
           std::pair(-needOf(b).bytes, b.getRanks().front());
  });
  bool namesTaskGraphs = haveTaskGraphs(classes);
  std::string text;
  for (ScheduleOp schedule : ArrayRef(classes).take_front(mostClasses)) {
    ArrayRef<int64_t> ranks = schedule.getRanks();
    const MemoryNeed &need = needOf(schedule);
    const DeviceKind &kind = cluster.kindOf(ranks.front());
    text += "memory of " + describeDevices(ranks.vec()) + " (" + kind.name +
            ") at the peak: " + describeBytes(double(need.bytes)) + " of " +
            describeBytes(double(kind.memoryBytes));
    if (need.savedBytes > 0)
      text += ", " + describeBytes(double(need.savedBytes)) +
              " less than without recomputation";
    text += "\n";
    Rows rows = listRows(schedule, need, namesTaskGraphs);
    addReserves(rows, kind);
    text += formatRows(rows) + describeHost(schedule, cluster, need);
  }
  if (classes.size() > mostClasses)
    text += "other devices need at most " +
            describeBytes(double(needOf(classes[mostClasses]).bytes)) + "\n";
  return text;
}

} // namespace whale
