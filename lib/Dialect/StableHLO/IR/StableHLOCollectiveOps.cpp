//===- StableHLOCollectiveOps.cpp - Communication ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers and type inference of communication.
//
// In: the operation, or the operands and attributes of a new one. Out: success,
// or an error that states the first violated constraint; where the types of
// results follow from operands and attributes, these types. Comments such as
// all_gather_c1 name the constraint of the StableHLO specification that is
// checked. Cost: n log n in the ids of groups or pairs, which are put in
// ordered sets to find those that occur twice, plus operands times their rank.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include <set>

using namespace mlir;
using namespace mlir::stablehlo;
using whale::Checker;
using whale::elementType;
using whale::mayBeEqual;
using whale::tensorType;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOCollectiveOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Checks groups, one per row: each id at most once; -1 pads short groups.
static LogicalResult verifyGroups(const Checker &check,
                                  DenseIntElementsAttr groups) {
  if (groups.getType().getRank() != 2)
    return check.error("expects replica_groups of rank 2 (got ",
                       groups.getType(), ")");
  // A DenseSet reserves two int64_t values as keys, so it is not used here.
  std::set<int64_t> seen;
  for (int64_t id : groups.getValues<int64_t>()) {
    if (id == -1)
      continue;
    if (id < -1 || !seen.insert(id).second)
      return check.error("expects each id of replica_groups once and none "
                         "negative (got ",
                         id, ")");
  }
  return success();
}

static LogicalResult verifyGlobalIds(const Checker &check, bool useGlobalIds,
                                     ChannelHandleAttr channel) {
  if (useGlobalIds && (!channel || channel.getHandle() <= 0))
    return check.error("expects a positive channel handle with "
                       "use_global_device_ids");
  return success();
}

/// Checks collective_permute_c1 to c4: pairs of ids, each source and target
/// once.
static LogicalResult verifyPairs(const Checker &check,
                                 DenseIntElementsAttr pairs) {
  if (pairs.getType().getRank() != 2 || pairs.getType().getDimSize(1) != 2)
    return check.error("expects source_target_pairs of shape [n, 2] (got ",
                       pairs.getType(), ")");
  std::set<int64_t> sources, targets;
  for (auto [index, id] : llvm::enumerate(pairs.getValues<int64_t>())) {
    bool isSource = index % 2 == 0;
    if (id < 0 || !(isSource ? sources : targets).insert(id).second)
      return check.error("expects each ", isSource ? "source" : "target",
                         " once and none negative (got ", id, ")");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

LogicalResult AllGatherOp::verify() {
  Checker check(*this);
  // all_gather_c2, c3, c4, c5
  if (failed(verifyGroups(check, getReplicaGroups())) ||
      failed(verifyGlobalIds(check, getUseGlobalDeviceIds(),
                             getChannelHandleAttr())) ||
      failed(check.count("results", getNumResults(), getNumOperands())))
    return failure();
  if (getNumOperands() == 0)
    return check.error("expects at least one operand");
  int64_t dim = static_cast<int64_t>(getAllGatherDim());
  for (auto [operand, result] : llvm::zip_equal(getOperands(), getResults())) {
    auto from = tensorType(operand.getType()),
         to = tensorType(result.getType());
    // all_gather_c1
    if (failed(check.inRange("all_gather_dim", dim, from.getRank())) ||
        failed(check.sameElements("operand and result", from, to)))
      return failure();
    // all_gather_c6
    SmallVector<int64_t> others(to.getShape());
    if (to.getRank() == from.getRank())
      others[dim] = from.getDimSize(dim);
    if (failed(check.sameShape("the result, but for all_gather_dim,", others,
                               from.getShape())))
      return failure();
    if (from.isDynamicDim(dim) || to.isDynamicDim(dim))
      continue;
    int64_t part = from.getDimSize(dim), whole = to.getDimSize(dim);
    if (part == 0 ? whole != 0 : whole % part != 0)
      return check.error("expects a result of a multiple of size ", part,
                         " in dimension ", dim, " (got ", whole, ")");
  }
  return success();
}

LogicalResult AllReduceOp::verify() {
  Checker check(*this);
  // all_reduce_c1 to c4
  if (failed(verifyGroups(check, getReplicaGroups())) ||
      failed(verifyGlobalIds(check, getUseGlobalDeviceIds(),
                             getChannelHandleAttr())) ||
      failed(check.count("results", getNumResults(), getNumOperands())))
    return failure();
  if (getNumOperands() == 0)
    return check.error("expects at least one operand");
  // all_reduce_c5: one region reduces all operands.
  for (auto [operand, result] : llvm::zip_equal(getOperands(), getResults())) {
    Type type = operand.getType();
    if (failed(check.reducer(getComputation(), type, type)))
      return failure();
    // all_reduce_c6, all_reduce_c7
    Type element =
        elementType(getComputation().front().getArgument(0).getType());
    if (!areCompatibleTypes(result.getType(), tensorType(type).clone(element)))
      return check.error("expects a result of the operand's shape and the "
                         "region's element type (got ",
                         result.getType(), ")");
  }
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  Checker check(*this);
  RankedTensorType from = getOperand().getType(), to = getType();
  int64_t dim = static_cast<int64_t>(getScatterDimension());
  // reduce_scatter_c2 to c7
  if (failed(verifyGroups(check, getReplicaGroups())) ||
      failed(verifyGlobalIds(check, getUseGlobalDeviceIds(),
                             getChannelHandleAttr())) ||
      failed(check.inRange("scatter_dimension", dim, from.getRank())) ||
      failed(check.reducer(getComputation(), from, from)) ||
      failed(check.sameElements(
          "result and region", to,
          getComputation().front().getArgument(0).getType())))
    return failure();
  // reduce_scatter_c1, reduce_scatter_c8
  SmallVector<int64_t> others(to.getShape());
  if (to.getRank() == from.getRank())
    others[dim] = from.getDimSize(dim);
  if (failed(check.sameShape("the result, but for scatter_dimension,", others,
                             from.getShape())))
    return failure();
  if (from.isDynamicDim(dim) || to.isDynamicDim(dim))
    return success();
  int64_t whole = from.getDimSize(dim), part = to.getDimSize(dim);
  if (part == 0 ? whole != 0 : whole % part != 0)
    return check.error("expects an operand of a multiple of size ", part,
                       " in dimension ", dim, " (got ", whole, ")");
  return success();
}

LogicalResult AllToAllOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> location,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  int64_t split = adaptor.getSplitDimension();
  int64_t concat = adaptor.getConcatDimension();
  int64_t count = adaptor.getSplitCount();
  // all_to_all_c4
  if (failed(check.atLeast("split_count", count, 1)))
    return failure();
  for (Type operand : adaptor.getOperands().getTypes()) {
    auto type = tensorType(operand);
    // all_to_all_c1, all_to_all_c3
    if (failed(check.inRange("split_dimension", split, type.getRank())) ||
        failed(check.inRange("concat_dimension", concat, type.getRank())))
      return failure();
    // all_to_all_c2
    SmallVector<int64_t> shape(type.getShape());
    if (!ShapedType::isDynamic(shape[split])) {
      if (shape[split] % count != 0)
        return check.error("expects size ", shape[split],
                           " of split_dimension to be divisible by "
                           "split_count (",
                           count, ")");
      shape[split] /= count;
    }
    // all_to_all_c9
    if (!ShapedType::isDynamic(shape[concat]) &&
        llvm::MulOverflow(shape[concat], count, shape[concat]))
      return check.error("expects a result whose size can be represented");
    results.push_back(RankedTensorType::get(shape, type.getElementType()));
  }
  return success();
}

LogicalResult AllToAllOp::verify() {
  Checker check(*this);
  DenseIntElementsAttr groups = getReplicaGroups();
  // all_to_all_c5, c7, c8
  if (failed(verifyGroups(check, groups)))
    return failure();
  int64_t size = groups.getType().getDimSize(1);
  if (groups.getNumElements() != 0 &&
      size != static_cast<int64_t>(getSplitCount()))
    return check.error("expects groups of split_count (", getSplitCount(),
                       ") processes (got ", size, ")");
  return success();
}

LogicalResult CollectiveBroadcastOp::verify() {
  // collective_broadcast_c1, collective_broadcast_c2
  return verifyGroups(Checker(*this), getReplicaGroups());
}

LogicalResult CollectivePermuteOp::verify() {
  return verifyPairs(Checker(*this), getSourceTargetPairs());
}

LogicalResult PartitionIdOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location> location,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &results) {
  results.push_back(RankedTensorType::get(
      {}, IntegerType::get(context, 32, IntegerType::Unsigned)));
  return success();
}

LogicalResult ReplicaIdOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  results.push_back(RankedTensorType::get(
      {}, IntegerType::get(context, 32, IntegerType::Unsigned)));
  return success();
}

//===----------------------------------------------------------------------===//
// Point to point, asynchronous
//===----------------------------------------------------------------------===//

LogicalResult SendOp::verify() {
  // send_c3, send_c4
  auto pairs = getSourceTargetPairs();
  return pairs ? verifyPairs(Checker(*this), *pairs) : success();
}

LogicalResult RecvOp::verify() {
  Checker check(*this);
  // recv_c1, recv_c2
  TypeRange types = getResultTypes();
  if (types.empty() || !isa<TokenType>(types.back()))
    return check.error("expects a token as the last result");
  for (Type type : types.drop_back())
    if (!isa<RankedTensorType>(type))
      return check.error("expects tensors before the token (got ", type, ")");
  auto pairs = getSourceTargetPairs();
  return pairs ? verifyPairs(check, *pairs) : success();
}

LogicalResult AsyncStartOp::verify() {
  Checker check(*this);
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getOperandTypes())
    return check.error("expects region arguments of the operands' types");
  auto terminator =
      dyn_cast_if_present<ReturnOp>(block.empty() ? nullptr : &block.back());
  if (!terminator)
    return check.error("expects a region that ends with stablehlo.return");
  if (terminator.getOperandTypes() !=
      TypeRange(cast<FutureType>(getType()).getTypes()))
    return check.error("expects a region that returns the future's types");
  return success();
}

LogicalResult AsyncDoneOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  llvm::append_range(
      results, cast<FutureType>(adaptor.getOperand().getType()).getTypes());
  return success();
}
