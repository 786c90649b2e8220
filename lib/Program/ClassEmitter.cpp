//===- ClassEmitter.cpp - A rank class as JSON ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A translation of what whale-plan-buffers wrote: nothing is decided here. A
// planned buffer that is used under several types (reshapes) appears in the
// program once for each.
//
//===----------------------------------------------------------------------===//

#include "ClassEmitter.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"

using namespace mlir;

namespace whale {

std::string getLabel(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return named.getName().str();
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return getLabel(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (std::string label = getLabel(part); !label.empty())
        return label;
  }
  return "";
}

FailureOr<Json> getRankConstant(ShardOffsetOp op, ArrayRef<int64_t> ranks) {
  const Placement &placement = op.getPlacementAttr().getValue();
  Json values = Json::array();
  for (int64_t rank : ranks) {
    std::optional<Box> box = placement.box(rank);
    if (!box)
      return op.emitError("rank ") << rank << " holds nothing of the value";
    values.push_back(Json::array({box->start[op.getDim()]}));
  }
  return values;
}

int64_t ClassEmitter::planned(Value value) { return plannedOf.at(value); }

int64_t ClassEmitter::buffer(Value value) {
  return buffer(planned(value), cast<RankedTensorType>(value.getType()));
}

int64_t ClassEmitter::wholeBuffer(int64_t number) {
  return buffer(number, types.at(number));
}

int64_t ClassEmitter::buffer(int64_t number, RankedTensorType type) {
  type = RankedTensorType::get(type.getShape(), type.getElementType());
  auto [it, isNew] = numbers.try_emplace({number, type}, buffers.size());
  if (!isNew)
    return it->second;
  auto where = cast<DictionaryAttr>(plan[number]);
  Json json;
  auto place = [&](const char *space, const char *field, int64_t value) {
    json["space"] = space;
    json[field] = value;
  };
  if (Operation *constant = constants.lookup(number)) {
    if (auto offset = dyn_cast<ShardOffsetOp>(constant)) {
      json["space"] = "rank_constant";
      json["values"] = *getRankConstant(offset, *getRanks(function));
    } else {
      auto value = cast<stablehlo::ConstantOp>(constant).getValue();
      // That of all constants of the program isn't known yet.
      place("constant", "offset", 0);
      result.constants.emplace_back(it->second, cast<DenseElementsAttr>(value));
    }
  } else if (auto offset = where.getAs<IntegerAttr>("arena")) {
    place("arena", "offset", offset.getInt());
  } else if (auto index = where.getAs<IntegerAttr>("argument")) {
    place("argument", "index", index.getInt());
  } else {
    place("result", "index", where.getAs<IntegerAttr>("result").getInt());
  }
  json["bytes"] = getTensorBytes(type);
  json["dtype"] = getDTypeName(type.getElementType());
  json["shape"] = toJson(type.getShape());
  buffers.push_back(std::move(json));
  return it->second;
}

// Finds the planned buffer of each value, and what the constants hold.
LogicalResult ClassEmitter::collect() {
  plan = function->getAttrOfType<ArrayAttr>("whale.buffers");
  auto results =
      function->getAttrOfType<DenseI64ArrayAttr>("whale.result_buffers");
  if (!plan || !results)
    return function.emitError("has no buffer plan; run whale-plan-buffers "
                              "first");
  auto note = [&](Value value, int64_t number) {
    plannedOf[value] = number;
    types.try_emplace(number, cast<RankedTensorType>(value.getType()));
  };
  for (BlockArgument argument : function.getArguments())
    note(argument, argument.getArgNumber());
  WalkResult walk = function.walk([&](Operation *op) {
    if (op == function || op->getNumResults() == 0)
      return WalkResult::advance();
    auto out = op->getAttrOfType<DenseI64ArrayAttr>("whale.out");
    if (!out || out.size() != op->getNumResults()) {
      op->emitError("has no buffers; run whale-plan-buffers first");
      return WalkResult::interrupt();
    }
    for (auto [value, number] : llvm::zip(op->getResults(), out.asArrayRef())) {
      note(value, number);
      if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
        for (Region &region : op->getRegions())
          note(region.getArgument(cast<OpResult>(value).getResultNumber()),
               number);
      if (auto offset = dyn_cast<ShardOffsetOp>(op)) {
        constants[number] = op;
        if (failed(getRankConstant(offset, *getRanks(function))))
          return WalkResult::interrupt();
      }
      if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
        constants[number] = op;
        if (!isa<DenseElementsAttr>(constant.getValue())) {
          op->emitError("holds its value in an unknown form");
          return WalkResult::interrupt();
        }
      }
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  for (auto [type, number] :
       llvm::zip(function.getResultTypes(), results.asArrayRef()))
    types.try_emplace(number, cast<RankedTensorType>(type));
  // A buffer that only copies use is of its counterpart's type.
  for (bool again = true; again;) {
    again = false;
    function.walk([&](Operation *op) {
      auto pairs = op->getAttrOfType<DenseI64ArrayAttr>("whale.copies");
      for (int64_t i = 0; pairs && i + 1 < pairs.size(); i += 2)
        for (auto [known, other] : {std::pair{pairs[i], pairs[i + 1]},
                                    std::pair{pairs[i + 1], pairs[i]}})
          if (types.count(known) && !types.count(other)) {
            types.try_emplace(other, types.at(known));
            again = true;
          }
    });
  }
  return success();
}

LogicalResult ClassEmitter::copies(Operation &op, Json &list) {
  auto pairs = op.getAttrOfType<DenseI64ArrayAttr>("whale.copies");
  for (int64_t i = 0; pairs && i + 1 < pairs.size(); i += 2)
    list.push_back({{"op", "copy"},
                    {"src", wholeBuffer(pairs[i])},
                    {"dst", wholeBuffer(pairs[i + 1])}});
  return success();
}

FailureOr<Json> ClassEmitter::launch(LaunchOp op) {
  func::FuncOp kernel = op.getKernelFunc(symbols);
  auto extent = kernel ? kernel->getAttrOfType<IntegerAttr>("whale.extent")
                       : IntegerAttr();
  if (!extent)
    return op.emitError("launches a kernel without whale.extent");
  std::string symbol = op.getKernel().str();
  auto [signature, isNew] = result.kernels.try_emplace(symbol);
  Json used = Json::array(), bytes = Json::array();
  for (ValueRange values :
       {ValueRange(op.getInputs()), ValueRange(op.getOutputs())})
    for (Value value : values) {
      used.push_back(buffer(value));
      if (isNew)
        bytes.push_back(getTensorBytes(value.getType()));
    }
  if (isNew)
    signature->second = {{"inputs", op.getInputs().size()},
                         {"bytes", std::move(bytes)},
                         {"extent", extent.getInt()}};
  Json json{{"op", "kernel"},
            {"symbol", std::move(symbol)},
            {"buffers", std::move(used)},
            {"extent", extent.getInt()}};
  for (auto [attribute, field] :
       {std::pair{"whale.flops", "flops"}, std::pair{"whale.bytes", "bytes"}})
    if (auto number = kernel->getAttrOfType<IntegerAttr>(attribute))
      json[field] = number.getInt();
  return json;
}

Json ClassEmitter::matmul(MatmulOp op) {
  Json batch = Json::array();
  ArrayRef<int64_t> dims = op.getBatch();
  for (size_t i = 0; i + 3 < dims.size(); i += 4)
    batch.push_back(toJson(dims.slice(i, 4)));
  Json json = {{"op", "matmul"},
               {"lhs", buffer(op.getLhs())},
               {"rhs", buffer(op.getRhs())},
               {"out", buffer(op.getOutput())},
               {"batch", std::move(batch)},
               {"m", toJson(op.getM())},
               {"n", toJson(op.getN())},
               {"k", toJson(op.getK())},
               {"flops", op.getFlops()}};
  if (op.getAddend())
    json["accumulate"] = true;
  return json;
}

Json ClassEmitter::convolution(ConvolutionOp op) {
  Json padding = Json::array(), reversal = Json::array(), numbers;
  ArrayRef<int64_t> pads = op.getPadding();
  for (size_t i = 0; i + 1 < pads.size(); i += 2)
    padding.push_back(toJson(pads.slice(i, 2)));
  for (bool reversed : op.getWindowReversal())
    reversal.push_back(reversed);
  numbers["input_batch_dimension"] = op.getInputBatchDimension();
  numbers["input_feature_dimension"] = op.getInputFeatureDimension();
  numbers["input_spatial_dimensions"] = toJson(op.getInputSpatialDimensions());
  numbers["kernel_input_feature_dimension"] =
      op.getKernelInputFeatureDimension();
  numbers["kernel_output_feature_dimension"] =
      op.getKernelOutputFeatureDimension();
  numbers["kernel_spatial_dimensions"] =
      toJson(op.getKernelSpatialDimensions());
  numbers["output_batch_dimension"] = op.getOutputBatchDimension();
  numbers["output_feature_dimension"] = op.getOutputFeatureDimension();
  numbers["output_spatial_dimensions"] =
      toJson(op.getOutputSpatialDimensions());
  return {{"op", "convolution"},
          {"lhs", buffer(op.getLhs())},
          {"rhs", buffer(op.getRhs())},
          {"out", buffer(op.getOutput())},
          {"window_strides", toJson(op.getWindowStrides())},
          {"padding", std::move(padding)},
          {"lhs_dilation", toJson(op.getLhsDilation())},
          {"rhs_dilation", toJson(op.getRhsDilation())},
          {"window_reversal", std::move(reversal)},
          {"dimension_numbers", std::move(numbers)},
          {"feature_group_count", op.getFeatureGroupCount()},
          {"batch_group_count", op.getBatchGroupCount()},
          {"flops", op.getFlops()}};
}

static FailureOr<Json> attributeToJson(Attribute attribute, Operation *op) {
  if (auto boolean = dyn_cast<BoolAttr>(attribute))
    return Json(boolean.getValue());
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return Json(integer.getInt());
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return Json(number.getValueAsDouble());
  if (auto text = dyn_cast<StringAttr>(attribute))
    return Json(text.str());
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute))
    return Json(symbol.getValue().str());
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute))
    return toJson(list.asArrayRef());
  if (auto list = dyn_cast<ArrayAttr>(attribute)) {
    Json json = Json::array();
    for (Attribute element : list) {
      FailureOr<Json> value = attributeToJson(element, op);
      if (failed(value))
        return failure();
      json.push_back(std::move(*value));
    }
    return json;
  }
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    Json json = Json::object();
    for (NamedAttribute entry : dictionary) {
      FailureOr<Json> value = attributeToJson(entry.getValue(), op);
      if (failed(value))
        return failure();
      json[entry.getName().str()] = std::move(*value);
    }
    return json;
  }
  return op->emitError("has a parameter that a program cannot hold: ")
         << attribute;
}

FailureOr<Json> ClassEmitter::call(LibraryCallOp op) {
  Json inputs = Json::array(), outputs = Json::array(), config;
  for (Value value : op.getInputs())
    inputs.push_back(buffer(value));
  for (Value value : op.getOutputs())
    outputs.push_back(buffer(value));
  config = Json::object();
  for (NamedAttribute entry : op->getDiscardableAttrs()) {
    if (entry.getName().strref().starts_with("whale."))
      continue;
    FailureOr<Json> value = attributeToJson(entry.getValue(), op);
    if (failed(value))
      return failure();
    config[entry.getName().str()] = std::move(*value);
  }
  return Json{{"op", "call"},
              {"function", op.getFunction().str()},
              {"inputs", std::move(inputs)},
              {"outputs", std::move(outputs)},
              {"config", std::move(config)}};
}

LogicalResult ClassEmitter::instruction(Operation &op, Json &list) {
  if (failed(copies(op, list)))
    return failure();
  FailureOr<Json> json = Json();
  if (isa<stablehlo::ConstantOp, stablehlo::ReshapeOp, ShardOffsetOp>(op)) {
    return success();
  } else if (auto launchOp = dyn_cast<LaunchOp>(op)) {
    json = launch(launchOp);
  } else if (auto matmulOp = dyn_cast<MatmulOp>(op)) {
    json = matmul(matmulOp);
  } else if (auto convolutionOp = dyn_cast<ConvolutionOp>(op)) {
    json = convolution(convolutionOp);
  } else if (auto callOp = dyn_cast<LibraryCallOp>(op)) {
    json = call(callOp);
  } else if (auto collective = dyn_cast<CollectiveOp>(op)) {
    Value input = collective.getInput(), output = collective.getOutput();
    *json = {{"op", "comm"}, {"channel", collective.getChannel()}};
    (*json)["src"] = input ? Json(buffer(input)) : Json();
    (*json)["dst"] = output ? Json(buffer(output)) : Json();
  } else if (isa<stablehlo::WhileOp>(op)) {
    Block &cond = op.getRegion(0).front();
    FailureOr<Json> first = block(cond),
                    second = block(op.getRegion(1).front());
    if (failed(first) || failed(second))
      return failure();
    *json = {{"op", "while"},
             {"cond", std::move(*first)},
             {"predicate", buffer(cond.getTerminator()->getOperand(0))},
             {"body", std::move(*second)}};
  } else if (isa<stablehlo::CaseOp>(op)) {
    Json branches = Json::array();
    for (Region &region : op.getRegions()) {
      FailureOr<Json> branch = block(region.front());
      if (failed(branch))
        return failure();
      branches.push_back(std::move(*branch));
    }
    *json = {{"op", "case"},
             {"index", buffer(op.getOperand(0))},
             {"branches", std::move(branches)}};
  } else {
    return op.emitError("cannot stand in a program");
  }
  if (failed(json))
    return failure();
  if (std::string label = getLabel(op.getLoc()); !label.empty())
    (*json)["label"] = label;
  list.push_back(std::move(*json));
  return success();
}

FailureOr<Json> ClassEmitter::block(Block &block) {
  Json list = Json::array();
  for (Operation &op : block.without_terminator())
    if (failed(instruction(op, list)))
      return failure();
  if (failed(copies(*block.getTerminator(), list)))
    return failure();
  return list;
}

FailureOr<EmittedClass> ClassEmitter::emit() {
  if (failed(collect()))
    return failure();
  FailureOr<Json> instructions = block(function.getBody().front());
  if (failed(instructions))
    return failure();
  Json &json = result.json;
  json["ranks"] = toJson(*getRanks(function));
  json["arena_bytes"] =
      function->getAttrOfType<IntegerAttr>("whale.arena_bytes").getInt();
  json["buffers"] = std::move(buffers);
  json["instructions"] = std::move(*instructions);
  return std::move(result);
}

} // namespace whale
