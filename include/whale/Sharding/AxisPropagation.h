//===- AxisPropagation.h - One mesh axis over a program ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides, for one axis of the devices, how every value is laid out along it:
// replicated, split along a piece of a dimension, as partial results that are
// still to be reduced, or on a single device. The same engine serves the
// mini-batch (replicate), the parameters (split) and, with time in the place of
// devices, micro-batches: they differ only in their seeds.
//
// States flow forward from the seeded arguments. An operation takes the layout
// that costs least given those of its operands; where an operand has another
// one, a reshard will be. What depends on no seeded argument (constants,
// masks, random bits, optimizer state, broadcasts of whole values) stays free
// until something demands a layout of it, and is then produced in that one.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_AXISPROPAGATION_H
#define WHALE_SHARDING_AXISPROPAGATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/OpRule.h"
#include "whale/Step/CostModel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include <functional>
#include <memory>

namespace whale {

/// The layout of one value along one axis.
struct AxisState {
  enum class Kind {
    Free,
    Replicated,
    Split,
    Partial,
    /// One part has all of it, and the others nothing: what is computed of a
    /// micro-batch of one sample.
    Single,
  };
  Kind kind = Kind::Free;
  DimPiece piece = {};
  Reduction reduction = Reduction::Sum;
  /// Of an operand that is wanted split: what a part reads beyond its piece,
  /// which is then the major one of its dimension.
  std::optional<RowWindow> window = std::nullopt;

  static AxisState replicated() { return {Kind::Replicated, {}, {}}; }
  static AxisState split(DimPiece piece) { return {Kind::Split, piece, {}}; }
  static AxisState partial(Reduction reduction) {
    return {Kind::Partial, {}, reduction};
  }
  static AxisState single() { return {Kind::Single, {}, {}}; }
  /// As values are made.
  AxisState withoutWindow() const { return {kind, piece, reduction}; }
  bool isFree() const { return kind == Kind::Free; }
  bool isReplicated() const { return kind == Kind::Replicated; }
  bool isSplit() const { return kind == Kind::Split; }
  bool isPartial() const { return kind == Kind::Partial; }
  bool isSingle() const { return kind == Kind::Single; }
  /// Whether a part holds less than the value itself.
  bool isCut() const { return isSplit() || isPartial() || isSingle(); }
  bool operator==(const AxisState &other) const {
    if (kind != other.kind)
      return false;
    if (isSplit())
      return piece == other.piece && window == other.window;
    return !isPartial() || reduction == other.reduction;
  }
  bool operator!=(const AxisState &other) const { return !(*this == other); }
};

/// How an operation may be laid out along the axis.
enum class AxisPolicy {
  /// Every device computes it whole.
  Whole,
  /// It follows the mini-batch.
  Batch,
  /// It follows whichever split costs least.
  Cheapest,
};

/// Seconds of an operation along an axis: if every device computes it whole,
/// and if they share it out by their speeds, in parts as fine as needed.
struct AxisWork {
  double whole = 0;
  double shared = 0;
};

class AxisPropagation {
public:
  struct Options {
    /// The policy of an operation; asked once per visit.
    std::function<AxisPolicy(mlir::Operation *)> policy;
    /// The number of parts of the axis where this operation runs.
    std::function<int64_t(mlir::Operation *)> parts;
    /// Something that is equal for operations on the same devices.
    std::function<const void *(mlir::Operation *)> devices;
    /// Whether this partial operand may pass through the operation: gradients
    /// are reduced at the boundary to the optimizer, before any of its
    /// operations; sums of its own are not.
    std::function<bool(mlir::Operation *, mlir::Value)> passesPartial;
    /// Whether a partial sum is kept wherever an operation is linear in it: on
    /// the axis of time it can only be reduced when all moments are over.
    bool keepsPartials = false;
    /// Whether a sum of parts may be scattered where an operation could have it
    /// whole: sequence parallelism. It pays, if at all, over all operations up
    /// to where it is gathered, so that the program is tried with and without.
    bool scatters = false;
    /// The state of seeded arguments; the others are free.
    llvm::DenseMap<mlir::Value, AxisState> seeds;
    /// What the program asks of the results of sharding constraints; others of
    /// them pass their operand on.
    llvm::DenseMap<mlir::Value, AxisState> constraints;
    /// Seeded parameters: gathering one is a last resort.
    llvm::SetVector<mlir::Value> parameters;
    /// Seeded arguments whose next values should be computed in their layout,
    /// and what goes into these come so.
    llvm::SetVector<mlir::Value> shared;
    /// Those of them that others than the optimizer read, which follows the
    /// mini-batch: what uses one gathers it.
    llvm::SetVector<mlir::Value> stored;
    /// Whether sums over micro-batches of what goes into shared arguments are
    /// scattered in each of them, rather than kept until the last one.
    bool scattersSums = false;
    /// Seeded parameters that are gathered for the convolutions that use them,
    /// which are split along images instead.
    llvm::SetVector<mlir::Value> gathered;
    /// The pieces of a value's dimensions that can be split, for operations
    /// that must be although none of their operands is.
    std::function<llvm::SmallVector<DimPiece>(mlir::Value)> pieces;
    /// For AxisPolicy::Batch: what each operation does when everything follows
    /// the mini-batch (the choices of an earlier run), if there was one.
    const llvm::DenseMap<mlir::Operation *, SubFactor> *batchChoices = nullptr;
    /// Kept between runs over one program.
    std::shared_ptr<RuleCache> rules = std::make_shared<RuleCache>();
    /// For results of the function: the argument that each feeds, or -1.
    llvm::SmallVector<int64_t> feeds;
    /// Seconds of one run of an operation.
    std::function<AxisWork(mlir::Operation *)> work = [](mlir::Operation *) {
      return AxisWork();
    };
    /// Seconds of an exchange of a value of so many bytes where an operation
    /// runs; one for each byte until it is known better.
    std::function<double(mlir::Operation *, Exchange::Kind, double)> exchange =
        [](mlir::Operation *, Exchange::Kind, double bytes) { return bytes; };
    /// Seconds until devices that hold parts of so many bytes each have as many
    /// more as given of their neighbours'.
    std::function<double(mlir::Operation *, double, double)> halo =
        [](mlir::Operation *, double, double bytes) { return bytes; };
    /// How often a step runs an operation.
    std::function<double(mlir::Operation *)> repeats = [](mlir::Operation *) {
      return 1.0;
    };
  };

  AxisPropagation(mlir::func::FuncOp function, Options options)
      : function(function), options(std::move(options)) {}

  void run();

  /// After run(): getState and getRequired say of a copy, of one operation
  /// without what is in it or of a region, what they say of the original.
  void addCopy(mlir::Operation &original, mlir::Operation &copy);
  void addCopy(mlir::Region &original, mlir::Region &copy);

  /// The layout in which a value is produced, never free after run().
  AxisState getState(mlir::Value value) const;
  /// The layout in which an operation needs an operand.
  AxisState getRequired(mlir::OpOperand &operand) const;
  /// The factor that an operation is split along, if any.
  std::optional<SubFactor> getChoice(mlir::Operation *op) const;
  const llvm::DenseMap<mlir::Operation *, SubFactor> &getChoices() const {
    return choices;
  }
  /// Seconds of a step that this axis is answerable for: computation in its
  /// parts, and communication.
  double getSeconds() const { return seconds; }

private:
  struct Candidate {
    std::optional<SubFactor> sub;
    llvm::SmallVector<AxisState, 3> required;
    llvm::SmallVector<AxisState, 1> results;
    /// Seconds of the computation, and of bringing the operands into place.
    double seconds = 0;
    /// What bringing the results into place will cost later.
    double outlook = 0;
    /// It reduces and scatters an operand that could have been left partial or
    /// made whole.
    bool isScatter = false;
  };

  double countSeconds();
  void visitBlock(mlir::Block &block);
  void visit(mlir::Operation *op);
  /// The layout of a value that a loop carries, and whether the body may change
  /// it.
  struct Carry {
    AxisState state;
    bool isFlexible = false;
  };
  void visitWhile(mlir::Operation *op, llvm::ArrayRef<AxisState> forced);
  llvm::SmallVector<Carry> startCarries(mlir::Operation *op,
                                        llvm::ArrayRef<AxisState> forced);
  void visitBody(mlir::Operation *op, llvm::ArrayRef<Carry> carries);
  AxisState nextState(mlir::Operation *op, unsigned i, Carry &carry,
                      bool isLast);
  void requireCarries(mlir::Operation *op, llvm::ArrayRef<Carry> carries);
  void visitCase(mlir::Operation *op);
  bool allGive(mlir::OpResult result, const AxisState &state) const;
  void visitBarrier(mlir::Operation *op);
  void visitConstraint(mlir::Operation *op, AxisState wanted);
  void visitMicroBatches(mlir::Operation *op);
  void visitReduced(MicroBatchesOp loop, unsigned index);
  void visitReturn(mlir::Operation *op);
  void visitWhole(mlir::Operation *op);
  bool hasSingleOperand(mlir::Operation *op) const;
  bool followsSingle(mlir::Operation *op) const;
  bool mayBeSingle(mlir::Operation *op) const;
  void visitSingle(mlir::Operation *op);
  void decide(mlir::Operation *op, const OpRule &rule);
  void addSplit(mlir::Operation *op, const OpRule &rule,
                std::optional<SubFactor> sub,
                llvm::SmallVectorImpl<Candidate> &candidates);
  void addSplits(mlir::Operation *op, const OpRule &rule,
                 llvm::SmallVectorImpl<Candidate> &candidates);
  void addScatters(mlir::Operation *op, const OpRule &rule,
                   llvm::SmallVectorImpl<Candidate> &candidates);
  void findWishes();
  void findGathered();
  void findTerms();
  void findStored();
  AxisState stateFor(mlir::Operation *op, mlir::Value value) const;
  void addWished(mlir::Operation *op, const OpRule &rule,
                 llvm::SmallVectorImpl<Candidate> &candidates);
  bool canSplit(mlir::Operation *op, const OpRule &rule, SubFactor sub);
  void keepSpatial(mlir::Operation *op, const OpRule &rule,
                   llvm::SmallVectorImpl<Candidate> &candidates);
  void wish(mlir::Value value, AxisState state);
  bool mustSplit(mlir::Operation *op);

  void demand(mlir::Value value, AxisState state);
  void require(mlir::OpOperand &operand, AxisState state);
  void setRequired(mlir::OpOperand &operand, AxisState state);
  void forgetRequired(mlir::OpOperand &operand);
  static void forEachInput(mlir::Operation *root,
                           llvm::function_ref<void(mlir::Value)> visit);
  bool canBeMadeWhole(mlir::Value value);
  bool isLazy(mlir::Operation *op);
  bool exchanges(mlir::Operation *op);

  /// What is still to be done until a value that was demanded is laid out.
  struct Task {
    enum Kind {
      /// An operation needs `operand` in `state`.
      Require,
      /// `value` is wanted in `state`.
      Demand,
      /// `value` was split, and is wanted whole.
      MakeWhole,
      /// Every device computes `op` whole.
      Whole,
      /// The same of a loop whose inputs are laid out.
      WholeLoop,
      /// The branches have been asked for their result `value` in `state`.
      Branches,
    };
    Kind kind;
    AxisState state;
    mlir::OpOperand *operand = nullptr;
    mlir::Value value = {};
    mlir::Operation *op = nullptr;
  };
  // These leave on top of the tasks what is to be done next.
  void startDemand(mlir::Value value, AxisState state);
  void startMakingWhole(mlir::Value value);
  void startWhole(mlir::Operation *op);
  void startSingle(mlir::Operation *op);
  void startLoop(mlir::Operation *op, unsigned index, AxisState wanted);
  void startWholeLoop(mlir::Operation *op);
  void startBranches(mlir::OpResult result, AxisState wanted);
  void finishBranches(mlir::OpResult result, AxisState common);
  void finish(size_t count);
  void clear(mlir::Region &region);

  const std::optional<OpRule> &ruleOf(mlir::Operation *op);
  Candidate splitCandidate(mlir::Operation *op, const OpRule &rule,
                           SubFactor sub);
  std::optional<Candidate> movedCandidate(mlir::Operation *op,
                                          const OpRule &rule);
  std::optional<Candidate> linearCandidate(mlir::Operation *op,
                                           const OpRule &rule);
  Candidate uniformCandidate(mlir::Operation *op, AxisState state);
  double workSeconds(mlir::Operation *op, std::optional<SubFactor> sub) const;
  void evaluate(mlir::Operation *op, Candidate &candidate);
  void apply(mlir::Operation *op, const Candidate &candidate);
  void start(mlir::Operation *op, const Candidate &candidate);
  void startRequiring(mlir::Operation *op, llvm::ArrayRef<AxisState> wanted);
  double reshardSeconds(mlir::Operation *op, mlir::Value value,
                        AxisState required);
  double transferSeconds(mlir::Operation *op, mlir::Value value, AxisState from,
                         AxisState to) const;
  bool anyUse(mlir::Value value, mlir::Operation *except,
              llvm::function_ref<bool(mlir::OpOperand &)> accepts) const;
  using Names = llvm::SmallSetVector<mlir::Value, 1>;
  const Names &namesOf(mlir::Value value);
  bool isMovedAnyway(mlir::Operation *op, mlir::Value value, AxisState wanted);
  bool isWantedAnyway(mlir::Value value, mlir::Operation *except,
                      AxisState wanted);
  AxisState followedState(mlir::OpOperand &use);
  bool wantsReduced(mlir::OpOperand &use, mlir::Value root);
  double byteSeconds(mlir::Operation *op, mlir::Value value,
                     Exchange::Kind kind) const;
  double outlookSeconds(mlir::Operation *op, mlir::Value result,
                        AxisState state);
  bool isForeign(mlir::Operation *op, mlir::Value value) const;
  bool mayBePartialZero(mlir::Value value) const;

  mlir::func::FuncOp function;
  Options options;
  /// The stored parameters, whatever has moved or converted them.
  llvm::SetVector<mlir::Value> stored;
  llvm::DenseMap<mlir::Value, AxisState> states;
  llvm::DenseMap<mlir::OpOperand *, AxisState> required;
  /// How many operands of operations on the same devices require a value so.
  struct Move {
    AxisState state;
    const void *devices;
    size_t count = 0;
  };
  Move &moveOf(mlir::OpOperand &operand, AxisState state);
  /// What `required` says of each value, but for operands of whale.yield: a
  /// value may have as many users as the program has operations.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Move, 0>> moves;
  /// See namesOf.
  llvm::DenseMap<mlir::Value, Names> names;
  llvm::DenseMap<mlir::Operation *, SubFactor> choices;
  /// Seconds of computation in a step.
  llvm::DenseMap<mlir::Operation *, double> costs;
  /// How split parameters want the gradients that will be added to them.
  llvm::DenseMap<mlir::Value, AxisState> wishes;
  llvm::SetVector<mlir::Value> parameters;
  /// What the gathered parameters are, moved or not.
  llvm::SetVector<mlir::Value> gathered;
  /// What moments add to a sum over all of them, through linear operations.
  llvm::DenseSet<mlir::Value> terms;
  llvm::DenseSet<mlir::Value> zeroCarries;
  /// Loops that waited until somebody wanted a result.
  llvm::DenseSet<mlir::Operation *> lazyLoops;
  /// The last is done next.
  llvm::SmallVector<Task, 0> tasks;
  /// How often the bodies of loops may still be visited to try layouts.
  int64_t roundsLeft = 0;
  double seconds = 0;
};

} // namespace whale

#endif // WHALE_SHARDING_AXISPROPAGATION_H
