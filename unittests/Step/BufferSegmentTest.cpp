//===- BufferSegmentTest.cpp - Tests of planning calls ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The buffer planner for functions that call segments, each of which is planned
// once. The twin is the same function with the segments in the place of their
// calls. 300 random plans must be valid in this form as well, and a changed
// plan that is wrong there must be refused with calls, too.
//
// In 400 random programs the arena may be larger than the twin's in a tenth,
// and by 1% in sum. Pipelines of up to 1,024 micro-batches must not need more
// memory, or many more places, than short ones; rotating shares may waste 3%.
// The rest are small cases by hand: locals where operands die, turns of
// results, and plans with one fault.
//
//===----------------------------------------------------------------------===//

#include "BufferBuilder.h"

#include <deque>
#include <numeric>

using namespace whale;

namespace {

//===----------------------------------------------------------------------===//
// The same without calls
//===----------------------------------------------------------------------===//

/// Puts the segments in the place of their calls: operands and results are
/// views, what a call copies is copied before instructions that do nothing.
class Inliner {
public:
  /// Without a plan only the function is made.
  explicit Inliner(const BufferFunction &from, const BufferPlan *plan = nullptr)
      : from(from), fromPlan(plan) {
    function.values = from.values;
    if (plan) {
      this->plan = *plan;
      this->plan.before.clear();
      this->plan.atEnd.clear();
      this->plan.locals.clear();
      this->plan.layout.clear();
    }
    std::vector<unsigned> same(from.values.size());
    std::iota(same.begin(), same.end(), 0u);
    Source source{plan, std::move(same), {}};
    function.body = copy(from.body, source);
  }

  BufferFunction function;
  BufferPlan plan;

private:
  /// What is copied: where its values and buffers have gone, and how far the
  /// copies of its plan have come.
  struct Source {
    const BufferPlan *plan;
    std::vector<unsigned> values;
    std::vector<unsigned> buffers;
    unsigned instr = 0, region = 0;
  };
  std::vector<BufferCopy> moved(std::vector<BufferCopy> copies,
                                const Source &source) {
    if (!source.buffers.empty())
      for (BufferCopy &copy : copies)
        copy = {source.buffers[copy.src], source.buffers[copy.dst]};
    return copies;
  }
  template <typename List>
  static void renumber(List &list, const Source &source) {
    for (unsigned &value : list)
      value = source.values[value];
  }
  void add(BufferRegion &region, BufferInstr instr,
           std::vector<BufferCopy> before = {}) {
    region.instrs.push_back(std::move(instr));
    plan.before.push_back(std::move(before));
    plan.layout.push_back(0);
  }
  void view(BufferRegion &region, unsigned operand, unsigned result) {
    BufferInstr instr;
    instr.kind = BufferInstr::View;
    instr.operands = {operand};
    instr.results = {result};
    add(region, instr);
  }

  BufferRegion copy(const BufferRegion &region, Source &source) {
    BufferRegion out{region.args, {}, region.yields};
    renumber(out.args, source);
    renumber(out.yields, source);
    std::vector<BufferCopy> atEnd;
    if (source.plan)
      atEnd = moved(source.plan->atEnd[source.region++], source);
    plan.atEnd.push_back(std::move(atEnd));
    copyInstrs(region, out, source);
    return out;
  }
  void copyInstrs(const BufferRegion &region, BufferRegion &out,
                  Source &source) {
    for (const BufferInstr &instr : region.instrs) {
      std::vector<BufferCopy> before;
      if (source.plan)
        before = moved(source.plan->before[source.instr], source);
      unsigned number = source.instr++;
      if (instr.kind == BufferInstr::Call) {
        call(out, instr, number, std::move(before));
        continue;
      }
      BufferInstr same = instr;
      renumber(same.operands, source);
      renumber(same.results, source);
      add(out, same, std::move(before));
      for (auto [i, inner] : llvm::enumerate(instr.regions))
        out.instrs.back().regions[i] = copy(inner, source);
    }
  }
  // Callers are no segments: their values keep their numbers.
  void call(BufferRegion &out, const BufferInstr &instr, unsigned number,
            std::vector<BufferCopy> before) {
    const SegmentPlan &segment = *from.segments[instr.callee];
    const BufferFunction &callee = *segment.function;
    Source source{fromPlan ? &segment.plan : nullptr, {}, {}};
    for (const BufferValue &value : callee.values) {
      source.values.push_back(function.values.size());
      function.values.push_back(value);
    }
    if (fromPlan)
      place(instr, number, segment, source);
    add(out, {}, std::move(before));
    for (auto [operand, arg] :
         llvm::zip_equal(instr.operands, callee.body.args))
      view(out, operand, source.values[arg]);
    source.region = 1;
    copyInstrs(callee.body, out, source);
    add(out, {},
        fromPlan ? moved(segment.plan.atEnd[0], source)
                 : std::vector<BufferCopy>());
    for (auto [value, result] :
         llvm::zip_equal(callee.body.yields, instr.results))
      view(out, source.values[value], result);
  }
  void place(const BufferInstr &instr, unsigned number,
             const SegmentPlan &segment, Source &source) {
    std::vector<unsigned> operands, results;
    for (unsigned operand : instr.operands)
      operands.push_back(fromPlan->bufferOf[operand]);
    for (unsigned result : instr.results)
      results.push_back(fromPlan->bufferOf[result]);
    for (const InPlace &pair : segment.inPlace)
      operands[pair.operand] = results[pair.result];
    for (const PlannedBuffer &buffer : segment.plan.buffers) {
      source.buffers.push_back(plan.buffers.size());
      plan.buffers.push_back(buffer);
      PlannedBuffer &b = plan.buffers.back();
      if (b.space == BufferSpace::Arena)
        b.offset =
            fromPlan->locals[instr.callee][fromPlan->layout[number]][b.index];
      else if (b.space == BufferSpace::Argument)
        source.buffers.back() = operands[b.index];
      else if (b.space == BufferSpace::Result)
        source.buffers.back() = results[b.index];
      else
        b.index = source.buffers.back();
    }
    for (unsigned buffer : segment.plan.bufferOf)
      plan.bufferOf.push_back(source.buffers[buffer]);
  }

  const BufferFunction &from;
  const BufferPlan *fromPlan;
};

/// A program with the segments that it calls.
struct Program {
  std::vector<BufferBuilder> functions;
  std::vector<SegmentPlan> segments;
  BufferBuilder main;

  explicit Program(size_t count) : functions(count) { segments.reserve(count); }
  void planSegment(unsigned segment,
                   llvm::ArrayRef<unsigned> mayOverwrite = {}) {
    segments.push_back(functions[segment].planSegment(mayOverwrite));
    main.function.segments.push_back(&segments.back());
  }
};

// Plans with calls are checked once more as plans without.
TEST(BufferSegment, RandomProgramsMeanWhatTheyMeanWithoutCalls) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 engine(seed);
    Program program(1 + engine() % 2);
    for (unsigned s = 0; s < program.functions.size(); ++s) {
      RandomBuffers random;
      random.engine.seed(engine());
      std::vector<unsigned> visible;
      for (unsigned a = 0, count = 1 + engine() % 4; a < count; ++a)
        visible.push_back(random.b.argument(64));
      visible.push_back(random.b.constant(64));
      random.fill(random.b.function.body, visible, 1);
      for (unsigned r = 0, count = 1 + engine() % 3; r < count; ++r)
        random.b.function.body.yields.push_back(random.any(random.last));
      program.functions[s] = random.b;
      std::vector<unsigned> mayOverwrite;
      for (unsigned a = 0; a < random.b.function.body.args.size(); ++a)
        if (engine() % 2)
          mayOverwrite.push_back(a);
      program.planSegment(s, mayOverwrite);
    }
    RandomBuffers random;
    random.engine.seed(engine());
    random.b = program.main;
    std::vector<unsigned> visible;
    for (int a = 0; a < 3; ++a)
      visible.push_back(random.b.argument(64));
    random.whole = random.b.argument(128);
    visible.push_back(random.b.constant(64));
    random.fill(random.b.function.body, visible, 0);
    std::vector<unsigned> all = random.last;
    for (int r = 0; r < 3; ++r)
      random.b.function.body.yields.push_back(random.any(all));
    random.b.function.body.yields.push_back(
        random.b.op({*random.whole, random.any(all)}, 128, {{0, 0}}));
    std::pair<unsigned, unsigned> aliases[] = {{0, 0}, {1, 2}, {3, 3}};
    BufferPlan plan = random.b.plan(aliases);
    Inliner inlined(random.b.function, &plan);
    std::optional<std::string> error =
        verifyBufferPlan(inlined.function, inlined.plan);
    EXPECT_FALSE(error) << "without calls: " << *error;
    // A changed plan is not taken for right if it is wrong without calls.
    for (int change = 0; change < 4; ++change) {
      BufferPlan changed = plan;
      auto &layouts = changed.locals[engine() % changed.locals.size()];
      auto &locals = layouts[engine() % layouts.size()];
      if (engine() % 2 && !locals.empty())
        locals[engine() % locals.size()] = 64 * (engine() % 16);
      else if (engine() % 2)
        changed.before[engine() % plan.before.size()].clear();
      else
        changed.buffers[engine() % plan.buffers.size()].offset =
            64 * (engine() % 16);
      Inliner other(random.b.function, &changed);
      error = verifyBufferPlan(other.function, other.plan);
      if (error)
        EXPECT_TRUE(verifyBufferPlan(random.b.function, changed)) << *error;
    }
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

/// A stage of a pipeline: `inFlight` micro-batches forward, then one backward
/// and one forward in turns, then what is left backward.
struct Stage : Program {
  explicit Stage(unsigned inFlight, unsigned count, unsigned layers)
      : Program(2), layers(layers) {
    forward();
    backward();
    for (unsigned l = 0; l < layers; ++l)
      weights.push_back(main.argument(1 << 12));
    for (unsigned l = 0; l < layers; ++l)
      sums.push_back(main.constant(1 << 12));
    std::vector<llvm::SmallVector<unsigned>> kept;
    for (unsigned f = 0, b = 0; b < count; ++b) {
      for (; f < count && f < b + inFlight; ++f)
        kept.push_back(runForward());
      runBackward(kept[b]);
    }
    main.results(sums);
    plan = main.plan();
  }

  unsigned received() {
    unsigned value = main.op({}, 1 << 14);
    main.function.body.instrs.back().group = 0;
    return value;
  }
  llvm::SmallVector<unsigned> runForward() {
    llvm::SmallVector<unsigned> operands{received()};
    llvm::append_range(operands, weights);
    auto results = main.call(0, operands);
    main.op({results.back()}, 0);
    main.function.body.instrs.back().group = 1;
    results.back() = operands[0];
    return {results.begin(), results.end()};
  }
  void runBackward(llvm::SmallVector<unsigned> kept) {
    kept.push_back(received());
    llvm::append_range(kept, weights);
    llvm::append_range(kept, sums);
    auto results = main.call(1, kept);
    sums.assign(results.begin(), results.end() - 1);
    main.op({results.back()}, 0);
    main.function.body.instrs.back().group = 1;
  }
  // Each layer keeps two of the values that it makes.
  void forward() {
    BufferBuilder &b = functions[0];
    std::vector<unsigned> layerWeights, kept;
    unsigned x = b.argument(1 << 14);
    for (unsigned l = 0; l < layers; ++l)
      layerWeights.push_back(b.argument(1 << 12));
    for (unsigned weight : layerWeights) {
      unsigned wide = b.op({x, weight}, 1 << 16);
      kept.push_back(b.op({wide}, 1 << 15));
      unsigned y = x;
      for (int i = 0; i < 6; ++i)
        y = b.op({y, i ? wide : kept.back()}, (i % 3 + 1) << 14);
      x = b.op({y, wide}, 1 << 14);
      kept.push_back(x);
    }
    b.results(kept);
    planSegment(0);
  }
  void backward() {
    BufferBuilder &b = functions[1];
    std::vector<unsigned> kept, layerWeights, sums, results, mayOverwrite;
    for (unsigned l = 0; l < layers; ++l) {
      kept.push_back(b.argument(1 << 15));
      // The value of the last layer is that of the first here.
      kept.push_back(b.argument(1 << 14));
    }
    unsigned dy = b.argument(1 << 14);
    for (unsigned l = 0; l < layers; ++l)
      layerWeights.push_back(b.argument(1 << 12));
    for (unsigned l = 0; l < layers; ++l) {
      mayOverwrite.push_back(b.function.body.args.size());
      sums.push_back(b.argument(1 << 12));
    }
    for (unsigned l = layers; l-- > 0;) {
      unsigned wide = b.op({dy, layerWeights[l]}, 1 << 16);
      for (int i = 0; i < 6; ++i)
        wide = b.op({wide, kept[2 * l]}, 1 << 16, {{0, 0}});
      sums[l] = b.op({sums[l], wide, kept[2 * l + 1]}, 1 << 12,
                     {{0, 0, /*required=*/true}});
      dy = b.op({wide, kept[2 * l]}, 1 << 14);
    }
    results = sums;
    results.push_back(dy);
    b.results(results);
    planSegment(1, mayOverwrite);
  }
  size_t requests() const {
    size_t count = 0;
    for (const PlannedBuffer &buffer : plan.buffers)
      count += buffer.space == BufferSpace::Arena;
    for (const auto &layouts : plan.locals)
      for (const std::vector<int64_t> &offsets : layouts)
        count += offsets.size();
    return count;
  }
  unsigned layers;
  std::vector<unsigned> weights, sums;
  BufferPlan plan;
};

TEST(BufferSegment, ArenaAndRequestsDoNotGrowWithMicroBatches) {
  for (unsigned inFlight : {1, 8}) {
    Stage few(inFlight, 8, /*layers=*/4);
    BufferFunction inlined = Inliner(few.main.function).function;
    // Each is packed by trying orders, so one can be a little better.
    EXPECT_LE(few.plan.arenaBytes, 1.01 * planBuffers(inlined, {}).arenaBytes);
    // A long pipeline has some more layouts of locals than a short one, and
    // places of its own for each value where turns waste much.
    Stage many(inFlight, 64, /*layers=*/4), most(inFlight, 1024, /*layers=*/4);
    for (const Stage *longer : {&many, &most}) {
      EXPECT_LE(longer->plan.arenaBytes, few.plan.arenaBytes);
      if (longer->plan.arenaBytes == few.plan.arenaBytes)
        EXPECT_LE(longer->requests(), 1.2 * few.requests());
    }
    EXPECT_LE(most.requests(), 1.2 * few.requests());
  }
}

// The local of a backward call is where what it has read was. Which that is
// alternates.
TEST(BufferSegment, LocalsAreWhereOperandsOfTheirCallDie) {
  Program program(2);
  BufferBuilder &forward = program.functions[0],
                &backward = program.functions[1];
  forward.results({forward.op({forward.argument(64)}, 1 << 16)});
  program.planSegment(0);
  unsigned read = backward.op({backward.argument(1 << 16)}, 64);
  backward.results({backward.op({backward.op({read}, 1 << 16)}, 64)});
  program.planSegment(1);
  BufferBuilder &main = program.main;
  unsigned x = main.argument(64);
  std::deque<unsigned> kept;
  for (int i = 0; i < 10; ++i) {
    kept.push_back(main.call(0, {x})[0]);
    if (kept.size() < 2)
      continue;
    x = main.call(1, {kept.front()})[0];
    kept.pop_front();
  }
  main.results({main.op({x}, 64)});
  BufferPlan plan = main.plan();
  EXPECT_EQ(plan.locals[1].size(), 2u);
  EXPECT_LT(plan.arenaBytes, (2 << 16) + 1024);
  EXPECT_EQ(verifyBufferPlan(main.function, plan), std::nullopt);
  Inliner inlined(main.function, &plan);
  EXPECT_EQ(verifyBufferPlan(inlined.function, inlined.plan), std::nullopt);

  auto errorOf = [&](auto change) {
    BufferPlan changed = plan;
    change(changed);
    return verifyBufferPlan(main.function, changed).value_or("");
  };
  EXPECT_NE(errorOf([](BufferPlan &changed) {
              for (unsigned &layout : changed.layout)
                layout = 0;
            }),
            "");
  EXPECT_EQ(errorOf([](BufferPlan &changed) { changed.layout[2] = 2; }),
            "segment 1 has no layout 2");
  EXPECT_EQ(errorOf([](BufferPlan &changed) { changed.layout.pop_back(); }),
            "not every instruction has a layout");
}

// A rank's share can differ between micro-batches, and with it the segment.
TEST(BufferSegment, ValuesOfAboutOneSizeTakeTurns) {
  Program program(2);
  for (unsigned s : {0, 1}) {
    BufferBuilder &b = program.functions[s];
    b.results({b.op({b.argument(64)}, (1 << 16) - (s << 12))});
    program.planSegment(s);
  }
  BufferBuilder &main = program.main;
  unsigned x = main.argument(64);
  std::mt19937 engine(1);
  std::deque<unsigned> alive;
  for (int i = 0; i < 200; ++i) {
    alive.push_back(main.call(engine() % 2, {x})[0]);
    if (alive.size() < 4)
      continue;
    main.op({alive.front()}, 0);
    alive.pop_front();
  }
  main.results({main.op({x}, 64)});
  BufferPlan plan = main.plan();
  EXPECT_EQ(plan.arenaBytes, 4 << 16);
  EXPECT_EQ(verifyBufferPlan(main.function, plan), std::nullopt);
}

// Two small ones are alive at once, or a small and a large one, so three slots
// are never full.
TEST(BufferSegment, ValuesThatTurnsWouldKeepApartHaveTheirOwnPlaces) {
  Program program(2);
  for (unsigned s : {0, 1}) {
    BufferBuilder &b = program.functions[s];
    b.results({b.op({b.argument(64)}, (2 + s) << 14)});
    program.planSegment(s);
  }
  BufferBuilder &main = program.main;
  unsigned x = main.argument(64);
  std::optional<unsigned> last;
  for (int i = 0; i < 5; ++i) {
    unsigned value = main.call(i % 3 == 1, {x})[0];
    if (last)
      main.op({*last}, 0);
    last = value;
  }
  main.results({main.op({x}, 64)});
  BufferPlan plan = main.plan();
  EXPECT_EQ(plan.arenaBytes, 5 << 14);
  EXPECT_EQ(verifyBufferPlan(main.function, plan), std::nullopt);
}

// Shares of one micro-batch in three are larger, and each micro-batch keeps
// some values for its backward. Values that keep their places in turn would
// need as much as if the larger one were always there.
TEST(BufferSegment, SharesThatRotateWasteLittle) {
  constexpr int64_t units[] = {4, 4, 1, 2, 1, 4, 1};
  for (unsigned inFlight : {2, 4, 5, 7, 8}) {
    Program program(4);
    for (int64_t share : {1, 2}) {
      BufferBuilder &forward = program.functions[2 * share - 2];
      unsigned x = forward.argument(64);
      llvm::SmallVector<unsigned> kept;
      for (int64_t unit : units) {
        x = forward.op({x}, share * unit << 16);
        kept.push_back(x);
      }
      forward.results(kept);
      BufferBuilder &backward = program.functions[2 * share - 1];
      llvm::SmallVector<unsigned> read;
      for (int64_t unit : units)
        read.push_back(backward.argument(share * unit << 16));
      unsigned gradient = backward.op({read.back()}, 64);
      for (unsigned value : llvm::reverse(read))
        gradient = backward.op({value, gradient}, 64);
      backward.results({gradient});
    }
    for (unsigned s = 0; s < 4; ++s)
      program.planSegment(s);
    BufferBuilder &main = program.main;
    unsigned x = main.argument(64);
    std::deque<std::pair<unsigned, llvm::SmallVector<unsigned, 2>>> alive;
    int64_t most = 0, bytes = 0;
    for (unsigned m = 0; m < 40; ++m) {
      unsigned share = m % 3 == 2 ? 2 : 1;
      llvm::SmallVector<unsigned, 2> kept = main.call(2 * share - 2, {x});
      alive.push_back({share, kept});
      bytes += int64_t(share * 17) << 16;
      most = std::max(most, bytes);
      if (alive.size() < inFlight)
        continue;
      auto [oldest, values] = alive.front();
      main.call(2 * oldest - 1, values);
      bytes -= int64_t(oldest * 17) << 16;
      alive.pop_front();
    }
    main.results({main.op({x}, 64)});
    BufferPlan plan = main.plan();
    EXPECT_LE(double(plan.arenaBytes), 1.03 * double(most)) << inFlight;
    EXPECT_EQ(verifyBufferPlan(main.function, plan), std::nullopt);
  }
}

// Only the sums, which begin as constants, are copied, and only once.
TEST(BufferSegment, SumsStayInTheirBuffers) {
  Stage stage(2, 16, /*layers=*/4);
  size_t copies = 0;
  for (const auto &before : stage.plan.before)
    copies += before.size();
  EXPECT_EQ(copies, 4u);
}

TEST(BufferSegment, ResultTakesTheMemoryOfAnOperandThatDiesInTheCall) {
  Program program(1);
  BufferBuilder &b = program.functions[0];
  unsigned small = b.op({b.argument(4096)}, 64);
  b.results({b.op({small}, 4096)});
  program.planSegment(0);
  BufferBuilder &main = program.main;
  unsigned x = main.op({}, 4096);
  main.results({main.op(main.call(0, x), 4)});
  EXPECT_EQ(main.plan().arenaBytes, 4096 + 64);
}

TEST(BufferSegment, OperandOfLaterUseIsCopiedBeforeItIsOverwritten) {
  for (bool late : {false, true}) {
    Program program(1);
    BufferBuilder &b = program.functions[0];
    unsigned sum = b.argument(64), y = b.argument(64);
    b.results({b.op({sum, y}, 64, {{0, 0, /*required=*/true}})});
    program.planSegment(0, 0);
    ASSERT_EQ(program.segments[0].inPlace.size(), 1u);
    BufferBuilder &main = program.main;
    unsigned x = main.op({}, 64), z = main.op({}, 64);
    unsigned next = main.call(0, {x, z})[0];
    main.results({main.op({late ? x : z, next}, 4)});
    EXPECT_EQ(copyCount(main.plan()), size_t(late));
  }
}

// What may be overwritten is, without hint it isn't.
TEST(BufferSegment, OperandsAreOverwrittenOnlyWhereAllowed) {
  for (bool allowed : {false, true}) {
    Program program(1);
    BufferBuilder &b = program.functions[0];
    unsigned sum = b.argument(64);
    for (int i = 0; i < 3; ++i)
      sum = b.op({sum}, 64, {{0, 0}});
    b.results({sum});
    SegmentPlan plan = allowed ? b.planSegment(0) : b.planSegment();
    EXPECT_EQ(plan.inPlace.size(), size_t(allowed));
    EXPECT_TRUE(plan.locals.empty());
    // The first instruction writes to its operand.
    plan.plan.bufferOf[1] = plan.plan.bufferOf[0];
    EXPECT_EQ(verifySegmentPlan(plan).has_value(), !allowed);
  }
}

TEST(BufferSegment, PartsOfAnArgumentKeepIt) {
  BufferBuilder b;
  unsigned x = b.argument(128), y = b.argument(64);
  unsigned part = b.part(b.function.body, x, 64, 64);
  unsigned next = b.op({x}, 128, {{0, 0}});
  unsigned sum = b.op({part, y}, 64, {{0, 0}});
  b.results({next, sum, b.part(b.function.body, x, 0, 64)});
  std::pair<unsigned, unsigned> alias{0, 0};
  BufferPlan plan = b.plan(alias);
  const PlannedBuffer &buffer = plan.buffers[plan.bufferOf[part]];
  EXPECT_EQ(buffer.space, BufferSpace::Part);
  EXPECT_EQ(buffer.offset, 64);
  EXPECT_EQ(plan.alias[0], std::nullopt);
  EXPECT_NE(plan.bufferOf[part], plan.bufferOf[sum]);
  plan.buffers[plan.bufferOf[part]].offset = 0;
  EXPECT_TRUE(verifyBufferPlan(b.function, plan));
}

// A call with what goes on around it: `x` lives across, `y` dies inside.
struct Around : Program {
  Around() : Program(1) {
    BufferBuilder &b = functions[0];
    unsigned y = b.argument(64), z = b.argument(64);
    unsigned first = b.op({y}, 64), second = b.op({z, first}, 64);
    b.results({b.op({second}, 64)});
    planSegment(0);
    x = main.op({}, 64);
    operands = {main.op({}, 64), main.op({}, 64)};
    result = main.call(0, operands)[0];
    main.results({main.op({x, result}, 4)});
    plan = main.plan();
  }
  PlannedBuffer &buffer(unsigned value) {
    return plan.buffers[plan.bufferOf[value]];
  }
  bool isRefused() const {
    return verifyBufferPlan(main.function, plan).has_value();
  }
  unsigned x, result;
  std::vector<unsigned> operands;
  BufferPlan plan;
};

TEST(BufferSegment, VerifierFindsLocalOnValueAcrossTheCall) {
  for (int local : {0, 1}) {
    Around a;
    a.plan.locals[0][0][local] = a.buffer(a.x).offset;
    EXPECT_TRUE(a.isRefused());
  }
}

TEST(BufferSegment, VerifierFindsLocalOnOperandThatIsStillRead) {
  Around a;
  a.plan.locals[0][0][0] = a.buffer(a.operands[1]).offset;
  EXPECT_TRUE(a.isRefused());
  // The other operand is over when the second local is written.
  Around b;
  b.plan.locals[0][0][1] = b.buffer(b.operands[0]).offset;
  b.buffer(b.result).offset = b.buffer(b.operands[1]).offset;
  EXPECT_FALSE(b.isRefused());
}

TEST(BufferSegment, VerifierFindsResultOnWhatIsAlive) {
  Around a;
  a.buffer(a.result).offset = a.buffer(a.x).offset;
  EXPECT_TRUE(a.isRefused());
  Around b;
  b.buffer(b.result).offset = b.plan.locals[0][0][1];
  EXPECT_TRUE(b.isRefused());
}

TEST(BufferSegment, VerifierFindsMissingOrMisplacedLocals) {
  Around a;
  a.plan.locals[0][0].pop_back();
  EXPECT_TRUE(a.isRefused());
  Around b;
  b.plan.locals[0][0][0] = b.plan.arenaBytes;
  EXPECT_TRUE(b.isRefused());
}

// Straight programs of values of several sizes, with what they return.
void fillStraight(BufferBuilder &b, std::mt19937 &engine,
                  std::vector<unsigned> visible, unsigned count) {
  auto any = [&] {
    // Mostly what came last.
    size_t back = std::min<size_t>(visible.size(), 1 + engine() % 6);
    return visible[visible.size() - 1 - engine() % back];
  };
  std::vector<unsigned> made;
  unsigned called = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (called < b.function.segments.size() && i % 5 == 0) {
      unsigned callee = called++;
      const BufferFunction &segment = *b.function.segments[callee]->function;
      llvm::SmallVector<unsigned> operands;
      for (unsigned arg : segment.body.args) {
        // Of the argument's size.
        int64_t bytes = segment.values[arg].bytes;
        operands.push_back(b.op({any()}, bytes));
      }
      auto results = b.call(callee, operands);
      llvm::append_range(visible, results);
      llvm::append_range(made, results);
      continue;
    }
    unsigned operand = any();
    int64_t bytes = 64 << (engine() % 4);
    llvm::SmallVector<InPlace> inPlace;
    if (b.function.values[operand].bytes == bytes && engine() % 2)
      inPlace.push_back({0, 0, engine() % 4 == 0});
    visible.push_back(b.op({operand, any()}, bytes, inPlace));
    made.push_back(visible.back());
  }
  b.results({made.back()});
  if (made.size() > 3)
    b.results({made[made.size() - 3], made.back()});
}

TEST(BufferSegment, ArenaIsHardlyLargerThanWithoutCalls) {
  unsigned larger = 0, count = 400;
  int64_t total = 0, totalInlined = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 engine(seed);
    Program program(3);
    for (unsigned s = 0; s < 3; ++s) {
      BufferBuilder &b = program.functions[s];
      std::vector<unsigned> visible, mayOverwrite;
      for (unsigned a = 0; a < 3; ++a)
        visible.push_back(b.argument(64 << (engine() % 4)));
      fillStraight(b, engine, visible, 4 + engine() % 12);
      mayOverwrite = {0, 1, 2};
      program.planSegment(s, mayOverwrite);
    }
    unsigned x = program.main.argument(64);
    fillStraight(program.main, engine, {x}, 20);
    int64_t bytes = program.main.plan().arenaBytes;
    BufferFunction inlined = Inliner(program.main.function).function;
    int64_t inlinedBytes = planBuffers(inlined, {}).arenaBytes;
    total += bytes;
    totalInlined += inlinedBytes;
    larger += bytes > inlinedBytes;
  }
  EXPECT_LT(larger, count / 10);
  EXPECT_LT(total, 1.01 * totalInlined);
}

} // namespace
