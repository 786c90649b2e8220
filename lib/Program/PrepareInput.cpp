//===- PrepareInput.cpp - The input with its options ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the module as it was parsed, and the compiler's options. Out: the module
// with the options that say what it computes where: the cluster as an
// operation; strategy, micro-batches, batch arguments and feedback as
// attributes.
//
// An option adds what the text doesn't say; it can't contradict it. What passes
// take for granted is checked here: static shapes, sizes that can be counted,
// and no operations that only the compiler writes. A text that is partitioned
// already has all that attributes would say, so options for them are refused.
// Cost: up to three walks over all operations, besides reading the cluster
// file.
//
//===----------------------------------------------------------------------===//

#include "PrepareInput.h"
#include "InputAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Program/CheckSizes.h"
#include "whale/ProgramFormat/Limits.h"
#include "whale/Support/ReadFile.h"
#include "whale/System/Machine.h"
#include "whale/Transforms/Attributes.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace whale {

bool isPartitioned(ModuleOp module) {
  return !module.getOps<ScheduleOp>().empty();
}

/// A program without code may be of any size.
static LogicalResult checkRanks(ModuleOp module, StringRef target) {
  if (target == "none")
    return success();
  auto check = [&](size_t ranks, Location loc,
                   StringRef what) -> LogicalResult {
    if (int64_t(ranks) <= format::mostRanks)
      return success();
    return emitError(loc) << what << ranks << " devices, and a program runs on "
                          << format::mostRanks
                          << " at most; --target=none plans for more";
  };
  for (ClusterOp cluster : module.getOps<ClusterOp>())
    if (failed(check(cluster.getCluster().devices.size(),
                     UnknownLoc::get(module.getContext()), "the cluster has ")))
      return failure();
  size_t ranks = 0;
  for (ScheduleOp schedule : getRankClasses(module))
    ranks += schedule.getRanks().size();
  return check(ranks, module.getLoc(), "the text is partitioned for ");
}

/// What the text says must fit the cluster.
static LogicalResult checkAttributes(ModuleOp module) {
  for (ClusterOp cluster : module.getOps<ClusterOp>())
    if (failed(
            checkInputAttributes(module, cluster.getCluster().devices.size())))
      return failure();
  return success();
}

/// Gives each of the ranks of this machine, which are alike, its part of the
/// machine's memory. Their speed stays that of the built-in kind: between them
/// exchanges cost nothing, and how that compares with what they compute would
/// make other plans of the same step on other machines.
static void shareMemory(Cluster &cluster) {
  int64_t share =
      system::machineMemory() / static_cast<int64_t>(cluster.devices.size());
  for (DeviceKind &kind : cluster.kinds)
    kind.memoryBytes = std::max<int64_t>(1, share);
}

/// Whether the cluster is one of ranks on some machine.
static bool areRanks(const Cluster &cluster) {
  return cluster.nodes.size() == 1 && cluster.nodes.front().count == 1 &&
         llvm::all_of(cluster.kinds, [](const DeviceKind &kind) {
           return kind.name == "cpu";
         });
}

static LogicalResult addCluster(ModuleOp module, StringRef option) {
  Location nowhere = UnknownLoc::get(module.getContext());
  std::string text = option.str(), file;
  StringRef digits = option;
  digits.consume_front("-");
  bool isNumber = !digits.empty() && llvm::all_of(digits, llvm::isDigit);
  if (!isNumber && !option.ltrim().starts_with("{")) {
    auto buffer = readTextFile(option, kMostClusterBytes);
    if (!buffer)
      return emitError(nowhere) << "cannot read the cluster file '" << option
                                << "': " << llvm::toString(buffer.takeError());
    text = (*buffer)->getBuffer().str();
    file = option.str();
  }
  try {
    Cluster cluster = Cluster::parse(text);
    if (isNumber)
      shareMemory(cluster);
    for (ClusterOp said : module.getOps<ClusterOp>()) {
      if (said.getCluster() == cluster)
        return success();
      // That many ranks of the machine that has written the text.
      if (isNumber && areRanks(said.getCluster()) &&
          said.getCluster().devices.size() == cluster.devices.size())
        return success();
      return emitError(said.getLoc())
             << "--cluster contradicts the text, which has this cluster; give "
                "the same one, or take it out of the text";
    }
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    ClusterOp::create(builder, nowhere, "cluster", cluster);
    return success();
  } catch (const ClusterError &error) {
    if (isNumber)
      return emitError(nowhere) << "number of ranks: " << error.what();
    return emitError(FileLineColLoc::get(module.getContext(),
                                         file.empty() ? "cluster" : file,
                                         error.getLine(), error.getColumn()))
           << error.what();
  }
}

static LogicalResult checkType(Location loc, Type type, const Twine &what) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return emitError(loc) << what << " is no tensor of known rank: " << type;
  if (!tensor.hasStaticShape())
    return emitError(loc) << what << " has a symbolic shape, whose sizes are "
                          << "not known before the program runs: " << type;
  if (!hasCountableBytes(tensor))
    return emitError(loc) << what
                          << " has more bytes than can be counted: " << type;
  if (getElementBytes(tensor.getElementType()) == 0)
    return emitError(loc) << what
                          << " has an element type without a size: " << type;
  return success();
}

static LogicalResult checkMain(ModuleOp module, func::FuncOp main,
                               bool callsPython) {
  if (!main)
    return module.emitError("there is no function @main");
  if (main.isExternal() || !main.getBody().hasOneBlock())
    return main.emitError("@main must have a body of one block");
  auto check = [&](Location loc, Type type, const Twine &what) {
    if (!isa<stablehlo::TokenType>(type))
      return checkType(loc, type, what);
    // Of calls into Python; whale-lift-callbacks takes them away.
    if (callsPython)
      return success();
    emitError(loc) << what
                   << " is a token, as ordered calls into Python have: a "
                      "program of whale-compile can't call back into Python; "
                      "run the step with wh.jit";
    return failure();
  };
  for (BlockArgument argument : main.getArguments())
    if (failed(check(argument.getLoc(), argument.getType(),
                     "argument " + Twine(argument.getArgNumber()))))
      return failure();
  for (auto [i, type] : llvm::enumerate(main.getResultTypes()))
    if (failed(check(main.getLoc(), type, "result " + Twine(i))))
      return failure();
  return checkSizes(module);
}

static LogicalResult emitContradiction(MLIRContext *context, StringRef option,
                                       const Twine &given, const Twine &said) {
  return emitError(UnknownLoc::get(context))
         << option << ": " << given << " contradicts the text, which says "
         << said << "; leave the option out, or change the text";
}

static LogicalResult addBatchArguments(func::FuncOp main,
                                       ArrayRef<int64_t> batchArgs) {
  Builder builder(main.getContext());
  Location nowhere = UnknownLoc::get(main.getContext());
  llvm::SmallSet<int64_t, 8> named;
  for (int64_t argument : batchArgs) {
    if (argument < 0 || argument >= main.getNumArguments())
      return emitError(nowhere)
             << "--batch-args: there is no argument " << argument
             << "; @main has " << main.getNumArguments();
    if (!named.insert(argument).second)
      return emitError(nowhere)
             << "--batch-args: argument " << argument << " is named twice";
    auto type = cast<RankedTensorType>(main.getArgumentTypes()[argument]);
    if (type.getRank() == 0)
      return emitError(nowhere) << "--batch-args: argument " << argument
                                << " is a scalar and carries no mini-batch";
    auto said = main.getArgAttrOfType<IntegerAttr>(argument, kBatchDimAttr);
    if (said && said.getInt() != 0)
      return emitContradiction(main.getContext(), "--batch-args",
                               "the mini-batch in dimension 0 of argument " +
                                   Twine(argument),
                               "whale.batch_dim = " + Twine(said.getInt()));
    main.setArgAttr(argument, kBatchDimAttr, builder.getI64IntegerAttr(0));
  }
  return success();
}

static LogicalResult addFeedback(func::FuncOp main, StringRef feedback) {
  Builder builder(main.getContext());
  Location nowhere = UnknownLoc::get(main.getContext());
  SmallVector<StringRef> pairs;
  if (!feedback.empty())
    feedback.split(pairs, ',');
  std::map<unsigned, StringRef> pairOf;
  for (StringRef pair : pairs) {
    auto [from, to] = pair.split(':');
    unsigned argument, result;
    if (!from.consume_front("arg") || !to.consume_front("result") ||
        from.getAsInteger(10, argument) || to.getAsInteger(10, result))
      return emitError(nowhere)
             << "--feedback: '" << pair << "' is not of the form argI:resultJ";
    if (argument >= main.getNumArguments() || result >= main.getNumResults())
      return emitError(nowhere)
             << "--feedback: '" << pair << "' names what @main does not have ("
             << main.getNumArguments() << " arguments, " << main.getNumResults()
             << " results)";
    if (main.getArgumentTypes()[argument] != main.getResultTypes()[result])
      return emitError(nowhere) << "--feedback: '" << pair << "' pairs "
                                << main.getArgumentTypes()[argument] << " with "
                                << main.getResultTypes()[result];
    if (auto [it, isNew] = pairOf.try_emplace(argument, pair); !isNew)
      return emitError(nowhere) << "--feedback: '" << pair << "' and '"
                                << it->second << "' name one argument twice";
    auto said = main.getArgAttrOfType<IntegerAttr>(argument, kFedByAttr);
    if (said && said.getInt() != int64_t(result))
      return emitContradiction(main.getContext(), "--feedback",
                               "'" + pair + "'",
                               "whale.fed_by = " + Twine(said.getInt()));
    main.setArgAttr(argument, kFedByAttr, builder.getI64IntegerAttr(result));
  }
  return success();
}

static LogicalResult setStrategy(ModuleOp module, StringRef strategy) {
  MLIRContext *context = module.getContext();
  constexpr StringLiteral name = "whale.default_strategy";
  if (strategy.empty())
    return success();
  Attribute wanted;
  if (strategy == "replicate")
    wanted = ReplicateAttr::get(context, std::nullopt, "", std::nullopt);
  else if (strategy == "split")
    wanted = SplitAttr::get(context, std::nullopt, "", std::nullopt);
  else if (strategy != "none")
    return emitError(UnknownLoc::get(context))
           << "--strategy: '" << strategy
           << "' is none of replicate, split, none";
  if (Attribute said = module->getAttr(name); said && said != wanted)
    return emitContradiction(context, "--strategy", "'" + strategy + "'",
                             name + " = " + llvm::formatv("{0}", said).str());
  if (wanted)
    module->setAttr(name, wanted);
  return success();
}

static LogicalResult setMicroBatches(ModuleOp module, int64_t count) {
  MLIRContext *context = module.getContext();
  if (count < 0)
    return emitError(UnknownLoc::get(context))
           << "--micro-batches: " << count << " is less than 1";
  if (count > Config::kMostCount)
    return emitError(UnknownLoc::get(context))
           << "--micro-batches: " << count << " is more than "
           << Config::kMostCount;
  if (count == 0)
    return success();
  std::optional<int64_t> said = Config(module).getNumMicroBatches();
  if (said.value_or(count) != count)
    return emitContradiction(context, "--micro-batches", Twine(count),
                             Config::kMicroBatches + " = " + Twine(*said));
  Config::setNumMicroBatches(module, count);
  return success();
}

/// Passes count on what earlier passes have made: an operation that only a
/// later level has would be taken for theirs.
static LogicalResult checkOperations(ModuleOp module) {
  bool partitioned = isPartitioned(module);
  auto isAllowed = [&](Operation *op) {
    if (auto inner = dyn_cast<ModuleOp>(op))
      return inner == module;
    if (!isa_and_nonnull<WhaleDialect>(op->getDialect()) || isa<ClusterOp>(op))
      return true;
    return partitioned &&
           isa<ScheduleOp, ReturnOp, CollectiveOp, MicroBatchesOp, YieldOp,
               ShardOffsetOp, ViewOp, PackOp, UnpackOp>(op);
  };
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isAllowed(op))
      return WalkResult::advance();
    op->emitOpError("is written by the compiler, and has no meaning in a text ")
        << (partitioned ? "that is partitioned" : "that is not partitioned");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult prepareInput(ModuleOp module, const CompileOptions &options) {
  if (options.tf32)
    Config::setTf32(module);
  if (isPartitioned(module)) {
    bool hasOptions = !options.strategy.empty() || options.microBatches != 0 ||
                      !options.batchArgs.empty() || !options.feedback.empty();
    if (hasOptions)
      return emitError(UnknownLoc::get(module.getContext()))
             << "--strategy, --batch-args, --micro-batches and --feedback come "
                "too late: the text is partitioned already";
    if (failed(checkOperations(module)) || failed(checkSizes(module)))
      return failure();
    return checkRanks(module, options.target);
  }
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (failed(checkMain(module, main, options.callsPython)) ||
      failed(addCluster(module, options.cluster)) ||
      failed(checkAttributes(module)) || failed(checkOperations(module)) ||
      failed(checkRanks(module, options.target)) ||
      failed(setStrategy(module, options.strategy)) ||
      failed(setMicroBatches(module, options.microBatches)) ||
      failed(addBatchArguments(main, options.batchArgs)))
    return failure();
  return addFeedback(main, options.feedback);
}

} // namespace whale
