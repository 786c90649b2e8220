//===- CollectivesTest.cpp - Resolver steps as operations -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever the resolver answers, the operation of that kind accepts on every
// rank.
//

#include "../../Placement/RandomPlacement.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Placement/Resolver.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace whale;

namespace {
class Collectives : public testing::Test {
protected:
  Collectives() : builder(&context) { context.loadDialect<WhaleDialect>(); }

  /// The type of a rank's shard; none where it holds nothing.
  Type shardType(const Placement &placement, DeviceId rank) {
    if (!placement.holds(rank))
      return Type();
    return RankedTensorType::get(placement.box(rank)->size,
                                 builder.getF32Type());
  }

  /// Whether the step's operation verifies in the schedule of one rank.
  bool verifies(const Step &step, DeviceId rank) {
    Location loc = builder.getUnknownLoc();
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    Type from = shardType(step.from, rank), to = shardType(step.to, rank);
    builder.setInsertionPointToStart(module->getBody());
    auto schedule = ScheduleOp::create(
        builder, loc, "rank_class",
        builder.getFunctionType(from ? TypeRange(from) : TypeRange(), {}),
        {rank}, /*arg_attrs=*/{}, /*res_attrs=*/{});
    builder.setInsertionPointToStart(schedule.addEntryBlock());
    OperationState state(loc, collectiveName(step.kind));
    state.addOperands(schedule.getArguments());
    if (to)
      state.addTypes(to);
    state.addAttribute("channel", builder.getI64IntegerAttr(0));
    state.addAttribute("from", PlacementAttr::get(&context, step.from));
    state.addAttribute("to", PlacementAttr::get(&context, step.to));
    builder.create(state);
    ReturnOp::create(builder, loc, ValueRange());
    return succeeded(verify(*module));
  }

  MLIRContext context;
  OpBuilder builder;
};
} // namespace

TEST_F(Collectives, AcceptWhatTheResolverAnswers) {
  constexpr int64_t kDevices = 6;
  std::map<StepKind, int> seen;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomPlacement random(seed);
    Extents shape = random.shape();
    Reduction reduction = Reduction(random.below(6));
    auto draw = [&] {
      return random.placement(random.view(shape), random.devices(kDevices),
                              random.chance(40), reduction);
    };
    Placement from = draw(), to = draw();
    Topology topology;
    topology.node = {0, 0, 0, 1, 1, 1};
    for (const Step &step : resolve(shape, from, to, topology)) {
      ++seen[step.kind];
      for (DeviceId rank = 0; rank < kDevices; ++rank)
        if (step.from.contains(rank) || step.to.contains(rank)) {
          ASSERT_TRUE(verifies(step, rank))
              << stringifyStepKind(step.kind).str() << " from "
              << step.from.str() << " to " << step.to.str() << " on " << rank;
        }
    }
  }
  EXPECT_EQ(seen.size(), 7u) << "some kind of step was never drawn";
}
